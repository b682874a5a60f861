//! Input of a build: all dossiers merged, in name order, cut into parts that are processed in
//! parallel.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::columns::first_batches::BatchTimes;
use crate::columns::part::{Part, Section};
use crate::columns::parts::{Parts, Room, StoredPart};
use crate::columns::rank_key::{ADULT, rank_key};
use crate::columns::spans::Spans;
use crate::columns::tlds::Tlds;
use crate::columns::typos::Typos;
use crate::corpus::batch::{BLOCK_ENTRIES, Batch, BatchMeta, head_of};
use crate::corpus::merge::{self, Dossier, Dossiers, DropRecord};
use crate::corpus::ranked::RankedList;
use crate::error::BuildError;
use crate::scorer::{Base, Coverage, Grade, Scorer, Spread};
use crate::vocab::day::Day;
use crate::vocab::name::DomainName;
use crate::vocab::outcome::{Completeness, Return, Sighted};
use crate::vocab::popularity::ListedRank;
use crate::vocab::release_time::Release;
use crate::vocab::stage::Periods;
use crate::vocab::suffixes;
use crate::vocab::time::UnixMs;

/// If the batches have at most this many rows per frequent label, all rows are read. If there are more
/// rows, each label is searched, which reads a block of every batch.
const ENTRIES_A_PROBE: u64 = 64;
/// Estimated memory, in bytes, that an entry of a batch takes in a part.
const ENTRY_BYTES_ABOUT: u64 = 64;
/// Parts per thread: enough to keep every core busy until the end.
const PARTS_PER_THREAD: usize = 4;

/// All names in order.
#[derive(Debug, Default)]
pub struct Table {
    pub parts: Parts,
    pub tlds: Tlds,
    /// Share of the market that the batches hold.
    pub coverage: Coverage,
    /// Number of omitted names, which an installed Public Suffix List splits in another place.
    pub left_out: u64,
    /// Every drop date, ascending.
    pub drop_dates: Vec<Day>,
    /// Times of each list, by batch number minus one.
    pub batches: Vec<BatchTimes>,
    pub typos: Typos,
}

impl Table {
    /// Merges the batches on all cores, each task on its own range of labels, and joins dropped names
    /// to their ranks on the popularity lists. The parts are kept in `room`.
    ///
    /// # Errors
    /// A batch does not decode, a number exceeds its limit, or parts cannot be written to disk.
    pub fn merge(
        batches: &[Batch],
        ranked: &[RankedList],
        room: Room,
    ) -> Result<Table, BuildError> {
        Table::gather(batches, None, ranked, coverage(batches)?, room)
    }

    /// As [`Table::merge`], but only for names with the labels of the batches from position `since`
    /// on; `coverage` is that of all batches.
    ///
    /// # Errors
    /// As [`Table::merge`].
    pub fn merge_labels(
        batches: &[Batch],
        since: usize,
        ranked: &[RankedList],
        coverage: Coverage,
        room: Room,
    ) -> Result<Table, BuildError> {
        Table::gather(batches, Some(&batches[since..]), ranked, coverage, room)
    }

    fn gather(
        batches: &[Batch],
        labels: Option<&[Batch]>,
        ranked: &[RankedList],
        coverage: Coverage,
        room: Room,
    ) -> Result<Table, BuildError> {
        let cut = labels.unwrap_or(batches);
        let cuts = merge::cuts(cut, part_count(cut, &room));
        let merged = (0..=cuts.len())
            .into_par_iter()
            .map(|at| {
                let from = at.checked_sub(1).map_or(&[] as &[u8], |at| &cuts[at]);
                let to = cuts.get(at).map(Vec::as_slice);
                Merging::run(batches, labels, (from, to), coverage)?.finish(ranked, &room)
            })
            .collect::<Result<Vec<_>, _>>()?;
        let tlds = Tlds::new(by_frequency(&merged)?);
        let drop_dates = (0..=u16::MAX)
            .filter(|&day| merged.iter().any(|merged| merged.dropped_on[usize::from(day)]))
            .filter_map(Day::from_raw)
            .collect();
        let left_out = merged.iter().map(|merged| merged.left_out).sum();
        let mut parts = Parts::new(room);
        for merged in merged {
            let shared =
                |(tld, _): &(String, u64)| tlds.find(tld).expect("each TLD of a part has a number");
            parts.push(merged.part, merged.tlds.iter().map(shared).collect())?;
        }
        // A time before 1985 came from a wrong clock; the drop then counts as known from the start.
        let times = |list: &BatchMeta| BatchTimes {
            ingested: Day::from_instant(list.ingested_at).unwrap_or(Day::MIN),
            observed: UnixMs::from_instant(list.observed_at),
        };
        let batches = batches.iter().flat_map(Batch::lists).map(times).collect();
        let typos = Typos::new(ranked);
        Ok(Table { parts, tlds, coverage, left_out, drop_dates, batches, typos })
    }

    /// Returns the number of names.
    pub fn len(&self) -> u32 {
        self.parts.names()
    }

    /// Returns true if it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of names that dropped, registered again or not.
    pub fn dropped(&self) -> u32 {
        self.parts.drops()
    }

    /// Returns the names of these ordinals.
    ///
    /// # Errors
    /// As [`Parts::for_each`].
    pub fn names_of(&self, ordinals: &BTreeSet<u32>) -> Result<BTreeMap<u32, String>, BuildError> {
        let mut names = BTreeMap::new();
        let read = |part: &Part| -> Vec<(u32, String)> {
            let wanted = ordinals.range(part.first..part.first + part.len() as u32);
            let name = |&ordinal: &u32| part.name((ordinal - part.first) as usize);
            let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
            wanted.map(|ordinal| (*ordinal, text(name(ordinal)))).collect()
        };
        self.parts.for_each(&[Section::Names], read, |_, found| {
            names.extend(found);
            Ok(())
        })?;
        Ok(names)
    }
}

/// Returns the number of parts: enough to keep every core busy, and so that the parts in
/// progress fit into memory.
fn part_count(batches: &[Batch], room: &Room) -> usize {
    let threads = rayon::current_num_threads();
    let entries: u64 = batches.iter().map(|batch| batch.meta().rows).sum();
    let bytes = entries.saturating_mul(ENTRY_BYTES_ABOUT);
    let fitting = bytes.div_ceil(room.part_bytes().max(1)).try_into().unwrap_or(usize::MAX);
    usize::max(threads * PARTS_PER_THREAD, fitting)
}

/// A merged part, with its own TLD numbers.
struct Merged {
    part: StoredPart,
    /// TLDs by number in this part, with their number of names.
    tlds: Vec<(String, u64)>,
    dropped_on: Vec<bool>,
    left_out: u64,
}

/// A part being merged.
struct Merging {
    part: Part,
    coverage: Coverage,
    /// The names of the current label: score without the spread of the label, length, and whether
    /// the TLD is open to the public.
    label: Vec<(Base, u8, bool)>,
    /// Start of the current label in the text.
    label_start: usize,
    /// TLDs by number in this part, each with true if it is open to the public, and its number of
    /// names.
    tlds: Vec<(String, Periods, bool, u64)>,
    /// TLD numbers, by [`head_of`] for TLDs of up to eight bytes, and by text for longer ones.
    short: FxHashMap<u64, u16>,
    long: FxHashMap<Vec<u8>, u16>,
    /// Whether a name dropped on a day, by [`Day::raw`].
    dropped_on: Vec<bool>,
    left_out: u64,
}

impl Merging {
    /// Merges the names from `from` up to `to`, of all labels or those in `labels`. Scores depend on
    /// the whole corpus.
    fn run(
        batches: &[Batch],
        labels: Option<&[Batch]>,
        (from, to): (&[u8], Option<&[u8]>),
        coverage: Coverage,
    ) -> Result<Merging, BuildError> {
        let mut merging = Merging {
            part: part_with_room(labels.unwrap_or(batches), from, to),
            coverage,
            label: Vec::new(),
            label_start: 0,
            tlds: Vec::new(),
            short: FxHashMap::default(),
            long: FxHashMap::default(),
            dropped_on: vec![false; usize::from(u16::MAX) + 1],
            left_out: 0,
        };
        let mut dossiers = match labels {
            None => Dossiers::new(batches, from)?,
            Some(labels) => Dossiers::of_labels(batches, labels, from)?,
        };
        while let Some(dossier) = dossiers.gather()? {
            if to.is_some_and(|to| dossier.name >= to) {
                break;
            }
            match omission(&dossier) {
                None => merging.push(&dossier)?,
                Some(Omission::Suffix) => merging.left_out += 1,
                Some(Omission::Prohibited) => {}
            }
        }
        merging.finish_label();
        Ok(merging)
    }

    fn push(&mut self, dossier: &Dossier<'_>) -> Result<(), BuildError> {
        if !self.has_label_of(dossier) {
            self.finish_label();
        }
        let tld = dossier.name.get(usize::from(dossier.label_len) + 1..).unwrap_or_default();
        let number = self.number(tld)?;
        let (_, _, is_open, _) = self.tlds[usize::from(number)];
        self.label.push((dossier.base.with_open(is_open), dossier.length, is_open));
        let part = &mut self.part;
        part.text.extend_from_slice(dossier.name);
        part.spans.push(dossier.name.len()).ok_or_else(too_many_bytes)?;
        part.label_len.push(dossier.label_len);
        part.tld.push(number);
        part.registered.push(dossier.drops.is_empty() && dossier.registered);
        match dossier.drops {
            [] => Ok(()),
            [earlier @ .., latest] => {
                for (drop, next) in earlier.iter().zip(&dossier.drops[1..]) {
                    self.push_earlier(drop, next.date, number);
                }
                self.push_drop(dossier, *latest, number)
            }
        }
    }

    /// Adds an earlier drop of the last pushed name, which dropped again on `next`.
    fn push_earlier(&mut self, drop: &DropRecord, next: Day, tld: u16) {
        let (_, periods, ..) = self.tlds[usize::from(tld)];
        let earlier = &mut self.part.earlier;
        earlier.at.push(self.part.spans.len() as u32 - 1);
        earlier.date.push(drop.date.raw());
        let release = drop.release.map(|release| release.day);
        let release = periods.effective_release(drop.date, release);
        earlier.release.push(release.raw());
        let shown = Completeness::LaterList;
        let returned = drop.returned.unwrap_or(Sighted { on: None, observed: next, shown });
        earlier.returned.push(Return::byte(Some(returned.after(release))));
        let place = earlier.at.len() as u32 - 1;
        earlier.late.extend(returned.late().map(|day| [place, day.raw().into()]));
    }

    /// Adds the latest drop of the last pushed name.
    fn push_drop(
        &mut self,
        dossier: &Dossier<'_>,
        latest: DropRecord,
        tld: u16,
    ) -> Result<(), BuildError> {
        let (_, periods, is_open, _) = self.tlds[usize::from(tld)];
        let drops = &mut self.part.drops;
        drops.at.push(self.part.spans.len() as u32 - 1);
        drops.date.push(latest.date.raw());
        let stated = latest.release.map(|release| release.day);
        let release = periods.effective_release(latest.date, stated);
        drops.release.push(release.raw());
        if let Some(second) =
            latest.release.and_then(Release::second).filter(|_| stated == Some(release))
        {
            drops.release_seconds.push([drops.at.len() as u32 - 1, second.get()]);
        }
        let returned = latest.returned.map(|returned| returned.after(release));
        drops.returned.push(Return::byte(returned));
        let late = latest.returned.and_then(Sighted::late);
        drops.late.extend(late.map(|day| [drops.at.len() as u32 - 1, day.raw().into()]));
        drops.first_batch.push(dossier.first_batch);
        drops.count.push(u8::try_from(dossier.drops.len()).unwrap_or(u8::MAX));
        let start = drops.features.len();
        drops.features.extend_from_slice(dossier.features);
        Scorer::set_open(&mut drops.features[start..], is_open);
        drops.feature_spans.push(dossier.features.len()).ok_or_else(too_many_bytes)?;
        for drop in dossier.drops {
            self.dropped_on[usize::from(drop.date.raw())] = true;
        }
        Ok(())
    }

    fn number(&mut self, tld: &[u8]) -> Result<u16, BuildError> {
        let short = (tld.len() <= 8).then(|| head_of(tld));
        let found = match short {
            Some(head) => self.short.get(&head),
            None => self.long.get(tld),
        };
        if let Some(&number) = found {
            self.tlds[usize::from(number)].3 += 1;
            return Ok(number);
        }
        let number = u16::try_from(self.tlds.len()).map_err(|_| too_many_tlds())?;
        let text = String::from_utf8_lossy(tld).into_owned();
        let periods = Periods::for_tld(&text);
        let is_open = Scorer::shared().is_open(&text);
        self.tlds.push((text, periods, is_open, 1));
        match short {
            Some(head) => self.short.insert(head, number),
            None => self.long.insert(tld.to_vec(), number),
        };
        Ok(number)
    }

    /// Returns true if `dossier` has the current label.
    fn has_label_of(&self, dossier: &Dossier<'_>) -> bool {
        let label_len = usize::from(dossier.label_len);
        self.part.label_len.last() == Some(&dossier.label_len)
            && self.part.text[self.label_start..][..label_len] == dossier.name[..label_len]
    }

    /// Scores the names of the current label. Names with the same label are adjacent in name order:
    /// `a-b.com`, `a.com`, `a.de`, `ab.com`.
    fn finish_label(&mut self) {
        let part = &mut self.part;
        let spread = self.label.len();
        let open = self.label.iter().filter(|(.., is_open)| *is_open).count();
        let drops = &mut part.drops;
        let mut unfinished = drops.at[drops.spread.len()..].iter().peekable();
        for (base, length, is_open) in self.label.drain(..) {
            let tlds = open_tlds(open, spread, is_open);
            let Grade { dqs, rank } = base.with_spread(Spread { tlds, coverage: self.coverage });
            if unfinished.next_if(|&&at| at as usize == part.key.len()).is_some() {
                drops.rank.push(rank);
                drops.open_tlds.push(u16::try_from(tlds).unwrap_or(u16::MAX));
            }
            let adult = if base.is_adult() { ADULT } else { 0 };
            part.key.push(rank_key(dqs, length) | adult);
        }
        drops.spread.resize(drops.at.len(), u16::try_from(spread).unwrap_or(u16::MAX));
        self.label_start = part.text.len();
    }

    /// Joins the part with popularity lists, and stores it in memory or on disk.
    fn finish(mut self, ranked: &[RankedList], room: &Room) -> Result<Merged, BuildError> {
        join_ranks(&mut self.part, ranked);
        let Merging { part, tlds, dropped_on, left_out, .. } = self;
        let tlds = tlds.into_iter().map(|(tld, .., names)| (tld, names)).collect();
        Ok(Merged { part: room.keep(part)?, tlds, dropped_on, left_out })
    }
}

/// Creates a part with capacity for the names from `from` up to `to`, estimated from the blocks of
/// the batches. The estimate is generous, because unused memory costs nothing, while growing needs
/// twice as much.
fn part_with_room(batches: &[Batch], from: &[u8], to: Option<&[u8]>) -> Part {
    let in_range = |name: &&[u8]| *name >= from && to.is_none_or(|to| *name < to);
    let lens = batches.iter().flat_map(Batch::block_names).filter(in_range).map(<[u8]>::len);
    let (blocks, octets) = lens.fold((0, 0), |(blocks, octets), len| (blocks + 1, octets + len));
    // In each batch, a range may start in the middle of a block.
    let names = (blocks + batches.len()) * BLOCK_ENTRIES as usize;
    let text = names * (octets / usize::max(blocks, 1) + 1);
    Part {
        text: Vec::with_capacity(text),
        spans: Spans::with_capacity(names),
        label_len: Vec::with_capacity(names),
        key: Vec::with_capacity(names),
        tld: Vec::with_capacity(names),
        registered: Vec::with_capacity(names),
        ..Part::default()
    }
}

/// Joins the dropped names of a part with popularity lists; both are in name order.
fn join_ranks(part: &mut Part, lists: &[RankedList]) {
    let Some(&first) = part.drops.at.first() else { return };
    let mut ranks = Vec::new();
    for list in lists {
        let mut entries = list.entries_from(part.name(first as usize)).peekable();
        for (drop, &at) in (0..).zip(&part.drops.at) {
            let name = part.name(at as usize);
            while entries.next_if(|entry| entry.name < name).is_some() {}
            if let Some(entry) = entries.next_if(|entry| entry.name == name) {
                let (list, rank) = (list.meta().edition.list, entry.rank);
                ranks.push((drop, ListedRank { list, rank }));
            }
        }
    }
    ranks.sort_unstable();
    part.drops.ranks = ranks;
}

/// Returns [`Spread::tlds`] of a name whose label is in `all` TLDs, of which `open` are open to the
/// public. A record holds the number of open TLDs up to 254; if there are more, all TLDs count.
pub fn open_tlds(open: usize, all: usize, is_open: bool) -> u32 {
    let tlds = open + usize::from(!is_open);
    (if tlds < usize::from(u8::MAX) { tlds } else { all }) as u32
}

/// Why an index omits a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Omission {
    /// Names are stored as the Public Suffix List that was compiled in at the time split them. One
    /// that an operator installed splits this one at another dot.
    Suffix,
    /// The label joins minors and sex; no list, count or page may hold it.
    Prohibited,
}

/// Returns why an index omits a name; `None` for a name that it holds.
pub(super) fn omission(dossier: &Dossier<'_>) -> Option<Omission> {
    let is_registrable = |name| DomainName::is_registrable(name, dossier.label_len);
    let is_split_elsewhere = suffixes::installed().is_some()
        && !std::str::from_utf8(dossier.name).is_ok_and(is_registrable);
    if is_split_elsewhere {
        Some(Omission::Suffix)
    } else {
        dossier.base.is_prohibited().then_some(Omission::Prohibited)
    }
}

/// Estimates the share of the market that the batches hold, from labels that occur in many TLDs.
///
/// # Errors
/// A batch does not decode.
pub fn coverage(batches: &[Batch]) -> Result<Coverage, BuildError> {
    let entries: u64 = batches.iter().map(|batch| batch.meta().names).sum();
    let found = if entries < ENTRIES_A_PROBE * Coverage::probes().len() as u64 {
        let probes: FxHashSet<&[u8]> = Coverage::probes().map(str::as_bytes).collect();
        let is_probe = |name: &[u8], label| probes.contains(&name[..label]);
        count_open(Dossiers::new(batches, b"")?, |name, label| Some(is_probe(name, label)))?
    } else {
        let count = |label: &str| {
            let first = [label.as_bytes(), b"."].concat();
            let dossiers = Dossiers::new(batches, &first)?;
            count_open(dossiers, |name, _| name.starts_with(&first).then_some(true))
        };
        let labels: Vec<_> = Coverage::probes().collect();
        labels.par_iter().map(|label| count(label)).sum::<Result<u64, _>>()?
    };
    Ok(Coverage::from_found(found))
}

/// Counts the names under TLDs open to the public that `counts` accepts. `counts` gets the name and
/// the length of its label. Stops at the first name for which `counts` returns `None`.
fn count_open(
    mut dossiers: Dossiers<'_>,
    counts: impl Fn(&[u8], usize) -> Option<bool>,
) -> Result<u64, BuildError> {
    let mut found = 0;
    while let Some(dossier) = dossiers.gather()? {
        let Some(counts) = counts(dossier.name, usize::from(dossier.label_len)) else { break };
        if counts {
            let tld = dossier.name.get(usize::from(dossier.label_len) + 1..).unwrap_or_default();
            let is_open = std::str::from_utf8(tld).is_ok_and(|tld| Scorer::shared().is_open(tld));
            found += u64::from(is_open && omission(&dossier).is_none());
        }
    }
    Ok(found)
}

fn too_many_bytes() -> BuildError {
    BuildError::TooMany { what: "bytes in a part", limit: u32::MAX.into() }
}

fn too_many_tlds() -> BuildError {
    BuildError::TooMany { what: "TLDs", limit: u16::MAX.into() }
}

/// Returns all TLDs, most names first, then by name.
fn by_frequency(merged: &[Merged]) -> Result<Vec<String>, BuildError> {
    let mut found = BTreeMap::<&str, u64>::new();
    for (tld, names) in merged.iter().flat_map(|merged| &merged.tlds) {
        *found.entry(tld).or_default() += names;
    }
    if found.len() > usize::from(u16::MAX) {
        return Err(too_many_tlds());
    }
    let mut tlds: Vec<(&str, u64)> = found.into_iter().collect();
    tlds.sort_by_key(|&(_, names)| std::cmp::Reverse(names));
    Ok(tlds.into_iter().map(|(tld, _)| tld.to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::corpus::batch::{self, BatchMeta, Entry, StoredObservation};
    use crate::feeds::Sighting;

    const TLDS: [&str; 4] = ["com", "xn--p1ai", "xn--p1acf", "photography"];

    /// The expected content of a table: the base score of each name and, for a drop, its features.
    type Expected = BTreeMap<String, (u32, Option<Vec<u8>>)>;

    /// Writes a batch of about `rows` distinct names and adds them to `expected`.
    fn batch_of(path: &Path, rows: u32, seed: u32, expected: &mut Expected) -> Batch {
        let mut names = BTreeMap::new();
        let mut random = seed;
        for _ in 0..rows {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let label = format!("l{}", (random >> 8) % 4_000);
            names.insert(format!("{label}.{}", TLDS[(random >> 28) as usize % 4]), random >> 4);
        }
        let mut writer = batch::create(path).expect("a new file");
        for (name, random) in &names {
            let dropped = random % 3 == 0;
            let date = Day::from_raw(9_000 + (random % 7) as u16).expect("a day");
            let sighting = match dropped {
                true => Sighting::Dropped { date, release: None, registered_again: false },
                false => Sighting::Known { registered: true },
            };
            // These features lack the cap for closed suffixes, which the merge restores.
            let text = format!("    {name}");
            let features = if dropped { text.as_bytes() } else { &[] };
            let label_len = name.find('.').expect("a dot") as u8;
            let (base, length) = (Base::from_bits(52 << 16 | 1 << 15 | (random % 50)), label_len);
            let record =
                StoredObservation { sighting, first_seen: None, observed_at: i64::from(seed) };
            let name_bytes = name.as_bytes();
            let entry = Entry { name: name_bytes, label_len, length, base, features, record };
            writer.push(&entry, None).expect("written");
            let known = expected.entry(name.clone()).or_default();
            known.0 = base.to_bits();
            if dropped {
                known.1 = Some(features.to_vec());
            }
        }
        let (rows, names) = writer.counts();
        writer.finish(&BatchMeta { rows, names, ..BatchMeta::default() }).expect("finished");
        Batch::open(path).expect("opens")
    }

    #[test]
    fn coverage_counts_frequent_labels_under_open_tlds() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("batch");
        let with_tlds = |label| ["com", "gov", "net"].map(|tld| format!("{label}.{tld}"));
        let names: std::collections::BTreeSet<_> = Coverage::probes().flat_map(with_tlds).collect();
        let mut writer = batch::create(&path).expect("a new file");
        let drop = |date| Sighting::Dropped { date, release: None, registered_again: false };
        let sighting = drop(Day::from_raw(9_000).expect("a day"));
        let record = StoredObservation { sighting, first_seen: None, observed_at: 1 };
        for name in &names {
            let (label_len, base) =
                (name.find('.').expect("a dot") as u8, Base::from_bits(1 << 15));
            let (name, length) = (name.as_bytes(), label_len);
            let entry = Entry { name, label_len, length, base, features: b"-", record };
            writer.push(&entry, None).expect("written");
        }
        writer.finish(&BatchMeta::default()).expect("finished");
        let table = Table::merge(&[Batch::open(&path).expect("opens")], &[], Room::default())
            .expect("merged");
        let found = 2 * Coverage::probes().len() as u64;
        assert_eq!(table.coverage, Coverage::from_found(found));
        assert!(table.coverage != Coverage::NONE);
        for part in table.parts.iter() {
            for (at, &place) in part.drops.at.iter().enumerate() {
                // A closed TLD counts only for the name under it.
                let tlds = 2 + u32::from(part.name(place as usize).ends_with(b".gov"));
                let spread = Spread { tlds, coverage: table.coverage };
                assert_eq!(part.drops.rank[at], Base::from_bits(1 << 15).with_spread(spread).rank);
                assert_eq!(u32::from(part.drops.open_tlds[at]), tlds);
                assert_eq!(part.drops.spread[at], 3);
            }
        }
    }

    /// Returns all data of every name, in order.
    fn rows(table: &Table) -> Vec<String> {
        let of_part = |part: &Part| -> Vec<String> {
            let earlier = &part.earlier;
            let row = |at: usize| {
                let place = at as u32;
                let drop = part.drops.at.binary_search(&place).ok().map(|drop| {
                    let drops = &part.drops;
                    let dates = (drops.date[drop], drops.release[drop], drops.is_again(drop));
                    let scores = (drops.rank[drop], drops.spread[drop], drops.open_tlds[drop]);
                    let of = |(of, _): &&(u32, ListedRank)| *of as usize == drop;
                    let ranks: Vec<_> = drops.ranks.iter().filter(of).map(|it| it.1).collect();
                    let lists = (drops.first_batch[drop], drops.count[drop], ranks);
                    (dates, scores, lists, drops.features(drop))
                });
                let drops = (0..earlier.at.len()).filter(|&it| earlier.at[it] == place);
                let drops = drops.map(|it| (earlier.date[it], earlier.release[it]));
                let earlier: Vec<_> = drops.collect();
                let label = String::from_utf8_lossy(part.label(at));
                let key = (part.first + place, part.key[at], part.registered[at]);
                format!("{label} {} {key:?} {drop:?} {earlier:?}", table.tlds.name(part.tld[at]))
            };
            (0..part.len()).map(row).collect()
        };
        let mut rows = Vec::new();
        let read = table.parts.for_each(&Section::ALL, of_part, |_, found| {
            rows.extend(found);
            Ok(())
        });
        read.expect("readable");
        rows
    }

    #[test]
    fn a_table_on_disk_equals_one_in_memory() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut expected = Expected::new();
        let batches = [(30_000, 1), (500, 2)].map(|(rows, seed)| {
            batch_of(&folder.path().join(seed.to_string()), rows, seed, &mut expected)
        });
        let merge = |room| Table::merge(&batches, &[], room).expect("merged");
        let in_memory = merge(Room::default());
        let on_disk = merge(Room::limited(64 << 10, folder.path()).expect("a file"));
        assert!(on_disk.parts.on_disk() > 10, "{}", on_disk.parts.on_disk());
        assert_eq!(rows(&on_disk), rows(&in_memory));
        assert_eq!(on_disk.dropped(), in_memory.dropped());
        let some = [0, 1, 4_000].into();
        let names = on_disk.names_of(&some).expect("readable");
        assert_eq!(names, in_memory.names_of(&some).expect("readable"));
        assert_eq!(names.len(), 3);
        let left = std::fs::read_dir(folder.path()).expect("readable").count();
        assert_eq!(left, batches.len(), "the temporary file has no name");
    }

    #[test]
    fn every_name_is_in_the_table_once_with_the_score_of_its_label() {
        let folder = tempfile::tempdir().expect("a folder");
        for sizes in [&[][..], &[1], &[30_000], &[30_000, 0, 500, 20]] {
            let mut expected = Expected::new();
            let batches: Vec<Batch> = sizes
                .iter()
                .zip(1..)
                .map(|(&rows, seed)| {
                    let path = folder.path().join(format!("{}-{rows}-{seed}", sizes.len()));
                    batch_of(&path, rows, seed, &mut expected)
                })
                .collect();
            let table = Table::merge(&batches, &[], Room::default()).expect("merged");
            let label = |name: &str| name.split('.').next().map(str::to_owned);
            let mut spread = BTreeMap::<_, u32>::new();
            expected.keys().for_each(|name| *spread.entry(label(name)).or_default() += 1);
            let (mut names, mut dropped) = (expected.iter(), 0);
            for part in table.parts.iter() {
                let mut drops = 0;
                for at in 0..part.len() {
                    let (name, (base, features)) = names.next().expect("no more names");
                    assert_eq!(part.name(at), name.as_bytes());
                    let spread = spread[&label(name)];
                    let known = Spread { tlds: spread, coverage: table.coverage };
                    let Grade { dqs, rank } = Base::from_bits(*base).with_spread(known);
                    assert_eq!(part.key[at], rank_key(dqs, part.label_len[at]), "{name}");
                    assert!(name.ends_with(&format!(".{}", table.tlds.name(part.tld[at]))));
                    assert_eq!(part.registered[at], features.is_none());
                    if let Some(features) = features {
                        assert_eq!(part.drops.at[drops], at as u32);
                        assert_eq!(part.drops.rank[drops], rank);
                        assert_eq!(part.drops.features(drops), features);
                        assert_eq!(u32::from(part.drops.spread[drops]), spread);
                        assert_eq!(u32::from(part.drops.open_tlds[drops]), spread);
                        drops += 1;
                    }
                }
                assert_eq!(part.drops.len(), drops);
                dropped += drops as u32;
            }
            assert!(names.next().is_none());
            assert_eq!(table.dropped(), dropped);
            assert_eq!(
                table.drop_dates.len(),
                if expected.len() > 1 { 7 } else { dropped as usize }
            );
        }
    }
}
