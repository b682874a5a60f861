//! Names that dropped, in rank order: a document's number is its place in the answer, so the
//! first matches are the answer and nothing is sorted when a query comes.
//!
//! tantivy holds the n-grams (1 to 3 characters) for the substring filter and the TLD postings;
//! its fast fields are read once into flat columns, because a filter that looks at every document
//! is several times faster over those.

use std::collections::HashMap;
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex};

use memchr::memmem::Finder;
use tantivy::query::{BooleanQuery, EnableScoring, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption, Schema};
use tantivy::{DocSet, SegmentReader, TERMINATED, Term};

use crate::index::filter::{DropFilter, Moment, Pipeline, TldSet, Window};
use crate::index::grams::GRAM_CHARS_MAX;
use crate::vocab::dqs::Dqs;
use crate::vocab::name::to_unicode;

/// Trigrams looked up for a longer substring: more cost more than the candidates they spare.
const GRAMS_PER_QUERY: usize = 6;
/// TLD postings are walked instead of all documents when they are at most one in this many.
const POSTINGS_ONE_IN: u32 = 16;
/// Lists of TLDs kept per generation: the views and stages of two days.
const TLD_LISTS_KEPT: usize = 14;

/// One value per document, in rank order.
#[derive(Debug, Default)]
pub struct DropColumns {
    pub dqs: Vec<u8>,
    pub length: Vec<u8>,
    pub tld: Vec<u16>,
    pub drop_date: Vec<u16>,
    pub release: Vec<u16>,
}

/// Names by document, end to end.
#[derive(Debug)]
pub struct DropTexts {
    /// `ends[doc]` is where the name of `doc` ends.
    pub ends: Vec<u32>,
    pub text: String,
}

/// TLD numbers present in a part of the pipeline on some day.
type TldLists = HashMap<(Pipeline, Moment), Arc<[u16]>>;

/// Consecutive documents in a tantivy segment of their own: segments are written on all cores.
pub struct Shard {
    /// The first document of the segment, in rank order over all.
    pub first: u32,
    pub segment: SegmentReader,
    pub fields: DropFields,
}

/// The drops part of a generation.
pub struct Drops {
    columns: DropColumns,
    texts: DropTexts,
    shards: Vec<Shard>,
    /// `cut[points]`: documents with at least that many points.
    cut: Vec<u32>,
    tld_lists: Mutex<TldLists>,
}

/// The indexed fields of the drops index.
#[derive(Clone, Copy, Debug)]
pub struct DropFields {
    pub gram: Field,
    pub tld: Field,
}

/// One document's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropHit<'a> {
    pub name: &'a str,
    pub dqs: Dqs,
    pub length: u8,
    /// TLD number.
    pub tld: u16,
}

impl DropTexts {
    fn get(&self, doc: u32) -> &str {
        let at = doc as usize;
        let start = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.text[start..self.ends[at] as usize]
    }
}

impl Drops {
    /// Puts the parts together. The columns and texts have one value per document of the shards,
    /// which follow each other, and scores do not rise.
    pub fn new(columns: DropColumns, texts: DropTexts, shards: Vec<Shard>) -> Drops {
        let at_least = |points| columns.dqs.partition_point(|&dqs| dqs >= points) as u32;
        let cut = (0..=Dqs::MAX.points()).map(at_least).collect();
        Drops { columns, texts, shards, cut, tld_lists: Mutex::default() }
    }

    /// Documents in all.
    pub fn count(&self) -> u32 {
        self.columns.dqs.len() as u32
    }

    /// Calls `visit` with the document of every match of `filter`, in rank order, until it breaks.
    /// Offset and limit are the caller's.
    ///
    /// # Errors
    /// Those of tantivy, which verified bytes do not give.
    pub fn for_each(
        &self,
        filter: &DropFilter,
        moment: Moment,
        tlds: &[String],
        pending: &[u16],
        mut visit: impl FnMut(u32) -> ControlFlow<()>,
    ) -> tantivy::Result<()> {
        let narrow = &filter.narrow;
        let test = Test {
            columns: &self.columns,
            window: Window::new(filter.pipeline, moment, pending),
            tlds: TldSet::new(&narrow.tlds, tlds),
            length_max: narrow.max_len,
        };
        let end = self.cut[usize::from(narrow.min_dqs.points())];
        let needle = filter.contains.as_ref().map(|needle| Needle::new(needle.as_str()));
        let mut hit = |doc: u32| {
            let passes = test.passes(doc as usize)
                && needle.as_ref().is_none_or(|needle| needle.is_in(self.texts.get(doc)));
            if passes { visit(doc) } else { ControlFlow::Continue(()) }
        };
        for shard in self.shards.iter().filter(|shard| shard.first < end) {
            let docs = shard.first..end.min(shard.first + shard.segment.max_doc());
            let walked = match shard.candidates(needle.as_ref(), &test.tlds, &docs)? {
                Candidates::All => docs.clone().try_for_each(&mut hit),
                Candidates::None => ControlFlow::Continue(()),
                Candidates::Some(mut found) => {
                    std::iter::successors(Some(found.doc()), |_| Some(found.advance()))
                        .take_while(|&doc| doc != TERMINATED && doc < docs.len() as u32)
                        .try_for_each(|doc| hit(shard.first + doc))
                }
            };
            if walked.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The numbers of the TLDs in `pipeline`, in the order of their names.
    pub fn tlds_in(&self, pipeline: Pipeline, moment: Moment, pending: &[u16]) -> Arc<[u16]> {
        let lock = || self.tld_lists.lock().expect("no code panics holding this lock");
        if let Some(list) = lock().get(&(pipeline, moment)) {
            return Arc::clone(list);
        }
        let window = Window::new(pipeline, moment, pending);
        let mut present = vec![false; pending.len()];
        let columns = &self.columns;
        for ((&tld, &drop_date), &release) in
            columns.tld.iter().zip(&columns.drop_date).zip(&columns.release)
        {
            present[usize::from(tld)] |= window.holds(tld, drop_date, release);
        }
        let list: Arc<[u16]> =
            (0..present.len() as u16).filter(|&tld| present[usize::from(tld)]).collect();
        let mut lists = lock();
        if lists.len() >= TLD_LISTS_KEPT {
            lists.clear();
        }
        lists.insert((pipeline, moment), Arc::clone(&list));
        list
    }

    /// True when [`Drops::tlds_in`] has its answer at hand.
    pub fn knows_tlds_in(&self, pipeline: Pipeline, moment: Moment) -> bool {
        let lists = self.tld_lists.lock().expect("no code panics holding this lock");
        lists.contains_key(&(pipeline, moment))
    }

    /// The row of a document.
    pub fn hit(&self, doc: u32) -> DropHit<'_> {
        let at = doc as usize;
        DropHit {
            name: self.texts.get(doc),
            dqs: Dqs::clamped(i32::from(self.columns.dqs[at])),
            length: self.columns.length[at],
            tld: self.columns.tld[at],
        }
    }
}

impl Shard {
    /// The fewest documents that an index look-up can narrow `docs`, which are this shard's, to.
    fn candidates(
        &self,
        needle: Option<&Needle>,
        tlds: &TldSet,
        docs: &Range<u32>,
    ) -> tantivy::Result<Candidates> {
        if let Some(needle) = needle {
            return self.docs_of(self.gram_terms(needle)?, Joined::All);
        }
        let Some(numbers) = tlds.numbers() else { return Ok(Candidates::All) };
        let terms: Vec<Term> =
            numbers.iter().map(|&tld| Term::from_field_u64(self.fields.tld, tld.into())).collect();
        let postings = self.segment.inverted_index(self.fields.tld)?;
        let mut found = 0;
        for term in &terms {
            found += postings.doc_freq(term)?;
        }
        if found > docs.len() as u32 / POSTINGS_ONE_IN {
            return Ok(Candidates::All);
        }
        self.docs_of(terms, Joined::Any)
    }

    /// The n-grams to look up for a needle: itself when it is one, else its rarest trigrams.
    fn gram_terms(&self, needle: &Needle) -> tantivy::Result<Vec<Term>> {
        let postings = self.segment.inverted_index(self.fields.gram)?;
        let mut grams = Vec::new();
        for gram in needle.grams() {
            let term = Term::from_field_text(self.fields.gram, gram);
            grams.push((postings.doc_freq(&term)?, term));
        }
        grams.sort();
        grams.dedup();
        grams.truncate(GRAMS_PER_QUERY);
        Ok(grams.into_iter().map(|(_, term)| term).collect())
    }

    fn docs_of(&self, terms: Vec<Term>, joined: Joined) -> tantivy::Result<Candidates> {
        if terms.is_empty() {
            return Ok(Candidates::None);
        }
        let queries = terms
            .into_iter()
            .map(|term| Box::new(TermQuery::new(term, IndexRecordOption::Basic)) as Box<dyn Query>);
        let query = match joined {
            Joined::All => BooleanQuery::intersection(queries.collect()),
            Joined::Any => BooleanQuery::union(queries.collect()),
        };
        let schema: &Schema = self.segment.schema();
        let weight = query.weight(EnableScoring::disabled_from_schema(schema))?;
        Ok(Candidates::Some(weight.scorer(&self.segment, 1.0)?))
    }
}

enum Joined {
    All,
    Any,
}

enum Candidates {
    All,
    None,
    Some(Box<dyn tantivy::query::Scorer>),
}

/// The filters of one query over the columns.
struct Test<'a> {
    columns: &'a DropColumns,
    window: Window<'a>,
    tlds: TldSet,
    length_max: u8,
}

impl Test<'_> {
    #[inline]
    fn passes(&self, at: usize) -> bool {
        let columns = self.columns;
        columns.length[at] <= self.length_max
            && self.tlds.holds(columns.tld[at])
            && self.window.holds(columns.tld[at], columns.drop_date[at], columns.release[at])
    }
}

/// A substring to look for.
struct Needle {
    text: String,
    finder: Finder<'static>,
    /// Where its characters start, and its end.
    borders: Vec<usize>,
}

impl Needle {
    fn new(text: &str) -> Needle {
        let borders = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        Needle { finder: Finder::new(text).into_owned(), text: text.to_owned(), borders }
    }

    fn chars(&self) -> usize {
        self.borders.len() - 1
    }

    /// Its trigrams; itself when it is no longer.
    fn grams(&self) -> impl Iterator<Item = &str> {
        let size = self.chars().min(GRAM_CHARS_MAX);
        self.borders.windows(size + 1).map(move |borders| &self.text[borders[0]..borders[size]])
    }

    /// True when it stands in the name's A-label or Unicode form.
    fn is_in(&self, name: &str) -> bool {
        // A needle that is an n-gram itself has been found by the index already.
        self.chars() <= GRAM_CHARS_MAX
            || self.finder.find(name.as_bytes()).is_some()
            || (name.contains("xn--") && self.finder.find(to_unicode(name).as_bytes()).is_some())
    }
}
