//! Client queries drawn from a seed, in the forms that HTTP and the other interfaces accept.

use std::fmt;
use std::ops::RangeInclusive;

use anyhow::anyhow;
use dropdex::index::filter::DropFilter;
use dropdex::query::params::{Limits, Params};
use dropdex::vocab::day::Day;
use dropdex::vocab::kind::Kind;
use dropdex::vocab::language::LanguageCode;
use dropdex::vocab::limits::{DROPS_LIMIT_DEFAULT, DROPS_LIMIT_MAX};
use dropdex::vocab::name::DomainName;
use dropdex::vocab::stage::Stage;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;

use crate::answer::Ask;
use crate::common::rng::Rng;
use crate::market::{Column, Market};

/// RFC 3986 §2.3: unreserved characters need no escape.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The row limits of `GET /api/v1/drops`.
const DROPS_LIMITS: Limits = Limits { default: DROPS_LIMIT_DEFAULT, max: DROPS_LIMIT_MAX };

/// The list that a query is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum List {
    Search,
    Drops,
    Suggest,
}

/// A requested part of the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum View {
    Today,
    All,
}

/// One query, parameter by parameter; parameters that are absent are not sent.
#[derive(Clone, Debug, Serialize)]
pub struct Query {
    pub list: List,
    pub q: Option<String>,
    pub tlds: Vec<String>,
    pub min_dqs: Option<u8>,
    pub max_len: Option<u8>,
    pub stage: Option<Stage>,
    pub view: Option<View>,
    /// Conditions that must all hold.
    pub conditions: Vec<Condition>,
    pub text: Option<Text>,
    /// The column, and whether the largest values come first.
    pub sort: Option<(SortBy, bool)>,
    pub limit: u32,
    pub offset: u32,
}

/// A condition on a column of names that dropped.
#[derive(Clone, Debug, Serialize)]
pub struct Condition {
    pub column: Column,
    pub low: u16,
    pub high: u16,
    /// The value is one of these, unless the list is empty.
    pub any: Vec<u16>,
    /// The parameter as it is sent.
    #[serde(skip)]
    sent: Vec<(&'static str, String)>,
}

impl Condition {
    /// Whether a value passes.
    pub fn passes(&self, value: u16) -> bool {
        (self.low..=self.high).contains(&value)
            && (self.any.is_empty() || self.any.contains(&value))
    }
}

/// A condition on the text of the label.
#[derive(Clone, Debug, Serialize)]
pub struct Text {
    /// The parameter, and its value as it is sent.
    pub parameter: &'static str,
    pub value: String,
    /// The same condition as a regular expression.
    pub regex: String,
}

/// The keys that drops are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SortBy {
    Dqs,
    Release,
    DropDate,
    Length,
    Name,
    OtherTlds,
}

impl SortBy {
    const ALL: [(SortBy, &str); 6] = [
        (SortBy::Dqs, "dqs"),
        (SortBy::Release, "release"),
        (SortBy::DropDate, "dropped"),
        (SortBy::Length, "length"),
        (SortBy::Name, "name"),
        (SortBy::OtherTlds, "tlds"),
    ];

    /// Returns the key's name in the API.
    pub fn word(self) -> &'static str {
        SortBy::ALL[self as usize].1
    }
}

impl Query {
    /// Creates a query for `list` without filters.
    pub fn plain(list: List, limit: u32) -> Query {
        Query {
            list,
            q: None,
            tlds: Vec::new(),
            min_dqs: None,
            max_len: None,
            stage: None,
            view: None,
            conditions: Vec::new(),
            text: None,
            sort: None,
            limit,
            offset: 0,
        }
    }

    /// Returns path and query string.
    pub fn target(&self) -> String {
        let path = match self.list {
            List::Search => "/api/v1/search",
            List::Drops => "/api/v1/drops",
            List::Suggest => "/api/v1/suggest",
        };
        format!("{path}?{}", self.parameters())
    }

    /// Parses a query string for drops.
    ///
    /// # Errors
    ///
    /// The API refuses it.
    pub fn drop_filter(query: &str) -> anyhow::Result<DropFilter> {
        let filter = Params::new(Some(query)).drops(DROPS_LIMITS, Day::MIN);
        filter.map_err(|err| anyhow!("{query}: {err:?}"))
    }

    /// Parses the query as the API does.
    ///
    /// # Errors
    ///
    /// The API refuses it.
    pub fn ask(&self) -> anyhow::Result<Ask> {
        let parameters = self.parameters();
        let params = Params::new(Some(&parameters));
        let ask = match self.list {
            List::Search => params.search(Day::MIN).map(|(_, filter)| Ask::Search(filter)),
            List::Drops => params.drops(DROPS_LIMITS, Day::MIN).map(Ask::Drops),
            List::Suggest => params.suggest(Day::MIN).map(Ask::Suggest),
        };
        ask.map_err(|err| anyhow!("{self}: {err:?}"))
    }

    fn parameters(&self) -> String {
        let tlds = (!self.tlds.is_empty()).then(|| self.tlds.join(","));
        let view = self.view.map(|view| match view {
            View::Today => "today".to_owned(),
            View::All => "all".to_owned(),
        });
        let sent = [
            ("q", self.q.clone()),
            ("tld", tlds),
            ("min_dqs", self.min_dqs.map(|points| points.to_string())),
            ("max_len", self.max_len.map(|chars| chars.to_string())),
            ("stage", self.stage.map(|stage| stage.to_string())),
            ("view", view),
            ("limit", Some(self.limit.to_string())),
            ("offset", (self.offset > 0).then(|| self.offset.to_string())),
            ("sort", self.sort.map(|(by, _)| by.word().to_owned())),
            ("order", self.sort.map(|(_, down)| if down { "desc" } else { "asc" }.to_owned())),
        ];
        let more = self.conditions.iter().flat_map(|condition| condition.sent.clone());
        let text = self.text.iter().map(|text| (text.parameter, text.value.clone()));
        let more = more.chain(text).map(|(name, value)| (name, Some(value)));
        let pairs = sent.into_iter().chain(more).filter_map(|(name, value)| {
            Some(format!("{name}={}", utf8_percent_encode(&value?, ESCAPED)))
        });
        pairs.collect::<Vec<_>>().join("&")
    }
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.target())
    }
}

/// Queries on one market; equal seeds give equal queries.
pub struct Mixes {
    pub search: Vec<Query>,
    pub search_narrow: Vec<Query>,
    pub drops: Vec<Query>,
    pub drops_long: Vec<Query>,
    pub dossiers: Vec<DomainName>,
    /// Drops by any filters of sets and ranges, in any order.
    pub filters: Vec<Query>,
    /// Drops by pattern, regular expression or edit distance.
    pub shapes: Vec<Query>,
    /// Names by text, pattern or regular expression, without a prefix.
    pub whole: Vec<Query>,
    /// Names by a text of four letters or more, of three, and by the kinds of their letters alone.
    pub long_texts: Vec<Query>,
    pub short_texts: Vec<Query>,
    pub letter_kinds: Vec<Query>,
    pub suggest: Vec<Query>,
}

impl Mixes {
    /// Draws `count` queries of each mix.
    pub fn draw(market: &Market, seed: u64, count: usize) -> Mixes {
        let draw = |mix: u64, make: &dyn Fn(&mut Asker<'_>) -> Query| -> Vec<Query> {
            let mut asker = Asker::new(market, seed, mix);
            (0..count).map(|_| make(&mut asker)).collect()
        };
        let suggest = |asker: &mut Asker<'_>| Query {
            q: asker.keystroke(1..=8).q,
            ..Query::plain(List::Suggest, 8)
        };
        let mut asker = Asker::new(market, seed, 5);
        Mixes {
            filters: draw(6, &|asker| asker.filters()),
            shapes: draw(7, &|asker| asker.shape(List::Drops, 100)),
            whole: draw(8, &|asker| asker.shape(List::Search, 20)),
            long_texts: draw(10, &|asker| asker.text_anywhere(4..=8)),
            short_texts: draw(11, &|asker| asker.text_anywhere(3..=3)),
            letter_kinds: draw(12, &|asker| asker.letter_kinds()),
            suggest: draw(9, &suggest),
            search: draw(1, &|asker| asker.keystroke(1..=8)),
            search_narrow: draw(2, &|asker| asker.keystroke(3..=8)),
            drops: draw(3, &|asker| asker.drops(20)),
            drops_long: draw(4, &|asker| asker.drops(100)),
            dossiers: (0..count).map(|_| asker.dossier()).collect(),
        }
    }

    /// Returns the mixes of list queries with their names.
    pub fn lists(&self) -> [(&'static str, &[Query]); 4] {
        [
            ("search, keystrokes (1 to 8 characters)", &self.search),
            ("search, 3 to 8 characters", &self.search_narrow),
            ("drops, limit 20", &self.drops),
            ("drops, limit 100", &self.drops_long),
        ]
    }
}

/// Parses all of `queries`.
///
/// # Errors
/// The API refuses one.
pub fn asks(queries: &[Query]) -> anyhow::Result<Vec<Ask>> {
    queries.iter().map(Query::ask).collect()
}

/// Draws queries about one market.
pub struct Asker<'a> {
    market: &'a Market,
    rng: Rng,
}

impl<'a> Asker<'a> {
    /// Creates the same queries for the same market, `seed` and `mix`, a number chosen by the caller.
    pub fn new(market: &'a Market, seed: u64, mix: u64) -> Asker<'a> {
        Asker { market, rng: Rng::at(seed, mix) }
    }

    /// Draws a prefix of the given length, with its frequency among names; half of the queries have
    /// one or two filters. Limit 20.
    pub fn keystroke(&mut self, chars: RangeInclusive<u64>) -> Query {
        let chars = self.between(chars);
        let prefix = self.spelling().chars().take(chars as usize).collect();
        let mut query = Query { q: Some(prefix), ..Query::plain(List::Search, 20) };
        if self.rng.chance(500) {
            for _ in 0..self.between(1..=2) {
                match self.rng.below(4) {
                    0 => query.tlds = vec![self.tld()],
                    1 => query.min_dqs = Some(self.points()),
                    2 => query.max_len = Some(self.between(4..=15) as u8),
                    _ => query.stage = Some(self.stage()),
                }
            }
        }
        query
    }

    /// Draws a page of drops: each filter occurs in four of ten queries, a substring of 1 to 20
    /// characters of a name in a third, an offset up to 5,000 in a quarter.
    pub fn drops(&mut self, limit: u32) -> Query {
        let mut query = Query::plain(List::Drops, limit);
        if self.rng.below(3) == 0 {
            query.q = Some(self.substring());
        }
        if self.rng.chance(400) {
            query.tlds = (0..self.between(1..=3)).map(|_| self.tld()).collect();
        }
        if self.rng.chance(400) {
            query.min_dqs = Some(self.points());
        }
        if self.rng.chance(400) {
            query.max_len = Some(self.between(4..=20) as u8);
        }
        if self.rng.chance(400) {
            match self.rng.below(6) {
                0 => query.view = Some(View::Today),
                1 => query.view = Some(View::All),
                _ => query.stage = Some(self.stage()),
            }
        }
        if self.rng.chance(250) {
            query.offset = self.between(1..=5_000) as u32;
        }
        query
    }

    /// Draws a name of the corpus; one in ten is similar to such a name but not in the corpus.
    pub fn dossier(&mut self) -> DomainName {
        let name = self.market.name(self.place());
        if self.rng.chance(900) {
            return name;
        }
        DomainName::parse(&format!("{}-0x.{}", name.label(), name.tld())).unwrap_or(name)
    }

    /// Draws a page of 100 drops by one to four filters of sets and ranges; two in three are in an
    /// order other than rank order.
    pub fn filters(&mut self) -> Query {
        let mut query = Query::plain(List::Drops, 100);
        for _ in 0..self.between(1..=4) {
            match self.rng.below(15) {
                0 => query.tlds = (0..self.between(1..=3)).map(|_| self.tld()).collect(),
                1 => query.min_dqs = Some(self.points()),
                2 => query.stage = Some(self.stage()),
                3 => query.view = Some(View::All),
                _ => {
                    let condition = self.condition();
                    if query.conditions.iter().all(|it| it.column != condition.column) {
                        query.conditions.push(condition);
                    }
                }
            }
        }
        if self.rng.below(3) > 0 {
            let (by, _) = SortBy::ALL[self.rng.below(SortBy::ALL.len() as u64) as usize];
            query.sort = Some((by, self.rng.chance(500)));
        }
        query
    }

    /// Draws a condition that some dropped name meets.
    fn condition(&mut self) -> Condition {
        let all = self.market.all_facts();
        let values = all[self.rng.below(all.len() as u64) as usize].1.values;
        let of = |column: Column| values[column as usize];
        let range = |column,
                     (low, high): (u16, u16),
                     names: [&'static str; 2],
                     text: &dyn Fn(u16) -> String| {
            let bounds = [(low, 0), (high, u16::MAX)].into_iter().zip(names);
            let sent = bounds.filter(|((bound, open), _)| bound != open);
            let sent = sent.map(|((bound, _), name)| (name, text(bound))).collect();
            Condition { column, low, high, any: Vec::new(), sent }
        };
        let one = |column, any: Vec<u16>, name: &'static str, text: String| Condition {
            column,
            low: 0,
            high: u16::MAX,
            any,
            sent: vec![(name, text)],
        };
        let number = |number: u16| number.to_string();
        let day = |raw: u16| Day::from_raw(raw).unwrap_or(Day::MIN).to_string();
        let near = self.between(0..=6) as u16;
        match self.rng.below(13) {
            0 => {
                let length = of(Column::Length).clamp(4, 20);
                range(Column::Length, (0, length), ["min_len", "max_len"], &number)
            }
            1 => {
                let length = of(Column::Length).clamp(3, 12);
                let bounds = (length.saturating_sub(near / 3), length + near / 3);
                range(Column::Length, bounds, ["min_len", "max_len"], &number)
            }
            2 => {
                let bounds = (of(Column::Words), of(Column::Words).saturating_add(near / 4));
                range(
                    Column::Words,
                    (bounds.0, bounds.1.min(15)),
                    ["min_words", "max_words"],
                    &number,
                )
            }
            3 => {
                let kind = of(Column::Kind);
                one(Column::Kind, vec![kind], "kind", Kind::ALL[usize::from(kind)].to_string())
            }
            4 => {
                let language = of(Column::Language).max(1);
                let code = LanguageCode::ALL[usize::from(language) - 1].to_string();
                one(Column::Language, vec![language], "language", code)
            }
            5 => one(Column::Capped, vec![0], "caps", "none".into()),
            6 => one(Column::Digits, vec![0], "digits", "none".into()),
            7 => one(Column::Hyphens, vec![0], "hyphens", "none".into()),
            11 => one(Column::Idn, vec![0], "idn", "none".into()),
            12 => range(Column::Drops, (2, u16::MAX), ["min_drops", "max_drops"], &number),
            8 => {
                let least = of(Column::OtherTlds).min(3);
                range(Column::OtherTlds, (least, u16::MAX), ["min_tlds", "max_tlds"], &number)
            }
            9 => {
                let from = of(Column::DropDate);
                range(Column::DropDate, (from, from + near), ["dropped_from", "dropped_to"], &day)
            }
            _ => {
                let from = of(Column::Release);
                range(Column::Release, (from, from + near), ["release_from", "release_to"], &day)
            }
        }
    }

    /// Draws a condition on the text of the label: of drops by pattern, regular expression or edit
    /// distance, of a search by text, end, pattern or regular expression.
    pub fn shape(&mut self, list: List, limit: u32) -> Query {
        let label = self.ascii_label(4..=20);
        let text = |chars: &[char]| chars.iter().collect::<String>();
        let length = self.between(3..=6).min(label.len() as u64) as usize;
        let start = self.rng.below((label.len() - length) as u64 + 1) as usize;
        let part = text(&label[start..start + length]);
        let end = text(&label[label.len() - length..]);
        let (parameter, value, regex) = match (list, self.rng.below(4)) {
            (List::Search, 0) => ("contains", part.clone(), part),
            (List::Search, 1) => ("ends", end.clone(), format!("{end}$")),
            (List::Drops, 0) if label.len() > 5 => ("like", text(&label), String::new()),
            (_, 2) => {
                // Vowels and consonants of a short label, or a text at one of its ends.
                let is_short = label.len() <= 6 && list == List::Drops;
                let (pattern, regex) = if is_short {
                    let shape = label.iter().map(|char| match char {
                        'a' | 'e' | 'i' | 'o' | 'u' | 'y' => ("V", "[aeiouy]"),
                        _ => ("C", "[b-df-hj-np-tv-z]"),
                    });
                    let (pattern, classes): (String, String) = shape.unzip();
                    (pattern, format!("^{classes}$"))
                } else {
                    (format!("*{end}"), format!("{end}$"))
                };
                ("pattern", pattern, regex)
            }
            _ => {
                let regex = match self.rng.below(3) {
                    0 => format!("{}.{}", &part[..2], &part[2..]),
                    1 => format!("({part}|{end})s?$"),
                    _ => format!("^{part}[a-z]+{}", &end[end.len() - 2..]),
                };
                ("regex", regex.clone(), regex)
            }
        };
        let text = Some(Text { parameter, value, regex });
        Query { text, ..Query::plain(list, limit) }
    }

    /// Draws a search for a text in the middle or at the end of a label, in `letters` letters.
    pub fn text_anywhere(&mut self, letters: RangeInclusive<u64>) -> Query {
        let label = self.ascii_label(*letters.start() as usize..=20);
        let length = self.between(letters).min(label.len() as u64) as usize;
        let start = self.rng.below((label.len() - length) as u64 + 1) as usize;
        let part: String = label[start..start + length].iter().collect();
        let end: String = label[label.len() - length..].iter().collect();
        let (parameter, value, regex) = match self.rng.below(3) {
            0 => ("contains", part.clone(), part),
            1 => ("ends", end.clone(), format!("{end}$")),
            _ => ("regex", format!("{part}s?[a-z]*$"), format!("{part}s?[a-z]*$")),
        };
        let text = Some(Text { parameter, value, regex });
        Query { text, ..Query::plain(List::Search, 20) }
    }

    /// Draws a search for the kinds of letters of a short label.
    pub fn letter_kinds(&mut self) -> Query {
        let label = self.ascii_label(4..=6);
        let is_vowel = |char: &char| matches!(char, 'a' | 'e' | 'i' | 'o' | 'u' | 'y');
        let classes: String = label
            .iter()
            .map(|it| if is_vowel(it) { "[aeiouy]" } else { "[b-df-hj-np-tv-z]" })
            .collect();
        let (parameter, value, regex) = if self.rng.below(2) == 0 {
            let kinds = label.iter().map(|it| if is_vowel(it) { 'V' } else { 'C' }).collect();
            ("pattern", kinds, format!("^{classes}$"))
        } else {
            let regex = format!("^{classes}[0-9]?$");
            ("regex", regex.clone(), regex)
        };
        let text = Some(Text { parameter, value, regex });
        Query { text, ..Query::plain(List::Search, 20) }
    }

    /// Draws a label of the letters a to z.
    fn ascii_label(&mut self, letters: RangeInclusive<usize>) -> Vec<char> {
        loop {
            let at = self.place();
            let label = self.market.label(at);
            if letters.contains(&label.len()) && label.bytes().all(|it| it.is_ascii_lowercase()) {
                return label.chars().collect();
            }
        }
    }

    fn place(&mut self) -> usize {
        self.rng.below(self.market.len() as u64) as usize
    }

    /// Draws a name in the form that people enter: in Unicode.
    fn spelling(&mut self) -> &'a str {
        let at = self.place();
        self.market.unicode(at).unwrap_or_else(|| self.market.text(at))
    }

    fn substring(&mut self) -> String {
        let name: Vec<char> = self.spelling().chars().collect();
        let chars = self.between(1..=20).min(name.len() as u64);
        let start = self.rng.below(name.len() as u64 - chars + 1);
        name[start as usize..(start + chars) as usize].iter().collect()
    }

    /// Draws a TLD with its frequency among names.
    fn tld(&mut self) -> String {
        let at = self.place();
        self.market.tld(at).to_owned()
    }

    fn points(&mut self) -> u8 {
        self.between(10..=90) as u8
    }

    fn stage(&mut self) -> Stage {
        Stage::ALL[self.rng.below(Stage::ALL.len() as u64) as usize]
    }

    fn between(&mut self, range: RangeInclusive<u64>) -> u64 {
        range.start() + self.rng.below(range.end() - range.start() + 1)
    }
}
