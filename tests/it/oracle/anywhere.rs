//! Text anywhere in the corpus: random conditions on labels, without a prefix, compared with a scan
//! of all names (data/docs/queries.md).
//!
//! The queries run in this process, as they are sent. Searches must have the same total and the same
//! page on each index. Pages of the drop list are read to their end; its totals are exact where that is
//! promised, and otherwise near the truth and always the same.

mod corpus;
mod shapes;

use std::thread;

use dropdex::index::Index;
use dropdex::index::filter::{Counting, DropFilter, SearchFilter, Sort, SortKey};
use dropdex::query::params::{Limits, Params};
use dropdex::vocab::limits::{DROPS_LIMIT_DEFAULT, DROPS_LIMIT_MAX, SEARCH_TOTAL_MAX};
use memchr::memmem::Finder;

use super::is_near;
use super::model::edits;
use crate::common::rng::Rng;
use crate::common::runs::{say, seed_of_the_commit};
use corpus::{Indexes, Name, bit};
use shapes::Shape;

const QUERIES: usize = 2_000;
const THREADS: usize = 2;
/// Pages of the drop list that are read for a query.
const PAGES: usize = 4;

/// A condition on names, as the scan evaluates it.
enum Condition {
    Contains(Vec<Finder<'static>>),
    Ends(Vec<String>),
    NotContains(String),
    Shape(Shape),
    Like(Like),
    Tlds(Vec<String>),
    NotTld(String),
    MinLen(usize),
    MaxLen(usize),
    MinDqs(u8),
    HasDigits(bool),
    HasHyphens(bool),
}

impl Condition {
    /// Returns the bits of characters that every name that passes has.
    fn required(&self) -> u64 {
        match self {
            Condition::Contains(texts) if texts.len() == 1 => bits(texts[0].needle()),
            Condition::Ends(texts) if texts.len() == 1 => bits(texts[0].as_bytes()),
            Condition::Shape(shape) => shape.required(),
            _ => 0,
        }
    }

    fn passes(&self, name: &Name) -> bool {
        // A text that begins with `xn--` is compared with the A-label.
        let form =
            |text: &[u8]| if text.starts_with(b"xn--") { name.label() } else { &name.unicode };
        match self {
            Condition::Contains(texts) => {
                texts.iter().any(|text| text.find(form(text.needle()).as_bytes()).is_some())
            }
            Condition::Ends(texts) => {
                texts.iter().any(|text| form(text.as_bytes()).ends_with(text.as_str()))
            }
            Condition::NotContains(text) => !form(text.as_bytes()).contains(text.as_str()),
            Condition::Shape(shape) => shape.matches(name),
            Condition::Like(like) => like.passes(name),
            Condition::Tlds(tlds) => tlds.iter().any(|tld| tld == name.name.tld()),
            Condition::NotTld(tld) => tld != name.name.tld(),
            Condition::MinLen(least) => name.chars.len() >= *least,
            Condition::MaxLen(most) => name.chars.len() <= *most,
            Condition::MinDqs(least) => name.dqs >= *least,
            Condition::HasDigits(some) => name.chars.iter().any(char::is_ascii_digit) == *some,
            Condition::HasHyphens(some) => name.chars.contains(&'-') == *some,
        }
    }
}

/// Returns the bits of the characters of a text that is compared with Unicode forms.
fn bits(text: &[u8]) -> u64 {
    match std::str::from_utf8(text) {
        Ok(text) if !text.starts_with("xn--") => {
            text.chars().map(bit).fold(0, |all, bit| all | bit)
        }
        _ => 0,
    }
}

/// A label to compare with.
struct Like {
    label: Vec<char>,
    edits: usize,
    chars_used: u64,
}

impl Like {
    fn new(label: Vec<char>, edits: usize) -> Like {
        let chars_used = label.iter().fold(0, |all, &char| all | bit(char));
        Like { label, edits, chars_used }
    }

    fn passes(&self, name: &Name) -> bool {
        if self.label.starts_with(&['x', 'n', '-', '-']) {
            let chars: Vec<char> = name.label().chars().collect();
            return self.is_near(&chars);
        }
        // An edit removes one character at most.
        let gone = self.chars_used & !name.chars_used;
        gone.count_ones() as usize <= self.edits && self.is_near(&name.chars)
    }

    fn is_near(&self, chars: &[char]) -> bool {
        // An edit changes the length by one at most.
        self.label.len().abs_diff(chars.len()) <= self.edits
            && edits(&self.label, chars) <= self.edits
    }
}

/// A random query.
#[derive(Default)]
struct Query {
    sent: Vec<(&'static str, String)>,
    conditions: Vec<Condition>,
}

impl Query {
    /// Draws one or two conditions on text, and often others.
    fn draw(rng: &mut Rng, names: &[Name]) -> Query {
        let mut query = Query::default();
        let first = rng.below(5);
        query.add_text(rng, names, first);
        if rng.chance(20) {
            let second = (first + 1 + rng.below(4)) % 5;
            query.add_text(rng, names, second);
        }
        for _ in 0..rng.below(3) {
            query.add_other(rng, names);
        }
        query
    }

    fn add(&mut self, parameter: &'static str, text: String, condition: Condition) {
        self.sent.push((parameter, text));
        self.conditions.push(condition);
    }

    fn add_text(&mut self, rng: &mut Rng, names: &[Name], kind: usize) {
        let label = label(rng, names);
        let count = 1 + if rng.chance(70) { 0 } else { rng.below(3) };
        match kind {
            0 => {
                let texts: Vec<String> = (0..count).map(|_| text(rng, names, false)).collect();
                let finders = texts.iter().map(|text| Finder::new(text).into_owned());
                self.add("contains", texts.join(","), Condition::Contains(finders.collect()));
            }
            1 => {
                let texts: Vec<String> = (0..count).map(|_| text(rng, names, true)).collect();
                self.add("ends", texts.join(","), Condition::Ends(texts));
            }
            2 => {
                let (text, shape) = shapes::pattern(rng, &label);
                self.add("pattern", text, Condition::Shape(shape));
            }
            3 => {
                let other = &rng.pick(names).chars;
                let (text, shape) = shapes::regex(rng, &label, other);
                self.add("regex", text, Condition::Shape(shape));
            }
            _ => {
                let like = misspelt(rng, label);
                let most = 1 + rng.below(2);
                self.sent.push(("distance", most.to_string()));
                self.add("like", like.iter().collect(), Condition::Like(Like::new(like, most)));
            }
        }
    }

    fn add_other(&mut self, rng: &mut Rng, names: &[Name]) {
        let name = rng.pick(names);
        let length = name.chars.len();
        let (parameter, text, condition) = match rng.below(9) {
            0 | 1 => {
                let tlds = [name.name.tld(), rng.pick(names).name.tld()].map(str::to_owned);
                ("tld", tlds.join(","), Condition::Tlds(tlds.to_vec()))
            }
            2 => ("not_tld", "com".to_owned(), Condition::NotTld("com".to_owned())),
            3 => ("min_len", length.min(9).to_string(), Condition::MinLen(length.min(9))),
            4 => ("max_len", length.max(9).to_string(), Condition::MaxLen(length.max(9))),
            5 => ("min_dqs", name.dqs.to_string(), Condition::MinDqs(name.dqs)),
            6 => {
                let text = text(rng, names, false);
                ("not_contains", text.clone(), Condition::NotContains(text))
            }
            7 => ("digits", "none".to_owned(), Condition::HasDigits(false)),
            _ => ("hyphens", "some".to_owned(), Condition::HasHyphens(true)),
        };
        if self.sent.iter().all(|(sent, _)| *sent != parameter) {
            self.add(parameter, text, condition);
        }
    }

    /// Returns the names that pass, in order. Most of them lack a character, which is quickly seen.
    fn scan<'a>(&self, names: &'a [Name]) -> Vec<&'a Name> {
        let required = self.conditions.iter().fold(0, |all, it| all | it.required());
        let mut found = Vec::new();
        for name in names {
            if required & !name.chars_used == 0 && self.conditions.iter().all(|it| it.passes(name))
            {
                found.push(name);
            }
        }
        found
    }

    fn url(&self) -> String {
        let pairs = self.sent.iter().map(|(parameter, text)| format!("{parameter}={text}"));
        pairs.collect::<Vec<_>>().join("&")
    }

    fn pairs(&self) -> Vec<(&str, &str)> {
        self.sent.iter().map(|(parameter, text)| (*parameter, text.as_str())).collect()
    }
}

/// Returns the characters of a label; of one in twelve that is an IDN, those of the A-label.
fn label(rng: &mut Rng, names: &[Name]) -> Vec<char> {
    let mut name = rng.pick(names);
    if rng.chance(8) {
        while !name.name.is_idn() {
            name = rng.pick(names);
        }
        if rng.chance(50) {
            return name.label().chars().collect();
        }
    }
    name.chars.clone()
}

/// Draws a text of 1 to 8 characters: mostly a part of a label, otherwise anything.
fn text(rng: &mut Rng, names: &[Name], at_end: bool) -> String {
    let length = 1 + rng.below(8);
    if rng.chance(25) {
        let letters =
            *rng.pick(&["etaoinsrhl", "abcdefghijklmnopqrstuvwxyz", "0123456789-e", "xn-q"]);
        return (0..length).map(|_| char::from(*rng.pick(letters.as_bytes()))).collect();
    }
    let label = label(rng, names);
    let length = length.min(label.len());
    let start = match at_end {
        true => label.len() - length,
        false => rng.below(label.len() - length + 1),
    };
    label[start..start + length].iter().collect()
}

/// Returns a label of 3 to 30 characters with up to two edits.
fn misspelt(rng: &mut Rng, mut label: Vec<char>) -> Vec<char> {
    label.truncate(28);
    while label.len() < 3 {
        label.push('e');
    }
    for _ in 0..rng.below(3) {
        let at = rng.below(label.len() - 1);
        match rng.below(4) {
            0 => label.swap(at, at + 1),
            1 if label.len() > 3 => drop(label.remove(at)),
            2 => label.insert(at, 'e'),
            _ => label[at] = 'o',
        }
    }
    label
}

/// Number of queries that found names, more names than are counted, and drops.
#[derive(Default)]
struct Found {
    names: usize,
    capped: usize,
    drops: usize,
}

#[test]
fn text_anywhere_is_found_as_by_a_scan() {
    let seed = seed_of_the_commit();
    let indexes = Indexes::make(seed);
    let parts = thread::scope(|scope| {
        let indexes = &indexes;
        let part = |part| scope.spawn(move || ask(indexes, seed, part));
        let parts: [_; THREADS] = std::array::from_fn(part);
        parts.map(|part| part.join().expect("every answer is as by a scan"))
    });
    let sum = |of: fn(&Found) -> usize| parts.iter().map(of).sum::<usize>();
    let (names, capped, drops) = (sum(|it| it.names), sum(|it| it.capped), sum(|it| it.drops));
    say(&format!("{names} queries found names, {capped} more than are counted, {drops} drops"));
    assert!(names > QUERIES / 2 && capped > QUERIES / 100 && drops > QUERIES / 50);
}

/// Sends a part of the queries, each to one of the indexes.
fn ask(indexes: &Indexes, seed: u64, part: usize) -> Found {
    let mut rng = Rng::new(seed ^ (part as u64) << 32);
    let mut found = Found::default();
    for at in 0..QUERIES / THREADS {
        let query = Query::draw(&mut rng, &indexes.names);
        let expected = query.scan(&indexes.names);
        found.names += usize::from(!expected.is_empty());
        found.capped += usize::from(expected.len() > SEARCH_TOTAL_MAX as usize);
        let (which, index) = match rng.below(20) {
            0..9 => ("two layers", &indexes.extended),
            9..17 => ("one layer", &indexes.whole),
            _ => ("without trigrams", &indexes.without),
        };
        let place = format!("DROPDEX_SEED={seed} part {part} query {at}, {which}: {}", query.url());
        let page = Page::draw(&mut rng, expected.len());
        page.check(index, indexes, &query, &expected, &place);
        if rng.chance(10) {
            let dropped: Vec<&Name> = expected.into_iter().filter(|name| name.dropped).collect();
            found.drops += usize::from(!dropped.is_empty());
            check_drops(index, indexes, &query, dropped, &place);
        }
    }
    found
}

/// A page of a search.
struct Page {
    limit: u32,
    offset: u32,
}

impl Page {
    /// Draws a page of `names` names, often the first one.
    fn draw(rng: &mut Rng, names: usize) -> Page {
        let limit = *rng.pick(&[1, 20, 100]);
        let offset = if rng.chance(50) { 0 } else { rng.below(names.min(9_000) + 3) as u32 };
        Page { limit, offset }
    }

    fn check(
        &self,
        index: &Index,
        indexes: &Indexes,
        query: &Query,
        expected: &[&Name],
        place: &str,
    ) {
        let Page { limit, offset } = *self;
        let (_, filter) = Params::from_pairs(&query.pairs())
            .search(indexes.as_of.today)
            .unwrap_or_else(|err| panic!("{place}: {err:?}"));
        assert_eq!(filter.prefix, None, "{place}");
        let page = index.search(&SearchFilter { limit, offset, ..filter }, indexes.as_of);
        let most = SEARCH_TOTAL_MAX as usize;
        let totals = (page.total as usize, page.capped);
        assert_eq!(totals, (expected.len().min(most), expected.len() > most), "{place}");
        let mut rows = Vec::new();
        page.for_each_placed(|row, dqs, _| rows.push((row.domain.to_owned(), dqs.points())));
        let expected = expected.iter().skip(offset as usize).take(limit as usize);
        let expected: Vec<_> =
            expected.map(|name| (name.name.as_str().to_owned(), name.dqs)).collect();
        assert_eq!(rows, expected, "{place}&limit={limit}&offset={offset}");
    }
}

/// Reads the first pages of the drop list by their cursors, in name order, and compares the totals.
fn check_drops(
    index: &Index,
    indexes: &Indexes,
    query: &Query,
    mut expected: Vec<&Name>,
    place: &str,
) {
    let mut pairs = query.pairs();
    pairs.extend([("view", "all"), ("sort", "name")]);
    let limits = Limits { default: DROPS_LIMIT_DEFAULT, max: DROPS_LIMIT_MAX };
    let filter = Params::from_pairs(&pairs).drops(limits, indexes.as_of.today);
    let filter = filter.unwrap_or_else(|err| panic!("{place}: {err:?}"));
    expected.sort_by(|one, other| one.name.cmp(&other.name));
    let expected: Vec<&str> = expected.iter().map(|name| name.name.as_str()).collect();
    let limit = (expected.len() / PAGES + 1).min(10);
    let mut next = DropFilter { limit: limit as u32, ..filter.clone() };
    let (mut rows, mut totals) = (Vec::new(), Vec::new());
    for page in 1..=PAGES {
        let found = index.drops(&next, indexes.as_of, Counting::Estimate).expect("readable");
        found.for_each(|row| rows.push(row.name.to_owned()));
        totals.extend(found.total);
        assert_eq!(found.next.is_some(), expected.len() > page * limit, "{place}");
        let Some(after) = found.next else { break };
        next.after = Some(after);
    }
    let read = expected.len().min(PAGES * limit);
    assert_eq!(rows, &expected[..read], "{place}");
    let names = expected.len() as u64;
    for total in &totals {
        let count = u64::from(total.count());
        assert!(if total.is_exact() { count == names } else { is_near(count, names) }, "{place}");
    }
    // In any order, equal filters have equal totals.
    let total = |sort, counting| {
        let filter = DropFilter { sort, limit: 1, ..filter.clone() };
        index.drops(&filter, indexes.as_of, counting).expect("readable").total
    };
    let estimates = [SortKey::Dqs, SortKey::Release]
        .map(|key| total(Sort::natural(key), Counting::Estimate).expect("counted"));
    assert_eq!(estimates[0], estimates[1], "{place}");
    assert_eq!(total(filter.sort, Counting::None), None, "{place}");
    let exact = total(filter.sort, Counting::Exact).expect("counted");
    assert_eq!((exact.is_exact(), u64::from(exact.count())), (true, names), "{place}");
}
