//! Docs of the drops list by TLD: the docs of any set of TLDs as a bitmap of a window. A TLD with
//! at least one doc in 16 has a bitmap, any other a list of docs, whichever is smaller: two bytes a doc,
//! since docs are listed by *chunk* of 65,536.

use std::ops::Range;

use crate::index::error::{BuildError, GenerationError};
use crate::index::storage::draft::Draft;
use crate::index::storage::files::Files;

/// Files. TLDs with a bitmap:
const FREQUENT: &str = "listed.tld-frequent";
const BITS: &str = "listed.tld-bits";
const STARTS: &str = "listed.tld-starts";
const DOCS: &str = "listed.tld-docs";
/// Docs per listed doc at which a list is as large as a bitmap.
const BITS_PER_DOC: usize = 16;
/// Docs in a chunk.
const CHUNK: usize = 1 << 16;

/// Docs by TLD number.
#[derive(Debug, Default)]
pub struct TldDocs {
    /// TLD numbers with a bitmap.
    frequent: Vec<u16>,
    /// `words` words for each of them.
    bits: Vec<u64>,
    words: usize,
    /// Start of the list of each chunk of each TLD, and the end of the last.
    starts: Vec<u32>,
    chunks: usize,
    /// Position of each doc in its chunk.
    docs: Vec<u16>,
}

/// Docs of a set of TLDs, read forwards.
#[derive(Debug, Default)]
pub struct DocSet<'a> {
    bits: Vec<&'a [u64]>,
    lists: Vec<List<'a>>,
    /// First doc of each list that is not read yet: a set may have a thousand lists, few with a doc in
    /// a window.
    heads: Vec<u32>,
}

/// List of a TLD.
#[derive(Clone, Copy, Debug)]
struct List<'a> {
    /// Start of each chunk, and the end of the last.
    starts: &'a [u32],
    docs: &'a [u16],
}

impl TldDocs {
    /// Sorts docs by TLD; `tld` holds the TLD numbers by doc, all below `tlds`.
    pub fn new(tld: &[u16], tlds: usize) -> TldDocs {
        let (words, chunks) = (tld.len().div_ceil(64), tld.len().div_ceil(CHUNK));
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
        }
        let mut next = vec![0u32; tlds * chunks + 1];
        let list = |doc: usize, tld: u16| usize::from(tld) * chunks + doc / CHUNK;
        let is_listed = |tld: u16| place[usize::from(tld)].is_none();
        for (doc, &tld) in tld.iter().enumerate().filter(|&(_, &tld)| is_listed(tld)) {
            next[list(doc, tld) + 1] += 1;
        }
        for at in 1..next.len() {
            next[at] += next[at - 1];
        }
        let starts = next.clone();
        let mut docs = vec![0; starts[tlds * chunks] as usize];
        let mut bits = vec![0u64; frequent.len() * words];
        for (doc, &tld) in tld.iter().enumerate() {
            if let Some(first) = place[usize::from(tld)] {
                bits[first + doc / 64] |= 1 << (doc % 64);
            } else {
                let next = &mut next[list(doc, tld)];
                docs[*next as usize] = (doc % CHUNK) as u16;
                *next += 1;
            }
        }
        TldDocs { frequent, bits, words, starts, chunks, docs }
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
        let (words, chunks) = (listed.div_ceil(64) as usize, (listed as usize).div_ceil(CHUNK));
        let read = TldDocs {
            frequent: files.take(FREQUENT)?,
            bits: files.take(BITS)?,
            words,
            starts: files.take(STARTS)?,
            chunks,
            docs: files.take(DOCS)?,
        };
        let fits = read.bits.len() == read.frequent.len() * words
            && read.starts.len() == tlds * chunks + 1
            && read.starts.is_sorted()
            && read.starts[tlds * chunks] as usize == read.docs.len();
        files.check(fits, STARTS)?;
        let sound = read.starts.windows(2).enumerate().all(|(at, range)| {
            let docs = &read.docs[range[0] as usize..range[1] as usize];
            let first = at % chunks * CHUNK;
            docs.is_sorted_by(|one, next| one < next)
                && docs.last().is_none_or(|&last| first + usize::from(last) < listed as usize)
        });
        files.check(sound, DOCS)?;
        Ok(read)
    }

    /// Returns the docs with one of these TLDs; each number occurs once and is known.
    pub fn members(&self, numbers: impl IntoIterator<Item = u16>) -> DocSet<'_> {
        let mut members = DocSet::default();
        for number in numbers {
            let first = usize::from(number) * self.chunks;
            let list = List { starts: &self.starts[first..=first + self.chunks], docs: &self.docs };
            if let Some(head) = list.next(0) {
                members.lists.push(list);
                members.heads.push(head);
            } else if let Some(at) = self.frequent.iter().position(|&known| known == number) {
                members.bits.push(&self.bits[at * self.words..(at + 1) * self.words]);
            }
        }
        members
    }
}

impl List<'_> {
    /// Returns the docs of a chunk.
    fn chunk(&self, chunk: usize) -> Range<usize> {
        self.starts[chunk] as usize..self.starts[chunk + 1] as usize
    }

    /// Returns the first doc from `from` on.
    fn next(&self, from: u32) -> Option<u32> {
        let (chunk, least) = (from as usize / CHUNK, from as usize % CHUNK);
        if chunk + 1 >= self.starts.len() {
            return None;
        }
        let docs = self.chunk(chunk);
        let at = docs.start + self.docs[docs].partition_point(|&doc| usize::from(doc) < least);
        // Other chunks may be empty.
        let chunk = self.starts[chunk..].partition_point(|&start| start as usize <= at) + chunk - 1;
        (chunk + 1 < self.starts.len()).then(|| (chunk * CHUNK) as u32 + u32::from(self.docs[at]))
    }

    /// Sets the bits of the docs in the window that starts at doc `start`.
    fn mark(&self, start: u32, words: &mut [u64]) {
        let (start, end) = (start as usize, start as usize + words.len() * 64);
        let chunks = start / CHUNK..end.div_ceil(CHUNK).min(self.starts.len() - 1);
        for chunk in chunks {
            let first = chunk * CHUNK;
            let mut docs = &self.docs[self.chunk(chunk)];
            if first < start {
                docs = &docs[docs.partition_point(|&doc| first + usize::from(doc) < start)..];
            }
            if end < first + CHUNK {
                docs = &docs[..docs.partition_point(|&doc| first + usize::from(doc) < end)];
            }
            for &doc in docs {
                let bit = first + usize::from(doc) - start;
                words[bit / 64] |= 1 << (bit % 64);
            }
        }
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
        for (list, head) in self.lists.iter().zip(&mut self.heads) {
            if *head < end {
                list.mark(start, words);
                *head = list.next(end).unwrap_or(NO_DOC);
            }
        }
    }

    /// Returns a lower bound of the first doc from `from` on, if any.
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

/// Head of a list without further docs.
const NO_DOC: u32 = u32::MAX;

/// Sets the bits of `docs`, which lie in the window that starts at doc `start`.
#[inline]
pub fn mark_docs(docs: &[u32], start: u32, words: &mut [u64]) {
    for doc in docs {
        let bit = doc - start;
        words[bit as usize / 64] |= 1 << (bit % 64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::columns::fixtures::round_trip;

    /// TLD number 0 has a bitmap, and some of the others have no doc in most chunks.
    #[test]
    fn docs_of_a_set_are_those_of_a_scan() {
        let mut rng = fastrand::Rng::with_seed(5);
        for docs in [0usize, 1, 64, 5_000, 3 * CHUNK + 77] {
            let tld: Vec<u16> =
                (0..docs).map(|_| rng.u16(0..40).saturating_sub(rng.u16(..40))).collect();
            let written = TldDocs::new(&tld, 50);
            let (_folder, files) = round_trip(|draft| written.write(draft)).expect("written");
            let read = TldDocs::open(&files, docs as u32, 50).expect("sound");
            for _ in 0..60 {
                let mut wanted: Vec<u16> = (0..rng.u16(0..5)).map(|_| rng.u16(0..50)).collect();
                wanted.sort_unstable();
                wanted.dedup();
                let mut members = read.members(wanted.iter().copied());
                let is_member = |doc: &usize| tld.get(*doc).is_some_and(|tld| wanted.contains(tld));
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
            assert!(TldDocs::open(&files, (docs + 2 * CHUNK) as u32, 50).is_err(), "of other docs");
        }
    }
}
