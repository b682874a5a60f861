//! The corpus under measurement and the facts of every name in it, computed without the
//! corpus and index code: what the answers of the service are compared with.
//!
//! Names are one text, rows are 12 bytes: 100 million names take 3.5 GB.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use dropdex::feeds::{Observation, Sighting};
use dropdex::scorer::{Scorer, Scratch, Spread};
use dropdex::vocab::day::Day;
use dropdex::vocab::name::{DomainName, is_a_label, to_unicode};
use dropdex::vocab::stage::{Periods, Stage};
use rayon::prelude::*;

use crate::common::drops::Drops;
use crate::common::names::Corpus;

/// Names that one task looks at.
const TASK: usize = 1 << 16;

/// Every name in byte order, with what lists said of it.
pub struct Market {
    names: Corpus,
    rows: Vec<Row>,
    tlds: Vec<String>,
    /// Days of pending delete, by the number of the TLD.
    pending: Vec<u16>,
    /// The Unicode forms of internationalised names, in the order of their places.
    unicode: Vec<(u32, Box<str>)>,
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
    /// The day and the effective release (data/docs/api.md, Drops and stages) of its newest drop: both or neither.
    date: Option<Day>,
    release: Option<Day>,
    /// After that drop.
    registered_again: bool,
    /// Held, as lists say.
    pub registered: bool,
    /// It has a Unicode form that differs.
    pub has_unicode: bool,
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
    /// The stage on `today`; `None` for a name that is registered again.
    pub fn stage(&self, today: Day, catch_days: u16) -> Option<Stage> {
        let stage = || Stage::on(today, self.release, self.pending_delete_days, catch_days);
        (!self.registered_again).then(stage)
    }

    /// The first day of pending delete.
    pub fn pending_from(&self) -> Day {
        self.release.plus(-i32::from(self.pending_delete_days))
    }
}

impl Market {
    /// Observations of all `names` by `drops`, scored for this corpus.
    pub fn new(names: Corpus, drops: &Drops) -> Market {
        let tlds = tlds_of(&names);
        let numbers: HashMap<&str, u16> = tlds.iter().map(String::as_str).zip(0..).collect();
        let maker = RowMaker { names: &names, numbers: &numbers, drops };
        let mut rows = Vec::with_capacity(names.len());
        let mut unicode = Vec::new();
        // A few tasks at a time: what is made and not yet kept stays small.
        for tasks in tasks(&names).chunks(64) {
            let made: Vec<_> = tasks
                .par_iter()
                .map(|task| maker.rows(task.clone(), &mut Scratch::default()))
                .collect();
            for (some_rows, forms) in made {
                rows.extend(some_rows);
                unicode.extend(forms);
            }
        }
        let pending = tlds.iter().map(|tld| Periods::for_tld(tld).pending_delete_days).collect();
        Market { names, rows, tlds, pending, unicode }
    }

    /// How many names.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Total bytes of all names.
    pub fn text_len(&self) -> usize {
        self.names.text_len()
    }

    /// Name number `at` in byte order.
    pub fn name(&self, at: usize) -> DomainName {
        self.names.get(at)
    }

    /// Its canonical text.
    pub fn text(&self, at: usize) -> &str {
        self.names.text(at).0
    }

    /// Its Unicode form, where that is another.
    pub fn unicode(&self, at: usize) -> Option<&str> {
        if !self.rows[at].has_unicode {
            return None;
        }
        let found = self.unicode.binary_search_by_key(&(at as u32), |&(place, _)| place);
        found.ok().map(|found| &*self.unicode[found].1)
    }

    /// Its facts.
    pub fn row(&self, at: usize) -> &Row {
        &self.rows[at]
    }

    /// All rows, in byte order of their names.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The newest drop in `row`.
    pub fn dropped(&self, row: &Row) -> Option<Dropped> {
        let &Row { date, release, registered_again, tld, .. } = row;
        let pending_delete_days = self.pending[usize::from(tld)];
        Some(Dropped { date: date?, release: release?, pending_delete_days, registered_again })
    }

    /// Every TLD, sorted.
    pub fn tlds(&self) -> &[String] {
        &self.tlds
    }

    /// The TLD of name number `at`.
    pub fn tld(&self, at: usize) -> &str {
        &self.tlds[usize::from(self.rows[at].tld)]
    }

    /// Of the TLDs of the rows that `counts` lets through, the one with the fewest; the first of
    /// equals. `None` when no row is let through.
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

/// All places, cut where a label ends: in byte order the names of one label stand together.
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
    drops: &'a Drops,
}

/// Some rows, and the Unicode forms of their names where they differ.
type Made = (Vec<Row>, Vec<(u32, Box<str>)>);

impl RowMaker<'_> {
    /// The rows of whole labels.
    fn rows(&self, places: Range<usize>, scratch: &mut Scratch) -> Made {
        let (mut rows, mut forms) = (Vec::with_capacity(places.len()), Vec::new());
        let mut start = places.start;
        while start < places.end {
            let same = |&at: &usize| label(self.names, at) == label(self.names, start);
            let end = start + (start..places.end).take_while(same).count();
            let spread = u32::try_from(end - start).unwrap_or(u32::MAX);
            for at in start..end {
                let name = self.names.get(at);
                let dqs = Scorer::shared()
                    .base(&name, scratch)
                    .with_spread(Spread::of(spread))
                    .dqs
                    .points();
                let form = unicode_form(&name);
                rows.push(Row { dqs, has_unicode: form.is_some(), ..self.row(name) });
                forms.extend(form.map(|form| (at as u32, form)));
            }
            start = end;
        }
        (rows, forms)
    }

    /// All but the score.
    fn row(&self, name: DomainName) -> Row {
        let mut row = Row {
            dqs: 0,
            length: name.length(),
            tld: self.numbers[name.tld()],
            date: None,
            release: None,
            registered_again: false,
            registered: false,
            has_unicode: false,
        };
        let periods = Periods::for_tld(name.tld());
        for Observation { sighting, .. } in self.drops.of(name) {
            match sighting {
                Sighting::Dropped { date, release, registered_again } => {
                    if row.date.is_none_or(|before| before < date) {
                        let release = Some(periods.effective_release(date, release));
                        row = Row { date: Some(date), release, registered_again, ..row };
                    }
                }
                Sighting::Known { registered } => row.registered = registered,
                Sighting::Registered { .. } => {
                    unreachable!("the generator makes no negative lists")
                }
            }
        }
        row
    }
}

fn unicode_form(name: &DomainName) -> Option<Box<str>> {
    // Cheaper than asking the name, and a name without an A-label has no other form.
    if !name.as_str().split('.').any(is_a_label) {
        return None;
    }
    let form = to_unicode(name.as_str());
    (form != name.as_str()).then(|| form.into())
}
