//! Merges sorted batches into one [`Dossier`] per name. [`drops`] decides which records describe
//! the same drop.

use rayon::prelude::*;

use crate::batch::{
    Batch, BatchError, BatchMeta, Cursor, Entry, EntryFields, NameBytes, StoredObservation,
};
pub use crate::drops::DropRecord;
use crate::drops::{self, SeenDrop};
use crate::feeds::Sighting;
use crate::scorer::Base;
use crate::vocab::outcome::{Completeness, Sighted};
use crate::vocab::stage::Periods;

/// All observations of one name, merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dossier<'a> {
    /// Canonical name.
    pub name: &'a [u8],
    /// Bytes of the registrable label.
    pub label_len: u8,
    /// Characters of the registrable label in Unicode.
    pub length: u8,
    /// Base of the name's score, without tldSpread.
    pub base: Base,
    /// The score features, as the scorer stores them; empty for names that never dropped.
    pub features: &'a [u8],
    /// All drops, oldest first. The last drop determines stage and registeredAgain.
    pub drops: &'a [DropRecord],
    /// Number of the first list, from 1, that reported the last of `drops`; 0 without drops. Later
    /// corrections do not change it.
    pub first_batch: u32,
    /// Whether the name is registered according to the newest observation.
    pub registered: bool,
}

/// Iterates over the entries of several batches as one sorted list. Entries of one name come in the
/// order of the batches, and within a batch in the order of its list.
pub struct Merge<'a> {
    cursors: Vec<Cursor<'a>>,
    /// The number of the first list of each batch, from 1.
    first_lists: Vec<u32>,
    /// Numbers of lists replaced by another reading, whose entries are skipped.
    replaced: Vec<u32>,
    /// Number of skipped entries.
    skipped: u64,
    /// A binary heap of positions in `cursors`; the cursor with the first name is on top.
    heap: Vec<usize>,
}

impl<'a> Merge<'a> {
    /// Starts at the first entry whose name is `from` or later.
    ///
    /// # Errors
    /// A batch does not decode, which does not occur for verified ones.
    pub fn new(
        batches: impl IntoIterator<Item = &'a Batch>,
        from: &[u8],
    ) -> Result<Merge<'a>, BatchError> {
        let (mut cursors, mut first_lists, mut next) = (Vec::new(), Vec::new(), 1);
        let mut replaced = Vec::new();
        for batch in batches {
            cursors.push(batch.cursor(from)?);
            first_lists.push(next);
            next += batch.lists().len() as u32;
            replaced.extend(batch.lists().iter().flat_map(|list| &list.replaces));
        }
        let mut merge = Merge { cursors, first_lists, replaced, skipped: 0, heap: Vec::new() };
        merge.make_heap()?;
        Ok(merge)
    }

    fn make_heap(&mut self) -> Result<(), BatchError> {
        self.heap.clear();
        let cursors = &self.cursors;
        self.heap.extend((0..cursors.len()).filter(|&at| cursors[at].fields().is_some()));
        for place in (0..self.heap.len() / 2).rev() {
            self.sift_down(place);
        }
        self.skip_replaced()
    }

    /// Moves to the next entry of a list that is not replaced by another reading.
    fn skip_replaced(&mut self) -> Result<(), BatchError> {
        while !self.replaced.is_empty() && self.replaced.contains(&self.number()) {
            self.skipped += 1;
            self.step()?;
        }
        Ok(())
    }

    /// Number of skipped entries of replaced lists.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Moves forward to the first entry whose name is `from` or later.
    ///
    /// # Errors
    /// A batch does not decode.
    pub fn seek(&mut self, from: &[u8]) -> Result<(), BatchError> {
        self.cursors.iter_mut().try_for_each(|cursor| cursor.seek(from))?;
        self.make_heap()
    }

    /// The current entry; `None` at the end.
    pub fn peek(&self) -> Option<Entry<'_>> {
        self.cursors[*self.heap.first()?].entry()
    }

    /// The position of the batch of the current entry.
    pub fn source(&self) -> Option<usize> {
        self.heap.first().copied()
    }

    /// The number of the list of the current entry, from 1 over all batches; 0 at the end.
    pub fn number(&self) -> u32 {
        self.heap.first().map_or(0, |&top| self.first_lists[top] + self.cursors[top].list())
    }

    /// Moves to the next entry.
    ///
    /// # Errors
    /// A batch does not decode.
    pub fn advance(&mut self) -> Result<(), BatchError> {
        self.step()?;
        self.skip_replaced()
    }

    fn step(&mut self) -> Result<(), BatchError> {
        let Some(&top) = self.heap.first() else { return Ok(()) };
        if !self.cursors[top].advance()? {
            self.heap.swap_remove(0);
        }
        self.sift_down(0);
        Ok(())
    }

    /// The name of the current entry.
    fn name(&self) -> Option<&NameBytes> {
        self.heap.first().map(|&top| self.cursors[top].name())
    }

    /// The current entry without its name.
    fn fields(&self) -> Option<EntryFields<'a>> {
        self.cursors[*self.heap.first()?].fields()
    }

    fn is_before(&self, left: usize, right: usize) -> bool {
        (self.cursors[left].name(), left) < (self.cursors[right].name(), right)
    }

    fn sift_down(&mut self, mut place: usize) {
        loop {
            let mut first = place;
            for child in [2 * place + 1, 2 * place + 2] {
                if child < self.heap.len() && self.is_before(self.heap[child], self.heap[first]) {
                    first = child;
                }
            }
            if first == place {
                return;
            }
            self.heap.swap(place, first);
            place = first;
        }
    }
}

/// Returns names that split `batches` into about `parts` ranges of similar size. All names of a label
/// are in the same range.
pub fn cuts(batches: &[Batch], parts: usize) -> Vec<Vec<u8>> {
    let mut names: Vec<&[u8]> = batches.iter().flat_map(Batch::block_names).collect();
    names.par_sort_unstable();
    let step = names.len().div_ceil(parts).max(1);
    let mut cuts: Vec<Vec<u8>> = names
        .into_iter()
        .step_by(step)
        .skip(1)
        .map(|name| {
            // `label.` sorts right before all names of the label.
            let dot = name.iter().position(|&byte| byte == b'.').unwrap_or(name.len() - 1);
            name[..=dot].to_vec()
        })
        .collect();
    cuts.dedup();
    cuts
}

/// The labels of some batches, in name order.
struct Labels<'a> {
    entries: Merge<'a>,
    /// The current label and a dot; empty before the first.
    label: Vec<u8>,
}

impl Labels<'_> {
    /// Moves `merge` to its next name with one of the labels, or to its end.
    fn lead(&mut self, merge: &mut Merge<'_>) -> Result<(), BatchError> {
        let is_at = |merge: &Merge<'_>, label: &[u8]| {
            !label.is_empty() && merge.name().is_some_and(|name| name.as_slice().starts_with(label))
        };
        while !is_at(merge, &self.label) {
            while is_at(&self.entries, &self.label) {
                self.entries.advance()?;
            }
            let Some(entry) = self.entries.peek() else {
                merge.heap.clear();
                return Ok(());
            };
            self.label.clear();
            self.label
                .extend_from_slice(entry.name.get(..=entry.label_len.into()).unwrap_or(entry.name));
            merge.seek(&self.label)?;
        }
        Ok(())
    }
}

/// Combines the entries of each name of a [`Merge`] into a [`Dossier`].
pub struct Dossiers<'a> {
    merge: Merge<'a>,
    /// `None` for all names.
    labels: Option<Labels<'a>>,
    name: NameBytes,
    label_len: u8,
    features: &'a [u8],
    /// Drops found in the entries of a name with several entries.
    seen: Vec<SeenDrop>,
    registrations: Vec<Sighted>,
    /// What each list shows, by its number minus one.
    lists: Vec<ListKind>,
    drops: Vec<DropRecord>,
    first_batch: u32,
}

impl<'a> Dossiers<'a> {
    /// Returns what list number `list` shows.
    fn kind(&self, list: u32) -> ListKind {
        self.lists[list as usize - 1]
    }

    /// Starts at the first name that is `from` or later.
    ///
    /// # Errors
    /// A batch does not decode.
    pub fn new(batches: &'a [Batch], from: &[u8]) -> Result<Dossiers<'a>, BatchError> {
        Ok(Dossiers {
            merge: Merge::new(batches, from)?,
            labels: None,
            name: NameBytes::default(),
            label_len: 0,
            features: &[],
            seen: Vec::new(),
            registrations: Vec::new(),
            lists: batches.iter().flat_map(Batch::lists).map(ListKind::of).collect(),
            drops: Vec::new(),
            first_batch: 0,
        })
    }

    /// Starts at the first name that is `from` or later, and returns only names with one of `labels`.
    /// Other names are skipped in blocks, so this takes no longer than decoding the batches.
    ///
    /// # Errors
    /// A batch does not decode.
    pub fn of_labels(
        batches: &'a [Batch],
        labels: &'a [Batch],
        from: &[u8],
    ) -> Result<Dossiers<'a>, BatchError> {
        let labels = Labels { entries: Merge::new(labels, from)?, label: Vec::new() };
        Ok(Dossiers { labels: Some(labels), ..Dossiers::new(batches, from)? })
    }

    /// Returns the next dossier, in name order; `None` at the end.
    ///
    /// # Errors
    /// A batch does not decode.
    pub fn gather(&mut self) -> Result<Option<Dossier<'_>>, BatchError> {
        if let Some(labels) = &mut self.labels {
            labels.lead(&mut self.merge)?;
        }
        let (Some(first), Some(name)) = (self.merge.fields(), self.merge.name()) else {
            return Ok(None);
        };
        self.name.copy(name);
        self.label_len = first.label_len;
        let batch = self.merge.number();
        self.merge.advance()?;
        let alone = self.merge.name() != Some(&self.name);
        let (base, registered) = if alone {
            (first.base, self.take_one(&first, batch))
        } else {
            self.take_all(first, batch)?
        };
        Ok(Some(Dossier {
            name: self.name.as_slice(),
            label_len: first.label_len,
            length: first.length,
            base,
            features: self.features,
            drops: &self.drops,
            first_batch: self.first_batch,
            registered,
        }))
    }

    /// Stores the only entry of a name, which is from the list with number `batch`. Returns whether
    /// the name is registered.
    fn take_one(&mut self, entry: &EntryFields<'a>, batch: u32) -> bool {
        self.drops.clear();
        self.features = &[];
        self.first_batch = 0;
        let StoredObservation { sighting, observed_at, .. } = entry.record;
        let periods = || periods(&self.name, self.label_len);
        let list = (batch, self.kind(batch).shows());
        if let Some(seen) = SeenDrop::new(sighting, observed_at, list, periods) {
            self.first_batch = batch;
            self.drops.push(seen.drop());
            self.features = entry.features;
        }
        matches!(sighting, Sighting::Registered { .. } | Sighting::Known { registered: true })
    }

    /// Takes `first`, from the list with number `batch`, and all further entries of the same name.
    /// Returns the base of the last entry and whether the name is registered.
    #[inline(never)]
    fn take_all(&mut self, first: EntryFields<'a>, batch: u32) -> Result<(Base, bool), BatchError> {
        self.seen.clear();
        self.registrations.clear();
        self.features = &[];
        let mut registration = LastRegistration::default();
        let (mut entry, mut batch) = (first, batch);
        loop {
            registration.observe(&entry.record);
            let StoredObservation { sighting, observed_at, .. } = entry.record;
            let periods = || periods(&self.name, self.label_len);
            let kind = self.kind(batch);
            let list = (batch, kind.shows());
            if let Some(seen) = SeenDrop::new(sighting, observed_at, list, periods) {
                self.features = entry.features;
                self.seen.push(seen);
            }
            self.registrations.extend(kind.registration(&entry.record));
            match self.merge.fields() {
                Some(next) if self.merge.name() == Some(&self.name) => {
                    (entry, batch) = (next, self.merge.number());
                }
                _ => break,
            }
            self.merge.advance()?;
        }
        let periods = || periods(&self.name, self.label_len);
        self.first_batch =
            drops::join(&mut self.seen, &self.registrations, periods, &mut self.drops);
        Ok((entry.base, registration.registered))
    }
}

/// What a list shows of names that are registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListKind {
    /// The changes of a zone or of a registry's list, which show all names of a suffix.
    Zone,
    /// All names that a registry ever had, with the days of their registrations.
    History,
    /// Some names.
    Some,
}

impl ListKind {
    fn of(list: &BatchMeta) -> ListKind {
        if list.zone.is_some() {
            ListKind::Zone
        } else if list.is_history() {
            ListKind::History
        } else {
            ListKind::Some
        }
    }

    fn shows(self) -> Completeness {
        match self {
            ListKind::Zone | ListKind::History => Completeness::Complete,
            ListKind::Some => Completeness::Partial,
        }
    }

    /// Returns the registration that an entry of such a list states.
    fn registration(self, record: &StoredObservation) -> Option<Sighted> {
        let on = match (record.sighting, self) {
            (Sighting::Registered { on }, _) => Some(on),
            (_, ListKind::History) => record.first_seen,
            _ => None,
        };
        let observed = drops::observed_on(record.observed_at);
        on.map(|on| Sighted { on: Some(on), observed, shown: self.shows() })
    }
}

/// Returns the lifecycle of a name's TLD.
fn periods(name: &NameBytes, label_len: u8) -> Periods {
    let tld = name.as_slice().get(usize::from(label_len) + 1..).unwrap_or_default();
    Periods::for_tld(std::str::from_utf8(tld).unwrap_or_default())
}

/// Whether a name is registered, according to the newest observation.
#[derive(Default)]
struct LastRegistration {
    registered: bool,
    observed_at: Option<i64>,
}

impl LastRegistration {
    fn observe(&mut self, record: &StoredObservation) {
        let registered = match record.sighting {
            Sighting::Known { registered } => registered,
            Sighting::Registered { .. } => true,
            Sighting::Dropped { .. } | Sighting::Released { .. } => return,
        };
        if self.observed_at.is_none_or(|seen| seen <= record.observed_at) {
            *self = LastRegistration { registered, observed_at: Some(record.observed_at) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{self, BatchMeta};
    use crate::vocab::day::Day;
    use crate::vocab::outcome::ZoneDays;

    fn day(text: &str) -> Day {
        text.parse().expect("a date")
    }

    fn dropped(date: &str, release: Option<&str>, registered_again: bool) -> Sighting {
        Sighting::Dropped {
            date: day(date),
            release: release.map(|on| day(on).into()),
            registered_again,
        }
    }

    fn batches(lists: &[&[(&str, Sighting, i64)]]) -> (tempfile::TempDir, Vec<Batch>) {
        let metas = vec![BatchMeta::default(); lists.len()];
        let rows = lists.iter().map(|rows| rows.iter().map(|&row| (row, None)).collect::<Vec<_>>());
        batches_of(metas.into_iter().zip(rows).collect())
    }

    type Entries<'a> = Vec<((&'a str, Sighting, i64), Option<Day>)>;

    /// As [`batches`], with metadata for each list and a day of registration for each row.
    fn batches_of(lists: Vec<(BatchMeta, Entries<'_>)>) -> (tempfile::TempDir, Vec<Batch>) {
        let folder = tempfile::tempdir().expect("a folder");
        let open = |(at, (meta, rows)): (usize, (BatchMeta, Entries<'_>))| {
            let path = folder.path().join(at.to_string());
            let mut writer = batch::create(&path).expect("a new file");
            for ((name, sighting, observed_at), first_seen) in rows {
                let record = StoredObservation { sighting, first_seen, observed_at };
                let base = Base::from_bits(7);
                let label_len = name.find('.').expect("a dot") as u8;
                let name = name.as_bytes();
                let dropped =
                    matches!(sighting, Sighting::Dropped { .. } | Sighting::Released { .. });
                let features = if dropped { name } else { &[] };
                let entry = Entry { name, label_len, length: label_len, base, features, record };
                writer.push(&entry, None).expect("fits");
            }
            writer.finish(&meta).expect("finished");
            Batch::open(&path).expect("opens")
        };
        let batches = lists.into_iter().enumerate().map(open).collect();
        (folder, batches)
    }

    type Rows<'a> = &'a [(&'a str, Sighting, i64)];
    type Merged = (String, Vec<(String, Option<String>, bool)>, bool);

    fn merged(lists: &[&[(&str, Sighting, i64)]], from: &str) -> Vec<Merged> {
        let (_folder, batches) = batches(lists);
        let mut dossiers = Dossiers::new(&batches, from.as_bytes()).expect("opens");
        let mut merged = Vec::new();
        while let Some(dossier) = dossiers.gather().expect("decodes") {
            let drops = dossier.drops.iter().map(|drop| {
                let release = drop.release.map(|release| release.to_string());
                (drop.date.to_string(), release, drop.returned.is_some())
            });
            let features = if dossier.drops.is_empty() { &[] } else { dossier.name };
            assert_eq!(dossier.features, features, "those of this name");
            let name = String::from_utf8(dossier.name.to_vec()).expect("ASCII");
            merged.push((name, drops.collect(), dossier.registered));
        }
        merged
    }

    #[test]
    fn names_come_in_order_with_one_dossier_each() {
        let lists: &[&[_]] = &[
            &[("a.com", dropped("2026-01-01", None, false), 1)],
            &[],
            &[
                ("a.com", dropped("2026-03-01", None, false), 1),
                ("b.com", dropped("2026-01-01", None, false), 1),
            ],
            &[("a.com", dropped("2025-01-01", None, false), 9)],
        ];
        let all = merged(lists, "");
        assert_eq!(all.iter().map(|name| name.0.as_str()).collect::<Vec<_>>(), ["a.com", "b.com"]);
        let dates: Vec<_> = all[0].1.iter().map(|drop| drop.0.as_str()).collect();
        assert_eq!(dates, ["2025-01-01", "2026-01-01", "2026-03-01"]);
        assert_eq!(merged(lists, "a.com\0").len(), 1);
    }

    #[test]
    fn dossiers_of_labels_are_those_of_a_merge_of_everything() {
        let drop = dropped("2026-01-01", None, false);
        let mut random = 7u32;
        let mut list = |rows: u32, labels: u32| -> Vec<(String, Sighting, i64)> {
            let mut names = std::collections::BTreeSet::new();
            for _ in 0..rows {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let label = (random >> 8) % labels;
                let tld = ["com", "de", "net"][(random >> 28) as usize % 3];
                // Labels that start with another label, followed by characters that sort before or
                // after the dot.
                names.insert(format!("{}{}.{tld}", label / 3, ["", "-a", "0"][label as usize % 3]));
            }
            names.into_iter().map(|name| (name, drop, i64::from(rows))).collect()
        };
        let lists = [list(9_000, 6_000), list(40, 6_000), list(5_000, 9_000), list(300, 9_000)];
        let all: Vec<Vec<(&str, Sighting, i64)>> = lists
            .iter()
            .map(|list| list.iter().map(|(name, drop, at)| (name.as_str(), *drop, *at)).collect())
            .collect();
        let rows: Vec<Rows<'_>> = all.iter().map(Vec::as_slice).collect();
        let (_folder, batches) = batches(&rows);
        let label = |name: &str| name[..name.find('.').expect("a dot")].to_owned();
        for new in [0, 1, 2, 3, 4] {
            let (before, after) = batches.split_at(new);
            let labels: std::collections::BTreeSet<String> =
                all[new..].iter().flatten().map(|(name, ..)| label(name)).collect();
            for (of, from) in
                [(&batches[..], ""), (before, ""), (&batches[..], "5"), (&batches, "z")]
            {
                let expected = every(Dossiers::new(of, from.as_bytes()).expect("opens"));
                let expected: Vec<_> = expected
                    .into_iter()
                    .filter(|(name, _)| labels.contains(&label(name)))
                    .collect();
                let found = Dossiers::of_labels(of, after, from.as_bytes()).expect("opens");
                assert!(every(found) == expected, "{new} {from}");
                assert!(!expected.is_empty() || new == 4 || of.is_empty() || from == "z");
            }
        }
    }

    /// Returns each dossier as its name and, as text, its other fields.
    fn every(mut dossiers: Dossiers<'_>) -> Vec<(String, String)> {
        let mut all = Vec::new();
        while let Some(dossier) = dossiers.gather().expect("decodes") {
            let name = String::from_utf8(dossier.name.to_vec()).expect("ASCII");
            all.push((name, format!("{dossier:?}")));
        }
        all
    }

    #[test]
    fn a_registration_has_the_first_day_and_the_best_list() {
        let at = |on: &str| day(on).start().timestamp();
        let left = dropped("2026-01-01", None, false);
        let is_back = dropped("2026-01-01", None, true);
        let new = |on: &str| Sighting::Registered { on: day(on) };
        let known = Sighting::Known { registered: true };
        let of = |format: &str| BatchMeta { format: format.into(), ..BatchMeta::default() };
        let days = ZoneDays { suffix: "nu".into(), days: Vec::new() };
        let zone = || BatchMeta { zone: Some(days.clone()), ..of("native") };
        let row = |sighting, on: &str| ("a.nu", sighting, at(on));
        // Each row: a list, its statement, and a day of registration.
        let rows = [
            (zone(), row(left, "2026-01-04"), None),
            (of("registered"), row(new("2026-03-12"), "2026-03-12"), None),
            (of("registered"), row(new("2026-03-10"), "2026-06-01"), None),
            (of("native"), row(is_back, "2026-03-09"), None),
            (zone(), row(is_back, "2026-03-14"), None),
            (of("history"), row(known, "2026-04-30"), Some(day("2026-03-08"))),
            (of("history"), row(known, "2026-04-30"), Some(day("2015-03-08"))),
        ];
        let returned = |of: &[usize]| {
            let lists = of.iter().map(|&at| {
                let (meta, row, first_seen) = rows[at].clone();
                (meta, vec![(row, first_seen)])
            });
            let (_folder, batches) = batches_of(lists.collect());
            let mut dossiers = Dossiers::new(&batches, b"").expect("opens");
            let dossier = dossiers.gather().expect("decodes").expect("a name");
            assert_eq!(dossier.drops.len(), 1);
            let shown = |it: Sighted| {
                let on = it.on.map_or("?".to_owned(), |on| on.to_string());
                format!("{on} by {} {}", it.observed, it.shown)
            };
            dossier.drops[0].returned.map(shown).unwrap_or_default()
        };
        for (of, expected) in [
            (&[0][..], ""),
            (&[0, 1], "2026-03-12 by 2026-03-12 partial"),
            (&[0, 1, 2], "2026-03-10 by 2026-06-01 partial"),
            (&[0, 3], "? by 2026-03-09 partial"),
            (&[0, 3, 1], "2026-03-12 by 2026-03-12 partial"),
            (&[0, 1, 2, 3, 4], "2026-03-14 by 2026-03-14 complete"),
            (&[0, 4, 5], "2026-03-08 by 2026-04-30 complete"),
            // A registration before the drop shows nothing.
            (&[0, 6], ""),
        ] {
            assert_eq!(returned(of), expected, "{of:?}");
            let reversed: Vec<usize> = of.iter().rev().copied().collect();
            assert_eq!(returned(&reversed), expected, "{reversed:?}");
        }
    }

    #[test]
    fn the_record_observed_last_wins_its_date() {
        let early = dropped("2026-01-01", Some("2026-02-01"), true);
        let late = dropped("2026-01-01", None, false);
        let alone = [("2026-01-01".to_owned(), None, false)];
        // The last observation wins: across lists in any order, within a list, and by position
        // within the same second.
        let lists: [[Rows<'_>; 2]; 4] = [
            [&[("a.com", early, 1)], &[("a.com", late, 2)]],
            [&[("a.com", late, 2)], &[("a.com", early, 1)]],
            [&[("a.com", late, 2), ("a.com", early, 1)], &[]],
            [&[("a.com", early, 2)], &[("a.com", late, 2)]],
        ];
        for lists in lists {
            assert_eq!(merged(&lists, "")[0].1, alone);
        }
    }

    #[test]
    fn a_list_that_repeats_a_drop_moves_nothing() {
        let drops = |records: &[(&str, Option<&str>, bool, i64)]| {
            let lists: Vec<Vec<_>> = records
                .iter()
                .map(|&(date, release, again, at)| {
                    vec![("a.com", dropped(date, release, again), at)]
                })
                .collect();
            let lists: Vec<Rows<'_>> = lists.iter().map(Vec::as_slice).collect();
            let (_folder, batches) = batches(&lists);
            let mut dossiers = Dossiers::new(&batches, b"").expect("opens");
            let dossier = dossiers.gather().expect("decodes").expect("a name");
            let drops = dossier.drops.iter().map(|drop| {
                let release = drop.release.map_or("-".to_owned(), |day| day.to_string());
                format!("{} {release} {}", drop.date, drop.returned.is_some())
            });
            (drops.collect::<Vec<_>>(), dossier.first_batch)
        };
        let only = |text: &str, first_batch| (vec![text.to_owned()], first_batch);
        let may = Some("2026-05-20");
        // Lists repeat the drop on every day until its release, and may give release dates that
        // differ by a day.
        let daily = [
            ("2026-05-01", may, false, 1),
            ("2026-05-02", may, false, 2),
            ("2026-05-03", Some("2026-05-21"), false, 3),
        ];
        assert_eq!(drops(&daily), only("2026-05-01 2026-05-21 false", 1));
        // The order of ingestion does not matter.
        let late = [daily[2], daily[0], daily[1]];
        assert_eq!(drops(&late), only("2026-05-01 2026-05-21 false", 1));
        // A new release date is a new drop.
        let other = [daily[0], ("2026-09-01", Some("2026-09-20"), false, 9)];
        assert_eq!(drops(&other).0.len(), 2);
        assert_eq!(drops(&other).1, 2);
        // A zone file confirms a drop that a list announced; a list gives the date of a drop that a
        // zone file showed.
        let seen = [daily[0], ("2026-05-15", None, false, 9)];
        assert_eq!(drops(&seen), only("2026-05-01 2026-05-20 false", 1));
        let dated = [("2026-04-16", None, false, 1), ("2026-05-16", may, false, 2)];
        assert_eq!(drops(&dated), only("2026-04-16 2026-05-20 false", 1));
        // Plain lists of successive days describe one drop until the lifecycle of the TLD ends,
        // whatever the order of ingests.
        let [a, b, c] =
            ["2026-11-24", "2026-11-25", "2026-12-29"].map(|date| (date, None, false, 1));
        for lists in [[a, b, c], [c, a, b], [b, c, a], [c, b, a]] {
            assert_eq!(drops(&lists), only("2026-11-24 - false", 1));
        }
        let end = ("2026-12-30", None, false, 1);
        assert_eq!(
            drops(&[a, b, end]),
            (vec!["2026-11-24 - false".into(), "2026-12-30 - false".into()], 3)
        );
        assert_eq!(drops(&[("2026-11-24", None, true, 1), b]).0.len(), 2);
        // A record after the release, or after the name was registered again, is another drop.
        assert_eq!(drops(&[daily[0], ("2026-05-21", None, false, 9)]).0.len(), 2);
        assert_eq!(drops(&[("2026-04-01", None, false, 1), daily[1]]).0.len(), 2);
        assert_eq!(drops(&[("2026-04-16", None, true, 1), daily[1]]).0.len(), 2);
    }

    #[test]
    fn a_registration_between_two_records_results_in_two_drops() {
        let rows = |on: &str| {
            let drop = |date| ("a.com", dropped(date, None, false), 1);
            let on = ("a.com", Sighting::Registered { on: day(on) }, 1);
            let names = merged(&[&[drop("2026-11-26")], &[on], &[drop("2026-11-24")]], "");
            names[0].1.iter().map(|drop| format!("{} {}", drop.0, drop.2)).collect::<Vec<_>>()
        };
        assert_eq!(rows("2026-11-23"), ["2026-11-24 false"]);
        assert_eq!(rows("2026-11-24"), ["2026-11-24 true", "2026-11-26 false"]);
        assert_eq!(rows("2026-11-25"), ["2026-11-24 true", "2026-11-26 false"]);
        assert_eq!(rows("2026-11-26"), ["2026-11-24 true"]);
    }

    #[test]
    fn a_drop_before_its_only_list_is_dated_by_the_lifecycle_until_a_list_saw_it() {
        let past = |on: &str, at| ("a.se", Sighting::Released { on: day(on).into() }, at);
        let seen = |date: &str, release, at| ("a.se", dropped(date, release, false), at);
        let alone = merged(&[&[past("2026-11-07", 9)]], "");
        let free = |date: &str| [(date.to_owned(), Some("2026-11-07".to_owned()), false)];
        assert_eq!(alone[0].1, free("2026-09-01"));
        let twice = merged(&[&[past("2026-11-07", 9)], &[past("2026-11-07", 8)]], "");
        assert_eq!(twice, alone);
        // An observed day takes precedence over an estimate, in any order of lists.
        let announced = seen("2026-10-03", Some("2026-11-07"), 3);
        let left = seen("2026-09-04", None, 2);
        for (record, date) in [(announced, "2026-10-03"), (left, "2026-09-04")] {
            let past = past("2026-11-07", 9);
            assert_eq!(merged(&[&[record], &[past]], "")[0].1, free(date));
            assert_eq!(merged(&[&[past], &[record]], "")[0].1, free(date));
        }
        // Another release is another drop.
        let new = seen("2026-12-01", Some("2027-01-07"), 3);
        assert_eq!(merged(&[&[past("2026-11-07", 9)], &[new]], "")[0].1.len(), 2);
    }

    #[test]
    fn a_registration_marks_only_the_drop_before_it() {
        let again = |dates: &[&str], on: &str| {
            let mut rows: Vec<_> =
                dates.iter().map(|date| ("a.com", dropped(date, None, false), 1)).collect();
            rows.push(("a.com", Sighting::Registered { on: day(on) }, 1));
            let names = merged(&[&rows], "");
            names[0].1.iter().map(|drop| drop.2).collect::<Vec<_>>()
        };
        assert_eq!(again(&["2026-01-01"], "2026-01-01"), [true]);
        assert_eq!(again(&["2026-01-02"], "2026-01-01"), [false]);
        assert_eq!(again(&["2026-01-01", "2026-03-01"], "2026-02-01"), [true, false]);
        assert_eq!(again(&["2026-01-01", "2026-03-01"], "2026-03-01"), [false, true]);
    }

    #[test]
    fn first_batch_is_the_first_list_that_reported_the_drop() {
        let first = |lists: &[&[(&str, Sighting, i64)]]| {
            let (_folder, batches) = batches(lists);
            let mut dossiers = Dossiers::new(&batches, b"").expect("opens");
            dossiers.gather().expect("decodes").expect("a name").first_batch
        };
        let drop = |date: &str, at| ("a.com", dropped(date, None, false), at);
        let (may, july) = (drop("2026-05-01", 9), drop("2026-07-01", 1));
        assert_eq!(first(&[&[may]]), 1);
        assert_eq!(first(&[&[], &[may]]), 2);
        // A correction does not change the first list, in any order of observation; another drop
        // does.
        assert_eq!(first(&[&[may], &[drop("2026-05-01", 10)]]), 1);
        assert_eq!(first(&[&[], &[drop("2026-05-01", 10)], &[may]]), 2);
        assert_eq!(first(&[&[may], &[july], &[drop("2026-07-01", 0)]]), 2);
        // An older drop reported late does not change it.
        assert_eq!(first(&[&[july], &[may]]), 1);
        // Observations other than drops do not change it.
        let known = ("a.com", Sighting::Known { registered: true }, 1);
        assert_eq!(first(&[&[known], &[may], &[known]]), 2);
        assert_eq!(first(&[&[known]]), 0);
        assert_eq!(first(&[&[known], &[known]]), 0);
        let on = Sighting::Registered { on: day("2026-05-02") };
        assert_eq!(first(&[&[("a.com", on, 1)], &[may]]), 2);
    }

    #[test]
    fn the_newest_observation_of_a_registration_wins() {
        let known = |registered, at| ("a.com", Sighting::Known { registered }, at);
        let on = day("2026-01-01");
        assert!(merged(&[&[known(true, 1)]], "")[0].2);
        assert!(!merged(&[&[known(true, 1)], &[known(false, 2)]], "")[0].2);
        assert!(!merged(&[&[known(false, 2)], &[known(true, 1)]], "")[0].2);
        assert!(
            merged(&[&[("a.com", Sighting::Registered { on }, 3)], &[known(false, 2)]], "")[0].2
        );
    }
}
