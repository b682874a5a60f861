//! Docs of the drops list by TLD: the docs of any set of TLDs as a bitmap of a window. A TLD with
//! at least one doc in 32 has a bitmap, any other a list of docs, whichever is smaller.

use crate::index::error::{BuildError, GenerationError};
use crate::index::storage::draft::Draft;
use crate::index::storage::files::Files;

/// Files. TLDs with a bitmap:
const FREQUENT: &str = "listed.tld-frequent";
const BITS: &str = "listed.tld-bits";
const STARTS: &str = "listed.tld-starts";
const DOCS: &str = "listed.tld-docs";
/// Docs per listed doc at which a list is as large as a bitmap.
const BITS_PER_DOC: usize = 32;

/// Docs by TLD number.
#[derive(Debug, Default)]
pub struct TldDocs {
    /// TLD numbers with a bitmap.
    frequent: Vec<u16>,
    /// `words` words for each of them.
    bits: Vec<u64>,
    words: usize,
    /// Start of the list of each TLD, and the end of the last.
    starts: Vec<u32>,
    docs: Vec<u32>,
}

/// Docs of a set of TLDs, read forwards.
#[derive(Debug, Default)]
pub struct DocSet<'a> {
    bits: Vec<&'a [u64]>,
    /// Rest of each list, and its first doc: a set may have a thousand lists, few with a doc in a
    /// window.
    lists: Vec<&'a [u32]>,
    heads: Vec<u32>,
}

impl TldDocs {
    /// Sorts docs by TLD; `tld` holds the TLD numbers by doc, all below `tlds`.
    pub fn new(tld: &[u16], tlds: usize) -> TldDocs {
        let words = tld.len().div_ceil(64);
        let mut counts = vec![0usize; tlds];
        tld.iter().for_each(|&tld| counts[usize::from(tld)] += 1);
        let frequent: Vec<u16> = (0..=u16::MAX)
            .zip(&counts)
            .filter(|&(_, &count)| count > 0 && count * BITS_PER_DOC >= tld.len())
            .map(|(number, _)| number)
            .collect();
        let mut place = vec![None; tlds];
        for (at, &number) in frequent.iter().enumerate() {
            place[usize::from(number)] = Some(at * words);
            counts[usize::from(number)] = 0;
        }
        let mut starts = vec![0u32; tlds + 1];
        for (at, count) in counts.iter().enumerate() {
            starts[at + 1] = starts[at] + *count as u32;
        }
        let mut next = starts.clone();
        let mut docs = vec![0; starts[tlds] as usize];
        let mut bits = vec![0u64; frequent.len() * words];
        for (doc, &tld) in (0u32..).zip(tld) {
            if let Some(first) = place[usize::from(tld)] {
                bits[first + doc as usize / 64] |= 1 << (doc % 64);
            } else {
                let next = &mut next[usize::from(tld)];
                docs[*next as usize] = doc;
                *next += 1;
            }
        }
        TldDocs { frequent, bits, words, starts, docs }
    }

    /// Writes the files.
    ///
    /// # Errors
    /// A write fails.
    pub fn write(&self, draft: &Draft) -> Result<(), BuildError> {
        draft.put(FREQUENT, &self.frequent)?;
        draft.put(BITS, &self.bits)?;
        draft.put(STARTS, &self.starts)?;
        draft.put(DOCS, &self.docs)
    }

    /// Opens what [`TldDocs::write`] wrote for `listed` docs and `tlds` TLDs.
    ///
    /// # Errors
    /// A file is damaged or does not fit.
    pub fn open(files: &Files, listed: u32, tlds: usize) -> Result<TldDocs, GenerationError> {
        let words = listed.div_ceil(64) as usize;
        let read = TldDocs {
            frequent: files.take(FREQUENT)?,
            bits: files.take(BITS)?,
            words,
            starts: files.take(STARTS)?,
            docs: files.take(DOCS)?,
        };
        let fits = read.bits.len() == read.frequent.len() * words
            && read.starts.len() == tlds + 1
            && read.starts.is_sorted()
            && read.starts[tlds] as usize == read.docs.len()
            && read.docs.iter().all(|&doc| doc < listed);
        files.check(fits, STARTS)?;
        Ok(read)
    }

    /// Returns the docs with one of these TLDs; each number occurs once and is known.
    pub fn members(&self, numbers: impl IntoIterator<Item = u16>) -> DocSet<'_> {
        let mut members = DocSet::default();
        for number in numbers {
            let at = usize::from(number);
            let list = &self.docs[self.starts[at] as usize..self.starts[at + 1] as usize];
            if let Some(&head) = list.first() {
                members.lists.push(list);
                members.heads.push(head);
            } else if let Some(at) = self.frequent.iter().position(|&known| known == number) {
                members.bits.push(&self.bits[at * self.words..(at + 1) * self.words]);
            }
        }
        members
    }
}

impl DocSet<'_> {
    /// Returns true if it holds no doc.
    pub fn is_empty(&self) -> bool {
        self.bits.is_empty() && self.lists.is_empty()
    }

    /// Sets the bits of the docs from `64 * first` on in `words`. Windows come in order.
    pub fn mark(&mut self, first: usize, words: &mut [u64]) {
        for bits in &self.bits {
            let here = &bits[first..bits.len().min(first + words.len())];
            words.iter_mut().zip(here).for_each(|(word, bits)| *word |= bits);
        }
        let (start, end) = ((first * 64) as u32, ((first + words.len()) * 64) as u32);
        for (list, head) in self.lists.iter_mut().zip(&mut self.heads) {
            if *head >= end {
                continue;
            }
            skip_to(list, start);
            let here = if list.last().is_some_and(|&last| last < end) {
                list.len()
            } else {
                list.partition_point(|&doc| doc < end)
            };
            mark_docs(&list[..here], start, words);
            *list = &list[here..];
            *head = head_of(list);
        }
    }

    /// Returns a lower bound of the first doc from `from` on, if any.
    pub fn next(&mut self, from: u32) -> Option<u32> {
        if !self.bits.is_empty() {
            return Some(from);
        }
        for (list, head) in self.lists.iter_mut().zip(&mut self.heads) {
            if *head < from {
                skip_to(list, from);
                *head = head_of(list);
            }
        }
        self.heads.iter().copied().min().filter(|&doc| doc != NO_DOC)
    }
}

/// First doc of an empty list.
const NO_DOC: u32 = u32::MAX;

fn head_of(list: &[u32]) -> u32 {
    list.first().copied().unwrap_or(NO_DOC)
}

/// Skips the docs before `start`.
fn skip_to(list: &mut &[u32], start: u32) {
    if list.first().is_some_and(|&doc| doc < start) {
        *list = &list[list.partition_point(|&doc| doc < start)..];
    }
}

/// Sets the bits of `docs`, which lie in the window that starts at doc `start`.
#[inline]
pub fn mark_docs(docs: &[u32], start: u32, words: &mut [u64]) {
    for doc in docs {
        let bit = doc - start;
        words[bit as usize / 64] |= 1 << (bit % 64);
    }
}
