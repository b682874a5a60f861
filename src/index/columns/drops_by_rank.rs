//! The drops list: names that dropped and were not registered again, in rank order. In: columns,
//! TLDs and trigrams of dropped names. Out: docs that pass a filter, best first.
//! [`crate::index::query`] builds the rows from columns and records.
//!
//! Docs are positions in rank order, so the first matches are the result and no query sorts.
//! `min_dqs` is a range of docs. All other
//! conditions are bitmaps of docs, computed for a window of docs and combined word by word: lengths
//! are compared, stages are bitmaps for the day ([`DayStages`]), TLDs and single characters are stored as bitmaps,
//! postings set bits. Windows grow during the walk: first pages cost little, and an offset is
//! counted instead of visited.
//!
//! Columns are flat files of two bytes a doc. tantivy columns would be read into the same vectors,
//! and writing six of them took a microsecond a name (3 million names, a loaded machine), as much
//! as this whole part takes now.

use std::hint::black_box;
use std::io;
use std::ops::ControlFlow;

use crate::index::columns::day::{DayStages, DropDates, StageDocs};
use crate::index::columns::first_batches::FirstBatches;
use crate::index::columns::rank_key::{dqs_of, length_of, order_key, rank_key};
use crate::index::columns::rank_order::{DropRows, RankOrder};
use crate::index::columns::records::ScoreRecords;
use crate::index::columns::table::Table;
use crate::index::columns::tld_docs::{DocSet, TldDocs};
use crate::index::columns::tlds::Tlds;
use crate::index::columns::trigram_writer;
use crate::index::columns::trigrams::{SearchedNames, Seeker, Trigrams};
use crate::index::error::{BuildError, GenerationError};
use crate::index::filter::DropFilter;
use crate::index::storage::draft::Draft;
use crate::index::storage::files::Files;
use crate::vocab::budget;
use crate::vocab::dqs::Dqs;
use crate::vocab::limits::LABEL_CHARS_MAX;

const TLD: &str = "listed.tld";
const KEY: &str = "listed.key";
const RANK: &str = "listed.rank";
const DROP_DATE: &str = "listed.drop-date";
const RELEASE: &str = "listed.release";

/// Words of the first window, and of the largest, which fits the L1 cache.
const WINDOW_WORDS_MIN: usize = 32;
const WINDOW_WORDS_MAX: usize = 1 << 10;

/// Dropped names of a generation, by doc.
pub struct DropsByRank {
    /// Docs on the list; names registered again come behind them.
    listed: u32,
    tld: Vec<u16>,
    key: Vec<u16>,
    rank: Vec<u16>,
    drop_date: Vec<u16>,
    release: Vec<u16>,
    first_batches: FirstBatches,
    /// For each score, best first: the first doc that is worse.
    cuts: Vec<u32>,
    tld_docs: TldDocs,
    trigrams: Trigrams,
}

/// Writes the drops list, the records and the n-grams of the dropped names of `table`.
///
/// # Errors
/// A write fails, or the records exceed 4 GiB.
pub fn write(table: &Table, order: &RankOrder, draft: &Draft) -> Result<(), BuildError> {
    let mut rows = DropRows::gather(table, order)?;
    let records = std::mem::take(&mut rows.records);
    let on_list = &rows.tld[..rows.listed as usize];
    let (flat, grams) = rayon::join(
        || {
            draft.put(TLD, &rows.tld)?;
            draft.put(KEY, &rows.key)?;
            draft.put(RANK, &rows.rank)?;
            draft.put(DROP_DATE, &rows.drop_date)?;
            draft.put(RELEASE, &rows.release)?;
            FirstBatches::write(&rows.first_batch, &table.batch_days, draft)?;
            TldDocs::new(on_list, table.tlds.len()).write(draft)?;
            records.write(draft)
        },
        || trigram_writer::write(&records, on_list, &table.tlds, draft),
    );
    flat.and(grams)
}

impl DropsByRank {
    /// Opens what [`write`] wrote: `dropped` names, of which `listed` are on the list.
    ///
    /// # Errors
    /// A file is damaged or does not fit the others.
    pub fn open(
        files: &Files,
        tlds: &Tlds,
        dropped: u32,
        listed: u32,
    ) -> Result<DropsByRank, GenerationError> {
        let (tld, key) = (files.take::<u16>(TLD)?, files.take::<u16>(KEY)?);
        let rank = files.take::<u16>(RANK)?;
        let (drop_date, release) = (files.take(DROP_DATE)?, files.take(RELEASE)?);
        let fits = listed <= dropped
            && [&tld, &key, &rank, &drop_date, &release].map(Vec::len) == [dropped as usize; 5]
            && tld.iter().all(|&tld| usize::from(tld) < tlds.len())
            && (0..listed as usize).map(|doc| order_key(key[doc], rank[doc])).is_sorted()
            && key.iter().all(|&key| key >> 8 <= rank_key(Dqs::MIN, 0) >> 8);
        files.check(fits, KEY)?;
        let cuts = cuts(&key[..listed as usize]);
        let first_batches = FirstBatches::open(files, dropped)?;
        let tld_docs = TldDocs::open(files, listed, tlds.len())?;
        let trigrams = Trigrams::open(files, listed, tlds)?;
        Ok(DropsByRank {
            listed,
            tld,
            key,
            rank,
            drop_date,
            release,
            first_batches,
            cuts,
            tld_docs,
            trigrams,
        })
    }

    /// Returns the columns that stages are computed from.
    pub fn dates(&self) -> DropDates<'_> {
        let DropsByRank { listed, tld, drop_date, release, .. } = self;
        DropDates { listed: *listed, tlds: tld, drop_dates: drop_date, releases: release }
    }

    /// Returns the number of docs on the drops list.
    pub fn len(&self) -> u32 {
        self.listed
    }

    /// Returns the TLD numbers of all dropped names, by doc.
    pub fn tlds(&self) -> &[u16] {
        &self.tld
    }

    /// Returns the rank keys by doc.
    pub fn keys(&self) -> &[u16] {
        &self.key
    }

    /// Returns the unrounded scores by doc, as [`crate::scorer::Grade::rank`].
    pub fn ranks(&self) -> &[u16] {
        &self.rank
    }

    /// Returns the latest drop dates by doc, as [`crate::vocab::day::Day::raw`].
    pub fn drop_dates(&self) -> &[u16] {
        &self.drop_date
    }

    /// Returns the effective releases by doc.
    pub fn releases(&self) -> &[u16] {
        &self.release
    }

    /// Returns which list reported each drop first.
    pub fn first_batches(&self) -> &FirstBatches {
        &self.first_batches
    }

    /// Loads the columns of some docs in parallel: see [`ScoreRecords::prefetch`].
    pub fn prefetch(&self, docs: &[u32]) {
        let of =
            |doc: usize| self.tld[doc] ^ self.key[doc] ^ self.drop_date[doc] ^ self.release[doc];
        black_box(docs.iter().fold(0, |all, &doc| all ^ of(doc as usize)));
    }

    /// Returns the score of a doc.
    pub fn dqs(&self, doc: u32) -> Dqs {
        dqs_of(self.key[doc as usize])
    }

    /// Returns the label length of a doc in characters.
    pub fn length(&self, doc: u32) -> u8 {
        length_of(self.key[doc as usize])
    }

    /// Returns the number of docs with at least this score; they come first.
    pub fn docs_from(&self, min_dqs: Dqs) -> u32 {
        let worst = usize::from(rank_key(min_dqs, 0) >> 8);
        self.cuts[worst]
    }

    /// Calls `visit` with the docs that pass `filter`, best first, from its offset on until it
    /// breaks. The limit is the caller's.
    ///
    /// # Errors
    /// The trigrams cannot be read; does not happen with verified files.
    pub fn for_each(
        &self,
        filter: &DropFilter,
        day: &DayStages,
        tlds: &Tlds,
        records: &ScoreRecords,
        visit: impl FnMut(u32) -> ControlFlow<()>,
    ) -> io::Result<()> {
        let mut offset = filter.offset;
        self.walk(filter, day, tlds, records)?.run(&mut offset, visit)
    }

    /// Counts the docs that pass `filter`, ignoring offset and limit.
    ///
    /// # Errors
    /// As [`DropsByRank::for_each`].
    pub fn count(
        &self,
        filter: &DropFilter,
        day: &DayStages,
        tlds: &Tlds,
        records: &ScoreRecords,
    ) -> io::Result<u32> {
        let mut left = u32::MAX;
        self.walk(filter, day, tlds, records)?.run(&mut left, |_| ControlFlow::Continue(()))?;
        Ok(u32::MAX - left)
    }

    fn walk<'a>(
        &'a self,
        filter: &DropFilter,
        day: &'a DayStages,
        tlds: &'a Tlds,
        records: &'a ScoreRecords,
    ) -> io::Result<Walk<'a>> {
        let names = SearchedNames { tld: &self.tld, tlds, records };
        let wanted = tlds.numbers(&filter.common.tlds);
        let seeker = match &filter.contains {
            Some(text) => Some(self.trigrams.seeker(
                text.as_str(),
                names,
                &self.tld_docs,
                wanted.as_deref(),
            )?),
            None => None,
        };
        Ok(Walk {
            end: self.docs_from(filter.common.min_dqs),
            lengths: (filter.common.max_len < LABEL_CHARS_MAX)
                .then_some((filter.common.max_len, &self.key[..])),
            stages: day.docs_in(filter.view),
            members: wanted.map(|numbers| self.tld_docs.members(numbers)),
            seeker,
        })
    }
}

/// Computes [`DropsByRank::cuts`].
fn cuts(keys: &[u16]) -> Vec<u32> {
    let scores = 0..=u16::from(Dqs::MAX.points());
    scores.map(|score| keys.partition_point(|&key| key >> 8 <= score) as u32).collect()
}

/// State of one query.
struct Walk<'a> {
    /// The first doc whose score is too low.
    end: u32,
    /// The longest length, and the rank keys by doc; `None` lets all lengths pass.
    lengths: Option<(u8, &'a [u16])>,
    stages: StageDocs<'a>,
    /// `None` lets all TLDs pass.
    members: Option<DocSet<'a>>,
    seeker: Option<Seeker<'a>>,
}

impl Walk<'_> {
    /// Visits the matches except the first `offset`, which counts down.
    fn run(
        mut self,
        offset: &mut u32,
        mut visit: impl FnMut(u32) -> ControlFlow<()>,
    ) -> io::Result<()> {
        let (mut from, mut size) = (0, WINDOW_WORDS_MIN);
        let mut words = Vec::with_capacity(WINDOW_WORDS_MAX);
        let mut scratch = Vec::with_capacity(WINDOW_WORDS_MAX);
        while let Some(doc) = self.next(from)?
            && !budget::spent()
        {
            let first = doc as usize / 64;
            words.clear();
            words.resize(size, 0);
            self.fill(first, &mut words);
            if let Some(members) = &mut self.members {
                scratch.clear();
                scratch.resize(size, 0);
                members.mark(first, &mut scratch);
                words.iter_mut().zip(&scratch).for_each(|(word, members)| *word &= members);
            }
            if let Some(seeker) = &mut self.seeker
                && words.iter().any(|&word| word != 0)
            {
                seeker.keep(first, &mut words)?;
            }
            if visit_bits(first, &words, offset, &mut visit).is_break() {
                break;
            }
            from = ((first + size) * 64) as u32;
            size = (size * 4).min(WINDOW_WORDS_MAX);
        }
        Ok(())
    }

    /// Returns a doc from `from` on before which nothing matches; `None` if nothing does.
    fn next(&mut self, from: u32) -> io::Result<Option<u32>> {
        let mut next = Some(from);
        if let (Some(members), Some(doc)) = (&mut self.members, next) {
            next = members.next(doc);
        }
        if let (Some(seeker), Some(doc)) = (&mut self.seeker, next) {
            next = seeker.next(doc)?;
        }
        Ok(next.filter(|&doc| doc < self.end))
    }

    /// Sets the bits of the docs that pass by score, stage and length.
    fn fill(&self, first: usize, words: &mut [u64]) {
        let end = self.end as usize;
        let used = words.len().min(end.div_ceil(64) - first);
        self.stages.copy(first, &mut words[..used]);
        if first + used == end.div_ceil(64) && !end.is_multiple_of(64) {
            words[used - 1] &= (1 << (end % 64)) - 1;
        }
        let Some((longest, keys)) = self.lengths else { return };
        for (word, keys) in words[..used].iter_mut().zip(keys[first * 64..end].chunks(64)) {
            if *word != 0 {
                *word &= short(keys, longest);
            }
        }
    }
}

/// Bits of the keys whose length is at most `longest`.
fn short(keys: &[u16], longest: u8) -> u64 {
    keys.iter().rev().fold(0, |bits, &key| bits << 1 | u64::from(length_of(key) <= longest))
}

/// Visits the docs whose bits are set, except the first `offset`, which counts down.
fn visit_bits(
    first: usize,
    words: &[u64],
    offset: &mut u32,
    visit: &mut impl FnMut(u32) -> ControlFlow<()>,
) -> ControlFlow<()> {
    for (at, &word) in (first..).zip(words) {
        let mut left = word;
        if *offset >= left.count_ones() {
            *offset -= left.count_ones();
            continue;
        }
        while left != 0 {
            let doc = (at * 64) as u32 + left.trailing_zeros();
            left &= left - 1;
            if *offset > 0 {
                *offset -= 1;
            } else {
                visit(doc)?;
            }
        }
    }
    ControlFlow::Continue(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::columns::fixtures::{TestTables, round_trip};
    use crate::index::columns::idn::alias_of;
    use crate::index::filter::{AsOf, CommonFilter, View};
    use crate::vocab::day::Day;
    use crate::vocab::name::DomainName;
    use crate::vocab::query::Substring;
    use crate::vocab::stage::Stage;

    /// A name on the list, as the table has it.
    struct Row {
        name: String,
        alias: Option<String>,
        tld: u16,
        key: u16,
        rank: u16,
        drop_date: u16,
        release: u16,
        first_batch: u32,
    }

    struct Built {
        tlds: Tlds,
        listed: DropsByRank,
        records: ScoreRecords,
        /// In rank order.
        rows: Vec<Row>,
    }

    fn rows(table: &Table) -> Vec<Row> {
        let mut rows = Vec::new();
        for part in &table.parts {
            for (drop, &at) in
                part.drops.at.iter().enumerate().filter(|&(drop, _)| !part.drops.again[drop])
            {
                let name = String::from_utf8(part.name(at as usize).to_vec()).expect("ASCII");
                rows.push(Row {
                    alias: alias_of(&name),
                    name,
                    tld: part.tld[at as usize],
                    key: part.key[at as usize],
                    rank: part.drops.rank[drop],
                    drop_date: part.drops.date[drop],
                    release: part.drops.release[drop],
                    first_batch: part.drops.first_batch[drop],
                });
            }
        }
        let place = |row: &Row| order_key(row.key, row.rank);
        rows.sort_by(|left, right| (place(left), &left.name).cmp(&(place(right), &right.name)));
        rows
    }

    fn build(table: Table) -> Built {
        let order = RankOrder::new(&table);
        let (_folder, files) = round_trip(|draft| write(&table, &order, draft)).expect("written");
        let dropped = table.dropped();
        let listed =
            DropsByRank::open(&files, &table.tlds, dropped, order.listed()).expect("sound");
        let records = ScoreRecords::open(&files, dropped).expect("sound");
        files.finish().expect("all files were read");
        Built { listed, records, rows: rows(&table), tlds: table.tlds }
    }

    impl Row {
        fn passes(&self, filter: &DropFilter, as_of: AsOf, tlds: &Tlds) -> bool {
            let day = |raw| Day::from_raw(raw).expect("a day");
            let pending = tlds.pending_days(self.tld);
            let stage = Stage::on(as_of.today, day(self.release), pending, as_of.catch_days);
            let in_pipeline = match filter.view {
                View::All => true,
                View::Today => day(self.drop_date) == as_of.today,
                View::Active => stage != Stage::Released,
                View::Stage(wanted) => stage == wanted,
            };
            let common = &filter.common;
            let holds = |text: &Substring| {
                self.name.contains(text.as_str())
                    || self.alias.as_ref().is_some_and(|alias| alias.contains(text.as_str()))
            };
            in_pipeline
                && dqs_of(self.key) >= common.min_dqs
                && length_of(self.key) <= common.max_len
                && (common.tlds.is_empty()
                    || common.tlds.iter().any(|tld| tld == tlds.name(self.tld)))
                && filter.contains.as_ref().is_none_or(holds)
        }
    }

    impl Built {
        fn check(&self, filter: &DropFilter, day: &DayStages, as_of: AsOf) {
            let passes = |(_, row): &(u32, &Row)| row.passes(filter, as_of, &self.tlds);
            let expected: Vec<u32> = (0..)
                .zip(&self.rows)
                .filter(passes)
                .map(|(doc, _)| doc)
                .skip(filter.offset as usize)
                .take(filter.limit as usize)
                .collect();
            let mut found = Vec::new();
            let visit = |doc| {
                found.push(doc);
                if found.len() as u32 == filter.limit {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            };
            self.listed.for_each(filter, day, &self.tlds, &self.records, visit).expect("readable");
            assert_eq!(found, expected, "{filter:?}");
            if filter.offset == 0 && filter.limit as usize > self.rows.len() {
                let counted = self.listed.count(filter, day, &self.tlds, &self.records);
                assert_eq!(counted.expect("readable") as usize, expected.len(), "{filter:?}");
            }
        }
    }

    /// A text that some name holds, or may hold.
    fn text(made: &mut TestTables, rows: &[Row]) -> Option<Substring> {
        if rows.is_empty() || made.below(4) == 0 {
            return Substring::parse(&made.text(3)).ok();
        }
        let row = &rows[made.below(rows.len())];
        let form = row.alias.as_ref().filter(|_| made.below(2) == 0).unwrap_or(&row.name);
        let chars: Vec<char> = form.chars().collect();
        let first = made.below(chars.len());
        let most = if made.below(2) == 0 { 3 } else { chars.len() - first };
        let len = made.below(most.min(chars.len() - first)) + 1;
        Some(Substring::from_stored(chars[first..first + len].iter().collect()))
    }

    fn filter(made: &mut TestTables, rows: &[Row]) -> DropFilter {
        let mut common = CommonFilter::default();
        if made.below(3) == 0 {
            common.min_dqs = Dqs::clamped([0, 1, 30, 31, 32, 99, 100][made.below(7)]);
        }
        if made.below(3) == 0 {
            common.max_len = 1 + made.below(30) as u8;
        }
        if made.below(3) == 0 {
            let tlds = ["com", "museum", "xn--p1ai", "nosuch", "io", "com", "se", "ab"];
            common.tlds =
                (0..=made.below(4)).map(|_| tlds[made.below(tlds.len())].into()).collect();
        }
        DropFilter {
            common,
            view: View::EVERY[made.below(View::EVERY.len())],
            contains: if made.below(4) == 0 { None } else { text(made, rows) },
            limit: [1, 2, 20, 1_000_000][made.below(4)],
            offset: [0, 0, 1, 63, 64, 500][made.below(6)],
        }
    }

    #[test]
    fn answers_are_those_of_a_scan() {
        for (seed, names) in
            [(1, 0), (2, 1), (3, 2), (4, 64), (5, 130), (6, 700), (7, 6_000), (8, 30_000)]
        {
            let mut made = TestTables::new(seed);
            let built = build(made.table(names));
            let today = Day::from_raw(1_000).expect("a day");
            for catch_days in [0, 5] {
                let as_of = AsOf { today, catch_days };
                let day = DayStages::new(built.listed.dates(), &built.tlds, as_of);
                let turns = if names > 10_000 { 400 } else { 1_500 };
                for _ in 0..turns {
                    built.check(&filter(&mut made, &built.rows), &day, as_of);
                }
            }
        }
    }

    /// The Unicode form of its label ends with the head of the text, the A-label form of its TLD
    /// starts with the tail: no form of the name holds both.
    #[test]
    fn forms_of_a_name_are_not_mixed() {
        let name = DomainName::parse("éböse.xn--p1ai").expect("a name");
        assert!(name.label().ends_with('e') && !name.label().ends_with("se"));
        let built = build(TestTables::new(3).table_of(vec![name]));
        assert_eq!(built.rows.len(), 1, "this seed drops it");
        let as_of = AsOf { today: Day::from_raw(1_000).expect("a day"), catch_days: 5 };
        let day = DayStages::new(built.listed.dates(), &built.tlds, as_of);
        for text in ["se.xn", "e.xn", "se.р", "se.рф", "se.", "sé.xn"] {
            let filter = DropFilter {
                common: CommonFilter::default(),
                view: View::All,
                contains: Substring::parse(text).ok(),
                limit: 10,
                offset: 0,
            };
            built.check(&filter, &day, as_of);
        }
    }

    #[test]
    fn columns_are_those_of_the_rows() {
        let built = build(TestTables::new(9).table(3_000));
        assert_eq!(built.listed.len() as usize, built.rows.len());
        for (doc, row) in (0..).zip(&built.rows) {
            let at = doc as usize;
            assert_eq!(
                (built.listed.dqs(doc), built.listed.length(doc)),
                (dqs_of(row.key), length_of(row.key))
            );
            assert_eq!((built.listed.tlds()[at], built.listed.ranks()[at]), (row.tld, row.rank));
            assert_eq!(built.listed.drop_dates()[at], row.drop_date);
            assert_eq!(built.listed.releases()[at], row.release);
            assert_eq!(built.listed.first_batches().number(doc), row.first_batch);
            let label = built.records.get(doc).label;
            assert_eq!(format!("{label}.{}", built.tlds.name(row.tld)), row.name);
        }
    }

    /// On every day around the borders, for TLDs with and without pending-delete days.
    #[test]
    fn stages_are_those_of_the_vocabulary() {
        let built = build(TestTables::new(10).table(2_000));
        let raw = |raw| Day::from_raw(raw).expect("a day");
        for catch_days in [0, 1, 5] {
            for today in 980..1_060 {
                let as_of = AsOf { today: raw(today), catch_days };
                let day = DayStages::new(built.listed.dates(), &built.tlds, as_of);
                let mut present = vec![0; built.tlds.len()];
                for (code, row) in day.by_doc().iter().zip(&built.rows) {
                    let pending = built.tlds.pending_days(row.tld);
                    let stage = Stage::on(as_of.today, raw(row.release), pending, catch_days);
                    let of_today =
                        u8::from(row.drop_date == today) * crate::index::filter::DROPPED_TODAY;
                    assert_eq!(*code, View::Stage(stage).code_mask() | of_today);
                    present[usize::from(row.tld)] |= code;
                }
                assert_eq!(day.by_doc().len(), built.listed.tlds().len());
                assert!(day.by_doc()[built.rows.len()..].iter().all(|&code| code == 0));
                for view in View::EVERY {
                    let mut tlds: Vec<u16> = (0..present.len() as u16)
                        .filter(|&tld| present[usize::from(tld)] & view.code_mask() != 0)
                        .collect();
                    tlds.sort_by_key(|&tld| built.tlds.name(tld));
                    assert_eq!(day.tlds_in(view), tlds);
                }
            }
        }
    }
}
