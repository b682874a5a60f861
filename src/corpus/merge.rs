//! Sorted batches in, one [`Dossier`] per name out, whatever the number of lists
//! (decisions.md §2, §10).

use rayon::prelude::*;

use crate::corpus::batch::{Batch, BatchError, Cursor, Entry, Found, NameBytes, Record};
use crate::feeds::Sighting;
use crate::scorer::Base;
use crate::vocab::day::Day;

/// One drop of a name, as all lists together tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropRecord {
    /// The day the name was seen leaving its zone.
    pub date: Day,
    /// The day the registry frees it, where a list said so.
    pub release: Option<Day>,
    /// Registered again after this drop, before any later one.
    pub registered_again: bool,
}

/// All that is known of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dossier<'a> {
    /// Canonical name.
    pub name: &'a [u8],
    /// Octets of the registrable label.
    pub label_len: u8,
    /// Characters of the registrable label in Unicode.
    pub length: u8,
    /// Its score but for tldSpread.
    pub base: Base,
    /// What the score was made from, as [`crate::scorer::Known`] takes it; empty for names that
    /// never dropped.
    pub evidence: &'a [u8],
    /// Every drop, oldest first; the last one decides stage and registeredAgain.
    pub drops: &'a [DropRecord],
    /// The number of the list that was the first to tell of the last of `drops`, whatever later
    /// ones corrected; 0 where there are none. Lists are numbered from 1 in their order.
    pub first_batch: u32,
    /// A list said that the name is held, and no later one that it is not.
    pub registered: bool,
}

/// Walks the entries of several batches as one sorted list. Entries of one name come in the order
/// of the batches, and within a batch in the order of its list.
pub struct Merge<'a> {
    cursors: Vec<Cursor<'a>>,
    /// The number of the first list of each batch: 1 is the first of all.
    first_lists: Vec<u32>,
    /// A binary heap of places in `cursors`, the one with the first name on top.
    heap: Vec<usize>,
}

impl<'a> Merge<'a> {
    /// All entries from the name `from` on.
    ///
    /// # Errors
    /// A batch that does not decode, which a verified one does.
    pub fn new(
        batches: impl IntoIterator<Item = &'a Batch>,
        from: &[u8],
    ) -> Result<Merge<'a>, BatchError> {
        let (mut cursors, mut first_lists, mut next) = (Vec::new(), Vec::new(), 1);
        for batch in batches {
            cursors.push(batch.cursor(from)?);
            first_lists.push(next);
            next += batch.lists().len() as u32;
        }
        let heap = (0..cursors.len()).filter(|&at| cursors[at].entry().is_some()).collect();
        let mut merge = Merge { cursors, first_lists, heap };
        for place in (0..merge.heap.len() / 2).rev() {
            merge.sift_down(place);
        }
        Ok(merge)
    }

    /// The entry with the first name; `None` at the end.
    pub fn peek(&self) -> Option<Entry<'_>> {
        self.cursors[*self.heap.first()?].entry()
    }

    /// The place of the batch that [`Merge::peek`] comes from.
    pub fn source(&self) -> Option<usize> {
        self.heap.first().copied()
    }

    /// The number of the list of that entry: 1 is the first of all batches; 0 at the end.
    pub fn number(&self) -> u32 {
        self.heap.first().map_or(0, |&top| self.first_lists[top] + self.cursors[top].list())
    }

    /// Steps past the entry of [`Merge::peek`].
    ///
    /// # Errors
    /// A batch that does not decode.
    pub fn advance(&mut self) -> Result<(), BatchError> {
        let Some(&top) = self.heap.first() else { return Ok(()) };
        if !self.cursors[top].advance()? {
            self.heap.swap_remove(0);
        }
        self.sift_down(0);
        Ok(())
    }

    /// The name of the entry of [`Merge::peek`].
    fn name(&self) -> Option<&NameBytes> {
        self.heap.first().map(|&top| self.cursors[top].name())
    }

    /// The entry of [`Merge::peek`] but for its name.
    fn found(&self) -> Option<Found<'a>> {
        self.cursors[*self.heap.first()?].found()
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

/// Names that cut `batches` into about `parts` ranges of like size, none through a label.
pub fn cuts(batches: &[Batch], parts: usize) -> Vec<Vec<u8>> {
    let mut names: Vec<&[u8]> = batches.iter().flat_map(Batch::block_names).collect();
    names.par_sort_unstable();
    let step = names.len().div_ceil(parts).max(1);
    let mut cuts: Vec<Vec<u8>> = names
        .into_iter()
        .step_by(step)
        .skip(1)
        .map(|name| {
            // `label.` stands right before all names of the label.
            let dot = name.iter().position(|&byte| byte == b'.').unwrap_or(name.len() - 1);
            name[..=dot].to_vec()
        })
        .collect();
    cuts.dedup();
    cuts
}

/// Gathers the entries of each name of a [`Merge`] into a [`Dossier`].
pub struct Dossiers<'a> {
    merge: Merge<'a>,
    name: NameBytes,
    evidence: &'a [u8],
    /// Of the name at hand, where it has several entries: drops, when each was observed, and the
    /// number of its list.
    seen: Vec<(DropRecord, i64, u32)>,
    registrations: Vec<Day>,
    drops: Vec<DropRecord>,
    first_batch: u32,
}

impl<'a> Dossiers<'a> {
    /// The dossiers of all names from `from` on.
    ///
    /// # Errors
    /// A batch that does not decode.
    pub fn new(batches: &'a [Batch], from: &[u8]) -> Result<Dossiers<'a>, BatchError> {
        Ok(Dossiers {
            merge: Merge::new(batches, from)?,
            name: NameBytes::default(),
            evidence: &[],
            seen: Vec::new(),
            registrations: Vec::new(),
            drops: Vec::new(),
            first_batch: 0,
        })
    }

    /// The next dossier, in name order; `None` at the end.
    ///
    /// # Errors
    /// A batch that does not decode.
    pub fn gather(&mut self) -> Result<Option<Dossier<'_>>, BatchError> {
        let (Some(first), Some(name)) = (self.merge.found(), self.merge.name()) else {
            return Ok(None);
        };
        self.name.copy(name);
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
            evidence: self.evidence,
            drops: &self.drops,
            first_batch: self.first_batch,
            registered,
        }))
    }

    /// Takes the only entry of a name, of the batch with this number; true when it says that the
    /// name is held.
    fn take_one(&mut self, entry: &Found<'a>, batch: u32) -> bool {
        self.drops.clear();
        self.evidence = &[];
        self.first_batch = 0;
        match entry.record.sighting {
            Sighting::Dropped { date, release, registered_again } => {
                self.first_batch = batch;
                self.drops.push(DropRecord { date, release, registered_again });
                self.evidence = entry.evidence;
                false
            }
            Sighting::Registered { .. } => true,
            Sighting::Known { registered } => registered,
        }
    }

    /// Takes `first`, of the batch with this number, and all entries of the same name that follow
    /// it; gives the base of the last and whether the name is held.
    #[inline(never)]
    fn take_all(&mut self, first: Found<'a>, batch: u32) -> Result<(Base, bool), BatchError> {
        self.seen.clear();
        self.registrations.clear();
        self.evidence = &[];
        let mut held = Held::default();
        let (mut entry, mut batch) = (first, batch);
        loop {
            held.see(&entry.record);
            match entry.record.sighting {
                Sighting::Dropped { date, release, registered_again } => {
                    self.evidence = entry.evidence;
                    let drop = DropRecord { date, release, registered_again };
                    self.seen.push((drop, entry.record.observed_at, batch));
                }
                Sighting::Registered { on } => self.registrations.push(on),
                Sighting::Known { .. } => {}
            }
            match self.merge.found() {
                Some(next) if self.merge.name() == Some(&self.name) => {
                    (entry, batch) = (next, self.merge.number());
                }
                _ => break,
            }
            self.merge.advance()?;
        }
        self.merge_drops();
        Ok((entry.base, held.registered))
    }

    /// One record per drop date, the one observed last, oldest date first; then each drop that a
    /// registration followed before the next drop is marked.
    fn merge_drops(&mut self) {
        // Stable: of two records observed at the same second the later list's stays last.
        self.seen.sort_by_key(|(drop, observed_at, _)| (drop.date, *observed_at));
        self.drops.clear();
        self.first_batch = 0;
        for &(drop, _, batch) in &self.seen {
            match self.drops.last_mut() {
                Some(last) if last.date == drop.date => {
                    *last = drop;
                    self.first_batch = self.first_batch.min(batch);
                }
                _ => {
                    self.drops.push(drop);
                    self.first_batch = batch;
                }
            }
        }
        for &on in &self.registrations {
            let after = self.drops.partition_point(|drop| drop.date <= on);
            if let Some(before) = after.checked_sub(1) {
                self.drops[before].registered_again = true;
            }
        }
    }
}

/// What the newest word on holding the name is.
#[derive(Default)]
struct Held {
    registered: bool,
    observed_at: Option<i64>,
}

impl Held {
    fn see(&mut self, record: &Record) {
        let registered = match record.sighting {
            Sighting::Known { registered } => registered,
            Sighting::Registered { .. } => true,
            Sighting::Dropped { .. } => return,
        };
        if self.observed_at.is_none_or(|seen| seen <= record.observed_at) {
            *self = Held { registered, observed_at: Some(record.observed_at) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::batch::{self, BatchMeta};

    fn day(text: &str) -> Day {
        text.parse().expect("a date")
    }

    fn dropped(date: &str, release: Option<&str>, registered_again: bool) -> Sighting {
        Sighting::Dropped { date: day(date), release: release.map(day), registered_again }
    }

    fn batches(lists: &[&[(&str, Sighting, i64)]]) -> (tempfile::TempDir, Vec<Batch>) {
        let folder = tempfile::tempdir().expect("a folder");
        let open = |(at, rows): (usize, &&[(&str, Sighting, i64)])| {
            let path = folder.path().join(at.to_string());
            let mut writer = batch::create(&path).expect("a new file");
            for (name, sighting, observed_at) in *rows {
                let record =
                    Record { sighting: *sighting, first_seen: None, observed_at: *observed_at };
                let base = Base::from_bits(7);
                let name = name.as_bytes();
                let dropped = matches!(sighting, Sighting::Dropped { .. });
                let evidence = if dropped { name } else { &[] };
                let entry = Entry { name, label_len: 1, length: 1, base, evidence, record };
                writer.push(&entry).expect("fits");
            }
            writer.finish(&BatchMeta::default()).expect("finished");
            Batch::open(&path).expect("opens")
        };
        let batches = lists.iter().enumerate().map(open).collect();
        (folder, batches)
    }

    type Rows<'a> = &'a [(&'a str, Sighting, i64)];
    type Told = (String, Vec<(String, Option<String>, bool)>, bool);

    fn told(lists: &[&[(&str, Sighting, i64)]], from: &str) -> Vec<Told> {
        let (_folder, batches) = batches(lists);
        let mut dossiers = Dossiers::new(&batches, from.as_bytes()).expect("opens");
        let mut told = Vec::new();
        while let Some(dossier) = dossiers.gather().expect("decodes") {
            let drops = dossier.drops.iter().map(|drop| {
                let release = drop.release.map(|release| release.to_string());
                (drop.date.to_string(), release, drop.registered_again)
            });
            let evidence = if dossier.drops.is_empty() { &[] } else { dossier.name };
            assert_eq!(dossier.evidence, evidence, "of the name, and of no other");
            let name = String::from_utf8(dossier.name.to_vec()).expect("ASCII");
            told.push((name, drops.collect(), dossier.registered));
        }
        told
    }

    #[test]
    fn one_dossier_per_name_in_order() {
        let lists: &[&[_]] = &[
            &[("a.com", dropped("2026-01-01", None, false), 1)],
            &[],
            &[
                ("a.com", dropped("2026-03-01", None, false), 1),
                ("b.com", dropped("2026-01-01", None, false), 1),
            ],
            &[("a.com", dropped("2025-01-01", None, false), 9)],
        ];
        let all = told(lists, "");
        assert_eq!(all.iter().map(|told| told.0.as_str()).collect::<Vec<_>>(), ["a.com", "b.com"]);
        let dates: Vec<_> = all[0].1.iter().map(|drop| drop.0.as_str()).collect();
        assert_eq!(dates, ["2025-01-01", "2026-01-01", "2026-03-01"]);
        assert_eq!(told(lists, "a.com\0").len(), 1);
    }

    #[test]
    fn the_record_observed_last_wins_its_date() {
        let early = dropped("2026-01-01", Some("2026-02-01"), true);
        let late = dropped("2026-01-01", None, false);
        let alone = [("2026-01-01".to_owned(), None, false)];
        // Across lists whatever their order, within a list, and by place at the same second.
        let lists: [[Rows<'_>; 2]; 4] = [
            [&[("a.com", early, 1)], &[("a.com", late, 2)]],
            [&[("a.com", late, 2)], &[("a.com", early, 1)]],
            [&[("a.com", late, 2), ("a.com", early, 1)], &[]],
            [&[("a.com", early, 2)], &[("a.com", late, 2)]],
        ];
        for lists in lists {
            assert_eq!(told(&lists, "")[0].1, alone);
        }
    }

    #[test]
    fn a_registration_undoes_the_drop_before_it_alone() {
        let again = |dates: &[&str], on: &str| {
            let mut rows: Vec<_> =
                dates.iter().map(|date| ("a.com", dropped(date, None, false), 1)).collect();
            rows.push(("a.com", Sighting::Registered { on: day(on) }, 1));
            let told = told(&[&rows], "");
            told[0].1.iter().map(|drop| drop.2).collect::<Vec<_>>()
        };
        assert_eq!(again(&["2026-01-01"], "2026-01-01"), [true]);
        assert_eq!(again(&["2026-01-02"], "2026-01-01"), [false]);
        assert_eq!(again(&["2026-01-01", "2026-03-01"], "2026-02-01"), [true, false]);
        assert_eq!(again(&["2026-01-01", "2026-03-01"], "2026-03-01"), [false, true]);
    }

    #[test]
    fn a_drop_is_known_since_the_first_list_that_told_of_it() {
        let first = |lists: &[&[(&str, Sighting, i64)]]| {
            let (_folder, batches) = batches(lists);
            let mut dossiers = Dossiers::new(&batches, b"").expect("opens");
            dossiers.gather().expect("decodes").expect("a name").first_batch
        };
        let drop = |date: &str, at| ("a.com", dropped(date, None, false), at);
        let (may, june) = (drop("2026-05-01", 9), drop("2026-06-01", 1));
        assert_eq!(first(&[&[may]]), 1);
        assert_eq!(first(&[&[], &[may]]), 2);
        // A correction leaves it, whichever was observed last; another drop does not.
        assert_eq!(first(&[&[may], &[drop("2026-05-01", 10)]]), 1);
        assert_eq!(first(&[&[], &[drop("2026-05-01", 10)], &[may]]), 2);
        assert_eq!(first(&[&[may], &[june], &[drop("2026-06-01", 0)]]), 2);
        // An older drop told of late changes nothing.
        assert_eq!(first(&[&[june], &[may]]), 1);
        // Nor does what is no drop.
        let known = ("a.com", Sighting::Known { registered: true }, 1);
        assert_eq!(first(&[&[known], &[may], &[known]]), 2);
        assert_eq!(first(&[&[known]]), 0);
        assert_eq!(first(&[&[known], &[known]]), 0);
        let on = Sighting::Registered { on: day("2026-05-02") };
        assert_eq!(first(&[&[("a.com", on, 1)], &[may]]), 2);
    }

    #[test]
    fn the_newest_word_on_holding_wins() {
        let known = |registered, at| ("a.com", Sighting::Known { registered }, at);
        let on = day("2026-01-01");
        assert!(told(&[&[known(true, 1)]], "")[0].2);
        assert!(!told(&[&[known(true, 1)], &[known(false, 2)]], "")[0].2);
        assert!(!told(&[&[known(false, 2)], &[known(true, 1)]], "")[0].2);
        assert!(told(&[&[("a.com", Sighting::Registered { on }, 3)], &[known(false, 2)]], "")[0].2);
    }
}
