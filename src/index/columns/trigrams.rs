//! Substring search in names. Input: records and TLDs of the drops list. Output: the docs whose
//! full name contains a text of any length, in A-label or Unicode form.
//!
//! An occurrence either starts in the label or lies within `.tld`. The second kind is a set of
//! TLDs. For the first kind, a tantivy index holds the trigrams of the label and its dot. A text of
//! three characters is one trigram, unless its second character is the dot: labels that end with a
//! given character are found by the trigrams that end with this character and the dot. For a longer
//! text, the docs of its rarest trigrams are read and compared. Two characters are found by all
//! trigrams that start with them; for one character, there is a set of docs ([`CharDocs`]).
//!
//! For non-ASCII characters, there are also terms of one and two characters, because too many
//! different characters may follow them. [`super::trigram_writer`] writes the index.

use std::io;
use std::sync::Arc;

use memchr::memmem::Finder;
use tantivy::postings::{BlockSegmentPostings, TermInfo};
use tantivy::schema::IndexRecordOption;
use tantivy::{InvertedIndexReader, SegmentReader};

use crate::columns::alphabet::ALPHABET;
use crate::columns::char_docs::CharDocs;
use crate::columns::doc_sets::{DocSet, DocSets, Lists, mark_docs};
use crate::columns::drop_fields::DropFields;
use crate::columns::drop_segment::GRAM;
use crate::columns::idn::alias_of;
use crate::columns::records::ScoreRecords;
use crate::columns::tlds::Tlds;
use crate::error::GenerationError;
use crate::storage::files::Files;

/// Maximum characters of a gram.
pub(super) const GRAM_CHARS: usize = 3;
/// Maximum trigrams looked up for a longer text.
const GRAMS_PER_TEXT: usize = 4;
/// Cost of reading and searching a name, measured in postings.
const POSTINGS_PER_READ: u64 = 24;
/// Number of words whose docs are read together, and number of docs prefetched together.
const WORDS_READ: usize = 128;
const DOCS_READ: usize = 64;
/// Maximum postings of a list that is searched for its next doc, in order to skip windows without
/// one.
const SPARSE: u64 = 1 << 14;

/// Names on the drops list, by doc.
#[derive(Clone, Copy)]
pub struct SearchedNames<'a> {
    pub records: &'a ScoreRecords,
    pub fields: &'a DropFields,
    pub tlds: &'a Tlds,
}

/// The trigrams of the drops list of a generation.
pub struct Trigrams {
    postings: Arc<InvertedIndexReader>,
    letters: CharDocs,
    dotted: DottedTlds,
    listed: u32,
}

impl Trigrams {
    /// Opens the trigrams of `listed` docs that [`super::trigram_writer::write`] wrote.
    ///
    /// # Errors
    /// A file is damaged or does not match.
    pub fn open(
        segment: &SegmentReader,
        files: &Files,
        listed: u32,
        tlds: &Tlds,
    ) -> Result<Trigrams, GenerationError> {
        let letters = CharDocs::open(files, listed)?;
        let field = segment.schema().get_field(GRAM);
        let postings = field.and_then(|field| segment.inverted_index(field));
        let postings = postings.map_err(|err| files.malformed(GRAM, err))?;
        Ok(Trigrams { postings, letters, dotted: DottedTlds::new(tlds), listed })
    }

    /// Searches `text` (normalised, not empty) in the names whose TLD number is in `wanted`
    /// (sorted; `None` for all).
    ///
    /// # Errors
    /// The terms cannot be read; does not happen with verified files.
    pub fn seeker<'a>(
        &'a self,
        text: &str,
        names: SearchedNames<'a>,
        tld_docs: &'a DocSets,
        wanted: Option<&[u16]>,
    ) -> io::Result<Seeker<'a>> {
        let needle = Needle::new(text);
        let is_wanted =
            |number: &u16| wanted.is_none_or(|wanted| wanted.binary_search(number).is_ok());
        let mut label = self.in_label(&needle)?;
        let mut tlds = DocSet::default();
        if matches!(label, InLabel::None | InLabel::Posted(_)) {
            let numbers = self.dotted.holding(&needle.finder);
            tlds = tld_docs.members(numbers.into_iter().filter(is_wanted));
        }
        if let (InLabel::Posted(posted), Some(tail)) = (&mut label, needle.tail()) {
            let mut numbers = self.dotted.starting_with(tail);
            numbers.retain(is_wanted);
            // A name whose head matches in one form and whose tail matches in the other must be read.
            let plain = |&number: &u16| !names.tlds.name(number).contains("xn--");
            posted.exact |= needle.dot <= Some(GRAM_CHARS - 1) && numbers.iter().all(plain);
            posted.tails = Some(tld_docs.members(numbers));
        }
        Ok(Seeker { needle, label, tlds, names, listed: self.listed, scratch: Vec::new() })
    }

    /// Returns the lookup for docs with an occurrence that starts in the label.
    fn in_label(&self, needle: &Needle) -> io::Result<InLabel<'_>> {
        let chars = needle.chars();
        match (needle.text.as_bytes(), needle.dot) {
            ([b'.'], _) => Ok(InLabel::All),
            (_, Some(0)) => Ok(InLabel::None),
            (&[letter], _) if letter.is_ascii() => {
                Ok(self.letters.docs(letter).map_or(InLabel::None, InLabel::Letter))
            }
            // The rest after the dot is matched by TLD.
            (&[letter, b'.', ..], _) => {
                Ok(self.posted(vec![self.ending_with(letter)?], chars < GRAM_CHARS))
            }
            _ if chars >= GRAM_CHARS => self.rarest(needle),
            (text, _) if chars == 2 && needle.text.is_ascii() => {
                let mut terms: Vec<TermInfo> = self.term(text)?.into_iter().collect();
                let last = [text[0], text[1], 0x7f];
                let mut longer = self.postings.terms().range().gt(text).le(last).into_stream()?;
                while let Some((_, info)) = longer.next() {
                    terms.push(info.clone());
                }
                Ok(self.posted(vec![terms], true))
            }
            (text, _) => Ok(self.posted(vec![self.term(text)?.into_iter().collect()], true)),
        }
    }

    /// Returns the rarest trigrams of a text, as long as each costs less than the reads of names
    /// that it avoids.
    fn rarest(&self, needle: &Needle) -> io::Result<InLabel<'_>> {
        let mut terms: Vec<TermInfo> = Vec::new();
        for gram in needle.grams() {
            let Some(term) = self.term(gram.as_bytes())? else { return Ok(InLabel::None) };
            if !terms.contains(&term) {
                terms.push(term);
            }
        }
        terms.sort_by_key(|term| term.doc_freq);
        let worth = u64::from(terms[0].doc_freq) * POSTINGS_PER_READ;
        // The trigrams of a head of one or two characters prove that a label ends with it.
        if needle.tail().is_none() || needle.dot >= Some(GRAM_CHARS) {
            terms.truncate(GRAMS_PER_TEXT);
            terms.retain(|term| u64::from(term.doc_freq) <= worth);
        }
        let exact = needle.chars() == GRAM_CHARS;
        Ok(self.posted(terms.into_iter().map(|term| vec![term]).collect(), exact))
    }

    /// Returns the terms of the labels that end with an ASCII character: labels of one character
    /// and Unicode forms have a term of two characters.
    fn ending_with(&self, letter: u8) -> io::Result<Vec<TermInfo>> {
        let mut terms: Vec<TermInfo> = self.term(&[letter, b'.'])?.into_iter().collect();
        for &before in ALPHABET {
            terms.extend(self.term(&[before, letter, b'.'])?);
        }
        Ok(terms)
    }

    fn term(&self, gram: &[u8]) -> io::Result<Option<TermInfo>> {
        self.postings.terms().get(gram)
    }

    fn posted(&self, unions: Vec<Vec<TermInfo>>, exact: bool) -> InLabel<'_> {
        let freq = |terms: &Vec<TermInfo>| terms.iter().map(|term| u64::from(term.doc_freq)).sum();
        let freqs: Vec<u64> = unions.iter().map(freq).collect();
        if freqs.contains(&0) {
            return InLabel::None;
        }
        let unions = unions.into_iter().map(|terms| Union { terms, cursors: Vec::new() }).collect();
        let postings = &self.postings;
        InLabel::Posted(Posted { postings, unions, freqs, exact, tails: None })
    }
}

/// A text to search for.
struct Needle {
    text: String,
    finder: Finder<'static>,
    /// Start of each character, and the end of the text.
    borders: Vec<usize>,
    /// Number of characters before its first dot.
    dot: Option<usize>,
}

impl Needle {
    fn new(text: &str) -> Needle {
        Needle {
            finder: Finder::new(text).into_owned(),
            borders: text.char_indices().map(|(at, _)| at).chain([text.len()]).collect(),
            dot: text.chars().position(|char| char == '.'),
            text: text.to_owned(),
        }
    }

    fn chars(&self) -> usize {
        self.borders.len() - 1
    }

    /// Returns the trigrams of the text that are in the index; at least one if it has three
    /// characters and the dot is neither the first nor the second.
    fn grams(&self) -> impl Iterator<Item = &str> {
        let starts = self.dot.unwrap_or(usize::MAX);
        let grams = self.borders.windows(GRAM_CHARS + 1).take(starts);
        let grams = grams.map(|borders| &self.text[borders[0]..borders[GRAM_CHARS]]);
        grams.filter(|gram| !is_over_dot(gram))
    }

    /// Returns the dot and the rest, if the text has characters before and after the dot.
    fn tail(&self) -> Option<&str> {
        let tail = &self.text[self.borders[self.dot.filter(|&dot| dot > 0)?]..];
        (tail.len() > 1).then_some(tail)
    }

    /// Returns true if the text occurs in a name and starts in the label.
    fn is_in(&self, label: &[u8], tld: &str) -> bool {
        let found = match self.dot {
            None => self.finder.find(label).is_some(),
            Some(chars) => {
                let (head, tail) = self.text.split_at(self.borders[chars]);
                label.ends_with(head.as_bytes()) && tld.starts_with(&tail[1..])
            }
        };
        found || (is_idn(label, tld) && self.is_in_alias(label, tld))
    }

    fn is_in_alias(&self, label: &[u8], tld: &str) -> bool {
        let name = format!("{}.{tld}", String::from_utf8_lossy(label));
        alias_of(&name).is_some_and(|alias| self.finder.find(alias.as_bytes()).is_some())
    }
}

/// Every TLD with a leading dot, in both forms, in one text: a single search finds all TLDs that
/// contain a text.
struct DottedTlds {
    /// One TLD per line.
    text: String,
    /// Start of each line, and its TLD number.
    starts: Vec<usize>,
    numbers: Vec<u16>,
}

impl DottedTlds {
    fn new(tlds: &Tlds) -> DottedTlds {
        let mut dotted =
            DottedTlds { text: String::new(), starts: Vec::new(), numbers: Vec::new() };
        for (number, name) in (0..=u16::MAX).zip(tlds.names()) {
            dotted.push(number, name);
            if let Some(alias) = alias_of(name) {
                dotted.push(number, &alias);
            }
        }
        dotted
    }

    fn push(&mut self, number: u16, name: &str) {
        self.starts.push(self.text.len());
        self.numbers.push(number);
        self.text.push('.');
        self.text.push_str(name);
        self.text.push('\n');
    }

    /// Returns the TLDs that contain a text, in order.
    fn holding(&self, text: &Finder<'_>) -> Vec<u16> {
        let line = |at| self.starts.partition_point(|&start| start <= at) - 1;
        let found = text.find_iter(self.text.as_bytes()).map(|at| self.numbers[line(at)]);
        let mut numbers: Vec<u16> = found.collect();
        numbers.dedup();
        numbers
    }

    /// Returns the TLDs, in order, that start with a text, which itself starts with the dot.
    fn starting_with(&self, text: &str) -> Vec<u16> {
        let line = |at| self.starts.binary_search(&at).ok();
        let found = memchr::memmem::find_iter(self.text.as_bytes(), text);
        let mut numbers: Vec<u16> = found.filter_map(line).map(|line| self.numbers[line]).collect();
        numbers.dedup();
        numbers
    }
}

/// Returns true for a trigram that the index omits, because other trigrams show that a label ends
/// with its first character.
pub(super) fn is_over_dot(gram: &str) -> bool {
    gram.is_ascii() && gram.as_bytes()[1] == b'.'
}

pub(super) fn is_idn(label: &[u8], tld: &str) -> bool {
    label.starts_with(b"xn--") || tld.contains("xn--")
}

/// A lookup of the docs in whose label an occurrence of a text starts.
enum InLabel<'a> {
    /// All docs match, regardless of where the text starts.
    All,
    None,
    /// The docs that contain the character.
    Letter(DocSet<'a>),
    Posted(Posted<'a>),
}

/// Docs must be in all of these unions.
struct Posted<'a> {
    postings: &'a InvertedIndexReader,
    unions: Vec<Union>,
    /// Number of postings per union.
    freqs: Vec<u64>,
    /// Whether a match is certain without reading the name.
    exact: bool,
    /// Docs of the TLDs that start with the part of the text after its first dot.
    tails: Option<DocSet<'a>>,
}

/// The docs with any of these terms.
struct Union {
    terms: Vec<TermInfo>,
    /// Postings, opened on demand; if only few docs are left, their names are read instead.
    cursors: Vec<Cursor>,
}

/// A forward reader of the docs of a term.
struct Cursor {
    block: BlockSegmentPostings,
    at: usize,
}

/// A search for a text in windows of docs, in order.
pub struct Seeker<'a> {
    needle: Needle,
    label: InLabel<'a>,
    /// Docs of the TLDs that contain the text.
    tlds: DocSet<'a>,
    names: SearchedNames<'a>,
    listed: u32,
    scratch: Vec<u64>,
}

impl Seeker<'_> {
    /// Clears the bits of the docs whose names do not contain the text, starting at doc `64 * first`.
    ///
    /// # Errors
    /// Postings cannot be read; does not happen with verified files.
    pub fn keep(&mut self, first: usize, words: &mut [u64]) -> io::Result<()> {
        match &mut self.label {
            InLabel::All => return Ok(()),
            InLabel::Letter(docs) => {
                self.scratch.clear();
                self.scratch.resize(words.len(), 0);
                docs.mark(first, &mut self.scratch);
                words.iter_mut().zip(&self.scratch).for_each(|(word, bits)| *word &= bits);
                return Ok(());
            }
            InLabel::None | InLabel::Posted(_) => {}
        }
        // Docs that match by TLD need no check of the label.
        let mut by_tld = vec![0; if self.tlds.is_empty() { 0 } else { words.len() }];
        self.tlds.mark(first, &mut by_tld);
        for (word, by_tld) in words.iter_mut().zip(&mut by_tld) {
            *by_tld &= *word;
            *word &= !*by_tld;
        }
        match &mut self.label {
            InLabel::Posted(posted) => {
                let left: u64 = words.iter().map(|word| u64::from(word.count_ones())).sum();
                let share = (words.len() as f64 * 64.0 / f64::from(self.listed.max(1))).min(1.0);
                let postings = posted.freqs.iter().sum::<u64>() as f64 * share;
                let read_all = ((left * POSTINGS_PER_READ) as f64) < postings;
                if !read_all {
                    posted.keep(first, words, &mut self.scratch)?;
                }
                if read_all || !posted.exact {
                    self.read(first, words);
                }
            }
            _ => words.fill(0),
        }
        words.iter_mut().zip(&by_tld).for_each(|(word, by_tld)| *word |= by_tld);
        Ok(())
    }

    /// Clears the bits of the docs without an occurrence of the text that starts in the label.
    fn read(&self, first: usize, words: &mut [u64]) {
        let SearchedNames { fields, tlds, records } = self.names;
        let mut docs = Vec::with_capacity(DOCS_READ);
        for (at, chunk) in words.chunks_mut(WORDS_READ).enumerate() {
            let start = ((first + at * WORDS_READ) * 64) as u32;
            docs.clear();
            push_docs(start, chunk, &mut docs);
            for docs in docs.chunks(DOCS_READ) {
                records.prefetch(docs);
                for &doc in docs {
                    let tld = tlds.name(fields.tld(doc));
                    if !self.needle.is_in(records.label(doc).as_bytes(), tld) {
                        chunk[(doc - start) as usize / 64] &= !(1 << (doc % 64));
                    }
                }
            }
        }
    }

    /// Returns the lists of docs that a walk reads. A name that must be read counts as
    /// [`POSTINGS_PER_READ`] docs.
    pub fn lists(&self) -> Lists {
        let in_label = match &self.label {
            InLabel::All | InLabel::None => Lists::default(),
            InLabel::Letter(docs) => docs.lists(),
            InLabel::Posted(posted) => posted.lists(),
        };
        [self.tlds.lists(), in_label].into_iter().sum()
    }

    /// Returns a lower bound of the first match that is `from` or later, if any.
    ///
    /// # Errors
    /// As [`Seeker::keep`].
    pub fn next(&mut self, from: u32) -> io::Result<Option<u32>> {
        let in_label = match &mut self.label {
            InLabel::All => return Ok(Some(from)),
            InLabel::Letter(docs) => docs.next(from),
            InLabel::None => None,
            InLabel::Posted(posted) if posted.freqs[0] > SPARSE => return Ok(Some(from)),
            InLabel::Posted(posted) => posted.next(from)?,
        };
        let by_tld = self.tlds.next(from);
        Ok(in_label.into_iter().chain(by_tld).min())
    }
}

/// Appends the docs whose bits are set; `start` is the doc of the first bit.
fn push_docs(start: u32, words: &[u64], docs: &mut Vec<u32>) {
    for (at, &word) in (0u32..).zip(words) {
        let mut left = word;
        while left != 0 {
            docs.push(start + at * 64 + left.trailing_zeros());
            left &= left - 1;
        }
    }
}

impl Posted<'_> {
    /// See [`Seeker::lists`].
    fn lists(&self) -> Lists {
        let names = self.freqs.iter().copied().min().filter(|_| !self.exact).unwrap_or_default();
        let terms = Lists {
            count: self.unions.iter().map(|union| union.terms.len()).sum(),
            docs: self.freqs.iter().sum::<u64>() + names * POSTINGS_PER_READ,
        };
        [terms, self.tails.as_ref().map(DocSet::lists).unwrap_or_default()].into_iter().sum()
    }

    /// Clears the bits of the docs that are missing in one of the unions.
    fn keep(&mut self, first: usize, words: &mut [u64], scratch: &mut Vec<u64>) -> io::Result<()> {
        if let Some(tails) = &mut self.tails {
            scratch.clear();
            scratch.resize(words.len(), 0);
            tails.mark(first, scratch);
            words.iter_mut().zip(&*scratch).for_each(|(word, found)| *word &= found);
        }
        for union in &mut self.unions {
            if words.iter().all(|&word| word == 0) {
                break;
            }
            scratch.clear();
            scratch.resize(words.len(), 0);
            for cursor in union.open(self.postings)? {
                cursor.mark((first * 64) as u32, scratch);
            }
            words.iter_mut().zip(&*scratch).for_each(|(word, found)| *word &= found);
        }
        Ok(())
    }

    fn next(&mut self, mut from: u32) -> io::Result<Option<u32>> {
        if let Some(tails) = &mut self.tails {
            let Some(doc) = tails.next(from) else { return Ok(None) };
            from = doc;
        }
        for union in &mut self.unions {
            let cursors = union.open(self.postings)?;
            match cursors.iter_mut().filter_map(|cursor| cursor.next(from)).min() {
                Some(doc) => from = doc,
                None => return Ok(None),
            }
        }
        Ok(Some(from))
    }
}

impl Union {
    fn open(&mut self, postings: &InvertedIndexReader) -> io::Result<&mut [Cursor]> {
        if self.cursors.is_empty() {
            for term in &self.terms {
                let basic = IndexRecordOption::Basic;
                let block = postings.read_block_postings_from_terminfo(term, basic)?;
                self.cursors.push(Cursor { block, at: 0 });
            }
        }
        Ok(&mut self.cursors)
    }
}

impl Cursor {
    /// Returns the first doc that is `from` or later; `from` must never decrease.
    fn next(&mut self, from: u32) -> Option<u32> {
        let docs = self.block.docs();
        if docs.last().is_some_and(|&last| last >= from) {
            self.at += docs[self.at..].partition_point(|&doc| doc < from);
        } else {
            self.at = self.block.seek(from);
        }
        self.block.docs().get(self.at).copied()
    }

    /// Sets the bits of the docs in the window that starts at doc `start`.
    fn mark(&mut self, start: u32, words: &mut [u64]) {
        let end = start + (words.len() * 64) as u32;
        self.next(start);
        while let Some(docs) = self.block.docs().get(self.at..).filter(|docs| !docs.is_empty()) {
            if docs[docs.len() - 1] >= end {
                let here = docs.partition_point(|&doc| doc < end);
                mark_docs(&docs[..here], start, words);
                self.at += here;
                break;
            }
            mark_docs(docs, start, words);
            self.block.advance();
            self.at = 0;
        }
    }
}
