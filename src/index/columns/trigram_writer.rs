//! Writes the index of [`super::trigrams`].
//!
//! Terms are written in order through tantivy's serializer, with docs sorted by counting: tantivy's
//! document pipeline would tokenise and hash each of them.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use compact_str::CompactString;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use tantivy::postings::FieldSerializer;

use crate::columns::alphabet::{ALPHABET, CODES};
use crate::columns::by_gram::ByGram;
use crate::columns::char_docs;
use crate::columns::drop_segment::NewSegment;
use crate::columns::idn::alias_of;
use crate::columns::records::ScoreRecords;
use crate::columns::tlds::Tlds;
use crate::columns::trigrams::{GRAM_CHARS, is_idn, is_over_dot};
use crate::error::BuildError;
use crate::storage::draft::Draft;

const LETTERS: usize = ALPHABET.len();
/// Number of trigrams of the alphabet.
const IDS: usize = LETTERS * LETTERS * LETTERS;
/// Docs per parallel task, so that the lists to which a task appends fit into a cache.
const DOCS_PER_PIECE: usize = 1 << 17;
/// Postings in memory at a time, four bytes each.
const POSTINGS_PER_PASS: u64 = 96 << 20;

/// Writes the trigrams of the docs on the drops list; `tld` holds their TLD numbers.
///
/// # Errors
/// A write fails.
pub fn write(
    records: &ScoreRecords,
    tld: &[u16],
    tlds: &Tlds,
    segment: &NewSegment,
    draft: &Draft,
) -> Result<(), BuildError> {
    char_docs::write(records, tld, tlds, draft)?;
    let texts = IndexedNames { records, tld, tlds };
    Ok(segment.write_grams(|out| write_postings(&texts, out))?)
}

/// Names on the drops list, by doc.
struct IndexedNames<'a> {
    records: &'a ScoreRecords,
    /// TLD numbers.
    tld: &'a [u16],
    tlds: &'a Tlds,
}

/// Unit by which a doc is indexed.
enum Gram<'a> {
    /// Three characters of the alphabet, numbered in byte order.
    Id(usize),
    Other(&'a str),
}

impl IndexedNames<'_> {
    /// Visits the grams of a doc that start in the label, in both forms. A gram may repeat.
    fn grams(&self, doc: usize, mut visit: impl FnMut(Gram<'_>)) {
        let label = self.records.label(doc as u32);
        let tld = self.tlds.name(self.tld[doc]);
        let code = |byte: u8| usize::from(CODES[usize::from(byte)]);
        let (mut first, mut second) = (0, 0);
        for (at, &byte) in label.as_bytes().iter().chain(b".").enumerate() {
            let third = code(byte);
            if at >= 2 && first.max(second).max(third) < LETTERS {
                visit(Gram::Id((first * LETTERS + second) * LETTERS + third));
            }
            (first, second) = (second, third);
        }
        if label.len() == 1 {
            visit(Gram::Other(&format!("{}.", &*label)));
        }
        if is_idn(label.as_bytes(), tld) {
            let name = format!("{}.{tld}", &*label);
            if let Some(alias) = alias_of(&name) {
                alias_grams(&alias, visit);
            }
        }
    }
}

/// Visits the grams of a Unicode form.
fn alias_grams(alias: &str, mut visit: impl FnMut(Gram<'_>)) {
    let borders: Vec<usize> = alias.char_indices().map(|(at, _)| at).chain([alias.len()]).collect();
    let label = alias.chars().position(|char| char == '.').unwrap_or(0);
    for place in borders.windows(GRAM_CHARS + 1).take(label) {
        let [one, two, three] = [1, 2, 3].map(|chars| &alias[place[0]..place[chars]]);
        let codes = three.bytes().map(|byte| usize::from(CODES[usize::from(byte)]));
        if three.len() == GRAM_CHARS && codes.clone().all(|code| code < LETTERS) {
            // The second-to-last character may be outside the alphabet.
            visit(match is_over_dot(three) {
                true => Gram::Other(two),
                false => Gram::Id(codes.fold(0, |id, code| id * LETTERS + code)),
            });
            continue;
        }
        visit(Gram::Other(three));
        visit(Gram::Other(two));
        if !one.is_ascii() {
            visit(Gram::Other(one));
        }
    }
}

type Others = BTreeMap<CompactString, Vec<u32>>;

/// Counts each gram that has an id in a range of docs, and collects the docs of all other grams.
fn count(
    texts: &IndexedNames<'_>,
    docs: Range<usize>,
) -> (Vec<u32>, FxHashMap<CompactString, Vec<u32>>) {
    let mut counts = vec![0; IDS];
    let mut others = FxHashMap::<CompactString, Vec<u32>>::default();
    for doc in docs {
        texts.grams(doc, |gram| match gram {
            Gram::Id(id) => counts[id] += 1,
            Gram::Other(text) => {
                let docs = others.entry(text.into()).or_default();
                if docs.last() != Some(&(doc as u32)) {
                    docs.push(doc as u32);
                }
            }
        });
    }
    (counts, others)
}

/// Sorts `docs` by their grams in `ids`, which occur `counts` times.
fn sort(
    texts: &IndexedNames<'_>,
    docs: Range<usize>,
    ids: &Range<usize>,
    counts: &[u32],
) -> ByGram {
    let mut sorted = ByGram::with_room(&counts[ids.clone()]);
    for doc in docs {
        texts.grams(doc, |gram| {
            let Gram::Id(id) = gram else { return };
            if let Some(at) = id.checked_sub(ids.start).filter(|&at| at < ids.len()) {
                sorted.add(at, doc as u32);
            }
        });
    }
    sorted
}

/// Cuts the ids into ranges, each with about as many postings as fit into memory at a time.
fn passes(counts: &[Vec<u32>]) -> Vec<Range<usize>> {
    let mut passes = Vec::new();
    let (mut first, mut postings) = (0, 0);
    for id in 0..IDS {
        let here: u64 = counts.iter().map(|counts| u64::from(counts[id])).sum();
        if postings > 0 && postings + here > POSTINGS_PER_PASS {
            passes.push(first..id);
            (first, postings) = (id, 0);
        }
        postings += here;
    }
    passes.push(first..IDS);
    passes
}

fn text_of(id: usize) -> [u8; GRAM_CHARS] {
    [id / (LETTERS * LETTERS), id / LETTERS % LETTERS, id % LETTERS].map(|code| ALPHABET[code])
}

/// Writes all postings of `texts`, terms in order.
fn write_postings(texts: &IndexedNames<'_>, out: &mut FieldSerializer<'_>) -> io::Result<()> {
    let pieces: Vec<Range<usize>> = (0..texts.tld.len())
        .step_by(DOCS_PER_PIECE)
        .map(|first| first..texts.tld.len().min(first + DOCS_PER_PIECE))
        .collect();
    let counted: Vec<_> = pieces.par_iter().map(|docs| count(texts, docs.clone())).collect();
    let (counts, found): (Vec<_>, Vec<_>) = counted.into_iter().unzip();
    let mut others = Others::new();
    for (gram, docs) in found.into_iter().flatten() {
        others.entry(gram).or_default().extend(docs);
    }
    let mut others = others.into_iter().peekable();
    for ids in passes(&counts) {
        let sorted: Vec<ByGram> = pieces
            .par_iter()
            .zip(&counts)
            .map(|(docs, counts)| sort(texts, docs.clone(), &ids, counts))
            .collect();
        for id in ids.clone() {
            let text = text_of(id);
            while let Some((gram, docs)) = others.next_if(|(gram, _)| gram.as_bytes() < &text[..]) {
                write_term(out, gram.as_bytes(), std::iter::once(docs.as_slice()))?;
            }
            write_term(out, &text, sorted.iter().map(|piece| piece.numbers(id - ids.start)))?;
        }
    }
    others.try_for_each(|(gram, docs)| {
        write_term(out, gram.as_bytes(), std::iter::once(docs.as_slice()))
    })
}

/// Writes a term unless it has no docs.
fn write_term<'a>(
    out: &mut FieldSerializer<'_>,
    term: &[u8],
    docs: impl Iterator<Item = &'a [u32]> + Clone,
) -> io::Result<()> {
    let freq: usize = docs.clone().map(<[u32]>::len).sum();
    if freq == 0 {
        return Ok(());
    }
    out.new_term(term, freq as u32, false)?;
    docs.flatten().for_each(|&doc| out.write_doc(doc, 1, &[]));
    out.close_term()
}
