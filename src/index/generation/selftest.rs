//! Self-test of a new generation. Results of queries with filters, substrings, prefixes and counts
//! are computed by a scan of the table from which the generation was built; the opened generation
//! must return the same results. Query texts are parts of names of the table, so that they match.
//!
//! One pass over the table evaluates all queries on all cores. The pass shares no query code with
//! [`Index`]: names are compared as text, one by one.

use std::collections::BTreeMap;

use compact_str::CompactString;
use fastrand::Rng;
use memchr::memmem;

use crate::columns::idn::alias_of;
use crate::columns::label::form_of;
use crate::columns::part::{Part, Section};
use crate::columns::rank_key::{dqs_of, is_adult, length_of, within_score};
use crate::columns::rank_table::Ties;
use crate::columns::table::Table;
use crate::columns::tlds::Tlds;
use crate::error::{BuildError, QueryError};
use crate::filter::{AsOf, Counting, DropFilter, Filter, SearchFilter, Sort, View};
use crate::query::index::Index;
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::limits::{CATCH_DAYS_DEFAULT, LABEL_CHARS_MAX, SEARCH_TOTAL_MAX};
use crate::vocab::stage::Stage;
use dropdex_query::filter::{Adult, LabelFilter};
use dropdex_query::text::{NamePrefix, Substring};

/// Number of queries of each kind.
const PER_KIND: usize = 12;
/// Maximum names times queries of a kind: larger tables get fewer queries.
const LOOKS_MAX: usize = 36_000_000;
/// Minimum queries of each kind.
const PER_KIND_MIN: usize = 3;
/// Rows compared per query.
const ROWS: u32 = 40;
/// Number of days between the two test days: enough for names to change stage.
const DAYS_BETWEEN: i32 = 33;

/// The queries with their expected results.
pub struct SelfTest(Vec<Check>);

struct Check {
    question: TestQuery,
    expected: Results,
}

/// A query and the day for which it is run.
#[derive(Clone, Debug)]
struct TestQuery {
    as_of: AsOf,
    what: Query,
}

#[derive(Clone, Debug)]
enum Query {
    Drops(DropFilter),
    Search(SearchFilter),
}

/// Expected or actual results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Results {
    total: u32,
    rows: Vec<String>,
}

/// The matches of a query in a part of the table. The best matches are kept as numbers, whose ascending
/// order is the order of the results.
#[derive(Default)]
struct ScanHits {
    total: u32,
    hits: Vec<u64>,
}

impl SelfTest {
    /// Chooses queries and computes their results by a scan of `table`.
    ///
    /// # Errors
    /// The table cannot be read.
    pub fn new(table: &Table) -> Result<SelfTest, BuildError> {
        const READ: [Section; 3] = [Section::Names, Section::Keys, Section::Drops];
        let questions = questions(table)?;
        let mut found: Vec<ScanHits> = questions.iter().map(|_| ScanHits::default()).collect();
        let look = |part: &Part| look(part, &table.tlds, &questions);
        table.parts.for_each(&READ, look, |_, here| {
            join(&mut found, here, &questions);
            Ok(())
        })?;
        let pages: Vec<(u32, Vec<u64>)> =
            questions.iter().zip(found).map(|(question, found)| question.page_of(found)).collect();
        let ordinals = pages.iter().flat_map(|(_, hits)| hits).map(|&hit| hit as u32);
        let names = table.names_of(&ordinals.collect())?;
        let asked = questions.into_iter().zip(pages).map(|(question, (total, hits))| {
            let expected = question.answer(total, &hits, &names);
            Check { question, expected }
        });
        Ok(SelfTest(asked.collect()))
    }

    /// Runs all queries against `index`.
    ///
    /// # Errors
    /// A result differs.
    pub fn ask(&self, index: &Index) -> Result<(), BuildError> {
        for Check { question, expected } in &self.0 {
            let got = question.ask(index).map_err(|err| BuildError::SelfTest(err.to_string()))?;
            if got != *expected {
                let what = format!(
                    "asked {question:?} it answers {} names from {:?}, a scan finds {} from {:?}",
                    got.total,
                    got.rows.first(),
                    expected.total,
                    expected.rows.first()
                );
                return Err(BuildError::SelfTest(what));
            }
        }
        Ok(())
    }
}

fn questions(table: &Table) -> Result<Vec<TestQuery>, BuildError> {
    if table.is_empty() {
        return Ok(Vec::new());
    }
    let names = table.len() as usize;
    let per_kind = (LOOKS_MAX / names).clamp(PER_KIND_MIN, PER_KIND);
    // The same table always gets the same queries.
    let mut draw = Rng::with_seed(names as u64);
    let sample: Vec<u32> = (0..3 * per_kind).map(|_| draw.u32(..table.len())).collect();
    let names = table.names_of(&sample.iter().copied().collect())?;
    let mut sample = sample.iter().filter_map(|ordinal| names.get(ordinal));
    let newest = table.drop_dates.last().copied().unwrap_or(Day::MIN);
    let mut questions = Vec::with_capacity(4 * per_kind);
    for at in 0..per_kind {
        let today = if at % 2 == 0 { newest } else { newest.plus(DAYS_BETWEEN) };
        let as_of = AsOf { today, catch_days: CATCH_DAYS_DEFAULT };
        let mut ask = |what| questions.push(TestQuery { as_of, what });
        ask(Query::Drops(drops(&mut draw, table, at, None)));
        let part = sample.next().map(|name| part_of(name, &mut draw, false));
        if let Some(Ok(part)) = part.map(|part| Substring::parse(&part)) {
            ask(Query::Drops(drops(&mut draw, table, at, Some(part))));
        }
        let start = sample.next().map(|name| part_of(name, &mut draw, true));
        if let Some(Ok(prefix)) = start.map(|start| NamePrefix::parse(&start)) {
            ask(Query::Search(SearchFilter {
                prefix: Some(prefix),
                common: common(&mut draw, table, at),
                view: if at % 3 == 0 { None } else { filter_all(view(&mut draw)) },
                limit: ROWS,
                offset: offset(&mut draw),
            }));
        }
        // Conditions on text anywhere in all names.
        let part = sample.next().map(|name| label_part_of(name, &mut draw, at % 2 == 0));
        if let Some(Ok(part)) = part.map(|part| Substring::parse(&part)) {
            let mut common = common(&mut draw, table, at);
            let label = &mut common.label;
            if at % 2 == 0 { &mut label.ends } else { &mut label.contains }.push(part);
            ask(Query::Search(SearchFilter {
                prefix: None,
                common,
                view: None,
                limit: ROWS,
                offset: 0,
            }));
        }
    }
    Ok(questions)
}

fn drops(draw: &mut Rng, table: &Table, at: usize, contains: Option<Substring>) -> DropFilter {
    DropFilter {
        common: common(draw, table, at),
        view: view(draw),
        contains,
        sort: Sort::default(),
        sort_fact: None,
        after: None,
        limit: ROWS,
        offset: offset(draw),
    }
}

fn view(draw: &mut Rng) -> View {
    View::EVERY[draw.usize(..View::EVERY.len())]
}

fn offset(draw: &mut Rng) -> u32 {
    [0, 0, 7, 300][draw.usize(..4)]
}

/// Every third query has no conditions; the others get up to three.
fn common(draw: &mut Rng, table: &Table, at: usize) -> Filter {
    let mut common = Filter::default();
    if at.is_multiple_of(3) {
        return common;
    }
    if draw.bool() {
        let tlds = table.tlds.names();
        let frequent = tlds.len().min(8);
        common.tlds = vec![CompactString::from(tlds[draw.usize(..frequent)].as_str())];
    }
    if draw.bool() {
        common.min_dqs = Dqs::new(draw.u8(..=Dqs::MAX.points())).unwrap_or(Dqs::MIN);
    }
    if draw.bool() {
        common.max_len = draw.u8(1..=LABEL_CHARS_MAX);
    }
    if draw.bool() {
        common.adult = Adult::Include;
    }
    common
}

/// Returns one to eight characters of a name, in either form.
fn part_of(name: &str, draw: &mut Rng, from_the_start: bool) -> String {
    let alias = alias_of(name).filter(|_| draw.bool());
    let name = alias.as_deref().unwrap_or(name);
    let chars: Vec<char> = name.chars().collect();
    let start = if from_the_start { 0 } else { draw.usize(..chars.len()) };
    let end = chars.len().min(start + 1 + draw.usize(..8));
    chars[start..end].iter().collect()
}

/// Returns three characters or more of the label of a name in Unicode, up to its end if `at_end`.
fn label_part_of(name: &str, draw: &mut Rng, at_end: bool) -> String {
    let label = form_of(name.split('.').next().unwrap_or_default()).into_owned();
    let chars: Vec<char> = label.chars().collect();
    let start = draw.usize(..chars.len().max(3) - 2);
    let end = if at_end { chars.len() } else { chars.len().min(start + 3 + draw.usize(..3)) };
    chars[start..end].iter().collect()
}

/// Returns the filter of a search. By default, the filter accepts all names.
fn filter_all(view: View) -> Option<View> {
    Some(view).filter(|view| *view != View::All)
}

/// A name, as the scan sees it.
struct ScannedName<'a> {
    name: &'a str,
    /// Unicode form, if it differs.
    alias: Option<&'a str>,
    label: &'a str,
    key: u16,
    /// Unrounded score of a drop; 0 for other names.
    rank: u16,
    tld: &'a str,
    pending_days: u16,
    /// Date and effective release of the latest drop, unless the name was registered again after it.
    drop: Option<(Day, Day)>,
}

/// Scans one part of the table for all queries.
fn look(part: &Part, tlds: &Tlds, questions: &[TestQuery]) -> Vec<ScanHits> {
    let mut found: Vec<ScanHits> = questions.iter().map(|_| ScanHits::default()).collect();
    let mut drops = part.drops.at.iter().enumerate().peekable();
    for at in 0..part.len() {
        let drop = drops.next_if(|(_, place)| **place as usize == at).map(|(drop, _)| drop);
        let Ok(name) = std::str::from_utf8(part.name(at)) else { continue };
        let alias = alias_of(name);
        let tld = part.tld[at];
        let listed = drop.filter(|&drop| !part.drops.is_again(drop));
        let day = |raw: u16| Day::from_raw(raw);
        let seen = ScannedName {
            name,
            alias: alias.as_deref(),
            label: &name[..usize::from(part.label_len[at])],
            key: part.key[at],
            rank: drop.map_or(0, |drop| part.drops.rank[drop]),
            tld: tlds.name(tld),
            pending_days: tlds.pending_days(tld),
            drop: listed
                .and_then(|drop| day(part.drops.date[drop]).zip(day(part.drops.release[drop]))),
        };
        for (question, found) in questions.iter().zip(&mut found) {
            if let Some(part_match) = question.finds(&seen) {
                let ordinal = u64::from(part.first) + at as u64;
                let hit = u64::from(part_match) << 63 | question.order(&seen) << 32 | ordinal;
                found.add(hit, question.wanted());
            }
        }
    }
    found
}

/// Adds the matches of another part.
fn join(all: &mut [ScanHits], more: Vec<ScanHits>, questions: &[TestQuery]) {
    for ((all, more), question) in all.iter_mut().zip(more).zip(questions) {
        all.total += more.total;
        all.hits.extend(more.hits);
        Ties::First.keep_best(&mut all.hits, 0, question.wanted());
    }
}

impl ScanHits {
    fn add(&mut self, hit: u64, wanted: usize) {
        self.total += 1;
        self.hits.push(hit);
        if self.hits.len() >= 4 * wanted {
            Ties::First.keep_best(&mut self.hits, 0, wanted);
        }
    }
}

impl TestQuery {
    fn page(&self) -> (u32, u32) {
        match &self.what {
            Query::Drops(filter) => (filter.offset, filter.limit),
            Query::Search(filter) => (filter.offset, filter.limit),
        }
    }

    /// Returns the number of rows up to the end of the page.
    fn wanted(&self) -> usize {
        let (offset, limit) = self.page();
        (offset + limit) as usize
    }

    /// Returns the place of a name in 31 bits: score, unrounded score (only in lists of drops),
    /// adult names last (only in searches), and length.
    fn order(&self, seen: &ScannedName<'_>) -> u64 {
        let rank = if matches!(self.what, Query::Drops(_)) { seen.rank } else { 0 };
        let worse = u64::from(u16::MAX - rank);
        let within = match self.what {
            Query::Drops(_) => length_of(seen.key),
            Query::Search(_) => within_score(seen.key),
        };
        u64::from(seen.key >> 8) << 24 | worse << 8 | u64::from(within)
    }

    /// Returns `Some` if a name matches, with `true` for a partial match, which sorts after whole
    /// matches.
    fn finds(&self, seen: &ScannedName<'_>) -> Option<bool> {
        match &self.what {
            Query::Drops(filter) => {
                let contains = |needle: &Substring| {
                    has_text(seen.name, needle)
                        || seen.alias.is_some_and(|alias| has_text(alias, needle))
                };
                let passes = self.is_in(filter.view, seen)
                    && passes(&filter.common, seen)
                    && filter.contains.as_ref().is_none_or(contains);
                passes.then_some(false)
            }
            Query::Search(filter) => {
                let prefix = filter.prefix.as_ref().map_or("", NamePrefix::as_str);
                // Comparing no bytes at the address of a missing prefix takes processors 80 ns.
                let starts = prefix.is_empty()
                    || seen.name.starts_with(prefix)
                    || seen.alias.is_some_and(|alias| alias.starts_with(prefix));
                let passes = starts
                    && passes(&filter.common, seen)
                    && filter.view.is_none_or(|view| self.is_in(view, seen));
                passes.then(|| !seen.is_whole(prefix))
            }
        }
    }

    fn is_in(&self, view: View, seen: &ScannedName<'_>) -> bool {
        let Some((date, release)) = seen.drop else { return false };
        let AsOf { today, catch_days } = self.as_of;
        let stage = Stage::on(today, release, seen.pending_days, catch_days);
        match view {
            View::All => true,
            View::Today => date == today,
            View::Active => stage != Stage::Released,
            View::Stage(wanted) => stage == wanted,
            View::Stages(wanted) => wanted.contains(stage),
        }
    }

    /// Returns the number of matches, and the matches on the page in order.
    fn page_of(&self, found: ScanHits) -> (u32, Vec<u64>) {
        let (offset, limit) = self.page();
        let ScanHits { mut total, mut hits } = found;
        hits.sort_unstable();
        if matches!(self.what, Query::Search(_)) {
            total = total.min(SEARCH_TOTAL_MAX);
        }
        (total, hits.into_iter().skip(offset as usize).take(limit as usize).collect())
    }

    fn answer(&self, total: u32, hits: &[u64], names: &BTreeMap<u32, String>) -> Results {
        let rows = hits.iter().map(|&hit| {
            let key = (hit >> 48 & 0x7f00 | hit >> 32 & 0xff) as u16;
            let dqs = matches!(self.what, Query::Drops(_)).then(|| dqs_of(key));
            row(&names[&(hit as u32)], length_of(key), dqs)
        });
        Results { total, rows: rows.collect() }
    }

    fn ask(&self, index: &Index) -> Result<Results, QueryError> {
        let mut rows = Vec::new();
        let total = match &self.what {
            Query::Drops(filter) => {
                let page = index.drops(filter, self.as_of, Counting::Exact)?;
                page.for_each(|shown| rows.push(row(shown.name, shown.length, Some(shown.dqs))));
                index.count_drops(filter, self.as_of)?
            }
            Query::Search(filter) => {
                let page = index.search(filter, self.as_of);
                page.for_each(|shown| rows.push(row(shown.domain, shown.length, None)));
                page.total
            }
        };
        Ok(Results { total, rows })
    }
}

impl ScannedName<'_> {
    fn is_whole(&self, text: &str) -> bool {
        let is_it = |name: &str| name == text || name.split('.').next() == Some(text);
        self.label == text || is_it(self.name) || self.alias.is_some_and(is_it)
    }
}

fn passes(common: &Filter, seen: &ScannedName<'_>) -> bool {
    let (dqs, length) = (dqs_of(seen.key), length_of(seen.key));
    let LabelFilter { contains, ends, .. } = &common.label;
    let has_texts = || {
        let form = form_of(seen.label);
        ends.iter().all(|text| form.ends_with(text.as_str()))
            && contains.iter().all(|text| has_text(&form, text))
    };
    (common.tlds.is_empty() || common.tlds.iter().any(|tld| tld == seen.tld))
        && dqs >= common.min_dqs
        && length <= common.max_len
        && (common.adult == Adult::Include || !is_adult(seen.key))
        && (contains.is_empty() && ends.is_empty() || has_texts())
}

/// Whether a text is in a name. `str::contains` takes several times as long on short texts.
fn has_text(name: &str, text: &Substring) -> bool {
    memmem::find(name.as_bytes(), text.as_str().as_bytes()).is_some()
}

fn row(name: &str, length: u8, dqs: Option<Dqs>) -> String {
    format!("{name} {length} {}", dqs.map_or(0, |dqs| dqs.points()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::fixtures::TestTables;

    #[test]
    fn test_queries_have_matches() {
        let mut table = TestTables::new(7).table(5_000);
        table.drop_dates = (990..1_010).filter_map(Day::from_raw).collect();
        let trial = SelfTest::new(&table).expect("in memory");
        assert_eq!(trial.0.len(), 4 * PER_KIND);
        let answered = trial.0.iter().filter(|asked| !asked.expected.rows.is_empty()).count();
        assert!(answered >= PER_KIND, "{answered}");
    }
}
