//! Grams of all names: three neighbouring characters of a label, and the blocks of names in which
//! they occur. Input: the conditions of a filter on the text of labels. Output: ranges that contain
//! all names that pass; each name in them must still be read.
//!
//! Labels are in their Unicode form, and their end counts as a character. A character has six bits;
//! non-ASCII characters share the last 26 codes. The postings of all grams are one ascending list.
//! An entry is the number of a gram among the grams in use, times the number of blocks, plus the
//! block. [`super::name_gram_writer`] writes them.

use std::ops::Range;

use crate::columns::alphabet::{ALPHABET, CODES};
use crate::columns::ascending::Ascending;
use crate::columns::slices::{has_doc, ones, set_doc};
use crate::error::GenerationError;
use crate::storage::files::Files;
use crate::vocab::name::A_LABEL;
use dropdex_query::filter::LabelFilter;
use dropdex_query::narrow::GRAM_CHARS;
use dropdex_query::text::Substring;

/// Names per block; blocks of 32 would take another byte per name. Small in tests, so that tests
/// cross the boundaries.
pub(super) const GRAM_NAMES: u32 = if cfg!(test) { 16 } else { 64 };
/// Bits of each character of a gram.
const CHAR_BITS: u32 = 6;
/// Number of possible grams.
pub(super) const GRAMS: usize = 1 << (GRAM_CHARS as u32 * CHAR_BITS);
/// Character that stands for the end of a label.
const END: char = '.';
/// Maximum number of grams that are looked up for each text.
const GRAMS_PER_TEXT: usize = 4;
/// Cost of reading a block of names, measured in postings.
const POSTINGS_PER_BLOCK: u64 = 256;

/// Files of the grams in use, of the places of their postings, and of the postings.
pub(super) const IN_USE: &str = "grams/in-use";
pub(super) const PLACES: &str = "grams/places";
pub(super) const POSTINGS: &str = "grams/blocks";

/// Calls `visit` with each gram of a label in its Unicode form; a gram may repeat.
#[inline]
pub(super) fn each_gram(form: &str, mut visit: impl FnMut(u32)) {
    let mut gram = 0;
    let codes = form.bytes().map(|byte| u32::from(CODES[usize::from(byte)]));
    let mut add = |at: usize, code: u32| {
        gram = (gram << CHAR_BITS | code) & (GRAMS as u32 - 1);
        if at + 1 >= GRAM_CHARS {
            visit(gram);
        }
    };
    if form.is_ascii() {
        codes.chain([code(END)]).enumerate().for_each(|(at, code)| add(at, code));
    } else {
        form.chars().map(code).chain([code(END)]).enumerate().for_each(|(at, code)| add(at, code));
    }
}

/// Returns the code of a character.
fn code(char: char) -> u32 {
    const LETTERS: u32 = ALPHABET.len() as u32;
    match u8::try_from(char).map(|byte| CODES[usize::from(byte)].into()) {
        Ok(code) if code < LETTERS => code,
        _ => LETTERS + u32::from(char) % ((1 << CHAR_BITS) - LETTERS),
    }
}

/// Blocks of names by gram.
pub struct NameGrams {
    blocks: u32,
    /// Grams in use, ascending.
    in_use: Vec<u32>,
    /// Start of the postings of each gram, and the end of the last.
    places: Vec<u32>,
    postings: Ascending,
}

/// Texts to look up for a filter: a list of alternatives for each condition. A text is represented
/// by ranges of the grams in use, those with the fewest postings first.
pub struct GramPlan<'a> {
    grams: &'a NameGrams,
    conditions: Vec<Vec<Vec<Range<usize>>>>,
}

impl NameGrams {
    /// Opens the grams of `names` names; `None` if the generation has none.
    ///
    /// # Errors
    /// A file is missing, damaged or does not match.
    pub fn open(files: &Files, names: u32) -> Result<Option<NameGrams>, GenerationError> {
        if files.names_under(IN_USE).is_empty() {
            return Ok(None);
        }
        let (in_use, places): (Vec<u32>, Vec<u32>) = (files.take(IN_USE)?, files.take(PLACES)?);
        files.check(in_use.is_sorted_by(|one, next| one < next), IN_USE)?;
        let fits = places.len() == in_use.len() + 1
            && places[0] == 0
            && places.is_sorted_by(|one, next| one < next);
        files.check(fits, PLACES)?;
        let postings = Ascending::open(POSTINGS, places[in_use.len()] as usize, files)?;
        let blocks = names.div_ceil(GRAM_NAMES);
        Ok(Some(NameGrams { blocks, in_use, places, postings }))
    }

    /// Returns the lookups for a filter; `None` if grams do not narrow the search.
    pub fn plan(&self, filter: &LabelFilter) -> Option<GramPlan<'_>> {
        let matchers = filter.matchers.iter().filter(|matcher| !matcher.compares_a_labels());
        let literals = matchers.map(|matcher| (matcher.literals(), matcher.ends_with_literal()));
        let texts = [(&filter.contains[..], false), (&filter.ends, true)];
        let mut conditions: Vec<_> = texts
            .into_iter()
            .chain(literals)
            .filter_map(|(texts, end)| self.any_of(texts, end))
            .collect();
        let cost = |texts: &Vec<Vec<Range<usize>>>| -> u64 {
            texts.iter().map(|grams| self.count(&grams[0])).sum()
        };
        conditions.sort_by_key(cost);
        (!conditions.is_empty()).then_some(GramPlan { grams: self, conditions })
    }

    /// Returns the grams of each text; `None` if there are no texts, or if one of them has no
    /// grams.
    fn any_of(&self, texts: &[Substring], at_end: bool) -> Option<Vec<Vec<Range<usize>>>> {
        let all: Option<Vec<_>> =
            texts.iter().map(|text| self.grams_of(text.as_str(), at_end)).collect();
        all.filter(|all| !all.is_empty())
    }

    /// Returns the ranges of the grams of a text; `None` if it is too short or may be part of an
    /// A-label.
    fn grams_of(&self, text: &str, at_end: bool) -> Option<Vec<Range<usize>>> {
        let codes: Vec<u32> = text.chars().chain(at_end.then_some(END)).map(code).collect();
        let gram = |codes: &[u32]| codes.iter().fold(0, |gram, code| gram << CHAR_BITS | code);
        let mut found: Vec<Range<usize>> = match codes.len() {
            _ if text.starts_with(A_LABEL) => return None,
            // Any character may follow two characters, but nothing follows the end of a label.
            2 if !at_end => vec![self.ranks(gram(&codes) << CHAR_BITS, 1 << CHAR_BITS)],
            0..GRAM_CHARS => return None,
            _ => codes.windows(GRAM_CHARS).map(|codes| self.ranks(gram(codes), 1)).collect(),
        };
        found.sort_by_key(|ranks| (self.count(ranks), ranks.start));
        found.dedup();
        found.truncate(GRAMS_PER_TEXT);
        Some(found)
    }

    /// Returns the places, among the grams in use, of the `count` grams that start at `first`.
    fn ranks(&self, first: u32, count: u32) -> Range<usize> {
        let rank = |gram: u32| self.in_use.partition_point(|&known| known < gram);
        rank(first)..rank(first + count)
    }

    /// Returns the number of postings.
    fn count(&self, ranks: &Range<usize>) -> u64 {
        u64::from(self.places[ranks.end] - self.places[ranks.start])
    }

    /// Sets the bits of the blocks with one of the grams in the window that starts at block `start`.
    fn mark(&self, ranks: Range<usize>, start: u32, window: &mut [u64]) {
        let bits = window.len() as u64 * 64;
        for rank in ranks {
            let first = rank as u64 * u64::from(self.blocks) + u64::from(start);
            let places = self.places[rank]..self.places[rank + 1];
            let from = self.postings.first_at_least(first, places.clone());
            self.postings.each(from..places.end, |number| {
                let bit = number.wrapping_sub(first);
                let is_in = bit < bits;
                if is_in {
                    set_doc(window, bit as u32);
                }
                is_in
            });
        }
    }
}

impl GramPlan<'_> {
    /// Returns ranges of `names`, in order, that contain all names that may pass.
    pub fn candidates(&self, names: Range<u32>) -> Vec<Range<u32>> {
        let blocks = names.start / GRAM_NAMES..names.end.div_ceil(GRAM_NAMES);
        let mut found = vec![u64::MAX; blocks.len().div_ceil(64)];
        for texts in &self.conditions {
            let cost = texts.iter().map(|grams| self.postings(&grams[0], &blocks)).sum();
            if is_narrow(&found, cost) {
                break;
            }
            let mut any = vec![0; found.len()];
            for grams in texts {
                let all = self.blocks_of(grams, &found, &blocks);
                any.iter_mut().zip(all).for_each(|(any, all)| *any |= all);
            }
            found = any;
        }
        let mut ranges: Vec<Range<u32>> = Vec::new();
        for block in blocks.clone().filter(|block| has_doc(&found, block - blocks.start)) {
            let start = (block * GRAM_NAMES).max(names.start);
            let end = block.saturating_add(1).saturating_mul(GRAM_NAMES).min(names.end);
            match ranges.last_mut().filter(|before| before.end == start) {
                Some(before) => before.end = end,
                None => ranges.push(start..end),
            }
        }
        ranges
    }

    /// Returns the blocks in `among` that have all of these grams, and possibly a few others.
    fn blocks_of(&self, grams: &[Range<usize>], among: &[u64], blocks: &Range<u32>) -> Vec<u64> {
        let mut found = among.to_vec();
        for ranks in grams {
            if is_narrow(&found, self.postings(ranks, blocks)) {
                break;
            }
            let mut with_gram = vec![0; found.len()];
            self.grams.mark(ranks.clone(), blocks.start, &mut with_gram);
            found.iter_mut().zip(with_gram).for_each(|(found, with)| *found &= with);
        }
        found
    }

    /// Estimates the postings of grams in a window.
    fn postings(&self, ranks: &Range<usize>, blocks: &Range<u32>) -> u64 {
        self.grams.count(ranks) * blocks.len() as u64 / u64::from(self.grams.blocks.max(1))
    }
}

/// Returns true if reading the blocks takes less time than reading this number of postings.
fn is_narrow(blocks: &[u64], postings: u64) -> bool {
    u64::from(ones(blocks)) * POSTINGS_PER_BLOCK < postings || blocks.iter().all(|&word| word == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::fixtures::{TestTables, round_trip};
    use crate::columns::label::{TextTest, form_of};
    use crate::columns::name_gram_writer;
    use crate::columns::names::text_of;
    use crate::columns::table::Table;
    use dropdex_query::matcher::Matcher;

    fn reopened(table: &Table) -> NameGrams {
        let (_folder, files) =
            round_trip(|draft| name_gram_writer::write(table, draft)).expect("written");
        let grams = NameGrams::open(&files, table.len()).expect("sound").expect("written");
        files.finish().expect("every file is taken");
        grams
    }

    fn labels(table: &Table) -> Vec<String> {
        let of_part = |part: &crate::columns::part::Part| {
            (0..part.len()).map(|at| text_of(part.label(at)).to_owned()).collect::<Vec<_>>()
        };
        table.parts.iter().flat_map(of_part).collect()
    }

    /// Returns a filter by a part of a label, and whether its texts should be found by grams.
    fn filter(made: &mut TestTables, label: &str) -> LabelFilter {
        let form: Vec<char> = form_of(label).chars().collect();
        let start = made.below(form.len());
        let end = start + 1 + made.below((form.len() - start).min(6));
        let text: String = form[start..end].iter().collect();
        let texts = |text: String| Substring::parse(&text).into_iter().collect::<Vec<_>>();
        let matcher = |matcher: Result<Matcher, _>| LabelFilter {
            matchers: matcher.into_iter().collect(),
            ..LabelFilter::default()
        };
        match made.below(6) {
            0 => LabelFilter {
                contains: [texts(text), texts(made.text(3))].concat(),
                ..LabelFilter::default()
            },
            1 => LabelFilter {
                ends: texts(form[start..].iter().collect()),
                ..LabelFilter::default()
            },
            2 => LabelFilter {
                contains: texts(text),
                ends: texts(form[form.len() - 1..].iter().collect()),
                ..LabelFilter::default()
            },
            3 => matcher(Matcher::pattern(&format!("*{text}{}", ["", "*"][made.below(2)]))),
            4 => matcher(Matcher::regex(&format!("({text}|ab.a){}", ["", "$"][made.below(2)]))),
            _ => matcher(Matcher::like(&form.iter().collect::<String>(), 1 + made.below(2) as u8)),
        }
    }

    #[test]
    fn every_name_that_passes_is_a_candidate() {
        let mut made = TestTables::new(11);
        let (mut planned, mut left_out) = (0, 0);
        for size in [0, 1, 15, 16, 17, 100, 3_000] {
            let table = made.table(size);
            let (grams, labels) = (reopened(&table), labels(&table));
            for _ in 0..if labels.is_empty() { 0 } else { 400 } {
                let at = made.below(labels.len());
                let filter = filter(&mut made, &labels[at]);
                let Some(plan) = grams.plan(&filter) else { continue };
                let test = TextTest::new(&filter).expect("texts");
                let from = made.below(labels.len()) as u32;
                let names = from..from + 1 + made.below(labels.len() - from as usize) as u32;
                let ranges = plan.candidates(names.clone());
                assert!(ranges.is_sorted_by(|one, next| one.end < next.start), "{ranges:?}");
                planned += 1;
                for ordinal in names {
                    let is_candidate = ranges.iter().any(|range| range.contains(&ordinal));
                    left_out += usize::from(!is_candidate);
                    let label = &labels[ordinal as usize];
                    assert!(is_candidate || !test.passes(label), "{label} {filter:?}");
                }
            }
        }
        assert!(planned > 500 && left_out > 10_000, "{planned} {left_out}");
    }

    #[test]
    fn texts_without_grams_have_no_plan() {
        let grams = reopened(&TestTables::new(3).table(500));
        let texts = |list: &[&str]| -> Vec<Substring> {
            list.iter().filter_map(|text| Substring::parse(text).ok()).collect()
        };
        let contains =
            |list: &[&str]| LabelFilter { contains: texts(list), ..LabelFilter::default() };
        let ends = |list: &[&str]| LabelFilter { ends: texts(list), ..LabelFilter::default() };
        for filter in [
            LabelFilter::default(),
            contains(&["a"]),
            contains(&["shop", "a"]),
            contains(&["xn--shop"]),
            ends(&["a"]),
        ] {
            assert!(grams.plan(&filter).is_none(), "{filter:?}");
        }
        for filter in [contains(&["ab"]), contains(&["shop", "üb"]), ends(&["ab"])] {
            assert!(grams.plan(&filter).is_some(), "{filter:?}");
        }
    }

    #[test]
    fn damaged_files_are_refused() {
        let table = TestTables::new(9).table(300);
        let damage = |change: &dyn Fn(&mut Vec<u32>, &mut Vec<u32>)| {
            let (_folder, files) = round_trip(|draft| {
                name_gram_writer::write(&table, draft)?;
                Ok(())
            })
            .expect("written");
            let (mut in_use, mut places): (Vec<u32>, Vec<u32>) =
                (files.take(IN_USE).expect("written"), files.take(PLACES).expect("written"));
            change(&mut in_use, &mut places);
            let (_folder, changed) = round_trip(|draft| {
                draft.put(IN_USE, &in_use)?;
                draft.put(PLACES, &places)?;
                for end in ["firsts", "starts", "rows"] {
                    let name = format!("{POSTINGS}.{end}");
                    draft.put(&name, &files.take::<u8>(&name).expect("written"))?;
                }
                Ok(())
            })
            .expect("written");
            NameGrams::open(&changed, table.len()).map(|_| ())
        };
        damage(&|_, _| ()).expect("sound");
        damage(&|in_use, _| in_use.swap(1, 2)).expect_err("grams out of order");
        damage(&|in_use, _| in_use.truncate(5)).expect_err("of other places");
        damage(&|_, places| places[0] = 1).expect_err("the first postings belong to no gram");
        damage(&|_, places| places.swap(1, 2)).expect_err("places out of order");
        damage(&|_, places| *places.last_mut().expect("some") += 200)
            .expect_err("too few postings");
    }
}
