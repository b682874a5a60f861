//! The corpus under measurement and the facts of every name in it. The facts are computed without
//! the code of corpus and index, for comparison with the service's responses.
//!
//! Names are stored as one text, and rows have 12 bytes, so 100 million names take 3.5 GB.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use dropdex::feeds::{Observation, Sighting};
use dropdex::scorer::{Coverage, Features, Scorer, Scratch, Spread, StoredScore};
use dropdex::vocab::day::Day;
use dropdex::vocab::language::LanguageCode;
use dropdex::vocab::name::{DomainName, is_a_label, to_unicode};
use dropdex::vocab::stage::{Periods, Stage};
use rayon::prelude::*;
use serde::Serialize;

use crate::common::drops::Drops;
use crate::common::names::Corpus;

/// Names per task.
const TASK: usize = 1 << 16;

/// Every name in byte order, with the facts that lists report about it.
#[derive(Default)]
pub struct Market {
    names: Corpus,
    rows: Vec<Row>,
    tlds: Vec<String>,
    /// Days of pending delete, by the number of the TLD.
    pending: Vec<u16>,
    /// The Unicode forms of internationalised names, in the order of their places.
    unicode: Vec<(u32, Box<str>)>,
    /// Facts of the names that dropped, in the order of their places.
    facts: Vec<(u32, Facts)>,
}

/// Facts that filters use in addition to a [`Row`], as numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Column {
    Length,
    Words,
    /// In the order of `Kind::ALL`.
    Kind,
    /// In the order of `LanguageCode::ALL`, from 1.
    Language,
    Capped,
    /// None, some, only.
    Digits,
    Hyphens,
    Idn,
    OtherTlds,
    Drops,
    DropDate,
    Release,
}

/// Number of columns.
pub const COLUMNS: usize = 12;

/// Values of a dropped name.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// The unrounded score, which orders names of the same score.
    pub rank: u16,
    /// By column.
    pub values: [u16; COLUMNS],
}

/// Which lists may hold a name (data/docs/queries.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    Every,
    /// Those that include adult names; the queries of the bench do not.
    Adult,
    /// None: the name joins minors and sex.
    Nowhere,
}

/// Facts of one name.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Points of its score.
    pub dqs: u8,
    /// Characters of its label.
    pub length: u8,
    /// A place in [`Market::tlds`].
    pub tld: u16,
    /// The day and the effective release (data/docs/api.md, Drops and stages) of its newest drop;
    /// either both are set or neither is.
    date: Option<Day>,
    release: Option<Day>,
    /// Whether the name was registered again after that drop.
    registered_again: bool,
    /// Whether lists report the name as registered.
    pub registered: bool,
    /// Whether the Unicode form of the name differs.
    pub has_unicode: bool,
    pub listing: Listing,
}

/// A name's newest drop.
#[derive(Clone, Copy, Debug)]
pub struct Dropped {
    pub date: Day,
    /// The effective release (data/docs/api.md, Drops and stages).
    pub release: Day,
    /// Days before the release in which the name can no longer be restored.
    pub pending_delete_days: u16,
    pub registered_again: bool,
}

impl Row {
    /// Whether the name ever dropped.
    pub fn is_dropped(&self) -> bool {
        self.date.is_some()
    }
}

impl Dropped {
    /// Returns the stage on `today`; `None` for a name that was registered again.
    pub fn stage(&self, today: Day, catch_days: u16) -> Option<Stage> {
        let stage = || Stage::on(today, self.release, self.pending_delete_days, catch_days);
        (!self.registered_again).then(stage)
    }

    /// Returns the first day of pending delete.
    pub fn pending_from(&self) -> Day {
        self.release.plus(-i32::from(self.pending_delete_days))
    }
}

impl Market {
    /// Generates the observations of all `names` from `drops`, scored for this corpus.
    pub fn new(names: Corpus, drops: &Drops) -> Market {
        let tlds = tlds_of(&names);
        let numbers: HashMap<&str, u16> = tlds.iter().map(String::as_str).zip(0..).collect();
        let open: Vec<bool> = tlds.iter().map(|tld| Scorer::shared().is_open(tld)).collect();
        let is_open = |name: &DomainName| open[usize::from(numbers[name.tld()])];
        let coverage = coverage_of(&names, is_open);
        let maker = RowMaker { names: &names, numbers: &numbers, open: &open, coverage, drops };
        let mut rows = Vec::with_capacity(names.len());
        let (mut unicode, mut facts) = (Vec::new(), Vec::new());
        // A few tasks at a time, so that little intermediate data is in memory.
        for tasks in tasks(&names).chunks(64) {
            let made: Vec<_> = tasks
                .par_iter()
                .map(|task| maker.rows(task.clone(), &mut Scratch::default()))
                .collect();
            for (some_rows, forms, some_facts) in made {
                rows.extend(some_rows);
                unicode.extend(forms);
                facts.extend(some_facts);
            }
        }
        let pending = tlds.iter().map(|tld| Periods::for_tld(tld).pending_delete_days).collect();
        Market { names, rows, tlds, pending, unicode, facts }
    }

    /// Returns the number of names.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns the number of names that an index holds.
    pub fn indexed(&self) -> usize {
        self.rows.iter().filter(|row| row.listing != Listing::Nowhere).count()
    }

    /// Returns the total bytes of all names.
    pub fn text_len(&self) -> usize {
        self.names.text_len()
    }

    /// Returns name number `at` in byte order.
    pub fn name(&self, at: usize) -> DomainName {
        self.names.get(at)
    }

    /// Returns the canonical text of the name.
    pub fn text(&self, at: usize) -> &str {
        self.names.text(at).0
    }

    /// Returns the Unicode form of the name, if it differs.
    pub fn unicode(&self, at: usize) -> Option<&str> {
        if !self.rows[at].has_unicode {
            return None;
        }
        let found = self.unicode.binary_search_by_key(&(at as u32), |&(place, _)| place);
        found.ok().map(|found| &*self.unicode[found].1)
    }

    /// Returns the label in Unicode form.
    pub fn label(&self, at: usize) -> &str {
        let name = self.unicode(at).unwrap_or_else(|| self.text(at));
        name.split_once('.').map_or(name, |(label, _)| label)
    }

    /// Returns the facts of a name that dropped.
    pub fn facts(&self, at: usize) -> Option<&Facts> {
        let found = self.facts.binary_search_by_key(&(at as u32), |&(place, _)| place);
        found.ok().map(|found| &self.facts[found].1)
    }

    /// Returns the facts of each name that dropped, in the order of names.
    pub fn all_facts(&self) -> &[(u32, Facts)] {
        &self.facts
    }

    /// Returns its row.
    pub fn row(&self, at: usize) -> &Row {
        &self.rows[at]
    }

    /// Returns all rows, in byte order of their names.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Returns the newest drop in `row`.
    pub fn dropped(&self, row: &Row) -> Option<Dropped> {
        let &Row { date, release, registered_again, tld, .. } = row;
        let pending_delete_days = self.pending[usize::from(tld)];
        Some(Dropped { date: date?, release: release?, pending_delete_days, registered_again })
    }

    /// Returns every TLD, sorted.
    pub fn tlds(&self) -> &[String] {
        &self.tlds
    }

    /// Returns the TLD of name number `at`.
    pub fn tld(&self, at: usize) -> &str {
        &self.tlds[usize::from(self.rows[at].tld)]
    }

    /// Returns the TLD with the fewest rows that `counts` accepts (the first of several), or `None`
    /// if `counts` accepts no row.
    pub fn rarest_tld(&self, counts: impl Fn(&Row) -> bool) -> Option<&str> {
        let mut found = vec![0_usize; self.tlds.len()];
        for row in self.rows.iter().filter(|row| counts(row)) {
            found[usize::from(row.tld)] += 1;
        }
        let present = found.iter().enumerate().filter(|(_, found)| **found > 0);
        present.min_by_key(|(_, found)| **found).map(|(tld, _)| self.tlds[tld].as_str())
    }
}

fn label(names: &Corpus, at: usize) -> &str {
    let (text, label_len) = names.text(at);
    &text[..label_len]
}

fn tlds_of(names: &Corpus) -> Vec<String> {
    let places: Vec<usize> = (0..names.len()).step_by(TASK).collect();
    let found = places.par_iter().map(|&first| {
        let places = first..(first + TASK).min(names.len());
        let tld = |at| {
            let (text, label_len) = names.text(at);
            &text[label_len + 1..]
        };
        places.map(tld).collect::<HashSet<&str>>()
    });
    let all: HashSet<&str> = found.reduce(HashSet::new, |mut all, more| {
        all.extend(more);
        all
    });
    let mut tlds: Vec<String> = all.into_iter().map(str::to_owned).collect();
    tlds.sort_unstable();
    tlds
}

/// Returns how much of the market the names cover, by labels that many TLDs have.
fn coverage_of(names: &Corpus, is_open: impl Fn(&DomainName) -> bool + Sync) -> Coverage {
    let probes: HashSet<&str> = Coverage::probes().collect();
    let places = (0..names.len()).into_par_iter();
    let frequent = places.filter(|&at| probes.contains(label(names, at)));
    Coverage::from_found(frequent.filter(|&at| is_open(&names.get(at))).count() as u64)
}

/// Returns all places, cut between labels: in byte order, the names of one label are adjacent.
fn tasks(names: &Corpus) -> Vec<Range<usize>> {
    let mut tasks = Vec::new();
    let mut start = 0;
    while start < names.len() {
        let mut end = (start + TASK).min(names.len());
        while end < names.len() && label(names, end) == label(names, end - 1) {
            end += 1;
        }
        tasks.push(start..end);
        start = end;
    }
    tasks
}

struct RowMaker<'a> {
    names: &'a Corpus,
    numbers: &'a HashMap<&'a str, u16>,
    /// Whether each TLD is open to the public, by number.
    open: &'a [bool],
    coverage: Coverage,
    drops: &'a Drops,
}

/// Rows, the Unicode forms of their names where they differ, and facts of those that dropped.
type Made = (Vec<Row>, Vec<(u32, Box<str>)>, Vec<(u32, Facts)>);

impl RowMaker<'_> {
    /// Computes the rows of whole labels.
    fn rows(&self, places: Range<usize>, scratch: &mut Scratch) -> Made {
        let (mut rows, mut forms) = (Vec::with_capacity(places.len()), Vec::new());
        let mut facts = Vec::new();
        let mut start = places.start;
        while start < places.end {
            let same = |&at: &usize| label(self.names, at) == label(self.names, start);
            let end = start + (start..places.end).take_while(same).count();
            let spread = u32::try_from(end - start).unwrap_or(u32::MAX);
            let is_open = |at| self.open[usize::from(self.numbers[self.names.get(at).tld()])];
            let open = (start..end).filter(|&at| is_open(at)).count();
            for at in start..end {
                let name = self.names.get(at);
                // The name's own TLD counts, whether or not it is open. A record holds a number up
                // to 254; above that, all TLDs count.
                let tlds = open + usize::from(!is_open(at));
                let tlds = if tlds < 255 { tlds } else { end - start } as u32;
                let known = Spread { tlds, coverage: self.coverage };
                let base = Scorer::shared().base(&name, scratch);
                let grade = base.with_spread(known);
                let listing = match (base.is_prohibited(), base.is_adult()) {
                    (true, _) => Listing::Nowhere,
                    (false, true) => Listing::Adult,
                    (false, false) => Listing::Every,
                };
                let form = unicode_form(&name);
                let (row, drops) = self.row(name.clone());
                if row.is_dropped() {
                    let values = values_of(&name, &row, spread, drops, scratch);
                    facts.push((at as u32, Facts { rank: grade.rank, values }));
                }
                let (dqs, has_unicode) = (grade.dqs.points(), form.is_some());
                rows.push(Row { dqs, has_unicode, listing, ..row });
                forms.extend(form.map(|form| (at as u32, form)));
            }
            start = end;
        }
        (rows, forms, facts)
    }

    /// Computes everything except the score, and the number of drops.
    fn row(&self, name: DomainName) -> (Row, u16) {
        let mut row = Row {
            dqs: 0,
            length: name.length(),
            tld: self.numbers[name.tld()],
            date: None,
            release: None,
            registered_again: false,
            registered: false,
            has_unicode: false,
            listing: Listing::Every,
        };
        let periods = Periods::for_tld(name.tld());
        let mut drops = HashSet::new();
        for Observation { sighting, .. } in self.drops.of(name) {
            match sighting {
                Sighting::Dropped { date, release, registered_again } => {
                    drops.insert(date);
                    if row.date.is_none_or(|before| before < date) {
                        let release =
                            Some(periods.effective_release(date, release.map(|it| it.day)));
                        row = Row { date: Some(date), release, registered_again, ..row };
                    }
                }
                Sighting::Known { registered } => row.registered = registered,
                Sighting::Registered { .. } | Sighting::Released { .. } => {
                    unreachable!("the generator makes no lists of these")
                }
            }
        }
        (row, drops.len() as u16)
    }
}

/// Returns the values of a dropped name whose label is in `spread` TLDs.
fn values_of(
    name: &DomainName,
    row: &Row,
    spread: u32,
    drops: u16,
    scratch: &mut Scratch,
) -> [u16; COLUMNS] {
    let known = StoredScore {
        label: name.label(),
        tld: name.tld(),
        spread: Spread::UNKNOWN,
        features: Features::NONE,
    };
    let traits = Scorer::shared().traits(known, scratch);
    let form = name.unicode();
    let label = form.split('.').next().unwrap_or_default();
    let digits = label.bytes().filter(u8::is_ascii_digit).count();
    let raw = |day: Option<Day>| day.map_or(0, Day::raw);
    let language = |code| LanguageCode::ALL.iter().position(|&known| known == code);
    [
        row.length.into(),
        traits.words.min(15).into(),
        traits.kind as u16,
        traits.language.and_then(language).map_or(0, |at| at as u16 + 1),
        traits.capped.into(),
        u16::from(digits > 0) + u16::from(digits == label.len()),
        label.contains('-').into(),
        is_a_label(name.label()).into(),
        spread as u16 - 1,
        drops,
        raw(row.date),
        raw(row.release),
    ]
}

fn unicode_form(name: &DomainName) -> Option<Box<str>> {
    // A name without an A-label has no other form, and this check detects that faster.
    if !name.as_str().split('.').any(is_a_label) {
        return None;
    }
    let form = to_unicode(name.as_str());
    (form != name.as_str()).then(|| form.into())
}
