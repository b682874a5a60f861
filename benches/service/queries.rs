//! Client queries drawn from a seed: as sent over HTTP, and as every other way of asking
//! takes it.

use std::fmt;
use std::ops::RangeInclusive;

use anyhow::anyhow;
use dropdex::http::params::{Limits, Params};
use dropdex::vocab::day::Day;
use dropdex::vocab::limits::{DROPS_LIMIT_DEFAULT, DROPS_LIMIT_MAX};
use dropdex::vocab::name::DomainName;
use dropdex::vocab::stage::Stage;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;

use crate::answer::Ask;
use crate::common::rng::Rng;
use crate::market::Market;

/// RFC 3986 §2.3: what needs no escape anywhere.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The row limits of `GET /api/v1/drops`.
const DROPS_LIMITS: Limits = Limits { default: DROPS_LIMIT_DEFAULT, max: DROPS_LIMIT_MAX };

/// The list that a query is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum List {
    Search,
    Drops,
}

/// A part of the pipeline asked for by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum View {
    Today,
    All,
}

/// One query, parameter by parameter; what is absent is not sent.
#[derive(Clone, Debug, Serialize)]
pub struct Query {
    pub list: List,
    pub q: Option<String>,
    pub tlds: Vec<String>,
    pub min_dqs: Option<u8>,
    pub max_len: Option<u8>,
    pub stage: Option<Stage>,
    pub view: Option<View>,
    pub limit: u32,
    pub offset: u32,
}

impl Query {
    /// A query for `list` without any filter.
    pub fn plain(list: List, limit: u32) -> Query {
        Query {
            list,
            q: None,
            tlds: Vec::new(),
            min_dqs: None,
            max_len: None,
            stage: None,
            view: None,
            limit,
            offset: 0,
        }
    }

    /// Path and query string.
    pub fn target(&self) -> String {
        let path = match self.list {
            List::Search => "/api/v1/search",
            List::Drops => "/api/v1/drops",
        };
        format!("{path}?{}", self.parameters())
    }

    /// As the index takes it, through the door of the API.
    ///
    /// # Errors
    /// The API refuses it.
    pub fn ask(&self) -> anyhow::Result<Ask> {
        let parameters = self.parameters();
        let params = Params::new(Some(&parameters));
        let ask = match self.list {
            List::Search => params.search(Day::MIN).map(|(_, filter)| Ask::Search(filter)),
            List::Drops => params.drops(DROPS_LIMITS, Day::MIN).map(Ask::Drops),
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
        ];
        let pairs = sent.into_iter().filter_map(|(name, value)| {
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

/// Queries of one market; equal seeds give equal queries.
pub struct Mixes {
    pub search: Vec<Query>,
    pub search_narrow: Vec<Query>,
    pub drops: Vec<Query>,
    pub drops_long: Vec<Query>,
    pub dossiers: Vec<DomainName>,
}

impl Mixes {
    /// `count` questions of each mix.
    pub fn draw(market: &Market, seed: u64, count: usize) -> Mixes {
        let draw = |mix: u64, make: &dyn Fn(&mut Asker<'_>) -> Query| -> Vec<Query> {
            let mut asker = Asker::new(market, seed, mix);
            (0..count).map(|_| make(&mut asker)).collect()
        };
        let mut asker = Asker::new(market, seed, 5);
        Mixes {
            search: draw(1, &|asker| asker.keystroke(1..=8)),
            search_narrow: draw(2, &|asker| asker.keystroke(3..=8)),
            drops: draw(3, &|asker| asker.drops(20)),
            drops_long: draw(4, &|asker| asker.drops(100)),
            dossiers: (0..count).map(|_| asker.dossier()).collect(),
        }
    }

    /// The mixes of list queries with what they are called.
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
    /// The same queries for the same market, `seed` and `mix`, a number of the caller's.
    pub fn new(market: &'a Market, seed: u64, mix: u64) -> Asker<'a> {
        Asker { market, rng: Rng::at(seed, mix) }
    }

    /// A prefix of the given length, drawn as often as names have it; in half of
    /// the cases with one or two filters. Limit 20.
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

    /// A page of drops: each filter in four of ten, a substring of 1 to 20 characters of a name
    /// in a third, an offset up to 5,000 in a quarter.
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

    /// A name of the corpus; one in ten is like one and not in it.
    pub fn dossier(&mut self) -> DomainName {
        let name = self.market.name(self.place());
        if self.rng.chance(900) {
            return name;
        }
        DomainName::parse(&format!("{}-0x.{}", name.label(), name.tld())).unwrap_or(name)
    }

    fn place(&mut self) -> usize {
        self.rng.below(self.market.len() as u64) as usize
    }

    /// A name as people type it: in Unicode.
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

    /// A TLD, drawn as often as names have it.
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
