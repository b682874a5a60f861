//! Real and generated names, in indexes of one and of two layers, with and without trigrams of all
//! names.

use std::cmp::Reverse;
use std::path::Path;

use chrono::{DateTime, Utc};
use dropdex::corpus::Corpus;
use dropdex::corpus::ingest::Source;
use dropdex::feeds::{Observation, Row, Sighting};
use dropdex::index::Index;
use dropdex::index::filter::AsOf;
use dropdex::index::generation::base::ExtendRule;
use dropdex::index::generation::build::{BuildSettings, rebuild, update};
use dropdex::index::generation::open::open_current;
use dropdex::index::query::index::Contains;
use dropdex::scorer::{Scorer, Scratch};
use dropdex::vocab::clock::Clock;
use dropdex::vocab::limits::CATCH_DAYS_DEFAULT;
use dropdex::vocab::name::{DomainName, to_unicode};
use rayon::prelude::*;

use crate::common::runs::{figure, say};
use crate::generator::common::drops::{Drops, Mix};
use crate::generator::common::names::RealNames;

const TODAY: &str = "2026-11-20";
/// Minimum length of labels that only the later list has. Short ones show how much of the market the
/// corpus has, and a change of that leads to a new index of one layer.
const LATER_LEN: u8 = 14;

/// A name as the scan sees it.
pub struct Name {
    pub name: DomainName,
    /// Label in its Unicode form.
    pub unicode: String,
    pub chars: Vec<char>,
    /// The [`bit`] of each character.
    pub chars_used: u64,
    pub dqs: u8,
    /// Whether the name is on the drop list.
    pub dropped: bool,
}

impl Name {
    fn new(name: DomainName, index: &Index, as_of: AsOf) -> Name {
        let facts = index.facts(&name, as_of).expect("every name is in the index");
        let unicode = to_unicode(name.label()).into_owned();
        let chars: Vec<char> = unicode.chars().collect();
        let chars_used = chars.iter().fold(0, |all, &char| all | bit(char));
        let (dqs, dropped) = (facts.dqs.points(), facts.stage.is_some());
        Name { name, unicode, chars, chars_used, dqs, dropped }
    }

    /// Returns the label, in A-label form.
    pub fn label(&self) -> &str {
        self.name.label()
    }
}

/// The bit of all characters outside ASCII.
pub const OTHER: u64 = 1 << 37;

/// Returns the bit of a character.
pub const fn bit(char: char) -> u64 {
    match char {
        'a'..='z' => 1 << (char as u32 - 'a' as u32),
        '0'..='9' => 1 << (26 + char as u32 - '0' as u32),
        '-' => 1 << 36,
        _ => OTHER,
    }
}

/// The names, and indexes of them.
pub struct Indexes {
    /// All names in the order of search results.
    pub names: Vec<Name>,
    /// One layer, with trigrams of all names.
    pub whole: Index,
    /// Two layers, both with trigrams of all names.
    pub extended: Index,
    /// One layer, without trigrams of names.
    pub without: Index,
    pub as_of: AsOf,
}

impl Indexes {
    /// Generates the names and builds the indexes.
    pub fn make(seed: u64) -> Indexes {
        let as_of = AsOf { today: TODAY.parse().expect("a day"), catch_days: CATCH_DAYS_DEFAULT };
        let now = Clock::pinned_to(as_of.today).now();
        let real = RealNames::read(&RealNames::sample_path()).expect("the sample is readable");
        let count = figure(50_000, 300_000);
        let names = real.extend(count, seed).expect("the sample suffices");
        // Lists leave these names out; `oracle` and `adult` test that.
        let mut scratch = Scratch::default();
        let mut is_listed = |name: &DomainName| {
            let base = Scorer::shared().base(name, &mut scratch);
            !base.is_adult() && !base.is_prohibited()
        };
        let names: Vec<DomainName> = names.iter().filter(|name| is_listed(name)).collect();
        let mix = Mix { recent: 400, released: 200, ..Mix::MARKET };
        let drops = Drops::new(seed, as_of.today, mix);
        let folder = tempfile::tempdir().expect("a folder");
        let corpus = Corpus::open(&folder.path().join("data")).expect("a new corpus");
        let is_later =
            |(at, name): &(usize, DomainName)| at % 4 == 0 && name.label_len() >= LATER_LEN;
        let first = names.iter().cloned().enumerate().filter(|numbered| !is_later(numbered));
        let first = drops.observations(first.map(|(_, name)| name));
        ingest(&corpus, 1, first, now);
        build(folder.path(), &corpus, Contains::All, now);
        // Names of the later list are new or dropped again.
        let sighting =
            Sighting::Dropped { date: as_of.today, release: None, registered_again: false };
        let drop = |name| Observation { name, sighting, first_seen: None, observed_at: now };
        let later = names.iter().cloned().enumerate();
        let later = later.filter(|numbered| is_later(numbered) || numbered.0 % 37 == 1);
        ingest(&corpus, 2, later.map(|(_, name)| drop(name)), now);
        let extended = extend(folder.path(), &corpus, now);
        let whole = build(folder.path(), &corpus, Contains::All, now);
        let without = build(folder.path(), &corpus, Contains::Drops, now);
        let mut names: Vec<Name> =
            names.into_par_iter().map(|name| Name::new(name, &whole, as_of)).collect();
        names.sort_by(|one, other| {
            let key = |it: &Name| (Reverse(it.dqs), it.chars.len());
            key(one).cmp(&key(other)).then_with(|| one.name.cmp(&other.name))
        });
        say(&format!("{} names", names.len()));
        Indexes { names, whole, extended, without, as_of }
    }
}

fn ingest(
    corpus: &Corpus,
    number: u8,
    observations: impl Iterator<Item = Observation>,
    now: DateTime<Utc>,
) {
    let source = Source {
        name: number.to_string(),
        sha256: [number; 32],
        format: "test".to_owned(),
        observed_at: now,
        ingested_at: now,
        origin: None,
        day: None,
        replaces: Vec::new(),
        zone: None,
    };
    corpus.ingest(&source, observations.map(|seen| Ok(Row::Seen(seen)))).expect("ingested");
}

fn settings(contains: Contains) -> BuildSettings {
    let extend = ExtendRule { from: 1, percent: 100 };
    BuildSettings { extend, contains: Some(contains), ..BuildSettings::default() }
}

/// Builds an index of one layer.
fn build(folder: &Path, corpus: &Corpus, contains: Contains, now: DateTime<Utc>) -> Index {
    let (index, batches) = (folder.join("index"), corpus.batches().expect("readable"));
    rebuild(&index, &batches, &[], settings(contains), now).expect("built");
    let opened = open_current(&index).expect("opens").index;
    assert_eq!(opened.contains(), contains);
    assert!(opened.manifest().extends.is_none());
    opened
}

/// Extends the index by the missing lists.
fn extend(folder: &Path, corpus: &Corpus, now: DateTime<Utc>) -> Index {
    let (index, batches) = (folder.join("index"), corpus.batches().expect("readable"));
    update(&index, &batches, &[], settings(Contains::All), now).expect("built");
    let opened = open_current(&index).expect("opens").index;
    assert_eq!(opened.contains(), Contains::All);
    assert!(opened.manifest().extends.is_some());
    opened
}
