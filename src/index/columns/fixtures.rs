//! Random tables for tests.

use crate::columns::first_batches::BatchTimes;
use crate::columns::part::Part;
use crate::columns::rank_key::{ADULT, rank_key};
use crate::columns::table::Table;
use crate::columns::tlds::Tlds;
use crate::columns::typos::Typos;
use crate::corpus::drops::DROP_RULES;
use crate::error::BuildError;
use crate::scorer::Coverage;
use crate::storage::draft::Draft;
use crate::storage::files::Files;
use crate::storage::manifest::{GenerationId, INDEX_FORMAT, Manifest};
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::name::DomainName;
use crate::vocab::outcome::{Completeness, Horizon, Return, ReturnTime};
use crate::vocab::popularity::{ListRank, ListedRank, PopularityList};
use crate::vocab::time::UnixMs;

/// A generator of tables.
pub struct TestTables {
    state: u64,
}

/// TLDs; the first one has most names.
const TLDS: [&str; 12] = [
    "com",
    "net",
    "de",
    "co.uk",
    "org",
    "xn--p1ai",
    "museum",
    "io",
    "ab",
    "com.br",
    "xn--fiqs8s",
    "se",
];
/// Number of batches that reported the drops.
const BATCHES: usize = 12;
const PIECES: [&str; 17] = [
    "porn", "a", "b", "ab", "aa", "e", "x-", "7", "q", "ing", "shop", "com", "ü", "ö", "я", "п",
    "中",
];

impl TestTables {
    /// Creates a generator, which returns the same tables for the same seed.
    pub fn new(seed: u64) -> TestTables {
        TestTables { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 }
    }

    /// Returns a number below `below`.
    pub fn below(&mut self, below: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 16) as usize % below
    }

    /// Returns text of one or more pieces of names.
    pub fn text(&mut self, pieces: usize) -> String {
        (0..=self.below(pieces)).map(|_| PIECES[self.below(PIECES.len())]).collect()
    }

    /// Returns a name; `None` if the random text is not one.
    pub fn name(&mut self) -> Option<DomainName> {
        let most = self.below(TLDS.len()) + 1;
        let tld = TLDS[self.below(most)];
        DomainName::parse(&format!("{}.{tld}", self.text(5))).ok()
    }

    /// Returns a table of about `names` names, most of them dropped.
    pub fn table(&mut self, names: usize) -> Table {
        let names = (0..names).filter_map(|_| self.name()).collect();
        self.table_of(names)
    }

    /// Returns a table of these names, most of them dropped.
    pub fn table_of(&mut self, names: Vec<DomainName>) -> Table {
        let mut all = names;
        all.sort_by(|left, right| left.as_str().cmp(right.as_str()));
        all.dedup_by(|left, right| left.as_str() == right.as_str());
        let tlds = Tlds::new(TLDS.map(str::to_owned).into());
        let mut parts: Vec<Part> = Vec::new();
        for name in &all {
            let cut = self.below(all.len() / 3 + 1) == 0;
            if parts.last().is_none_or(|_| cut) {
                parts.push(Part::default());
            }
            let part = parts.last_mut().expect("one was pushed");
            self.push(part, name, &tlds);
        }
        let batch_days = (0..BATCHES).map(|_| 985 + self.below(20) as u16);
        let times = |ingested: Day| BatchTimes {
            ingested,
            observed: UnixMs::from_instant(ingested.start()),
        };
        let batches = batch_days.filter_map(Day::from_raw).map(times).collect();
        Table {
            parts: parts.into_iter().collect(),
            tlds,
            coverage: Coverage::NONE,
            left_out: 0,
            drop_dates: Vec::new(),
            batches,
            typos: Typos::default(),
        }
    }

    fn returned(&mut self, is_again: bool) -> u8 {
        let (time, shown) = (ReturnTime::Within(Horizon::ALL[self.below(4)]), self.below(3));
        let of = Return { time, shown: Completeness::ALL[shown] };
        Return::byte(is_again.then_some(of))
    }

    fn push(&mut self, part: &mut Part, name: &DomainName, tlds: &Tlds) {
        part.text.extend_from_slice(name.as_str().as_bytes());
        part.spans.push(name.as_str().len()).expect("short");
        part.label_len.push(name.label_len());
        let dqs = Dqs::clamped([0, 30, 31, 45, 100][self.below(5)]);
        let adult = if self.below(6) == 0 { ADULT } else { 0 };
        part.key.push(rank_key(dqs, name.length()) | adult);
        part.tld.push(tlds.find(name.tld()).expect("made of these"));
        let dropped = self.below(10) > 0;
        part.registered.push(!dropped && self.below(2) == 0);
        if !dropped {
            return;
        }
        let at = part.spans.len() as u32 - 1;
        let earlier_drops = self.below(8).saturating_sub(5) as u16;
        for turn in 0..earlier_drops {
            let earlier = &mut part.earlier;
            earlier.at.push(at);
            earlier.date.push(500 + turn);
            earlier.release.push(501 + turn + self.below(20) as u16);
            earlier.returned.push(self.returned(true));
            if turn == 1 {
                earlier.late.push([earlier.at.len() as u32 - 1, 600]);
            }
        }
        let drops = &mut part.drops;
        drops.at.push(at);
        let date = 990 + self.below(20) as u16;
        drops.date.push(date);
        drops.release.push(date + self.below(20) as u16);
        if date.is_multiple_of(3) {
            let second = (at * 7_919 + u32::from(date)) % (24 * 60 * 60);
            drops.release_seconds.push([drops.at.len() as u32 - 1, second]);
        }
        let is_again = self.below(6) == 0;
        drops.returned.push(self.returned(is_again));
        if is_again && date.is_multiple_of(5) {
            drops.late.push([drops.at.len() as u32 - 1, u32::from(date) + 40]);
        }
        drops.first_batch.push(1 + self.below(BATCHES) as u32);
        drops.rank.push([9, 10, 11, 700][self.below(4)]);
        drops.spread.push(1 + self.below(300) as u16);
        drops.open_tlds.push(1 + self.below(300) as u16);
        drops.count.push(1 + earlier_drops as u8);
        let features = 0..self.below(9) as u8;
        drops.feature_spans.push(features.len()).expect("short");
        drops.features.extend(features);
        for list in PopularityList::ALL {
            if self.below(6) == 0 {
                let rank = ListRank::new(1 + self.below(1_000) as u32).expect("in range");
                drops.ranks.push((drops.at.len() as u32 - 1, ListedRank { list, rank }));
            }
        }
    }
}

/// Writes files and opens them like a server.
///
/// # Errors
/// `write` fails.
pub fn round_trip(
    write: impl FnOnce(&Draft) -> Result<(), BuildError>,
) -> Result<(tempfile::TempDir, Files), BuildError> {
    let folder = tempfile::tempdir().expect("a folder");
    let draft = Draft::new(folder.path().join("gen")).expect("a folder");
    write(&draft)?;
    let manifest = Manifest {
        format: INDEX_FORMAT,
        drop_rules: DROP_RULES,
        generation: GenerationId(1),
        created: chrono::DateTime::UNIX_EPOCH,
        scorer_version: 1,
        tantivy: String::new(),
        fst: String::new(),
        corpus: String::new(),
        batches: 0,
        seen: Default::default(),
        internal_lists: Vec::new(),
        popularity: Vec::new(),
        newest_observed_at: None,
        suffixes: None,
        tables: Default::default(),
        coverage: Coverage::NONE,
        extends: None,
        names: 0,
        drops: 0,
        dropped: 0,
        drop_dates: Vec::new(),
        tlds: Vec::new(),
        files: draft.sums(),
    };
    let files = Files::new(draft.folder(), &manifest);
    Ok((folder, files))
}
