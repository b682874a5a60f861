//! The corpus under measurement and what is true of every name in it, worked out without the
//! corpus and index code: what the answers of the service are compared with.

use std::collections::{BTreeMap, HashMap};

use dropdex::feeds::{Observation, Sighting};
use dropdex::scorer::{Base, Scorer, Scratch};
use dropdex::vocab::day::Day;
use dropdex::vocab::name::{DomainName, to_unicode};
use dropdex::vocab::stage::{Periods, Stage};
use rayon::prelude::*;

use crate::common::drops::Drops;
use crate::common::names::Corpus;

/// Every name in byte order, with what lists said of it.
pub struct Market {
    names: Corpus,
    /// All names, end to end: a scan over [`DomainName`]s would make each anew.
    text: String,
    /// `ends[at]` is where name `at` ends in `text`.
    ends: Vec<usize>,
    rows: Vec<Row>,
    tlds: Vec<String>,
    /// The Unicode forms of internationalised names, by place.
    unicode: BTreeMap<usize, String>,
}

/// What is known of one name.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Points of its score.
    pub dqs: u8,
    /// Characters of its label.
    pub length: u8,
    /// Octets of its label.
    label_len: u8,
    /// A place in [`Market::tlds`].
    pub tld: u16,
    /// Its newest drop.
    pub drop: Option<Dropped>,
    /// Held, as lists say.
    pub registered: bool,
}

/// A name's newest drop.
#[derive(Clone, Copy, Debug)]
pub struct Dropped {
    pub date: Day,
    /// The effective release (decisions.md §2).
    pub release: Day,
    /// Days before the release in which nobody can restore it.
    pub pending_delete_days: u16,
    pub registered_again: bool,
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
    /// What `drops` says of all `names`, scored for this corpus.
    pub fn new(names: Corpus, drops: &Drops) -> Market {
        let (tlds, numbers) = number_tlds(&names);
        let scored: Vec<(Base, Row)> = names
            .par_iter()
            .map_init(Scratch::default, |scratch, name| {
                (Scorer::shared().base(&name, scratch), row(name, drops, &numbers))
            })
            .collect();
        let mut market = Market {
            text: String::with_capacity(names.text_len()),
            ends: Vec::with_capacity(names.len()),
            rows: Vec::new(),
            tlds,
            unicode: BTreeMap::new(),
            names,
        };
        market.read_names();
        market.rows = market.with_spread(scored);
        market
    }

    /// How many names.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Octets of all names together.
    pub fn text_len(&self) -> usize {
        self.text.len()
    }

    /// Name number `at` in byte order.
    pub fn name(&self, at: usize) -> DomainName {
        self.names.get(at)
    }

    /// Its canonical text.
    pub fn text(&self, at: usize) -> &str {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[at]]
    }

    /// Its Unicode form, where that is another.
    pub fn unicode(&self, at: usize) -> Option<&str> {
        self.unicode.get(&at).map(String::as_str)
    }

    /// Every Unicode form with the place of its name, in the order of places.
    pub fn unicode_forms(&self) -> impl Iterator<Item = (usize, &str)> {
        self.unicode.iter().map(|(&at, text)| (at, text.as_str()))
    }

    /// What is known of it.
    pub fn row(&self, at: usize) -> Row {
        self.rows[at]
    }

    /// All rows, in byte order of their names.
    pub fn rows(&self) -> &[Row] {
        &self.rows
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

    fn read_names(&mut self) {
        for (at, name) in self.names.iter().enumerate() {
            self.text.push_str(name.as_str());
            self.ends.push(self.text.len());
            if name.is_idn() {
                let unicode = to_unicode(name.as_str());
                if unicode != name.as_str() {
                    self.unicode.insert(at, unicode.into_owned());
                }
            }
        }
    }

    /// Finishes the scores. In byte order the names of one label stand together.
    fn with_spread(&self, scored: Vec<(Base, Row)>) -> Vec<Row> {
        let same_label = |left: &usize, right: &usize| {
            let label = |at: usize| {
                let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
                &self.text[start..start + usize::from(scored[at].1.label_len)]
            };
            label(*left) == label(*right)
        };
        let places: Vec<usize> = (0..scored.len()).collect();
        let mut rows = Vec::with_capacity(scored.len());
        for run in places.chunk_by(same_label) {
            let spread = u32::try_from(run.len()).unwrap_or(u32::MAX);
            rows.extend(run.iter().map(|&at| {
                let (base, row) = scored[at];
                Row { dqs: base.with_spread(spread).points(), ..row }
            }));
        }
        rows
    }
}

fn number_tlds(names: &Corpus) -> (Vec<String>, HashMap<String, u16>) {
    let mut tlds: Vec<String> = names
        .par_iter()
        .fold(HashMap::new, |mut seen: HashMap<String, ()>, name| {
            if !seen.contains_key(name.tld()) {
                seen.insert(name.tld().to_owned(), ());
            }
            seen
        })
        .flat_map_iter(HashMap::into_keys)
        .collect();
    tlds.sort_unstable();
    tlds.dedup();
    let numbers = tlds.iter().cloned().zip(0..).collect();
    (tlds, numbers)
}

fn row(name: DomainName, drops: &Drops, numbers: &HashMap<String, u16>) -> Row {
    let Periods { pending_delete_days, .. } = Periods::of(name.tld());
    let mut row = Row {
        dqs: 0,
        length: name.length(),
        label_len: name.label_len(),
        tld: numbers[name.tld()],
        drop: None,
        registered: false,
    };
    let periods = Periods::of(name.tld());
    for Observation { sighting, .. } in drops.of(name) {
        match sighting {
            Sighting::Dropped { date, release, registered_again } => {
                if row.drop.is_none_or(|before| before.date < date) {
                    let release = periods.effective_release(date, release);
                    row.drop =
                        Some(Dropped { date, release, pending_delete_days, registered_again });
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
