//! Sets of docs of the drops list by a number, such as that of their TLD. A query gets the docs of
//! any selection of numbers as a bitmap of a window. A set is stored as a bitmap, or as a list in
//! Elias-Fano code if that is smaller.

use std::iter::Sum;
use std::ops::Range;

use crate::columns::ascending::{Ascending, AscendingBuilder};
use crate::columns::slices::{docs_of, ones, set_doc};
use crate::error::{BuildError, GenerationError};
use crate::storage::draft::Draft;
use crate::storage::files::Files;

/// A set that holds more than one doc in this many is smaller as a bitmap than as a list. A doc
/// takes three bits in a list, and one more each time the frequency halves.
const DOCS_PER_LISTED: usize = 6;

/// Sets of docs, by number.
#[derive(Debug, Default)]
pub struct DocSets {
    /// Number of docs on the drops list.
    listed: u32,
    /// The numbers whose docs are stored as a bitmap.
    frequent: Vec<u16>,
    /// The bitmaps of the frequent numbers, one after the other.
    bits: Vec<u64>,
    /// Start of the docs of each number in `lists`, and the end of the last.
    starts: Vec<u32>,
    /// Docs by number, plus an offset that makes all of them ascend.
    lists: Ascending,
}

/// Builds [`DocSets`], number by number.
#[derive(Debug)]
pub struct DocSetsBuilder {
    listed: u32,
    frequent: Vec<u16>,
    bits: Vec<u64>,
    starts: Vec<u32>,
    lists: AscendingBuilder,
}

/// A forward reader of the docs that have one of several numbers.
#[derive(Debug, Default)]
pub struct DocSet<'a> {
    bits: Vec<&'a [u64]>,
    lists: Vec<List<'a>>,
    /// First unread doc of each list. A set may have a thousand lists, but only few of them have a
    /// doc in a given window.
    heads: Vec<u32>,
}

/// Lists of docs that a walk reads, and the number of docs in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    pub count: usize,
    pub docs: u64,
}

impl Sum for Lists {
    fn sum<I: Iterator<Item = Lists>>(lists: I) -> Lists {
        lists.fold(Lists::default(), |sum, more| Lists {
            count: sum.count + more.count,
            docs: sum.docs + more.docs,
        })
    }
}

/// Unread docs of a number.
#[derive(Clone, Debug)]
struct List<'a> {
    all: &'a Ascending,
    /// Offset added to its docs.
    base: u64,
    places: Range<u32>,
}

impl DocSetsBuilder {
    /// Starts sets of docs below `listed`.
    pub fn new(listed: u32) -> DocSetsBuilder {
        DocSetsBuilder {
            listed,
            frequent: Vec::new(),
            bits: Vec::new(),
            starts: vec![0],
            lists: AscendingBuilder::default(),
        }
    }

    /// Adds the docs of the next number, in ascending order.
    pub fn push_docs(&mut self, docs: &[u32]) {
        if self.is_frequent(docs.len()) {
            let mut bits = vec![0; words_for(self.listed)];
            mark_docs(docs, 0, &mut bits);
            self.push_frequent(&bits);
        } else {
            let base = self.base();
            docs.iter().for_each(|&doc| self.lists.push(base + u64::from(doc)));
            self.starts.push(self.lists.len() as u32);
        }
    }

    /// Adds the docs of the next number, given as a bitmap.
    pub fn push_bits(&mut self, bits: &[u64]) {
        if self.is_frequent(ones(bits) as usize) {
            self.push_frequent(bits);
        } else {
            let base = self.base();
            docs_of(0, bits, |doc| self.lists.push(base + u64::from(doc)));
            self.starts.push(self.lists.len() as u32);
        }
    }

    fn push_frequent(&mut self, bits: &[u64]) {
        self.frequent.push((self.starts.len() - 1) as u16);
        self.bits.extend_from_slice(bits);
        self.starts.push(self.lists.len() as u32);
    }

    fn is_frequent(&self, docs: usize) -> bool {
        docs * DOCS_PER_LISTED > self.listed as usize
    }

    /// Returns the offset for the docs of the next number.
    fn base(&self) -> u64 {
        (self.starts.len() - 1) as u64 * u64::from(self.listed)
    }

    /// Returns the sets.
    pub fn finish(self) -> DocSets {
        let DocSetsBuilder { listed, frequent, bits, starts, lists } = self;
        DocSets { listed, frequent, bits, starts, lists: lists.finish() }
    }
}

fn words_for(listed: u32) -> usize {
    listed.div_ceil(64) as usize
}

impl DocSets {
    /// Builds the sets from the number of each doc. `numbers` has the number of each doc; all are
    /// below `count`.
    pub fn of(numbers: &[u16], count: usize) -> DocSets {
        let mut ends = vec![0u32; count + 1];
        numbers.iter().for_each(|&number| ends[usize::from(number) + 1] += 1);
        (1..ends.len()).for_each(|at| ends[at] += ends[at - 1]);
        let starts = ends.clone();
        let mut docs = vec![0; numbers.len()];
        for (doc, &number) in (0..).zip(numbers) {
            let next = &mut ends[usize::from(number)];
            docs[*next as usize] = doc;
            *next += 1;
        }
        let mut sets = DocSetsBuilder::new(numbers.len() as u32);
        for range in starts.windows(2) {
            sets.push_docs(&docs[range[0] as usize..range[1] as usize]);
        }
        sets.finish()
    }

    /// Writes files whose names start with `name`.
    ///
    /// # Errors
    /// A write fails.
    pub fn write(&self, name: &str, draft: &Draft) -> Result<(), BuildError> {
        draft.put(&format!("{name}-frequent"), &self.frequent)?;
        draft.put(&format!("{name}-bits"), &self.bits)?;
        draft.put(&format!("{name}-starts"), &self.starts)?;
        self.lists.write(&format!("{name}-docs"), draft)
    }

    /// Opens the files that [`DocSets::write`] wrote for `listed` docs and numbers below `count`.
    ///
    /// # Errors
    /// A file is damaged or does not match.
    pub fn open(
        name: &str,
        files: &Files,
        listed: u32,
        count: usize,
    ) -> Result<DocSets, GenerationError> {
        let (of_starts, of_docs) = (format!("{name}-starts"), format!("{name}-docs"));
        let frequent: Vec<u16> = files.take(&format!("{name}-frequent"))?;
        let bits: Vec<u64> = files.take(&format!("{name}-bits"))?;
        let starts: Vec<u32> = files.take(&of_starts)?;
        let docs = starts.last().copied().unwrap_or(0);
        let lists = Ascending::open(&of_docs, docs as usize, files)?;
        let fits = bits.len() == frequent.len() * words_for(listed)
            && starts.len() == count + 1
            && starts[0] == 0
            && starts.is_sorted();
        files.check(fits, &of_starts)?;
        let read = DocSets { listed, frequent, bits, starts, lists };
        files.check((0..count).all(|number| read.list(number).is_sound(listed)), &of_docs)?;
        Ok(read)
    }

    /// Returns the docs with one of these numbers, which must be known and distinct.
    pub fn members(&self, numbers: impl IntoIterator<Item = u16>) -> DocSet<'_> {
        let (mut members, words) = (DocSet::default(), words_for(self.listed));
        for number in numbers {
            let list = self.list(number.into());
            if let Some(head) = list.next(0) {
                members.lists.push(list);
                members.heads.push(head);
            } else if let Some(at) = self.frequent.iter().position(|&known| known == number) {
                members.bits.push(&self.bits[at * words..(at + 1) * words]);
            }
        }
        members
    }

    fn list(&self, number: usize) -> List<'_> {
        let base = number as u64 * u64::from(self.listed);
        List { all: &self.lists, base, places: self.starts[number]..self.starts[number + 1] }
    }
}

impl List<'_> {
    /// Returns true if the docs ascend and are below `listed`.
    fn is_sound(&self, listed: u32) -> bool {
        let (mut docs, mut least) = (0, self.base);
        self.all.each(self.places.clone(), |number| {
            let holds = number >= least && number - self.base < listed.into();
            (docs, least) = (docs + u32::from(holds), number + 1);
            holds
        });
        docs == self.places.len() as u32
    }

    /// Returns the place of the first doc that is `from` or later.
    fn place(&self, from: u32) -> u32 {
        self.all.first_at_least(self.base + u64::from(from), self.places.clone())
    }

    /// Returns the first doc that is `from` or later.
    fn next(&self, from: u32) -> Option<u32> {
        // An empty list may lie after the last number.
        let place = if self.places.is_empty() { self.places.end } else { self.place(from) };
        (place < self.places.end).then(|| (self.all.get(place) - self.base) as u32)
    }

    /// Sets the bits of the docs in the window that starts at doc `start`.
    fn mark(&self, start: u32, words: &mut [u64]) {
        let (first, bits) = (self.base + u64::from(start), 64 * words.len() as u64);
        self.all.each(self.place(start)..self.places.end, |number| {
            let bit = number - first;
            if bit < bits {
                set_doc(words, bit as u32);
            }
            bit < bits
        });
    }
}

impl DocSet<'_> {
    /// Returns true if the sets hold no docs.
    pub fn is_empty(&self) -> bool {
        self.bits.is_empty() && self.lists.is_empty()
    }

    /// Returns the number and the length of the lists that a walk reads.
    pub fn lists(&self) -> Lists {
        let docs = self.lists.iter().map(|list| list.places.len() as u64).sum();
        Lists { count: self.lists.len(), docs }
    }

    /// Sets in `words` the bits of its docs, starting at doc `64 * first`. Windows come in order.
    pub fn mark(&mut self, first: usize, words: &mut [u64]) {
        for bits in &self.bits {
            let here = &bits[first..bits.len().min(first + words.len())];
            words.iter_mut().zip(here).for_each(|(word, bits)| *word |= bits);
        }
        let (start, end) = ((first * 64) as u32, ((first + words.len()) * 64) as u32);
        for (list, head) in self.lists.iter().zip(&mut self.heads) {
            if *head < end {
                list.mark(start, words);
                *head = list.next(end).unwrap_or(NO_DOC);
            }
        }
    }

    /// Returns a lower bound of the first doc that is `from` or later, if any.
    pub fn next(&mut self, from: u32) -> Option<u32> {
        if !self.bits.is_empty() {
            return Some(from);
        }
        for (list, head) in self.lists.iter().zip(&mut self.heads) {
            if *head < from {
                *head = list.next(from).unwrap_or(NO_DOC);
            }
        }
        self.heads.iter().copied().min().filter(|&doc| doc != NO_DOC)
    }
}

/// Value for a list without further docs.
const NO_DOC: u32 = u32::MAX;

/// Sets the bits of `docs`, which lie in the window that starts at doc `start`.
#[inline]
pub fn mark_docs(docs: &[u32], start: u32, words: &mut [u64]) {
    for doc in docs {
        let bit = doc - start;
        set_doc(words, bit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::fixtures::round_trip;

    /// Number 0 has a bitmap, and some other numbers have no docs.
    #[test]
    fn docs_of_a_set_are_those_of_a_scan() {
        let mut rng = fastrand::Rng::with_seed(5);
        for docs in [0usize, 1, 64, 5_000, 200_000] {
            let of_doc: Vec<u16> =
                (0..docs).map(|_| rng.u16(0..40).saturating_sub(rng.u16(..40))).collect();
            let written = DocSets::of(&of_doc, 50);
            let (_folder, files) =
                round_trip(|draft| written.write("sets", draft)).expect("written");
            let read = DocSets::open("sets", &files, docs as u32, 50).expect("sound");
            assert_eq!(read.frequent, if docs > 1 { vec![0] } else { read.frequent.clone() });
            for _ in 0..60 {
                let mut wanted: Vec<u16> = (0..rng.u16(0..5)).map(|_| rng.u16(0..50)).collect();
                wanted.sort_unstable();
                wanted.dedup();
                let mut members = read.members(wanted.iter().copied());
                let is_member =
                    |doc: &usize| of_doc.get(*doc).is_some_and(|number| wanted.contains(number));
                let mut first = 0;
                while first < docs.div_ceil(64) {
                    let next = members.next((first * 64) as u32);
                    let expected = (first * 64..docs).find(is_member).map(|doc| doc as u32);
                    assert!(next.is_none() == expected.is_none() && next <= expected);
                    let mut words = vec![0; 1 + rng.usize(0..2_000)];
                    members.mark(first, &mut words);
                    for (bit, doc) in (first * 64..).take(words.len() * 64).enumerate() {
                        assert_eq!(
                            words[bit / 64] >> (bit % 64) & 1 == 1,
                            is_member(&doc),
                            "{doc}"
                        );
                    }
                    first += words.len() + rng.usize(0..50);
                }
            }
            let other = DocSets::open("sets", &files, docs as u32 + 64, 50);
            assert!(other.is_err() || read.frequent.is_empty(), "of other docs");
            assert!(DocSets::open("sets", &files, docs as u32, 51).is_err(), "of other numbers");
        }
    }
}
