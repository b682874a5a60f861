//! The plain recomputation: every response of drops, search, domain, export and health by a scan over
//! all names, written from the rules of data/docs/api.md and sharing no query code with the service.
//! From the crate the recomputation uses only the spelling of names, the day type and the scorer:
//! the score is an input here, not the thing under test.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Datelike, NaiveDate, SecondsFormat, Weekday};
use dropdex::scorer::{Coverage, Features, Scorer, Scratch, Spread, StoredScore};
use dropdex::vocab::day::Day;
use dropdex::vocab::name::DomainName;
use regex::Regex;
use serde_json::{Value, json};

/// An observation of a name in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// The name left the zone on `date`.
    Drop { date: Day, release: Option<Day>, registered_again: bool },
    /// The name exists, and is either registered or not known to be.
    Known { registered: bool },
    /// The name was newly registered on that day.
    Registered { on: Day },
}

/// A fact, its name, and the times (seconds of the Unix clock) at which the fact itself and its list
/// were observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    pub name: DomainName,
    pub fact: Fact,
    pub observed_at: i64,
    pub listed_at: i64,
}

/// A parsed popularity list: the newest of its kind, with the best rank of each name.
#[derive(Clone, Debug)]
pub struct Ranks {
    pub list: &'static str,
    pub id: Option<&'static str>,
    pub day: &'static str,
    pub of: BTreeMap<String, u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    observed_at: i64,
    release: Option<Day>,
    registered_again: bool,
}

/// All facts about one name.
pub struct Name {
    /// Canonical form.
    pub ascii: String,
    /// The text of the name with its A-labels decoded.
    pub unicode: String,
    /// The registrable label, A-label form.
    pub label: String,
    pub tld: String,
    /// Number of characters of the label's Unicode form.
    pub length: usize,
    pub dqs: u64,
    /// The unrounded score.
    pub rank: u16,
    pub explanation: String,
    pub signals: Value,
    pub signals_text: String,
    /// Number of words in the label.
    pub words: u64,
    /// `redemption_days` and `pending_delete_days` of the TLD.
    periods: (i32, i32),
    /// Records by drop date.
    records: BTreeMap<Day, Record>,
    /// The first list with each drop date, and the time at which it was observed.
    first_listed: BTreeMap<Day, (usize, i64)>,
    /// Number of TLDs that have the label.
    spread: usize,
    registered_on: Vec<Day>,
    known: Option<(i64, bool)>,
    /// Ranks of the name as in its dossier; empty unless it dropped.
    popularity: Vec<Value>,
    /// The same ranks as facts, which names that never dropped have too.
    rank_facts: Vec<Value>,
    /// Tenths of a percent of the drops of its suffix, up to this one; `None` unless it is on the list.
    suffix_rank: Option<usize>,
    /// Rank and name of the popular name that the label misspells.
    typo_of: Option<(u64, String)>,
}

/// A name's newest drop record, with the dates that follow from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latest {
    pub date: Day,
    pub registered_again: bool,
    /// The effective release, `R`.
    pub release: Day,
    /// `R - pending_delete_days`: the first day of pending-delete.
    pending_from: Day,
}

/// Days for which a released name counts as catchable (§2).
const CATCH_DAYS: i32 = 5;

impl Latest {
    /// The stage on `today` (§2).
    pub fn stage(&self, today: Day) -> &'static str {
        if today < self.pending_from {
            "redemption"
        } else if today < self.release {
            "pending-delete"
        } else if today < self.release.plus(CATCH_DAYS) {
            "catchable"
        } else {
            "released"
        }
    }

    fn active(&self, today: Day) -> bool {
        self.stage(today) != "released" && !self.registered_again
    }
}

/// Returns `redemption_days` and `pending_delete_days` of a TLD (§2: from the table, otherwise 30
/// and 5).
pub fn periods(tld: &str) -> (i32, i32) {
    let table = include_str!("../../../data/lifecycle.csv");
    for row in table.lines().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        if cells[0] == tld {
            let days = |at: usize| cells[at].parse().expect("the table holds numbers");
            return (days(1), days(2));
        }
    }
    (30, 5)
}

impl Name {
    /// Returns the newest drop record; `None` for a name that never dropped.
    pub fn latest(&self) -> Option<Latest> {
        let (&date, record) = self.records.last_key_value()?;
        let (redemption_days, pending_delete_days) = self.periods;
        let release =
            record.release.unwrap_or_else(|| date.plus(redemption_days + pending_delete_days));
        // Choice: a list of new registrations is applied by date only: it undoes every drop on or
        // before its day, even a drop that was observed or ingested after the list.
        let listed_again = self.registered_on.iter().any(|&on| date <= on);
        Some(Latest {
            date,
            registered_again: record.registered_again || listed_again,
            release,
            pending_from: release.plus(-pending_delete_days),
        })
    }

    /// Returns the drops before the newest one, newest first.
    fn earlier(&self) -> Value {
        let (redemption_days, pending_delete_days) = self.periods;
        let usual = redemption_days + pending_delete_days;
        let earlier = self.records.iter().rev().skip(1).map(|(&date, record)| {
            let release = record.release.unwrap_or_else(|| date.plus(usual));
            json!({"dropDate": date.to_string(), "releaseDate": release.to_string()})
        });
        earlier.collect()
    }

    /// Returns when the first list with the latest drop was observed.
    pub fn listed_at(&self) -> Option<i64> {
        self.latest().map(|latest| self.first_listed[&latest.date].1)
    }

    /// Returns the number of different drop dates on record.
    pub fn drops(&self) -> usize {
        self.records.len()
    }

    /// Returns the best rank of the name on a popularity list.
    pub fn best_rank(&self) -> Option<u64> {
        self.popularity.iter().filter_map(|fact| fact["rank"].as_u64()).min()
    }

    /// Returns the number of popularity lists that contain it.
    pub fn popular_on(&self) -> usize {
        self.popularity.len()
    }

    fn current_status(&self, today: Day) -> &'static str {
        let Some(latest) = self.latest() else {
            // Choice: of several rows about a name that never dropped, the one observed last counts.
            // A name that is only in a list of new registrations is registered.
            let registered = self.known.is_some_and(|(_, registered)| registered);
            let listed = !self.registered_on.is_empty();
            return if registered || listed { "registered" } else { "unknown" };
        };
        if latest.registered_again {
            return "registered";
        }
        match latest.stage(today) {
            stage @ ("redemption" | "pending-delete") => stage,
            _ => "available",
        }
    }

    /// Returns the sort key in lists of drops.
    fn place(&self) -> (std::cmp::Reverse<(u64, u16)>, usize, &str) {
        (std::cmp::Reverse((self.dqs, self.rank)), self.length, &self.ascii)
    }

    /// Returns the sort key in search results.
    fn search_place(&self) -> (std::cmp::Reverse<u64>, bool, usize, &str) {
        (std::cmp::Reverse(self.dqs), self.is_adult(), self.length, &self.ascii)
    }

    /// Whether an adult term caps the score.
    pub fn is_adult(&self) -> bool {
        self.caps().any(|cap| cap == "adult")
    }

    /// Whether the score is capped, leaving out the remark that a word is also a brand.
    fn is_capped(&self) -> bool {
        self.caps().any(|cap| cap != "alsoBrand")
    }

    fn caps(&self) -> impl Iterator<Item = &str> {
        let caps = self.signals["caps"].as_array().expect("a list");
        caps.iter().filter_map(|cap| cap["name"].as_str())
    }
}

/// The filters that drops, exports and searches share, parsed and folded.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// A-label form, no leading dot.
    pub tlds: Option<BTreeSet<String>>,
    pub min_dqs: Option<u64>,
    pub max_len: Option<usize>,
    /// Any of these stages; empty for any stage.
    pub stages: Vec<&'static str>,
    pub view: Option<&'static str>,
    pub not_tlds: BTreeSet<String>,
    pub max_dqs: Option<u64>,
    pub min_len: Option<usize>,
    pub contains: Vec<String>,
    pub starts: Vec<String>,
    pub ends: Vec<String>,
    pub not_contains: Vec<String>,
    pub not_starts: Vec<String>,
    pub not_ends: Vec<String>,
    pub digits: Option<&'static str>,
    pub hyphens: Option<&'static str>,
    pub idn: Option<&'static str>,
    /// Number of other TLDs with the label.
    pub min_tlds: Option<usize>,
    pub max_tlds: Option<usize>,
    pub min_drops: Option<usize>,
    pub dropped: (Option<Day>, Option<Day>),
    /// The first second of the range and the one after it.
    pub release: (Option<i64>, Option<i64>),
    /// Seconds of the Unix clock.
    pub listed_since: Option<i64>,
    pub max_rank: Option<u64>,
    /// Percent.
    pub max_suffix_rank: Option<usize>,
    /// No name passes, since no suffix has a model.
    pub expected_taken: Option<usize>,
    /// Range of the account's fact `acme.rank`.
    pub rank: Option<(Option<i64>, Option<i64>)>,
    /// Values of the server's fact `house.kind`, and whether a name must have one.
    pub house: Vec<&'static str>,
    pub has_house: Option<bool>,
    pub min_words: Option<u64>,
    pub max_words: Option<u64>,
    pub languages: Vec<String>,
    pub kinds: Vec<String>,
    pub uncapped: bool,
    /// `none` or `only`.
    pub typo: Option<&'static str>,
    /// Whether adult names pass.
    pub adult: bool,
    pub pattern: Option<String>,
    /// The expression as sent, and compiled.
    pub regex: Option<(String, Regex)>,
    /// The label and the distance.
    pub like: Option<(String, usize)>,
}

impl Filter {
    fn lets_through(&self, name: &Name) -> bool {
        self.tlds.as_ref().is_none_or(|tlds| tlds.contains(&name.tld))
            && self.min_dqs.is_none_or(|least| name.dqs >= least)
            && self.max_len.is_none_or(|most| name.length <= most)
            && !self.not_tlds.contains(&name.tld)
            && self.max_dqs.is_none_or(|most| name.dqs <= most)
            && self.min_len.is_none_or(|least| name.length >= least)
            && self.min_tlds.is_none_or(|least| name.spread > least)
            && self.max_tlds.is_none_or(|most| name.spread - 1 <= most)
            && self.min_words.is_none_or(|least| name.words.min(15) >= least)
            && self.max_words.is_none_or(|most| name.words.min(15) <= most)
            && (self.languages.is_empty()
                || self.languages.iter().any(|code| name.signals["language"] == **code))
            && (self.kinds.is_empty()
                || self.kinds.iter().any(|kind| name.signals["kind"] == **kind))
            && (!self.uncapped || !name.is_capped())
            && self.typo.is_none_or(|typo| name.typo_of.is_some() == (typo == "only"))
            && (self.adult || !name.is_adult())
            && self.text_passes(name)
            && self.shape_passes(name)
            && self.drop_passes(name)
    }

    fn shape_passes(&self, name: &Name) -> bool {
        let unicode = name.unicode.split('.').next().expect("a split has a first part");
        let compared = |text: &str| {
            let text = text.strip_prefix('^').unwrap_or(text);
            if text.starts_with("xn--") { name.label.clone() } else { unicode.to_owned() }
        };
        let chars = |text: &str| text.chars().collect::<Vec<char>>();
        self.pattern
            .as_ref()
            .is_none_or(|pattern| has_shape(&chars(pattern), &chars(&compared(pattern))))
            && self.regex.as_ref().is_none_or(|(sent, regex)| regex.is_match(&compared(sent)))
            && self
                .like
                .as_ref()
                .is_none_or(|(like, most)| edits(&chars(like), &chars(&compared(like))) <= *most)
    }

    fn text_passes(&self, name: &Name) -> bool {
        let unicode = name.unicode.split('.').next().expect("a split has a first part");
        let any = |texts: &[String], holds: fn(&str, &str) -> bool| {
            texts.iter().any(|text| {
                holds(if text.starts_with("xn--") { &name.label } else { unicode }, text)
            })
        };
        let contains = |label: &str, text: &str| label.contains(text);
        let starts = |label: &str, text: &str| label.starts_with(text);
        let ends = |label: &str, text: &str| label.ends_with(text);
        let digits = unicode.chars().filter(char::is_ascii_digit).count();
        let is_idn = name.label.starts_with("xn--");
        (self.contains.is_empty() || any(&self.contains, contains))
            && (self.starts.is_empty() || any(&self.starts, starts))
            && (self.ends.is_empty() || any(&self.ends, ends))
            && !any(&self.not_contains, contains)
            && !any(&self.not_starts, starts)
            && !any(&self.not_ends, ends)
            && match self.digits {
                None => true,
                Some("none") => digits == 0,
                Some("some") => digits > 0,
                _ => digits == unicode.chars().count(),
            }
            && self.hyphens.is_none_or(|some| unicode.contains('-') == (some == "some"))
            && self.idn.is_none_or(|only| is_idn == (only == "only"))
    }

    fn drop_passes(&self, name: &Name) -> bool {
        let Filter { min_drops, dropped, release, listed_since, max_rank, .. } = self;
        let within = |most| name.suffix_rank.is_some_and(|rank| rank <= most * 10);
        if !self.max_suffix_rank.is_none_or(within) || self.expected_taken.is_some() {
            return false;
        }
        if !self.facts_pass(name) {
            return false;
        }
        let Some(latest) = name.latest() else {
            let unbounded = (None, None);
            return min_drops.is_none()
                && *dropped == unbounded
                && *release == (None, None)
                && listed_since.is_none()
                && max_rank.is_none();
        };
        let within = |day: Day, (from, to): (Option<Day>, Option<Day>)| {
            from.is_none_or(|from| day >= from) && to.is_none_or(|to| day <= to)
        };
        min_drops.is_none_or(|least| name.drops() >= least)
            && within(latest.date, *dropped)
            && may_release_in(name, latest.release, *release)
            && listed_since.is_none_or(|since| name.first_listed[&latest.date].1 >= since)
            && max_rank.is_none_or(|most| name.best_rank().is_some_and(|best| best <= most))
    }
}

/// The fact `acme.rank` of the account, by name.
pub fn rank_of(name: &str) -> Option<i64> {
    let number = hash(name);
    (!number.is_multiple_of(3)).then_some((number >> 8) as i64 % 500 - 50)
}

/// The values of the fact `house.kind` of the server, and the value of a label.
pub const HOUSE_KINDS: [&str; 3] = ["red", "green", "blue"];
pub fn house_kind_of(label: &str) -> Option<&'static str> {
    let number = hash(label);
    number.is_multiple_of(7).then(|| HOUSE_KINDS[(number >> 8) as usize % HOUSE_KINDS.len()])
}

/// The day of the first fact precedes all drops, and that of the second one follows them.
pub const RANK_AS_OF: &str = "1990-01-01";
pub const HOUSE_AS_OF: &str = "2100-01-01";

/// The numbers of a fact as a facet: by value, or in ten ranges whose ends are tenths of the names. Equal values are in
/// one range.
fn ranges(sorted: &[i64]) -> Value {
    let mut counts = BTreeMap::<i64, usize>::new();
    for number in sorted {
        *counts.entry(*number).or_default() += 1;
    }
    if counts.len() <= 10 {
        let value = |(value, count)| json!({"value": i64::to_string(value), "count": count});
        return counts.iter().map(value).collect();
    }
    let mut found: Vec<Value> = Vec::new();
    let mut from = 0;
    for tenth in 1..=10 {
        let end = sorted.len() * tenth / 10;
        if end <= from {
            continue;
        }
        let last = sorted[end - 1];
        let count = sorted[from..].iter().take_while(|number| **number <= last).count();
        found.push(json!({"value": format!("{}..{last}", sorted[from]), "count": count}));
        from += count;
    }
    found.into()
}

/// The ranks of a name as facts. A row of several lists has the day of the oldest one.
fn rank_facts(name: &Name, lists: &[Ranks]) -> Vec<Value> {
    let edition = |Ranks { list, id, day, .. }: &Ranks| {
        let title = match *list {
            "tranco" => "Tranco",
            "majestic" => "Majestic Million",
            _ => "Cisco Umbrella",
        };
        format!("{title}{} of {day}", id.map(|id| format!(" {id}")).unwrap_or_default())
    };
    let all: Vec<String> = lists.iter().map(edition).collect();
    let again = name.latest().is_some_and(|latest| latest.registered_again);
    let returned = name.records.keys().rev().nth(usize::from(!again));
    let on: Vec<&Ranks> = lists.iter().filter(|list| list.of.contains_key(&name.ascii)).collect();
    let as_of = on.iter().map(|list| list.day).min();
    let fact = |list: &&Ranks| {
        json!({
            "fact": format!("popularity.{}", list.list), "source": "Popularity lists",
            "value": list.of[&name.ascii], "own": false, "asOf": as_of,
            "attribution": format!("Popularity: {}", all.join(", ")),
            "beforeDrop": returned.is_some_and(|day| as_of < Some(&day.to_string())),
        })
    };
    on.iter().map(fact).collect()
}

/// The facts of a name on its dossier.
fn facts_of(name: &Name) -> Vec<Value> {
    let was_registered_after_a_drop =
        name.drops() > 1 || name.latest().is_some_and(|latest| latest.registered_again);
    let fact = |fact, source, value: Value, own, as_of, before_drop| {
        json!({
            "fact": fact, "source": source, "value": value, "own": own, "asOf": as_of,
            "attribution": null, "beforeDrop": before_drop,
        })
    };
    let rank = rank_of(&name.ascii).map(|rank| {
        let before_drop = was_registered_after_a_drop;
        fact("acme.rank", "acme", json!(rank), true, RANK_AS_OF, before_drop)
    });
    let kind = house_kind_of(&name.label)
        .map(|kind| fact("house.kind", "house", json!(kind), false, HOUSE_AS_OF, false));
    rank.into_iter().chain(kind).chain(name.rank_facts.iter().cloned()).collect()
}

fn hash(text: &str) -> u64 {
    let byte = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, byte);
    hash ^ hash >> 29
}

impl Filter {
    fn facts_pass(&self, name: &Name) -> bool {
        let rank_passes = |(from, to): (Option<i64>, Option<i64>)| {
            let inside =
                |rank| from.is_none_or(|from| from <= rank) && to.is_none_or(|to| rank <= to);
            rank_of(&name.ascii).is_some_and(inside)
        };
        let kind = house_kind_of(&name.label);
        let needs = self.rank.is_some() || !self.house.is_empty() || self.has_house.is_some();
        (name.latest().is_some() || !needs)
            && self.rank.is_none_or(rank_passes)
            && (self.house.is_empty() || kind.is_some_and(|kind| self.house.contains(&kind)))
            && self.has_house.is_none_or(|has| kind.is_some() == has)
    }
}

/// Whether some second at which the name may be released is in a range.
fn may_release_in(name: &Name, day: Day, (from, end): (Option<i64>, Option<i64>)) -> bool {
    let midnight = |day: Day| day.start().timestamp();
    let (first, last) = match hour(&name.tld, day).0 {
        Some(at) => {
            let at = DateTime::parse_from_rfc3339(&at).expect("an instant").timestamp();
            (at, at)
        }
        None => (midnight(day), midnight(day.plus(1)) - 1),
    };
    from.is_none_or(|from| last >= from) && end.is_none_or(|end| first < end)
}

/// Whether the symbols of a pattern match the whole text.
fn has_shape(pattern: &[char], text: &[char]) -> bool {
    let Some((&symbol, rest)) = pattern.split_first() else { return text.is_empty() };
    if symbol == '*' {
        return (0..=text.len()).any(|skipped| has_shape(rest, &text[skipped..]));
    }
    let Some((&char, others)) = text.split_first() else { return false };
    let (letter, vowel) = (char.is_ascii_lowercase(), "aeiouy".contains(char));
    let stands = match symbol {
        'C' => letter && (!vowel || char == 'y'),
        'V' => letter && vowel,
        'L' => letter || !char.is_ascii(),
        'N' => char.is_ascii_digit(),
        'A' => letter || char.is_ascii_digit() || !char.is_ascii(),
        '?' => true,
        other => other == char,
    };
    stands && has_shape(rest, others)
}

/// Returns the edit distance of two texts: the number of characters inserted, removed or replaced,
/// or of neighbours swapped.
pub fn edits(one: &[char], other: &[char]) -> usize {
    let mut rows = vec![vec![0; other.len() + 1]; one.len() + 1];
    for at in 0..=one.len() {
        for to in 0..=other.len() {
            rows[at][to] = if at == 0 || to == 0 {
                at + to
            } else {
                let same = usize::from(one[at - 1] != other[to - 1]);
                let plain = rows[at - 1][to - 1] + same;
                let least = plain.min(rows[at - 1][to] + 1).min(rows[at][to - 1] + 1);
                let swapped = at > 1
                    && to > 1
                    && one[at - 1] == other[to - 2]
                    && one[at - 2] == other[to - 1];
                if swapped { least.min(rows[at - 2][to - 2] + 1) } else { least }
            };
        }
    }
    rows[one.len()][other.len()]
}

/// A query of drops or of its export. `needle` is normalised.
#[derive(Clone, Debug, Default)]
pub struct DropsQuery {
    pub filter: Filter,
    pub needle: Option<String>,
    /// `sort` and `order`.
    pub sort: Option<&'static str>,
    pub order: Option<&'static str>,
    pub limit: Option<usize>,
    pub offset: Option<usize>,
    /// Members of the rows; all if absent.
    pub fields: Option<Vec<&'static str>>,
    pub facets: Vec<&'static str>,
    /// How the names are counted.
    pub total: Option<&'static str>,
}

/// Members of a row of drops.
pub const MEMBERS: [&str; 24] = [
    "name",
    "unicode",
    "tld",
    "length",
    "dqs",
    "explanation",
    "signals",
    "stage",
    "dropDate",
    "releaseDate",
    "releaseAt",
    "releaseCertainty",
    "releaseWindowMinutes",
    "daysToRelease",
    "words",
    "language",
    "kind",
    "otherTlds",
    "dropCount",
    "listedAt",
    "popularityRank",
    "suffixRank",
    "typoOf",
    "expectedTaken",
];
/// Sort keys of drops.
pub const SORTS: [&str; 11] = [
    "dqs",
    "release",
    "dropped",
    "length",
    "name",
    "tlds",
    "listed",
    "rank",
    "suffix_rank",
    "expected_taken",
    "fact:acme.rank",
];
/// Facets of drops.
pub const FACETS: [&str; 10] = [
    "tld",
    "stage",
    "length",
    "dqs",
    "release",
    "language",
    "kind",
    "suffix_rank",
    "fact:acme.rank",
    "fact:house.kind",
];

/// Languages and kinds, in the order of their documentation.
pub const LANGUAGES: [&str; 14] =
    ["en", "de", "fr", "es", "it", "pl", "sv", "nl", "pt", "da", "no", "fi", "cs", "tr"];
pub const KINDS: [&str; 7] = ["word", "words", "name", "invented", "letters", "number", "mixed"];

/// A query of search. `prefix` is normalised; `sent` is the `q` of the request.
#[derive(Clone, Debug, Default)]
pub struct SearchQuery {
    pub sent: String,
    /// Empty without `q`.
    pub prefix: String,
    pub filter: Filter,
    pub limit: Option<usize>,
    pub offset: Option<usize>,
}

/// The whole corpus, in the order of drop lists: by score and unrounded score, both descending,
/// then by length and name.
pub struct Model {
    names: Vec<Name>,
}

impl Model {
    /// Merges facts in any order.
    pub fn new<'a>(facts: impl IntoIterator<Item = &'a Said>) -> Model {
        let mut by_name: BTreeMap<&'a DomainName, Vec<&'a Said>> = BTreeMap::new();
        for said in facts {
            by_name.entry(&said.name).or_default().push(said);
        }
        // All TLDs of each label, and those open to the public.
        let mut tlds_of_label: BTreeMap<&str, (usize, u32)> = BTreeMap::new();
        for name in by_name.keys() {
            let (all, open) = tlds_of_label.entry(name.label()).or_default();
            *all += 1;
            *open += u32::from(Scorer::shared().is_open(name.tld()));
        }
        let mut scratch = Scratch::default();
        let mut names: Vec<Name> = by_name
            .iter()
            .map(|(name, facts)| {
                let spread = tlds_of_label[name.label()];
                known_of(name, spread, facts, &mut scratch)
            })
            .collect();
        names.sort_by(|left, right| left.place().cmp(&right.place()));
        let mut of_tld: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, name) in names.iter().enumerate() {
            if name.latest().is_some_and(|latest| !latest.registered_again) {
                of_tld.entry(name.tld.clone()).or_default().push(at);
            }
        }
        for listed in of_tld.values() {
            for (before, &at) in listed.iter().enumerate() {
                names[at].suffix_rank = Some(((before + 1) * 1_000).div_ceil(listed.len()));
            }
        }
        Model { names }
    }

    /// Adds ranks, which are facts of names that dropped and change no score.
    pub fn ranked(mut self, lists: &[Ranks]) -> Model {
        for name in &mut self.names {
            name.rank_facts = rank_facts(name, lists);
        }
        for name in self.names.iter_mut().filter(|name| !name.records.is_empty()) {
            let facts = lists.iter().filter_map(|Ranks { list, id, day, of }| {
                let rank = of.get(&name.ascii)?;
                Some(json!({"list": list, "rank": rank, "date": day, "listId": id}))
            });
            name.popularity = facts.collect();
        }
        let popular = popular_labels(lists);
        for name in &mut self.names {
            let label = name.ascii.split('.').next().expect("a label");
            if name.signals["kind"] != "word" && !popular.contains_key(label) {
                let near = popular.iter().filter(|(right, _)| is_misspelt(right, label));
                name.typo_of =
                    near.min_by_key(|(right, of)| (of.0, *right)).map(|(_, of)| of.clone());
            }
        }
        self
    }

    /// Returns every name, in the order of responses.
    pub fn names(&self) -> &[Name] {
        &self.names
    }

    /// Returns the body of `GET /api/v1/drops`.
    pub fn drops(&self, query: &DropsQuery, today: Day) -> Value {
        let (limit, offset) = (query.limit.unwrap_or(100), query.offset.unwrap_or(0));
        let found = self.dropped(query, today);
        let members = query.fields.as_deref().unwrap_or(&MEMBERS);
        let page = found.iter().skip(offset).take(limit);
        let rows: Vec<Value> = page.map(|name| row(name, members, today)).collect();
        let mut body = json!({
            "date": self.drops_date(&query.filter, today).to_string(),
            "count": rows.len(),
            "limit": limit,
            "offset": offset,
            "total": found.len(),
            "totalExact": true,
            "drops": rows,
        });
        if query.fields.is_none() {
            body["availableTlds"] = json!(self.available_tlds(&query.filter, today));
        }
        if !query.facets.is_empty() {
            let counts = |&facet: &&'static str| (facet.into(), self.facet(query, facet, today));
            body["facets"] = Value::Object(query.facets.iter().map(counts).collect());
            body["facetsExact"] = json!(true);
        }
        body
    }

    /// Returns the rows of all drops that pass, with these members.
    pub fn rows(&self, query: &DropsQuery, members: &[&str], today: Day) -> Vec<Value> {
        self.dropped(query, today).iter().map(|name| row(name, members, today)).collect()
    }

    /// Returns the values of a facet with their numbers of names, under all filters except its own.
    fn facet(&self, query: &DropsQuery, facet: &str, today: Day) -> Value {
        let mut query = query.clone();
        let filter = &mut query.filter;
        match facet {
            "tld" => (filter.tlds, filter.not_tlds) = (None, BTreeSet::new()),
            "stage" => (filter.stages, filter.view) = (Vec::new(), Some("all")),
            "length" => (filter.min_len, filter.max_len) = (None, None),
            "dqs" => (filter.min_dqs, filter.max_dqs) = (None, None),
            "release" => filter.release = (None, None),
            "language" => filter.languages = Vec::new(),
            "kind" => filter.kinds = Vec::new(),
            "suffix_rank" => filter.max_suffix_rank = None,
            "fact:acme.rank" => filter.rank = None,
            "fact:house.kind" => (filter.house, filter.has_house) = (Vec::new(), None),
            other => panic!("no such facet: {other}"),
        }
        if facet == "fact:acme.rank" {
            let names = self.dropped(&query, today);
            let mut ranks: Vec<i64> =
                names.iter().filter_map(|name| rank_of(&name.ascii)).collect();
            ranks.sort_unstable();
            return ranges(&ranks);
        }
        // Keyed by the sort key of the value.
        let mut counts = BTreeMap::<(usize, String), usize>::new();
        let place = |words: &[&str], word: &str| {
            words.iter().position(|other| *other == word).expect("known")
        };
        for name in self.dropped(&query, today) {
            let latest = name.latest().expect("it dropped");
            let stage = latest.stage(today);
            let stages = ["redemption", "pending-delete", "catchable", "released"];
            let tens = name.dqs as usize / 10 * 10;
            let value = match facet {
                "tld" => (0, name.tld.clone()),
                "stage" => {
                    (stages.iter().position(|&other| other == stage).unwrap_or(0), stage.into())
                }
                "length" => (name.length, name.length.to_string()),
                "dqs" => (tens, tens.to_string()),
                "language" => match name.signals["language"].as_str() {
                    Some(code) => (place(&LANGUAGES, code), code.to_owned()),
                    None => continue,
                },
                "kind" => {
                    let kind = name.signals["kind"].as_str().expect("a kind");
                    (place(&KINDS, kind), kind.to_owned())
                }
                "fact:house.kind" => match house_kind_of(&name.label) {
                    Some(kind) => (0, kind.to_owned()),
                    None => continue,
                },
                _ => (0, latest.release.to_string()),
            };
            if facet == "suffix_rank" {
                let rank = name.suffix_rank.expect("it is on the list");
                for band in [1, 5, 10, 25, 50].into_iter().filter(|band| rank <= band * 10) {
                    *counts.entry((band, band.to_string())).or_default() += 1;
                }
                continue;
            }
            *counts.entry(value).or_default() += 1;
        }
        let mut values: Vec<(String, usize)> =
            counts.into_iter().map(|((_, value), count)| (value, count)).collect();
        values.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        let value = |(value, count): (String, usize)| json!({"value": value, "count": count});
        values.into_iter().take(100).map(value).collect()
    }

    /// Returns the body of `GET /api/export/drops` (§6).
    pub fn export(&self, query: &DropsQuery, today: Day) -> String {
        let (limit, offset) = (query.limit.unwrap_or(10_000), query.offset.unwrap_or(0));
        let mut csv = String::from("domain,tld,length,dqs,explanation\r\n");
        for name in self.dropped(query, today).into_iter().skip(offset).take(limit) {
            let Name { ascii, tld, length, dqs, .. } = name;
            let explanation = name.explanation.replace('"', "\"\"");
            csv.push_str(&format!("{ascii},{tld},{length},{dqs},\"{explanation}\"\r\n"));
        }
        csv
    }

    /// Returns the body of an export in CSV with these columns.
    pub fn csv(&self, query: &DropsQuery, members: &[&str], today: Day) -> String {
        let (limit, offset) = (query.limit.unwrap_or(10_000), query.offset.unwrap_or(0));
        let mut csv = format!("{}\r\n", members.join(","));
        for name in self.dropped(query, today).into_iter().skip(offset).take(limit) {
            let row = row(name, members, today);
            let cells = members.iter().map(|&member| {
                let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
                match (member, &row[member]) {
                    ("explanation", text) => quoted(text.as_str().expect("text")),
                    // Numbers and members as they are written in JSON.
                    ("signals", _) => quoted(&name.signals_text),
                    ("words", words) => {
                        let words = words.as_array().expect("words").iter();
                        quoted(&words.filter_map(Value::as_str).collect::<Vec<_>>().join(" "))
                    }
                    (_, Value::Null) => String::new(),
                    ("typoOf", of) => of["name"].as_str().expect("a name").to_owned(),
                    (_, Value::String(text)) => text.clone(),
                    (_, other) => other.to_string(),
                }
            });
            csv.push_str(&format!("{}\r\n", cells.collect::<Vec<_>>().join(",")));
        }
        csv
    }

    /// Returns the body of `GET /api/v1/search`.
    pub fn search(&self, query: &SearchQuery, today: Day) -> Value {
        let (limit, offset) = (query.limit.unwrap_or(20), query.offset.unwrap_or(0));
        let mut found: Vec<&Name> = self
            .names
            .iter()
            .filter(|name| {
                name.ascii.starts_with(&query.prefix) || name.unicode.starts_with(&query.prefix)
            })
            .filter(|name| query.filter.lets_through(name) && searched(name, &query.filter, today))
            .collect();
        // Names that equal the prefix come first.
        found.sort_by_key(|name| {
            (query.prefix.is_empty() || !equals(name, &query.prefix), name.search_place())
        });
        let results: Vec<Value> =
            found.iter().skip(offset).take(limit).map(|name| search_result(name, today)).collect();
        json!({
            // Choice: `query` is the parameter as it was sent, neither trimmed nor folded.
            "query": query.sent,
            "total": found.len(),
            "totalCapped": false,
            "count": results.len(),
            "limit": limit,
            "offset": offset,
            "results": results,
        })
    }

    /// Returns the body of `GET /api/v1/domain/{name}`; `None` for a name that was never observed.
    pub fn dossier(&self, name: &str, today: Day) -> Option<Value> {
        let name = self.names.iter().find(|known| known.ascii == name)?;
        let latest = name.latest();
        let shown = latest.filter(|latest| latest.active(today)).map(|latest| {
            json!({
                "date": latest.date.to_string(),
                "dqs": name.dqs,
                "explanation": name.explanation,
                "signals": name.signals,
            })
        });
        // Choice: no drop is predicted for a name that was registered again, whatever stage its old
        // drop record would have.
        let predicted = latest
            .filter(|latest| !latest.registered_again && today < latest.release)
            .map(|latest| latest.release.to_string());
        let hour = latest.map(|latest| hour(&name.tld, latest.release));
        Some(json!({
            "domain": name.ascii,
            "unicode": name.unicode,
            "tld": name.tld,
            "length": name.length,
            "dqs": name.dqs,
            "currentStatus": name.current_status(today),
            "dropDate": latest.map(|latest| latest.date.to_string()),
            "earlierDrops": name.earlier(),
            "stage": latest.filter(|latest| !latest.registered_again).map(|latest| latest.stage(today)),
            "releaseDate": latest.map(|latest| latest.release.to_string()),
            "releaseAt": hour.as_ref().map(|hour| hour.0.clone()),
            "releaseCertainty": hour.as_ref().map(|hour| hour.1),
            "releaseWindowMinutes": hour.as_ref().map(|hour| hour.2),
            "dropPredictedAt": predicted,
            "latestDrop": shown,
            "availability": null,
            // No suffix has a model.
            "comparables": null,
            "facts": facts_of(name),
            "expectation": null,
            "popularity": name.popularity,
            "feedback": {"up": 0, "down": 0},
        }))
    }

    /// Returns the newest `drop_date` not after today, over all records of all names.
    ///
    /// Choice: this includes records that a newer one has superseded, and names that were registered
    /// again: §3 states "in the corpus". Health's `latestDropDate` is taken to be the same day.
    pub fn newest_drop_date(&self, today: Day) -> Option<Day> {
        let dates = self.names.iter().flat_map(|name| name.records.keys());
        dates.filter(|&&date| date <= today).max().copied()
    }

    fn drops_date(&self, filter: &Filter, today: Day) -> Day {
        // Choice: `view` is ignored beside `stage`, so `view=today` does not set the date then.
        if filter.stages.is_empty() && filter.view == Some("today") {
            return today;
        }
        self.newest_drop_date(today).unwrap_or(today)
    }

    fn available_tlds(&self, filter: &Filter, today: Day) -> BTreeSet<&str> {
        let in_view = self.names.iter().filter(|name| listed(name, filter, today));
        in_view.map(|name| name.tld.as_str()).collect()
    }

    /// Returns the names that pass, in the requested order.
    fn dropped(&self, query: &DropsQuery, today: Day) -> Vec<&Name> {
        let mut found: Vec<&Name> = self
            .names
            .iter()
            .filter(|name| listed(name, &query.filter, today))
            .filter(|name| query.filter.lets_through(name))
            .filter(|name| {
                // Choice: an ASCII needle matches the Unicode form as well as the A-label form.
                query.needle.as_ref().is_none_or(|needle| {
                    name.ascii.contains(needle) || name.unicode.contains(needle)
                })
            })
            .collect();
        let sort = query.sort.unwrap_or("dqs");
        let natural = if ["dqs", "dropped", "tlds", "listed", "expected_taken", "fact:acme.rank"]
            .contains(&sort)
        {
            "desc"
        } else {
            "asc"
        };
        let descending = query.order.unwrap_or(natural) == "desc";
        if sort == "name" {
            found.sort_by(|left, right| left.ascii.cmp(&right.ascii));
            if descending {
                found.reverse();
            }
            return found;
        }
        let key = |name: &&Name| -> i64 {
            let latest = name.latest().expect("it dropped");
            let value = match sort {
                "dqs" => name.dqs as i64,
                "release" => latest.release.raw().into(),
                "dropped" => latest.date.raw().into(),
                "length" => name.length as i64,
                "tlds" => name.spread as i64,
                // Names that are on no list come after every rank.
                "rank" => name.best_rank().map_or(i64::MAX, |best| best as i64),
                "suffix_rank" => name.suffix_rank.expect("it is on the list") as i64,
                // No suffix has a model.
                "expected_taken" => 0,
                // Names without the fact come last in both directions.
                "fact:acme.rank" => match rank_of(&name.ascii) {
                    Some(rank) => rank,
                    None => return i64::MAX,
                },
                _ => name.first_listed[&latest.date].1,
            };
            if descending { -value } else { value }
        };
        // The sort is stable, so names with equal keys stay in rank order.
        found.sort_by_key(key);
        found
    }
}

/// Returns a row of drops with these members.
/// Returns start, certainty and length of a release as `data/docs/release-times.md` states them.
fn hour(tld: &str, day: Day) -> (Option<String>, &'static str, u16) {
    const BY_DAY: [&str; 22] = [
        "uk", "it", "nl", "be", "cz", "ee", "pl", "mx", "cl", "sk", "fr", "de", "eu", "ch", "li",
        "at", "dk", "no", "fi", "pt", "io", "ai",
    ];
    const ALSO_BY_DAY: [&str; 4] = ["co", "me", "app", "dev"];
    let at = |hour: u32| Some(format!("{day}T{hour:02}:00:00.000Z"));
    // The clocks of New York change on the second Sunday of March and the first of November.
    let sunday = |month, number| {
        NaiveDate::from_weekday_of_month_opt(day.date().year(), month, Weekday::Sun, number)
    };
    let is_summer = sunday(3, 2) <= Some(day.date()) && Some(day.date()) < sunday(11, 1);
    match tld.rsplit('.').next().expect("a label") {
        "com" | "net" => (at(if is_summer { 18 } else { 19 }), "window", 60),
        "se" | "nu" => (at(4), "hour", 60),
        "au" => (at(3), "hour", 30),
        "nz" => (at(2), "hour", 60),
        "ca" => (at(19), "hour", 60),
        top if BY_DAY.contains(&top) || ALSO_BY_DAY.contains(&top) => (None, "day", 1_440),
        _ => (None, "estimate", 4_320),
    }
}

fn row(name: &Name, members: &[&str], today: Day) -> Value {
    let latest = name.latest().expect("it dropped");
    let listed_at =
        DateTime::from_timestamp(name.first_listed[&latest.date].1, 0).expect("an instant");
    let member = |member: &&str| {
        let value = match *member {
            "name" => json!(name.ascii),
            "unicode" => json!(name.unicode),
            "tld" => json!(name.tld),
            "length" => json!(name.length),
            "dqs" => json!(name.dqs),
            "explanation" => json!(name.explanation),
            "signals" => name.signals.clone(),
            "stage" => json!(latest.stage(today)),
            "dropDate" => json!(latest.date.to_string()),
            "releaseDate" => json!(latest.release.to_string()),
            "releaseAt" => json!(hour(&name.tld, latest.release).0),
            "releaseCertainty" => json!(hour(&name.tld, latest.release).1),
            "releaseWindowMinutes" => json!(hour(&name.tld, latest.release).2),
            "daysToRelease" => json!(latest.release.days_since(today)),
            // A label that does not consist of words has no words, even if it has parts.
            "words" if name.words == 0 => json!([]),
            "words" => name.signals["words"].clone(),
            "language" => name.signals["language"].clone(),
            "kind" => name.signals["kind"].clone(),
            "otherTlds" => json!(name.spread - 1),
            "dropCount" => json!(name.drops()),
            "popularityRank" => json!(name.best_rank()),
            "expectedTaken" => Value::Null,
            "typoOf" => match &name.typo_of {
                Some((rank, of)) => json!({"name": of, "rank": rank}),
                None => Value::Null,
            },
            "suffixRank" => match name.suffix_rank.expect("it is on the list") {
                rank if rank % 10 == 0 => json!(rank / 10),
                rank => json!(rank as f64 / 10.0),
            },
            "listedAt" => json!(listed_at.to_rfc3339_opts(SecondsFormat::Millis, true)),
            other => panic!("no such member: {other}"),
        };
        ((*member).to_owned(), value)
    };
    Value::Object(members.iter().map(member).collect())
}

/// Whether a name is in the stage or view of drops, which always excludes names that were registered
/// again.
fn listed(name: &Name, filter: &Filter, today: Day) -> bool {
    let Some(latest) = name.latest().filter(|latest| !latest.registered_again) else {
        return false;
    };
    match (filter.stages.is_empty(), filter.view.unwrap_or("active")) {
        (false, _) => filter.stages.contains(&latest.stage(today)),
        (true, "active") => latest.active(today),
        // Choice: according to the text, only the drop day decides, so a name that dropped today with a
        // release date in the distant past is in view=today, but not in view=active.
        (true, "today") => latest.date == today,
        (true, "all") => true,
        (true, other) => panic!("no such view: {other}"),
    }
}

/// Whether a name is in the stage or view of a search; without either, every name is.
fn searched(name: &Name, filter: &Filter, today: Day) -> bool {
    match (filter.stages.is_empty(), filter.view) {
        // Choice: view=all does not limit, like an absent view.
        (true, None | Some("all")) => true,
        _ => listed(name, filter, today),
    }
}

/// Choice: "equals q" holds in either spelling, A-label or Unicode.
fn equals(name: &Name, prefix: &str) -> bool {
    let unicode_label = name.unicode.split('.').next();
    name.ascii == prefix
        || name.unicode == prefix
        || name.label == prefix
        || unicode_label == Some(prefix)
}

fn search_result(name: &Name, today: Day) -> Value {
    let held = name.latest().filter(|latest| !latest.registered_again);
    let stage = held.map(|latest| latest.stage(today));
    let latest = name.latest().map(|latest| {
        json!({
            "date": latest.date.to_string(),
            "dqs": name.dqs,
            "explanation": name.explanation,
        })
    });
    json!({
        "domain": name.ascii,
        "unicode": name.unicode,
        "tld": name.tld,
        "length": name.length,
        "currentStatus": name.current_status(today),
        "dqs": name.dqs,
        "stage": stage,
        "latestDrop": latest,
    })
}

fn known_of(
    name: &DomainName,
    (spread, open): (usize, u32),
    facts: &[&Said],
    scratch: &mut Scratch,
) -> Name {
    let tlds = open + u32::from(!Scorer::shared().is_open(name.tld()));
    // A corpus of a few thousand names provides no information about other TLDs.
    let known = Spread { tlds, coverage: Coverage::NONE };
    let scored = Scorer::shared().score(name, known, scratch);
    let unread = StoredScore {
        label: name.label(),
        tld: name.tld(),
        spread: known,
        features: Features::NONE,
    };
    let words = Scorer::shared().traits(unread, scratch).words.into();
    // Parsed from text, as responses are, so that numbers are compared as written.
    let signals = serde_json::to_string(&scored.signals).expect("signals are JSON");
    let unicode = name.unicode().into_owned();
    let label = unicode.split('.').next().expect("a split has a first part");
    let mut known = Name {
        length: label.chars().count(),
        ascii: name.as_str().to_owned(),
        label: name.label().to_owned(),
        tld: name.tld().to_owned(),
        periods: periods(name.tld()),
        unicode,
        dqs: u64::from(scored.dqs.points()),
        rank: scored.rank,
        explanation: scored.explanation,
        words,
        signals: serde_json::from_str(&signals).expect("written data can be read"),
        signals_text: signals,
        records: BTreeMap::new(),
        first_listed: BTreeMap::new(),
        spread,
        registered_on: Vec::new(),
        known: None,
        popularity: Vec::new(),
        rank_facts: Vec::new(),
        suffix_rank: None,
        typo_of: None,
    };
    for (at, said) in facts.iter().enumerate() {
        known.learn(at, said);
    }
    known.unite();
    known
}

impl Name {
    /// Merges one fact. Of two facts about the same drop or registration, the one observed later
    /// wins completely.
    fn learn(&mut self, at: usize, said: &Said) {
        let observed_at = said.observed_at;
        match said.fact {
            Fact::Drop { date, release, registered_again } => {
                // Facts come in the order of their lists.
                self.first_listed.entry(date).or_insert((at, said.listed_at));
                let record = Record { observed_at, release, registered_again };
                let kept = self.records.entry(date).or_insert(record);
                if kept.observed_at < observed_at {
                    *kept = record;
                }
            }
            Fact::Known { registered } => {
                if self.known.is_none_or(|(before, _)| before < observed_at) {
                    self.known = Some((observed_at, registered));
                }
            }
            Fact::Registered { on } => self.registered_on.push(on),
        }
    }

    /// Merges records with different dates that describe the same drop (§2): the first date is kept,
    /// and the latest observation wins, but a known release date is kept.
    fn unite(&mut self) {
        let (redemption_days, pending_delete_days) = self.periods;
        let mut dates: Vec<Day> = self.records.keys().rev().copied().collect();
        let Some(mut first) = dates.pop() else { return };
        while let Some(date) = dates.pop() {
            let (one, other) = (self.records[&first], self.records[&date]);
            let is_same = match (one.release, other.release) {
                (None, None) => {
                    let free = first.plus(redemption_days + pending_delete_days);
                    let came_back = self.registered_on.iter().any(|&on| first <= on && on < date);
                    !one.registered_again && date <= free && !came_back
                }
                (Some(one), Some(other)) => (-1..=1).contains(&one.days_since(other)),
                (Some(release), None) => !one.registered_again && date <= release,
                (None, Some(release)) => {
                    let last = first.plus(redemption_days + pending_delete_days + 1);
                    !one.registered_again && first <= release && release <= last
                }
            };
            if !is_same {
                first = date;
                continue;
            }
            let (new, old) =
                if other.observed_at >= one.observed_at { (other, one) } else { (one, other) };
            let release = new.release.or(old.release);
            self.records.insert(first, Record { release, ..new });
            self.records.remove(&date);
            let listed = self.first_listed.remove(&date).expect("it was listed");
            let before = self.first_listed[&first];
            self.first_listed.insert(first, before.min(listed));
        }
    }
}

/// Returns rank and name of each label that is popular, by label.
fn popular_labels(lists: &[Ranks]) -> BTreeMap<String, (u64, String)> {
    let mut popular = BTreeMap::<String, (u64, String)>::new();
    for (name, &rank) in lists.iter().flat_map(|list| &list.of) {
        let label = name.split('.').next().expect("a label");
        let is_plain = label.len() >= 5 && label.bytes().all(|octet| octet.is_ascii_lowercase());
        if rank <= 2_000 && is_plain {
            let found = (u64::from(rank), name.clone());
            let held = popular.entry(label.to_owned()).or_insert_with(|| found.clone());
            *held = found.min(held.clone());
        }
    }
    popular
}

/// Whether a label is another with one typing error (data/docs/queries.md, Popular names): every way to
/// mistype the right one is tried.
fn is_misspelt(right: &str, typed: &str) -> bool {
    const ROWS: [&str; 3] = ["qwertyuiop", "asdfghjkl", "zxcvbnm"];
    let place = |letter: u8| {
        let find = |row: &str| row.bytes().position(|key| key == letter);
        (0..3).find_map(|row| Some((row as i32, find(ROWS[row])? as i32)))
    };
    let are_neighbours = |one: u8, other: u8| match (place(one), place(other)) {
        (Some((row, at)), Some((below, beside))) if row == below => (at - beside).abs() == 1,
        (Some((row, at)), Some((below, beside))) if row + 1 == below => {
            at == beside || at == beside + 1
        }
        (Some((row, at)), Some((above, beside))) if row == above + 1 => {
            beside == at || beside == at + 1
        }
        _ => false,
    };
    let (right, typed) = (right.as_bytes(), typed.as_bytes());
    let any = right.len() >= 6;
    if typed.len() < 5 || right == typed {
        return false;
    }
    (0..right.len()).any(|at| {
        let (before, after) = (&right[..at], &right[at + 1..]);
        let missing = any && [before, after].concat() == typed;
        let swapped = after
            .first()
            .is_some_and(|next| [before, &[*next, right[at]], &after[1..]].concat() == typed);
        let replaced = typed.get(at).is_some_and(|&key| {
            let slipped = are_neighbours(right[at], key);
            let counts = if at > 0 { any || slipped } else { any && slipped };
            counts && [before, &[key], after].concat() == typed
        });
        let added = typed.get(at + 1).is_some_and(|&key| {
            (any || key == right[at]) && [&right[..=at], &[key], after].concat() == typed
        });
        missing || swapped || replaced || added
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> Day {
        text.parse().expect("a date")
    }

    fn dropped(name: &str, date: &str, release: Option<&str>, observed_at: i64) -> Said {
        Said {
            name: DomainName::parse(name).expect(name),
            fact: Fact::Drop {
                date: day(date),
                release: release.map(day),
                registered_again: false,
            },
            observed_at,
            listed_at: observed_at,
        }
    }

    fn registered(name: &str, on: &str) -> Said {
        let name = DomainName::parse(name).expect(name);
        Said { name, fact: Fact::Registered { on: day(on) }, observed_at: 0, listed_at: 0 }
    }

    fn only(facts: &[Said]) -> Latest {
        Model::new(facts).names()[0].latest().expect("it dropped")
    }

    #[test]
    fn stages_begin_on_the_documented_days() {
        // com has no row: R = drop + 30 + 5. co.uk has 60 + 5, de 30 + 0.
        for (name, today, stage) in [
            ("a.com", "2026-01-30", "redemption"),
            ("a.com", "2026-01-31", "pending-delete"),
            ("a.com", "2026-02-04", "pending-delete"),
            ("a.com", "2026-02-05", "catchable"),
            ("a.com", "2026-02-09", "catchable"),
            ("a.com", "2026-02-10", "released"),
            ("a.co.uk", "2026-03-01", "redemption"),
            ("a.co.uk", "2026-03-02", "pending-delete"),
            ("a.co.uk", "2026-03-07", "catchable"),
            ("a.de", "2026-01-30", "redemption"),
            ("a.de", "2026-01-31", "catchable"),
            ("a.de", "2026-02-05", "released"),
        ] {
            let latest = only(&[dropped(name, "2026-01-01", None, 0)]);
            assert_eq!(latest.stage(day(today)), stage, "{name} on {today}");
        }
    }

    #[test]
    fn a_given_release_replaces_the_table() {
        let latest = only(&[dropped("a.com", "2026-01-01", Some("2026-01-10"), 0)]);
        assert_eq!(latest.stage(day("2026-01-04")), "redemption");
        assert_eq!(latest.stage(day("2026-01-05")), "pending-delete");
        assert_eq!(latest.stage(day("2026-01-10")), "catchable");
    }

    #[test]
    fn the_later_observation_of_a_day_wins_completely() {
        let early = dropped("a.com", "2026-01-01", Some("2026-01-10"), 1);
        let late = dropped("a.com", "2026-01-01", None, 2);
        for facts in [[early.clone(), late.clone()], [late, early]] {
            assert_eq!(only(&facts).release, day("2026-02-05"));
        }
    }

    #[test]
    fn a_list_of_new_registrations_undoes_drops_up_to_its_day() {
        let old = dropped("a.com", "2026-01-01", None, 0);
        assert!(only(&[old.clone(), registered("a.com", "2026-01-01")]).registered_again);
        assert!(!only(&[old.clone(), registered("a.com", "2025-12-31")]).registered_again);
        let new = dropped("a.com", "2026-01-05", None, 0);
        let facts = [old, registered("a.com", "2026-01-04"), new];
        assert!(!only(&facts).registered_again, "it dropped again after the list");
    }

    #[test]
    fn equal_names_come_first_and_then_the_order_of_drops() {
        let facts = [
            dropped("cafe.com", "2026-01-01", None, 0),
            dropped("cafe.org", "2026-01-01", None, 0),
            dropped("cafes.com", "2026-01-01", None, 0),
            dropped("café.com", "2026-01-01", None, 0),
        ];
        let model = Model::new(&facts);
        let found = |prefix: &str| -> BTreeSet<String> {
            let query = SearchQuery { prefix: prefix.into(), ..SearchQuery::default() };
            let body = model.search(&query, day("2026-01-01"));
            let results = body["results"].as_array().expect("an array");
            let domain = |result: &Value| result["domain"].as_str().expect("text").to_owned();
            results.iter().map(domain).collect()
        };
        assert_eq!(found("caf").len(), 4);
        assert_eq!(found("café"), BTreeSet::from(["xn--caf-dma.com".to_owned()]));
        assert_eq!(found("xn--caf"), BTreeSet::from(["xn--caf-dma.com".to_owned()]));
        assert_eq!(found("cafe.o"), BTreeSet::from(["cafe.org".to_owned()]));
        let query = SearchQuery { prefix: "cafe".into(), ..SearchQuery::default() };
        let body = model.search(&query, day("2026-01-01"));
        assert_eq!(body["results"][2]["domain"], "cafes.com", "not equal to q, so after both");
    }
}
