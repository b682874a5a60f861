//! The drops list: names that dropped and were not registered again, in rank order. Input: columns,
//! TLDs and trigrams of dropped names. Output: docs that pass a filter, best first.
//! [`crate::query`] builds rows from columns and records.
//!
//! Docs are positions in rank order, so the first matches are the result and queries need no sort.
//! Scores are a range of docs. All other conditions are bitmaps of docs, computed for a window of
//! docs and combined word by word: properties of names and periods of days are bitmaps by bit
//! ([`crate::columns::slices`]), stages are bitmaps for the day ([`DayStages`]), TLDs and single
//! characters are sets of docs ([`DocSets`]), and postings set single bits. Windows grow during the
//! walk, so first pages are cheap; matches before the offset are counted, not visited. An unknown
//! total needs a walk to the end; all cores walk pieces of a long list.
//!
//! Rows are built from fast fields ([`DropFields`]), and orders and checks of single docs read them.

use std::io;
use std::ops::{ControlFlow, Range};

use crate::columns::checks::{Beside, DropChecks, DropColumns};
use crate::columns::day::{DayStages, DropDates, StageDocs};
use crate::columns::day_column::{DayColumn, DayFiles};
use crate::columns::doc_sets::{DocSet, DocSets, Lists};
use crate::columns::drop_fields::DropFields;
use crate::columns::drop_segment::{self, NewSegment};
use crate::columns::first_batches::FirstBatches;
use crate::columns::popularity::Popularity;
use crate::columns::properties::{Properties, Property};
use crate::columns::rank_key::ADULT;
use crate::columns::rank_order::{self, DropRows, RankOrder};
use crate::columns::release_seconds::ReleaseSeconds;
use crate::columns::returns::{LATEST, Returns};
use crate::columns::sampling::{Sample, Sampling};
use crate::columns::scores::Scores;
use crate::columns::slices::{SliceTest, Slices, ValueSet, ones};
use crate::columns::table::Table;
use crate::columns::tlds::Tlds;
use crate::columns::trigram_writer;
use crate::columns::trigrams::{SearchedNames, Seeker, Trigrams};
use crate::error::{BuildError, GenerationError};
use crate::filter::DropFilter;
use crate::storage::draft::Draft;
use crate::storage::files::Files;
use crate::vocab::budget;
use crate::vocab::dqs::Dqs;
use crate::vocab::time::UnixMs;

const TLD: &str = "listed.tld";
const DROPPED: DayFiles = DayFiles {
    cuts: "listed.drop-cuts",
    periods: "listed.drop-periods",
    days: "listed.drop-days",
    counts: "listed.drop-counts",
};
const RELEASED: DayFiles = DayFiles {
    cuts: "listed.release-cuts",
    periods: "listed.release-periods",
    days: "listed.release-days",
    counts: "listed.release-counts",
};

/// Number of words of the first window, and of the largest window, which fits the L1 cache.
const WINDOW_WORDS_MIN: usize = 32;
const WINDOW_WORDS_MAX: usize = 1 << 10;
/// Minimum docs of a piece: a core walks one piece, then takes the next. A multiple of 64, so that
/// no word is in two pieces. This number is smaller in tests, so that small lists have several
/// pieces.
const PIECE_DOCS: u32 = if cfg!(debug_assertions) { 1 << 10 } else { 1 << 20 };
/// Minimum number of docs of a list that is walked in pieces.
const LONG: u32 = 2 * PIECE_DOCS;
/// Maximum number of pieces; the filter is resolved for each piece.
const PIECES_MAX: u32 = 8;

/// Dropped names of a generation, by doc.
pub struct DropsByRank {
    /// Number of docs on the list; names registered again follow them.
    listed: u32,
    fields: DropFields,
    scores: Scores,
    drop_days: DayColumn,
    release_days: DayColumn,
    first_batches: FirstBatches,
    properties: Properties,
    popularity: Popularity,
    release_seconds: ReleaseSeconds,
    returns: Returns,
    tld_docs: DocSets,
    trigrams: Trigrams,
}

/// Writes the drops list, the records and the n-grams of the dropped names of `table`.
///
/// # Errors
/// A write fails, or the records exceed 4 GiB.
pub fn write(table: &Table, order: &RankOrder, draft: &Draft) -> Result<(), BuildError> {
    let rows = DropRows::gather(table, order)?;
    let tlds = rows.column(|row| row.tld);
    let on_list = &tlds[..rows.listed as usize];
    let segment = NewSegment::create(draft, tlds.len() as u32, rows.listed)?;
    draft.both(
        || {
            let rows = rows;
            segment.write_fields(&rows.rows)?;
            DayColumn::write(DROPPED, &rows.column(|row| row.drop_date), draft)?;
            DayColumn::write(RELEASED, &rows.column(|row| row.release), draft)?;
            let first_batches = rows.column(|row| row.first_batch);
            FirstBatches::write(&first_batches, &table.batches, draft)?;
            Popularity::write(table, order, draft)?;
            ReleaseSeconds::write(table, order, draft)?;
            Returns::write_latest(table, order, draft)?;
            Properties::write(rows.rows.iter().map(|row| &row.properties), draft)?;
            DocSets::of(on_list, table.tlds.len()).write(TLD, draft)
        },
        || {
            let (records, writer) = rank_order::records(table, order)?;
            records.write(&writer, draft)?;
            trigram_writer::write(&records, on_list, &table.tlds, &segment, draft)
        },
    )?;
    segment.finish(draft)
}

impl DropsByRank {
    /// Opens the files that [`write`] wrote: `dropped` names, of which `listed` are on the list.
    ///
    /// # Errors
    /// A file is damaged or does not match the others.
    pub fn open(
        files: &Files,
        tlds: &Tlds,
        dropped: u32,
        listed: u32,
    ) -> Result<DropsByRank, GenerationError> {
        let segment = drop_segment::open(files, dropped, listed)?;
        let fields = DropFields::open(&segment, tlds.len(), files)?;
        let scores = Scores::new(listed, |doc| fields.dqs(doc));
        let drop_days = DayColumn::open(files, DROPPED, dropped)?;
        let release_days = DayColumn::open(files, RELEASED, dropped)?;
        let properties = Properties::open(files, dropped)?;
        let popularity = Popularity::open(files, dropped)?;
        let release_seconds = ReleaseSeconds::open(files, dropped)?;
        let returns = Returns::open(files, LATEST, listed, dropped)?;
        let first_batches = FirstBatches::open(files, dropped)?;
        let tld_docs = DocSets::open(TLD, files, listed, tlds.len())?;
        let trigrams = Trigrams::open(&segment, files, listed, tlds)?;
        Ok(DropsByRank {
            listed,
            fields,
            scores,
            drop_days,
            release_days,
            first_batches,
            properties,
            popularity,
            release_seconds,
            returns,
            tld_docs,
            trigrams,
        })
    }

    /// Returns the columns that stages are computed from; docs in the bitmap `hidden` have no
    /// stage.
    pub fn dates<'a>(&'a self, hidden: &'a [u64]) -> DropDates<'a> {
        let adult = self.properties.column(Property::Adult).flags();
        DropDates { listed: self.listed, fields: &self.fields, hidden, adult }
    }

    /// Returns the number of docs on the drops list.
    pub fn len(&self) -> u32 {
        self.listed
    }

    /// Returns true if filters are resolved on all cores.
    pub fn has_pieces(&self) -> bool {
        self.listed >= LONG
    }

    /// Returns the number of docs of all dropped names.
    pub fn dropped(&self) -> u32 {
        self.fields.docs()
    }

    /// Returns the TLD number of a doc.
    #[inline]
    pub fn tld(&self, doc: u32) -> u16 {
        self.fields.tld(doc)
    }

    /// Returns the rank key of a doc.
    pub fn key(&self, doc: u32) -> u16 {
        self.fields.key(doc) | if self.is_adult(doc) { ADULT } else { 0 }
    }

    /// Returns true if a doc is an adult name.
    #[inline]
    pub fn is_adult(&self, doc: u32) -> bool {
        self.properties.column(Property::Adult).value(doc) != 0
    }

    /// Returns true if the label of a doc misspells that of a popular name.
    pub fn is_typo(&self, doc: u32) -> bool {
        self.properties.column(Property::Typo).value(doc) != 0
    }

    /// Returns the unrounded score of a doc, as [`crate::scorer::Grade::rank`].
    pub fn rank(&self, doc: u32) -> u16 {
        self.fields.rank(doc)
    }

    /// Returns the latest drop date of a doc, as [`crate::vocab::day::Day::raw`].
    #[inline]
    pub fn drop_date(&self, doc: u32) -> u16 {
        self.fields.drop_day(doc)
    }

    /// Returns the effective release of a doc.
    #[inline]
    pub fn release(&self, doc: u32) -> u16 {
        self.fields.release_day(doc)
    }

    /// Returns the seconds of releases that lists state.
    pub fn release_seconds(&self) -> &ReleaseSeconds {
        &self.release_seconds
    }

    /// Returns the registrations of the docs after the drops list.
    pub fn returns(&self) -> &Returns {
        &self.returns
    }

    /// Returns the columns of latest drop dates and of effective releases.
    pub fn day_columns(&self) -> (&DayColumn, &DayColumn) {
        (&self.drop_days, &self.release_days)
    }

    /// Returns the first list of each drop.
    pub fn first_batches(&self) -> &FirstBatches {
        &self.first_batches
    }

    /// Returns, by TLD number, the observation time of the newest list that was the first to report
    /// some drop of the TLD. Considers only drops that `counts` accepts.
    pub fn newest_lists(&self, counts: impl Fn(u32) -> bool) -> Vec<Option<UnixMs>> {
        let mut newest = Vec::new();
        for doc in (0..self.dropped()).filter(|&doc| counts(doc)) {
            let at = usize::from(self.tld(doc));
            newest.resize(newest.len().max(at + 1), None);
            let observed = self.first_batches.observed(self.first_batches.number(doc));
            newest[at] = newest[at].max(Some(observed));
        }
        newest
    }

    /// Returns the properties that filters and facets use.
    pub fn properties(&self) -> &Properties {
        &self.properties
    }

    /// Returns the ranks on popularity lists.
    pub fn popularity(&self) -> &Popularity {
        &self.popularity
    }

    /// Returns the number of other TLDs with the label of a doc.
    pub fn other_tlds(&self, doc: u32) -> u16 {
        self.properties.column(Property::OtherTlds).number(doc)
    }

    /// Returns the number of drops of a doc; 255 means 255 or more.
    pub fn drops(&self, doc: u32) -> u8 {
        self.properties.column(Property::Drops).number(doc).try_into().unwrap_or(u8::MAX)
    }

    /// Returns the columns that conditions are checked against.
    pub fn columns<'a>(&'a self, beside: Beside<'a>) -> DropColumns<'a> {
        DropColumns {
            fields: &self.fields,
            drop_days: &self.drop_days,
            release_days: &self.release_days,
            release_seconds: &self.release_seconds,
            properties: &self.properties,
            first_batches: &self.first_batches,
            popularity: &self.popularity,
            beside,
        }
    }

    /// Loads the columns of some docs in parallel; see [`super::records::ScoreRecords::prefetch`].
    pub fn prefetch(&self, docs: &[u32]) {
        self.fields.prefetch(docs);
    }

    /// Returns the score of a doc.
    pub fn dqs(&self, doc: u32) -> Dqs {
        self.fields.dqs(doc)
    }

    /// Returns the label length of a doc in characters.
    pub fn length(&self, doc: u32) -> u8 {
        self.fields.length(doc)
    }

    /// Returns the number of docs with this score or a better one; they come first.
    pub fn docs_from(&self, min_dqs: Dqs) -> u32 {
        self.scores.docs_from(min_dqs)
    }

    /// Returns the docs with this score.
    pub fn docs_with(&self, dqs: Dqs) -> Range<u32> {
        self.scores.docs_with(dqs)
    }

    /// Calls `visit` with the docs that pass `filter`, best first, from its offset on, until
    /// `visit` breaks. The caller applies the limit.
    ///
    /// # Errors
    /// The trigrams cannot be read; does not happen with verified files.
    pub fn for_each(
        &self,
        filter: &DropFilter,
        day: &DayStages,
        beside: Beside<'_>,
        visit: impl FnMut(u32) -> ControlFlow<()>,
    ) -> io::Result<()> {
        let mut offset = filter.offset;
        let mut visit = visit;
        self.walk(filter, day, beside)?
            .windows(|first, words| visit_bits(first, words, 0, &mut offset, &mut visit))
    }

    /// Appends the wanted docs that pass `filter` to `docs`, best first. Returns the number of all docs that
    /// pass, if they are to be counted.
    ///
    /// # Errors
    /// As [`DropsByRank::for_each`].
    pub fn page(
        &self,
        filter: &DropFilter,
        day: &DayStages,
        beside: Beside<'_>,
        wanted: Wanted,
        docs: &mut Vec<u32>,
    ) -> io::Result<Option<u32>> {
        let Wanted { from, take, counts } = wanted;
        let mut walk = self.walk(filter, day, beside)?;
        let mut page = Page { from, take, offset: filter.offset, docs };
        if !counts {
            walk.docs.start = walk.docs.start.max(from);
            walk.windows(|first, words| page.fill(first, words))?;
            return Ok(None);
        }
        let (first, rest) = split(walk.docs.clone());
        walk.docs = first;
        let mut total = 0;
        walk.windows(|first, words| {
            total += ones(words);
            let _is_full = page.fill(first, words);
            ControlFlow::Continue(())
        })?;
        // Number of rows that the page may still need from each piece.
        let wanted = page.wanted();
        let found = budget::on_all_cores(rest, |docs| -> io::Result<(u32, Vec<Window>)> {
            let (mut walk, mut kept) = (self.walk(filter, day, beside)?, Vec::new());
            walk.docs = docs;
            let mut total = 0;
            walk.windows(|first, words| {
                let matches = ones(words);
                if total < wanted && matches > 0 {
                    kept.push((first, words.to_vec()));
                }
                total += matches;
                ControlFlow::Continue(())
            })?;
            Ok((total, kept))
        });
        for piece in found {
            let (more, windows) = piece?;
            total += more;
            let _is_full = windows.iter().try_for_each(|(first, words)| page.fill(*first, words));
        }
        Ok(Some(total))
    }

    /// Calls `visit` with evenly spaced blocks of words and the bits of the docs in them that pass `filter`,
    /// ignoring its offset. Returns which part was visited; `None` if all docs should be counted instead, because
    /// they are few, few pass, or a sample takes longer.
    ///
    /// # Errors
    /// As [`DropsByRank::for_each`].
    pub fn sample(
        &self,
        filter: &DropFilter,
        day: &DayStages,
        beside: Beside<'_>,
        sampling: &Sampling,
        mut visit: impl FnMut(usize, &[u64]),
    ) -> io::Result<Option<Sample>> {
        let mut walk = self.walk(filter, day, beside)?;
        let Range { start, end } = walk.docs;
        let words = start as usize / 64..end.div_ceil(64) as usize;
        if words.len() <= sampling.counted || sampling.is_dearer(walk.lists(), words.len()) {
            return Ok(None);
        }
        let (mut buffer, mut scratch) = (vec![0; sampling.words], Vec::new());
        let mut sample = Sample { matches: 0, visited: 0, words: words.len() };
        let mut counts: Vec<(usize, u32)> = Vec::new();
        // Each round visits as many blocks as those before together, in the middle between them.
        let (mut offset, mut step) = (0, Sampling::SPARSEST);
        loop {
            for at in words.clone().step_by(sampling.words).skip(offset).step_by(step) {
                let block = &mut buffer[..sampling.words.min(words.end - at)];
                block.fill(0);
                walk.keep(at, block, &mut scratch)?;
                let matches = ones(block);
                (sample.visited, sample.matches) =
                    (sample.visited + block.len(), sample.matches + matches);
                counts.push((at, matches));
                visit(at, block);
                if budget::spent() {
                    return Ok(Some(sample));
                }
            }
            if offset == 0 && sample.matches < sampling.few {
                return Ok(None);
            }
            counts.sort_unstable();
            let in_order: Vec<u32> = counts.iter().map(|&(_, matches)| matches).collect();
            if sampling.is_enough(&sample, &in_order) {
                return Ok(Some(sample));
            }
            (offset, step) = if offset == 0 { (step / 2, step) } else { (offset / 2, offset) };
            walk = self.walk(filter, day, beside)?;
        }
    }

    /// Appends the first docs of `part` that pass `filter` to `docs`, best first and ignoring the offset.
    /// Returns the rest of the words that it may visit; `None` if they did not suffice.
    ///
    /// # Errors
    /// As [`DropsByRank::for_each`].
    pub fn append_part(
        &self,
        filter: &DropFilter,
        day: &DayStages,
        beside: Beside<'_>,
        part: Part<'_>,
        docs: &mut Vec<u32>,
    ) -> io::Result<Option<usize>> {
        let mut walk = self.walk(filter, day, beside)?;
        walk.docs = walk.docs.start.max(part.docs.start)..walk.docs.end.min(part.docs.end);
        walk.value = part.value.map(|part| {
            let test = part.column.test(ValueSet::of(|other| other == part.value));
            (part, test)
        });
        let end = self.listed.div_ceil(64) as usize;
        let mut left = Some(part.words);
        let mut page = Page { from: walk.docs.start, offset: 0, take: part.up_to, docs };
        walk.windows(|first, words| {
            page.fill(first, words)?;
            left = left.and_then(|left| left.checked_sub(words.len().min(end - first)));
            if left.is_some() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok(left)
    }

    /// Returns the docs that pass `filter` as a bitmap, ignoring offset and limit.
    ///
    /// # Errors
    /// As [`DropsByRank::for_each`].
    pub fn matching(
        &self,
        filter: &DropFilter,
        day: &DayStages,
        beside: Beside<'_>,
    ) -> io::Result<Vec<u64>> {
        let mut all = vec![0; (self.listed as usize).div_ceil(64)];
        let mut left = all.as_mut_slice();
        let all_docs = 0..self.listed;
        let parts = if self.has_pieces() { pieces(all_docs) } else { vec![all_docs] };
        let pieces = parts.into_iter().map(|docs| {
            let words = left.split_off_mut(..docs.len().div_ceil(64)).unwrap_or_default();
            (docs, words)
        });
        let work = |(docs, all): (Range<u32>, &mut [u64])| {
            let mut walk = self.walk(filter, day, beside)?;
            walk.docs = walk.docs.start.max(docs.start)..walk.docs.end.min(docs.end);
            walk.windows(|first, words| {
                let all = &mut all[first - docs.start as usize / 64..];
                all.iter_mut().zip(words).for_each(|(all, word)| *all = *word);
                ControlFlow::Continue(())
            })
        };
        budget::on_all_cores(pieces.collect(), work).into_iter().collect::<io::Result<()>>()?;
        Ok(all)
    }

    fn walk<'a>(
        &'a self,
        filter: &DropFilter,
        day: &'a DayStages,
        beside: Beside<'a>,
    ) -> io::Result<Walk<'a>> {
        let Beside { tlds, records, .. } = beside;
        let names = SearchedNames { fields: &self.fields, tlds, records };
        let wanted = tlds.numbers(&filter.common.tlds);
        let seeker = match &filter.contains {
            Some(text) => Some(self.trigrams.seeker(
                text.as_str(),
                names,
                &self.tld_docs,
                wanted.as_deref(),
            )?),
            None => None,
        };
        let required = filter.common.label.required().iter().map(|text| {
            self.trigrams.seeker(text.as_str(), names, &self.tld_docs, wanted.as_deref())
        });
        let candidates = required.collect::<io::Result<Vec<_>>>()?;
        let checks = DropChecks::new(self.columns(beside), &filter.common);
        Ok(Walk {
            docs: self.scores.docs_above(filter.common.max_dqs)
                ..self.docs_from(filter.common.min_dqs),
            stages: day.docs_in(filter.view),
            members: wanted.map(|numbers| self.tld_docs.members(numbers)),
            excluded: tlds
                .numbers(&filter.common.not_tlds)
                .map(|numbers| self.tld_docs.members(numbers)),
            value: None,
            fields: &self.fields,
            seeker,
            candidates,
            checks: checks.has_any().then_some(checks),
        })
    }
}

/// The requested part of the docs that pass a filter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// First doc; the offset of the filter is counted from this doc.
    pub from: u32,
    /// Maximum docs.
    pub take: usize,
    /// Whether all docs that pass are counted. Otherwise, the walk ends with the last wanted doc.
    pub counts: bool,
}

/// A day by which docs are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DayOf {
    Drop,
    Release,
}

/// A value in a column.
#[derive(Clone, Copy, Debug)]
pub struct PartValue<'a> {
    pub column: &'a Slices,
    pub value: u8,
    /// The day that is meant, if the value is a period of more days.
    pub day: Option<(DayOf, u16)>,
}

/// Docs with one value of a sort key.
#[derive(Debug)]
pub struct Part<'a> {
    /// All docs that are wanted are among these.
    pub docs: Range<u32>,
    /// The value of these docs in a column; `None` if all docs of the range are meant.
    pub value: Option<PartValue<'a>>,
    /// Maximum number of docs, including those that were found before.
    pub up_to: usize,
    /// Words to visit at most.
    pub words: usize,
}

/// State of one query.
struct Walk<'a> {
    /// The docs whose score passes.
    docs: Range<u32>,
    stages: StageDocs<'a>,
    /// See [`Part`]; `None` lets all values pass.
    value: Option<(PartValue<'a>, SliceTest)>,
    fields: &'a DropFields,
    /// Docs of the accepted TLDs; `None` accepts all.
    members: Option<DocSet<'a>>,
    excluded: Option<DocSet<'a>>,
    seeker: Option<Seeker<'a>>,
    /// Required texts; every match contains at least one of them. Empty if every name may match.
    candidates: Vec<Seeker<'a>>,
    checks: Option<DropChecks<'a>>,
}

/// Clears the bits of the docs of other days.
fn keep_day(fields: &DropFields, of: DayOf, day: u16, first: usize, words: &mut [u64]) {
    for (at, word) in words.iter_mut().enumerate() {
        let mut left = *word;
        while left != 0 {
            let bit = left.trailing_zeros();
            left &= left - 1;
            let doc = ((first + at) * 64) as u32 + bit;
            let of_doc = match of {
                DayOf::Drop => fields.drop_day(doc),
                DayOf::Release => fields.release_day(doc),
            };
            if of_doc != day {
                *word &= !(1 << bit);
            }
        }
    }
}

impl Walk<'_> {
    /// Returns the lists of docs that the walk reads. The names that contain a required text are read as
    /// well, so these lists do not count.
    fn lists(&self) -> Lists {
        if !self.candidates.is_empty() {
            return Lists::default();
        }
        let sets = [&self.members, &self.excluded].into_iter().flatten().map(DocSet::lists);
        sets.chain(self.seeker.iter().map(Seeker::lists)).sum()
    }

    /// Visits the windows that may contain matches, in order, with their first word and the bits of
    /// the matches.
    fn windows(
        mut self,
        mut visit: impl FnMut(usize, &[u64]) -> ControlFlow<()>,
    ) -> io::Result<()> {
        let (mut from, mut size) = (0, WINDOW_WORDS_MIN);
        let mut words = Vec::with_capacity(WINDOW_WORDS_MAX);
        let mut scratch = Vec::with_capacity(WINDOW_WORDS_MAX);
        while let Some(doc) = self.next(from)?
            && !budget::spent()
        {
            let first = doc as usize / 64;
            words.clear();
            words.resize(size, 0);
            self.keep(first, &mut words, &mut scratch)?;
            if visit(first, &words).is_break() {
                break;
            }
            from = ((first + size) * 64) as u32;
            size = (size * 4).min(WINDOW_WORDS_MAX);
        }
        Ok(())
    }

    /// Sets `words` to the bits of the matches from `64 * first` on. Windows come in order.
    fn keep(&mut self, first: usize, words: &mut [u64], scratch: &mut Vec<u64>) -> io::Result<()> {
        self.fill(first, words);
        if let Some((part, test)) = &self.value {
            part.column.keep(test, first, words);
        }
        for (set, flip) in [(&mut self.members, 0), (&mut self.excluded, u64::MAX)] {
            let Some(set) = set else { continue };
            scratch.clear();
            scratch.resize(words.len(), 0);
            set.mark(first, scratch);
            words.iter_mut().zip(&*scratch).for_each(|(word, docs)| *word &= docs ^ flip);
        }
        self.keep_candidates(first, words, scratch)?;
        if let Some((PartValue { day: Some((of, day)), .. }, _)) = self.value {
            keep_day(self.fields, of, day, first, words);
        }
        if let Some(checks) = &self.checks {
            checks.keep(first, words);
        }
        if let Some(seeker) = &mut self.seeker
            && words.iter().any(|&word| word != 0)
        {
            seeker.keep(first, words)?;
        }
        Ok(())
    }

    /// Clears the bits of the docs that cannot match because they contain none of the required texts.
    fn keep_candidates(
        &mut self,
        first: usize,
        words: &mut [u64],
        scratch: &mut Vec<u64>,
    ) -> io::Result<()> {
        if self.candidates.is_empty() || words.iter().all(|&word| word == 0) {
            return Ok(());
        }
        let mut found = vec![0; words.len()];
        for seeker in &mut self.candidates {
            scratch.clear();
            scratch.extend_from_slice(words);
            seeker.keep(first, scratch)?;
            found.iter_mut().zip(&*scratch).for_each(|(found, word)| *found |= word);
        }
        words.copy_from_slice(&found);
        Ok(())
    }

    /// Returns a lower bound, at least `from`, of the next matching doc; `None` if no doc matches.
    fn next(&mut self, from: u32) -> io::Result<Option<u32>> {
        let mut next = Some(from.max(self.docs.start));
        if let (Some((part, _)), Some(doc)) = (&self.value, next) {
            let word = part.column.next_with(part.value, doc as usize / 64);
            next = word.map(|word| doc.max((word * 64) as u32));
        }
        if let (Some(members), Some(doc)) = (&mut self.members, next) {
            next = members.next(doc);
        }
        if let (Some(seeker), Some(doc)) = (&mut self.seeker, next) {
            next = seeker.next(doc)?;
        }
        if let Some(doc) = next.filter(|_| !self.candidates.is_empty()) {
            let found = self.candidates.iter_mut().map(|seeker| seeker.next(doc));
            next = found.collect::<io::Result<Vec<_>>>()?.into_iter().flatten().min();
        }
        Ok(next.filter(|&doc| doc < self.docs.end))
    }

    /// Sets the bits of the docs whose score and stage pass.
    fn fill(&self, first: usize, words: &mut [u64]) {
        let (start, end) = (self.docs.start as usize, self.docs.end as usize);
        let used = words.len().min(end.div_ceil(64) - first);
        self.stages.copy(first, &mut words[..used]);
        if first + used == end.div_ceil(64) && !end.is_multiple_of(64) {
            words[used - 1] &= (1 << (end % 64)) - 1;
        }
        if first == start / 64 {
            words[0] &= u64::MAX << (start % 64);
        }
    }
}

/// First word of a window, and the bits of its matches.
type Window = (usize, Vec<u64>);

/// A page being built.
struct Page<'a> {
    /// Docs before this one are skipped, then the first `offset` matches.
    from: u32,
    offset: u32,
    take: usize,
    docs: &'a mut Vec<u32>,
}

impl Page<'_> {
    fn is_full(&self) -> bool {
        self.docs.len() >= self.take
    }

    /// Returns the number of missing matches, including those to be skipped. If the page does not
    /// start with the first doc, all matches are missing, because the matches before it are not
    /// counted.
    fn wanted(&self) -> u32 {
        let left = u32::try_from(self.take - self.docs.len()).unwrap_or(u32::MAX);
        match (left, self.from) {
            (0, _) => 0,
            (_, 0) => left.saturating_add(self.offset),
            _ => u32::MAX,
        }
    }

    /// Adds the docs whose bits are set, and breaks when the page is full.
    fn fill(&mut self, first: usize, words: &[u64]) -> ControlFlow<()> {
        let Page { from, take, .. } = *self;
        if self.is_full() || from >= ((first + words.len()) * 64) as u32 {
            return ControlFlow::Continue(());
        }
        let docs = &mut *self.docs;
        visit_bits(first, words, from, &mut self.offset, &mut |doc| {
            docs.push(doc);
            if docs.len() < take { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })
    }
}

/// Splits docs into a first piece, which is enough for most pages and for small lists, and further
/// pieces.
fn split(docs: Range<u32>) -> (Range<u32>, Vec<Range<u32>>) {
    if docs.len() < LONG as usize {
        return (docs, Vec::new());
    }
    let border = (docs.start + PIECE_DOCS).next_multiple_of(64);
    (docs.start..border, pieces(border..docs.end))
}

/// Splits docs, which start at a whole word, into pieces for all cores.
fn pieces(docs: Range<u32>) -> Vec<Range<u32>> {
    let len = (docs.len() as u32).div_ceil(PIECES_MAX).next_multiple_of(64).max(PIECE_DOCS);
    let starts = docs.clone().step_by(len as usize);
    starts.map(|start| start..docs.end.min(start.saturating_add(len))).collect()
}

/// Visits the docs whose bits are set, starting at doc `from`, except for the first `offset`; `offset`
/// is decremented for each.
fn visit_bits(
    first: usize,
    words: &[u64],
    from: u32,
    offset: &mut u32,
    visit: &mut impl FnMut(u32) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let skipped = (from as usize / 64).saturating_sub(first);
    for (at, &word) in (first + skipped..).zip(words.iter().skip(skipped)) {
        let mut left = word;
        if at == from as usize / 64 {
            left &= u64::MAX << (from % 64);
        }
        if *offset >= left.count_ones() {
            *offset -= left.count_ones();
            continue;
        }
        while left != 0 {
            let doc = (at * 64) as u32 + left.trailing_zeros();
            left &= left - 1;
            if *offset > 0 {
                *offset -= 1;
            } else {
                visit(doc)?;
            }
        }
    }
    ControlFlow::Continue(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::columns::expected_taken::ExpectedColumn;
    use crate::columns::facts::FactTables;
    use crate::columns::fixtures::{TestTables, round_trip};
    use crate::columns::idn::alias_of;
    use crate::columns::rank_key::{dqs_of, is_adult, length_of, order_key};
    use crate::columns::records::ScoreRecords;
    use crate::columns::slices::docs_of;
    use crate::columns::suffix_ranks::SuffixRanks;
    use crate::filter::{AsOf, Filter, Sort, View};
    use crate::vocab::budget::{Budget, Spent};
    use crate::vocab::day::Day;
    use crate::vocab::expected_taken::ExpectedTaken;
    use crate::vocab::name::DomainName;
    use crate::vocab::stage::Stage;
    use crate::vocab::suffix_rank::SuffixRank;
    use dropdex_query::filter::Adult;
    use dropdex_query::text::Substring;

    /// A name on the list, from the table.
    struct Row {
        name: String,
        alias: Option<String>,
        tld: u16,
        key: u16,
        rank: u16,
        drop_date: u16,
        release: u16,
        first_batch: u32,
    }

    struct Built {
        tlds: Tlds,
        listed: DropsByRank,
        records: ScoreRecords,
        suffix_ranks: SuffixRanks,
        expected: ExpectedColumn,
        facts: FactTables,
        /// Names in rank order.
        rows: Vec<Row>,
    }

    fn rows(table: &Table) -> Vec<Row> {
        let mut rows = Vec::new();
        for part in table.parts.iter() {
            for (drop, &at) in
                part.drops.at.iter().enumerate().filter(|&(drop, _)| !part.drops.is_again(drop))
            {
                let name = String::from_utf8(part.name(at as usize).to_vec()).expect("ASCII");
                rows.push(Row {
                    alias: alias_of(&name),
                    name,
                    tld: part.tld[at as usize],
                    key: part.key[at as usize],
                    rank: part.drops.rank[drop],
                    drop_date: part.drops.date[drop],
                    release: part.drops.release[drop],
                    first_batch: part.drops.first_batch[drop],
                });
            }
        }
        let place = |row: &Row| order_key(row.key, row.rank);
        rows.sort_by(|left, right| (place(left), &left.name).cmp(&(place(right), &right.name)));
        rows
    }

    fn build(table: Table) -> Built {
        let order = RankOrder::new(&table).expect("in memory");
        let (_folder, files) = round_trip(|draft| write(&table, &order, draft)).expect("written");
        let dropped = table.dropped();
        let listed =
            DropsByRank::open(&files, &table.tlds, dropped, order.listed()).expect("sound");
        let records = ScoreRecords::open(&files, dropped).expect("sound");
        files.finish().expect("all files were read");
        let rows = rows(&table);
        let mut suffix_ranks = SuffixRanks::new(rows.len() as u32);
        for tld in 0..table.tlds.len() as u16 {
            let docs: Vec<u32> =
                (0..).zip(&rows).filter(|(_, row)| row.tld == tld).map(|(doc, _)| doc).collect();
            for (place, &doc) in (1..).zip(&docs) {
                suffix_ranks.set(doc, SuffixRank::of(place, docs.len() as u32));
            }
        }
        // Names of the first TLD have no model.
        let of_row =
            |(doc, row): (u32, &Row)| ExpectedTaken::new(doc * 7 % 101).filter(|_| row.tld != 0);
        let expected = ExpectedColumn::new((0..).zip(&rows).map(of_row).collect());
        let facts = FactTables::default();
        Built { listed, records, suffix_ranks, expected, facts, rows, tlds: table.tlds }
    }

    impl Row {
        fn passes(&self, filter: &DropFilter, as_of: AsOf, tlds: &Tlds) -> bool {
            let day = |raw| Day::from_raw(raw).expect("a day");
            let pending = tlds.pending_days(self.tld);
            let stage = Stage::on(as_of.today, day(self.release), pending, as_of.catch_days);
            let in_pipeline = match filter.view {
                View::All => true,
                View::Today => day(self.drop_date) == as_of.today,
                View::Active => stage != Stage::Released,
                View::Stage(wanted) => stage == wanted,
                View::Stages(_) => unreachable!("EVERY has none"),
            };
            let common = &filter.common;
            let holds = |text: &Substring| {
                self.name.contains(text.as_str())
                    || self.alias.as_ref().is_some_and(|alias| alias.contains(text.as_str()))
            };
            in_pipeline
                && dqs_of(self.key) >= common.min_dqs
                && dqs_of(self.key) <= common.max_dqs
                && length_of(self.key) <= common.max_len
                && (common.adult == Adult::Include || !is_adult(self.key))
                && (common.tlds.is_empty()
                    || common.tlds.iter().any(|tld| tld == tlds.name(self.tld)))
                && filter.contains.as_ref().is_none_or(holds)
        }
    }

    impl Built {
        fn beside(&self) -> Beside<'_> {
            let Built { tlds, records, suffix_ranks, expected, facts, .. } = self;
            Beside { tlds, records, suffix_ranks, expected, facts }
        }

        fn ranks_within(&self, filter: &DropFilter, doc: u32) -> bool {
            let (most, least) =
                (filter.common.drop.max_suffix_rank, filter.common.drop.expected_taken);
            most.is_none_or(|most| self.suffix_ranks.of(doc).is_some_and(|rank| rank <= most))
                && least.is_none_or(|least| self.expected.of(doc).is_some_and(|it| it >= least))
        }

        fn check(&self, filter: &DropFilter, day: &DayStages, as_of: AsOf) {
            let passes = |&(doc, row): &(u32, &Row)| {
                row.passes(filter, as_of, &self.tlds) && self.ranks_within(filter, doc)
            };
            let expected: Vec<u32> = (0..)
                .zip(&self.rows)
                .filter(passes)
                .map(|(doc, _)| doc)
                .skip(filter.offset as usize)
                .take(filter.limit as usize)
                .collect();
            let mut found = Vec::new();
            let visit = |doc| {
                found.push(doc);
                if found.len() as u32 == filter.limit {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            };
            self.listed.for_each(filter, day, self.beside(), visit).expect("readable");
            assert_eq!(found, expected, "{filter:?}");
            if filter.offset == 0 && filter.limit as usize > self.rows.len() {
                let matching = self.listed.matching(filter, day, self.beside());
                let matching = matching.expect("readable");
                let mut marked = Vec::new();
                docs_of(0, &matching, |doc| marked.push(doc));
                assert_eq!(marked, expected, "{filter:?}");
            }
            let mut page = Vec::new();
            let mut wanted = Wanted { from: 0, take: filter.limit as usize, counts: true };
            let beside = self.beside();
            let total = self.listed.page(filter, day, beside, wanted, &mut page);
            assert_eq!(page, expected, "{filter:?}");
            let every = (0..).zip(&self.rows).filter(passes).count();
            assert_eq!(total.expect("readable"), Some(every as u32), "{filter:?}");
            let len = self.rows.len() as u32;
            let from = [len / 3, len, PIECE_DOCS - 1, PIECE_DOCS, PIECE_DOCS + 1][every % 5];
            let expected = (0..).zip(&self.rows).filter(passes).map(|(doc, _)| doc);
            let after = expected.filter(|&doc| doc >= from).skip(filter.offset as usize);
            let after: Vec<u32> = after.take(wanted.take).collect();
            wanted.from = from;
            for counts in [true, false] {
                wanted.counts = counts;
                let mut page = Vec::new();
                let total = self.listed.page(filter, day, beside, wanted, &mut page);
                assert_eq!(page, after, "{filter:?} {wanted:?}");
                let every = counts.then_some(every as u32);
                assert_eq!(total.expect("readable"), every, "{filter:?} {wanted:?}");
            }
        }
    }

    /// Returns a text that some name contains, or at least could contain.
    fn text(made: &mut TestTables, rows: &[Row]) -> Option<Substring> {
        if rows.is_empty() || made.below(4) == 0 {
            return Substring::parse(&made.text(3)).ok();
        }
        let row = &rows[made.below(rows.len())];
        let form = row.alias.as_ref().filter(|_| made.below(2) == 0).unwrap_or(&row.name);
        let chars: Vec<char> = form.chars().collect();
        let first = made.below(chars.len());
        let most = if made.below(2) == 0 { 3 } else { chars.len() - first };
        let len = made.below(most.min(chars.len() - first)) + 1;
        Some(Substring::from_stored(chars[first..first + len].iter().collect()))
    }

    fn filter(made: &mut TestTables, rows: &[Row]) -> DropFilter {
        let mut common = Filter::default();
        if made.below(3) == 0 {
            common.min_dqs = Dqs::clamped([0, 1, 30, 31, 32, 99, 100][made.below(7)]);
        }
        if made.below(6) == 0 {
            common.max_dqs = Dqs::clamped([0, 20, 31, 99][made.below(4)]);
        }
        if made.below(3) == 0 {
            common.max_len = 1 + made.below(30) as u8;
        }
        if made.below(3) == 0 {
            let tlds = ["com", "museum", "xn--p1ai", "nosuch", "io", "com", "se", "ab"];
            common.tlds =
                (0..=made.below(4)).map(|_| tlds[made.below(tlds.len())].into()).collect();
        }
        if made.below(3) == 0 {
            common.adult = Adult::Include;
        }
        if made.below(8) == 0 {
            common.drop.max_suffix_rank = Some(SuffixRank::best(1 + made.below(30) as u32));
        }
        if made.below(8) == 0 {
            common.drop.expected_taken = ExpectedTaken::new(made.below(102) as u32);
        }
        DropFilter {
            common,
            view: View::EVERY[made.below(View::EVERY.len())],
            contains: if made.below(4) == 0 { None } else { text(made, rows) },
            sort: Sort::default(),
            sort_fact: None,
            after: None,
            limit: [1, 2, 20, 1_000_000][made.below(4)],
            offset: [0, 0, 1, 63, 64, 500, 3_000][made.below(7)],
        }
    }

    #[test]
    fn results_are_those_of_a_scan() {
        for (seed, names) in
            [(1, 0), (2, 1), (3, 2), (4, 64), (5, 130), (6, 700), (7, 6_000), (8, 30_000)]
        {
            let mut made = TestTables::new(seed);
            let built = build(made.table(names));
            let today = Day::from_raw(1_000).expect("a day");
            for catch_days in [0, 5] {
                let as_of = AsOf { today, catch_days };
                let (day, _) = DayStages::new(built.listed.dates(&[]), &built.tlds, as_of);
                let turns = if names > 10_000 { 400 } else { 1_500 };
                for _ in 0..turns {
                    built.check(&filter(&mut made, &built.rows), &day, as_of);
                }
            }
        }
    }

    #[test]
    fn samples_are_near_and_repeatable() {
        const SPARSE: Sampling =
            Sampling { counted: 0, words: 1, few: 1, blocks: 64, seek: 0, large: u32::MAX };
        let mut made = TestTables::new(8);
        let built = build(made.table(30_000));
        let as_of = AsOf { today: Day::from_raw(1_000).expect("a day"), catch_days: 5 };
        let (day, _) = DayStages::new(built.listed.dates(&[]), &built.tlds, as_of);
        let ask = |filter: &DropFilter, sampling: &Sampling| {
            let mut docs = Vec::new();
            let visit = |first, words: &[u64]| docs_of(first, words, |doc| docs.push(doc));
            let sample = built.listed.sample(filter, &day, built.beside(), sampling, visit);
            (sample.expect("readable"), docs)
        };
        let (mut counted, mut about, mut far) = (0, 0, 0);
        for _ in 0..400 {
            let filter = filter(&mut made, &built.rows);
            let (none, docs) = ask(&filter, &Sampling { counted: usize::MAX, ..SPARSE });
            assert!(none.is_none() && docs.is_empty(), "a short list is counted: {filter:?}");
            let (sample, mut docs) = ask(&filter, &SPARSE);
            assert_eq!((sample, docs.clone()), ask(&filter, &SPARSE), "{filter:?}");
            let Some(sample) = sample else {
                counted += 1;
                continue;
            };
            docs.sort_unstable();
            assert_eq!(docs.len() as u32, sample.matches, "{filter:?}");
            assert!(docs.is_sorted_by(|one, next| one < next), "no doc is visited twice");
            let passes = |&(doc, row): &(u32, &Row)| {
                row.passes(&filter, as_of, &built.tlds) && built.ranks_within(&filter, doc)
            };
            let truth = (0..).zip(&built.rows).filter(passes).count() as u32;
            // Three deviations of a sample of a quarter.
            let near = 3.0 * (f64::from(truth.max(9)) * 3.0).sqrt();
            far += u32::from(f64::from(sample.scaled(docs.len() as u32).abs_diff(truth)) > near);
            about += 1;
        }
        assert!(about > 100 && counted > 20 && far * 50 <= about, "{far} of {about}, {counted}");

        let mut text = filter(&mut made, &built.rows);
        (text.common, text.view) = (Filter::default(), View::All);
        for (contains, is_counted) in [(Some("an"), true), (Some(".c"), true), (None, false)] {
            text.contains = contains.and_then(|text| Substring::parse(text).ok());
            let (sample, _) = ask(&text, &Sampling { seek: 1 << 20, ..SPARSE });
            assert_eq!(sample.is_none(), is_counted, "{contains:?}");
        }
    }

    #[test]
    fn a_spent_budget_ends_the_walk_of_all_pieces() {
        let built = build(TestTables::new(8).table(30_000));
        assert!(built.listed.has_pieces(), "{} docs", built.listed.len());
        let as_of = AsOf { today: Day::from_raw(1_000).expect("a day"), catch_days: 5 };
        let (day, _) = DayStages::new(built.listed.dates(&[]), &built.tlds, as_of);
        let filter = DropFilter {
            common: Filter { max_len: 12, ..Filter::default() },
            view: View::All,
            contains: None,
            sort: Sort::default(),
            sort_fact: None,
            after: None,
            limit: 10,
            offset: 0,
        };
        let ask = || {
            let mut docs = Vec::new();
            let wanted = Wanted { from: 0, take: 10, counts: true };
            built.listed.page(&filter, &day, built.beside(), wanted, &mut docs)
        };
        let (ample, _waiting) = Budget::new(Duration::from_secs(600));
        assert!(ample.lend(None, ask).is_ok_and(|total| total.is_ok_and(|total| total > Some(10))));
        let (none, _waiting) = Budget::new(Duration::ZERO);
        assert_eq!(none.lend(None, ask).err(), Some(Spent::Time));
    }

    /// The Unicode form of its label ends with the head of the text, and the A-label form of its
    /// TLD starts with the tail: no form of the name contains both.
    #[test]
    fn forms_of_a_name_are_not_mixed() {
        let name = DomainName::parse("éböse.xn--p1ai").expect("a name");
        assert!(name.label().ends_with('e') && !name.label().ends_with("se"));
        let built = build(TestTables::new(3).table_of(vec![name]));
        assert_eq!(built.rows.len(), 1, "this seed drops it");
        let as_of = AsOf { today: Day::from_raw(1_000).expect("a day"), catch_days: 5 };
        let (day, _) = DayStages::new(built.listed.dates(&[]), &built.tlds, as_of);
        for text in ["se.xn", "e.xn", "se.р", "se.рф", "se.", "sé.xn"] {
            let filter = DropFilter {
                common: Filter::default(),
                view: View::All,
                contains: Substring::parse(text).ok(),
                sort: Sort::default(),
                sort_fact: None,
                after: None,
                limit: 10,
                offset: 0,
            };
            built.check(&filter, &day, as_of);
        }
    }

    #[test]
    fn columns_are_those_of_the_rows() {
        let built = build(TestTables::new(9).table(3_000));
        assert_eq!(built.listed.len() as usize, built.rows.len());
        for (doc, row) in (0..).zip(&built.rows) {
            assert_eq!(
                (built.listed.dqs(doc), built.listed.length(doc)),
                (dqs_of(row.key), length_of(row.key))
            );
            let (tld, rank) = (built.listed.tld(doc), built.listed.rank(doc));
            assert_eq!((tld, rank), (row.tld, row.rank));
            assert_eq!(built.listed.key(doc), row.key);
            assert_eq!(built.listed.drop_date(doc), row.drop_date);
            assert_eq!(built.listed.release(doc), row.release);
            assert_eq!(built.listed.first_batches().number(doc), row.first_batch);
            let label = built.records.label(doc);
            assert_eq!(format!("{}.{}", &*label, built.tlds.name(row.tld)), row.name);
        }
    }

    /// Checks every day around the boundaries, for TLDs with and without pending-delete days.
    #[test]
    fn stages_are_those_of_the_vocabulary() {
        let built = build(TestTables::new(10).table(2_000));
        let raw = |raw| Day::from_raw(raw).expect("a day");
        for catch_days in [0, 1, 5] {
            for today in 980..1_060 {
                let as_of = AsOf { today: raw(today), catch_days };
                let (day, codes) = DayStages::new(built.listed.dates(&[]), &built.tlds, as_of);
                let mut present = vec![0; built.tlds.len()];
                for (code, row) in codes.iter().zip(&built.rows) {
                    let pending = built.tlds.pending_days(row.tld);
                    let stage = Stage::on(as_of.today, raw(row.release), pending, catch_days);
                    let of_today = u8::from(row.drop_date == today) * crate::filter::DROPPED_TODAY;
                    assert_eq!(*code, View::Stage(stage).code_mask() | of_today);
                    present[usize::from(row.tld)] |= code;
                }
                assert_eq!(codes.len(), built.listed.dropped() as usize);
                assert!(codes[built.rows.len()..].iter().all(|&code| code == 0));
                for (doc, &code) in (0..).zip(&codes) {
                    assert_eq!(day.code(doc), code);
                }
                for view in View::EVERY {
                    let mut tlds: Vec<u16> = (0..present.len() as u16)
                        .filter(|&tld| present[usize::from(tld)] & view.code_mask() != 0)
                        .collect();
                    tlds.sort_by_key(|&tld| built.tlds.name(tld));
                    assert_eq!(day.tlds_in(view), tlds);
                }
            }
        }
    }
}
