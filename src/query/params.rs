//! Query strings parsed into requests. Values out of range and repeated parameters are errors, and an
//! empty value counts as absent. Unknown parameters are ignored here.

use std::borrow::Cow;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use percent_encoding::percent_decode_str;

use crate::conditions::{CONDITIONS, Parsed, SHARED};
use crate::error::{BadParameter, ParameterCode};
use crate::facts;
use crate::filter::{Adult, Filter};
use crate::list;
use crate::matcher::Matcher;
use crate::request::{
    DropFilter, FACT_SORT, Facet, SearchFilter, Sort, SortKey, SuggestFilter, View,
};
use crate::text::{NamePrefix, Substring};
use crate::vocab::change::{ChangeKind, ChangeKinds};
use crate::vocab::day::Day;
use crate::vocab::fact::FactName;
use crate::vocab::limits::{
    CHANGES_LIMIT_DEFAULT, CHANGES_LIMIT_MAX, CHANGES_WAIT_SECONDS_MAX, DROPS_OFFSET_MAX,
    FACTS_SHOWN_MAX, SEARCH_LIMIT_DEFAULT, SEARCH_LIMIT_MAX, SEARCH_OFFSET_MAX,
    SUGGEST_LIMIT_DEFAULT, SUGGEST_LIMIT_MAX,
};
use crate::vocab::name::DomainName;

/// Default and maximum of `limit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub default: u32,
    pub max: u32,
}

/// A window of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paging {
    pub limit: u32,
    pub offset: u32,
}

impl Paging {
    /// Returns the rows of `rows` that are on this page.
    pub fn rows<I: Iterator>(self, rows: I) -> impl Iterator<Item = I::Item> {
        rows.skip(self.offset as usize).take(self.limit as usize)
    }
}

/// A query of the events of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangesQuery {
    /// Sequence number after which the events start.
    pub since: Option<u64>,
    pub limit: u32,
    pub kinds: ChangeKinds,
    /// The only name.
    pub domain: Option<DomainName>,
    /// Only names that the account watches.
    pub watched: bool,
    /// Conditions on the current state of the names.
    pub filter: Filter,
    pub view: Option<View>,
    /// How long to wait for the first event.
    pub wait: Duration,
}

/// A query string split into parameters.
#[derive(Clone, Debug)]
pub struct Params<'a> {
    /// Decoded names and values, in order; `None` for a value that does not decode. Names that do
    /// not decode are unknown parameters and are dropped.
    pairs: Vec<(Cow<'a, str>, Option<Cow<'a, str>>)>,
}

/// Initial capacity for parameters.
const PAIRS_EXPECTED: usize = 8;

impl<'a> Params<'a> {
    /// Wraps parameters that are already decoded.
    pub fn from_pairs(pairs: &[(&'a str, &'a str)]) -> Params<'a> {
        let pair = |&(name, value): &(&'a str, &'a str)| (name.into(), Some(value.into()));
        Params { pairs: pairs.iter().map(pair).collect() }.with_facts()
    }

    /// Splits the part of a URL after the question mark.
    pub fn new(query: Option<&'a str>) -> Params<'a> {
        let mut pairs = Vec::with_capacity(PAIRS_EXPECTED);
        for pair in query.unwrap_or_default().split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            pairs.extend(decode(name).map(|name| (name, decode(value))));
        }
        Params { pairs }.with_facts()
    }

    /// Replaces the parameters of single facts by items of [`facts::FACT`].
    fn with_facts(mut self) -> Params<'a> {
        let mut items = Vec::new();
        self.pairs.retain(|(name, value)| {
            let item = value.as_deref().and_then(|value| facts::item(name, value));
            let is_fact = item.is_some();
            items.extend(item.filter(|item| !item.is_empty()));
            !is_fact
        });
        if !items.is_empty() {
            let known = self.pairs.iter_mut().find(|(name, _)| name == facts::FACT);
            match known {
                Some((_, Some(value))) => *value = format!("{value},{}", items.join(",")).into(),
                _ => self.pairs.push((facts::FACT.into(), Some(items.join(",").into()))),
            }
        }
        self
    }

    /// Parses the drops filter, with the row limits of the endpoint.
    ///
    /// # Errors
    /// The first invalid parameter.
    pub fn drops(&self, limits: Limits, today: Day) -> Result<DropFilter, BadParameter> {
        let parsed = Parsed::new(CONDITIONS, today, |name| self.get(name))?;
        let view = self.view(&parsed)?.unwrap_or(View::Active);
        let (sort, sort_fact) = self.sort()?;
        Ok(DropFilter {
            view,
            sort,
            sort_fact,
            limit: self.integer("limit", 1..=limits.max)?.unwrap_or(limits.default),
            offset: self.integer("offset", 0..=DROPS_OFFSET_MAX)?.unwrap_or(0),
            ..DropFilter::of(parsed)
        })
    }

    /// Parses the search filter. Also returns `q` as sent.
    ///
    /// # Errors
    /// The first invalid parameter.
    pub fn search(&self, today: Day) -> Result<(String, SearchFilter), BadParameter> {
        let parsed = Parsed::new(SHARED, today, |name| self.get(name))?;
        let view = self.view(&parsed)?;
        let common = parsed.filter;
        let sent = self.sent("q")?.unwrap_or_default();
        // Without a prefix, another condition on the text must narrow the search.
        let prefix = match NamePrefix::parse(sent) {
            Err(_) if sent.is_empty() && common.label.has_text() => None,
            parsed => Some(parsed.map_err(|err| BadParameter::new("q", err))?),
        };
        let filter = SearchFilter {
            prefix,
            common,
            // `all` selects every name, as if no view were given.
            view: view.filter(|view| *view != View::All),
            limit: self.integer("limit", 1..=SEARCH_LIMIT_MAX)?.unwrap_or(SEARCH_LIMIT_DEFAULT),
            offset: self.integer("offset", 0..=SEARCH_OFFSET_MAX)?.unwrap_or(0),
        };
        Ok((sent.to_owned(), filter))
    }

    /// Parses the query of the events of names.
    ///
    /// # Errors
    /// The first invalid parameter.
    pub fn changes(&self, today: Day) -> Result<ChangesQuery, BadParameter> {
        let since = self.get("since")?.map(sequence).transpose();
        let kinds: Vec<ChangeKind> = self.list("event")?;
        let domain = self.get("domain")?.map(DomainName::parse).transpose();
        let wait = self.integer("wait", 0..=CHANGES_WAIT_SECONDS_MAX)?.unwrap_or(0);
        let mut parsed = Parsed::new(SHARED, today, |name| self.get(name))?;
        if self.get("adult")?.is_none() {
            // A mirror of the data needs the events of all names.
            parsed.filter.adult = Adult::Include;
        }
        Ok(ChangesQuery {
            since: since.map_err(|what| BadParameter::new("since", what))?,
            limit: self.integer("limit", 1..=CHANGES_LIMIT_MAX)?.unwrap_or(CHANGES_LIMIT_DEFAULT),
            kinds: if kinds.is_empty() { ChangeKinds::ALL } else { kinds.into_iter().collect() },
            domain: domain.map_err(|what| BadParameter::new("domain", what))?,
            watched: self.flag("watched")?,
            view: self.view(&parsed)?,
            filter: parsed.filter,
            wait: Duration::from_secs(wait.into()),
        })
    }

    /// Parses the query of a type-ahead.
    ///
    /// # Errors
    /// The first invalid parameter.
    pub fn suggest(&self, today: Day) -> Result<SuggestFilter, BadParameter> {
        let sent = self.sent("q")?.unwrap_or_default();
        let prefix = NamePrefix::parse(sent).map_err(|err| BadParameter::new("q", err))?;
        // The tables of all names answer these conditions.
        let parsed = Parsed::new(SHARED, today, |name| match name {
            "tld" | "min_dqs" | "max_len" => self.get(name),
            _ => Ok(None),
        })?;
        let view = self.view(&parsed)?;
        let limit = self.integer("limit", 1..=SUGGEST_LIMIT_MAX)?;
        Ok(SuggestFilter {
            prefix,
            common: parsed.filter,
            view: view.filter(|view| *view != View::All),
            all_suffixes: self.flag("all_suffixes")?,
            limit: limit.unwrap_or(SUGGEST_LIMIT_DEFAULT),
        })
    }

    /// Parses `limit` and `offset` of a list.
    ///
    /// # Errors
    /// A parameter does not parse or is out of range.
    pub fn page(&self, limits: Limits, offset_max: u32) -> Result<Paging, BadParameter> {
        Ok(Paging {
            limit: self.integer("limit", 1..=limits.max)?.unwrap_or(limits.default),
            offset: self.integer("offset", 0..=offset_max)?.unwrap_or(0),
        })
    }

    /// Parses a parameter that holds one `T`.
    ///
    /// # Errors
    /// It does not parse.
    pub fn one<T: FromStr<Err: Display>>(
        &self,
        name: &'static str,
    ) -> Result<Option<T>, BadParameter> {
        let Some(text) = self.get(name)? else { return Ok(None) };
        text.parse().map(Some).map_err(|err| BadParameter::new(name, err))
    }

    /// Returns a parameter that holds a text of at most `chars_max` characters.
    ///
    /// # Errors
    /// It is longer.
    pub fn text(
        &self,
        name: &'static str,
        chars_max: usize,
    ) -> Result<Option<String>, BadParameter> {
        let text = self.get(name)?;
        if text.is_some_and(|text| text.chars().count() > chars_max) {
            let what = format!("must have at most {chars_max} characters");
            return Err(BadParameter::new(name, what));
        }
        Ok(text.map(str::to_owned))
    }

    /// Returns a parameter that holds part of a suffix, with or without a leading dot.
    ///
    /// # Errors
    /// It is too long or has control characters.
    pub fn suffix_part(&self, name: &'static str) -> Result<Option<Substring>, BadParameter> {
        let Some(text) = self.get(name)? else { return Ok(None) };
        let text = text.trim();
        let part = Substring::parse(text.strip_prefix('.').unwrap_or(text));
        part.map(Some).map_err(|err| BadParameter::new(name, err))
    }

    /// Parses a parameter that is `true` or `false`; false if it is absent.
    ///
    /// # Errors
    /// Any other text.
    pub fn flag(&self, name: &'static str) -> Result<bool, BadParameter> {
        match self.get(name)? {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(BadParameter::new(name, "must be one of true, false")),
        }
    }

    /// Parses a parameter that holds a comma-separated list of `T`. White space around items and
    /// empty items are ignored.
    ///
    /// # Errors
    /// An item does not parse.
    pub fn list<T: FromStr<Err: Display>>(
        &self,
        name: &'static str,
    ) -> Result<Vec<T>, BadParameter> {
        let Some(text) = self.get(name)? else { return Ok(Vec::new()) };
        list::plain(text)
            .map(|item| item.parse().map_err(|err| BadParameter::new(name, err)))
            .collect()
    }

    /// Returns the distinct facts that the parameter `facts` requests.
    ///
    /// # Errors
    /// A text that is not the name of a fact, or too many.
    pub fn fact_names(&self) -> Result<Vec<FactName>, BadParameter> {
        let mut names: Vec<FactName> = Vec::new();
        for name in self.list("facts")? {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        if names.len() > FACTS_SHOWN_MAX {
            let what = format!("must name at most {FACTS_SHOWN_MAX} facts");
            return Err(BadParameter::new("facts", what));
        }
        Ok(names)
    }

    /// Parses a required domain name.
    ///
    /// # Errors
    /// It is absent or not registrable.
    pub fn domain(&self, name: &'static str) -> Result<DomainName, BadParameter> {
        let text = self.get(name)?.ok_or_else(|| BadParameter::new(name, "is required"))?;
        DomainName::parse_or_address(text).map_err(|err| BadParameter::new(name, err))
    }

    /// Parses `sort`, which may be a fact, and `order`.
    fn sort(&self) -> Result<(Sort, Option<FactName>), BadParameter> {
        let name = self.get("sort")?.and_then(|text| text.strip_prefix(FACT_SORT));
        let fact: Option<FactName> =
            name.map(str::parse).transpose().map_err(|err| BadParameter::new("sort", err))?;
        let key = match fact {
            Some(_) => SortKey::Fact,
            None => self.one("sort")?.unwrap_or_default(),
        };
        if fact.is_none() && key == SortKey::Fact {
            let what = "must name the fact: fact:SOURCE.FACT, such as fact:acme.rank";
            return Err(BadParameter::new("sort", what));
        }
        let sort = Sort::natural(key);
        let descending = match self.get("order")? {
            None => sort.descending,
            Some("asc") => false,
            Some("desc") => true,
            Some(_) => return Err(BadParameter::new("order", "must be one of asc, desc")),
        };
        Ok((Sort { descending, ..sort }, fact))
    }

    /// Parses `facets`, and returns each once.
    ///
    /// # Errors
    /// An unknown facet.
    pub fn facets(&self) -> Result<Vec<Facet>, BadParameter> {
        let mut facets = Vec::new();
        let list = self.get("facets")?.unwrap_or_default();
        for item in list::plain(list).filter(|item| !item.starts_with(FACT_SORT)) {
            let facet = item.parse().map_err(|_| {
                let what = format!("must be some of {}", Facet::NAMES.join(", "));
                BadParameter::coded(ParameterCode::UnknownFacet, "facets", what)
            })?;
            if !facets.contains(&facet) {
                facets.push(facet);
            }
        }
        Ok(facets)
    }

    /// Parses the facts of `facets`, and returns each once.
    ///
    /// # Errors
    /// A text that is not the name of a fact.
    pub fn fact_facets(&self) -> Result<Vec<FactName>, BadParameter> {
        let mut facts = Vec::new();
        let list = self.get("facets")?.unwrap_or_default();
        for name in list::plain(list).filter_map(|item| item.strip_prefix(FACT_SORT)) {
            let name = name.parse().map_err(|err| BadParameter::new("facets", err))?;
            if !facts.contains(&name) {
                facts.push(name);
            }
        }
        Ok(facts)
    }

    /// Returns true if parsing compiles a regular expression, which takes up to some 20 ms.
    pub fn compiles(&self) -> bool {
        self.get("regex").is_ok_and(|text| text.is_some_and(|text| !Matcher::is_kept(text)))
    }

    /// Returns the view of `stage`, or else of `view`. An invalid view is an error even next to a
    /// stage.
    fn view(&self, parsed: &Parsed) -> Result<Option<View>, BadParameter> {
        let view = match self.get("view")? {
            None => None,
            Some("active") => Some(View::Active),
            Some("today") => Some(View::Today),
            Some("all") => Some(View::All),
            Some(_) => {
                return Err(BadParameter::new("view", "must be one of active, today, all"));
            }
        };
        Ok(View::of_stages(&parsed.stages).or(view))
    }

    /// Parses a parameter that holds an integer in a range.
    ///
    /// # Errors
    /// Any other text.
    pub fn integer(
        &self,
        name: &'static str,
        range: RangeInclusive<u32>,
    ) -> Result<Option<u32>, BadParameter> {
        let Some(text) = self.get(name)? else { return Ok(None) };
        let value = list::integer(text, range).map_err(|what| BadParameter::new(name, what))?;
        Ok(Some(value))
    }

    /// Returns the decoded value; `None` if it is absent or empty.
    pub fn get(&self, name: &'static str) -> Result<Option<&str>, BadParameter> {
        Ok(self.sent(name)?.filter(|value| !value.is_empty()))
    }

    /// Returns the decoded value, even if it is empty.
    fn sent(&self, name: &'static str) -> Result<Option<&str>, BadParameter> {
        let mut values = self.pairs.iter().filter(|(sent, _)| sent == name);
        let Some((_, value)) = values.next() else { return Ok(None) };
        match value {
            None => Err(BadParameter::new(name, "is not percent-encoded UTF-8")),
            Some(_) if values.next().is_some() => Err(BadParameter::repeated(name)),
            Some(value) => Ok(Some(value)),
        }
    }
}

/// Parses a sequence number.
///
/// # Errors
/// The text is not made of digits, or exceeds the largest sequence number.
pub fn sequence(text: &str) -> Result<u64, &'static str> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|number| digits && *number <= i64::MAX as u64);
    number.ok_or("must be the sequence number of an event, or 0")
}

/// Decodes `application/x-www-form-urlencoded` text; `None` if it has an invalid escape or is not
/// UTF-8.
pub fn decode(text: &str) -> Option<Cow<'_, str>> {
    if !text.bytes().any(|byte| matches!(byte, b'%' | b'+')) {
        return Some(Cow::Borrowed(text));
    }
    let escapes_are_whole = text.split('%').skip(1).all(|rest| {
        rest.as_bytes().get(..2).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit))
    });
    if !escapes_are_whole {
        return None;
    }
    if !text.contains('+') {
        return percent_decode_str(text).decode_utf8().ok();
    }
    let spaced = text.replace('+', " ");
    percent_decode_str(&spaced).decode_utf8().ok().map(|text| Cow::Owned(text.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::DayRange;
    use crate::vocab::dqs::Dqs;
    use crate::vocab::limits::{DROPS_LIMIT_DEFAULT, DROPS_LIMIT_MAX};
    use crate::vocab::popularity::ListRank;
    use crate::vocab::stage::Stage;

    const LIMITS: Limits = Limits { default: DROPS_LIMIT_DEFAULT, max: DROPS_LIMIT_MAX };

    fn today() -> Day {
        "2026-11-23".parse().expect("a date")
    }

    fn drops(query: &str) -> Result<DropFilter, String> {
        Params::new(Some(query)).drops(LIMITS, today()).map_err(|err| err.to_string())
    }

    #[test]
    fn sequence_numbers_have_only_digits() {
        assert_eq!(sequence("0"), Ok(0));
        assert_eq!(sequence("9223372036854775807"), Ok(i64::MAX as u64));
        for bad in ["", "+1", "-1", "1.0", " 1", "9223372036854775808", "99999999999999999999"] {
            assert!(sequence(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn absent_and_empty_parameters_are_equivalent() {
        let default = drops("").expect("defaults");
        assert_eq!(default.limit, 100);
        assert_eq!(default.view, View::Active);
        assert_eq!(drops("tld=&min_dqs=&q=&stage=&view=&limit&unknown=1&unknown=2"), Ok(default));
    }

    #[test]
    fn values_are_decoded_and_folded() {
        let filter =
            drops("tld=+.COM%2c,de%20,&q=M%C3%9Cn&stage=pending-delete&view=all").expect("valid");
        assert_eq!(filter.common.tlds, ["com", "de"]);
        assert_eq!(filter.contains.as_ref().map(Substring::as_str), Some("mün"));
        assert_eq!(filter.view, View::Stage(Stage::PendingDelete));
    }

    #[test]
    fn filters_are_parsed() {
        let query = "min_len=2&max_dqs=90&not_tld=de&stage=redemption,catchable&digits=none\
                     &starts=get,%22a%2C%22%22b%22,+&release_from=today&release_to=%2B3d\
                     &dropped_from=-7d&min_tlds=1&min_drops=2&listed_since=2026-11-20&max_rank=5000";
        let DropFilter { common, view, .. } = drops(query).expect("valid");
        assert_eq!((common.min_len, common.max_dqs), (2, Dqs::clamped(90)));
        assert_eq!(common.not_tlds, ["de"]);
        let starts: Vec<&str> = common.label.starts.iter().map(Substring::as_str).collect();
        assert_eq!(starts, ["get", "a,\"b"]);
        let day = |days| Some(today().plus(days));
        assert_eq!(common.drop.release, DayRange { from: day(0), to: day(3) }.into());
        assert_eq!(common.drop.dropped, DayRange { from: day(-7), to: None });
        assert_eq!((common.min_tlds, common.drop.min_drops), (1, 2));
        assert_eq!(common.drop.listed_since, "2026-11-20T00:00:00Z".parse().ok());
        assert_eq!(common.drop.max_rank, ListRank::new(5_000));
        let View::Stages(stages) = view else { panic!("{view:?}") };
        assert!(stages.contains(Stage::Catchable) && !stages.contains(Stage::Released));
        // A `+` that is not escaped arrives as a space.
        assert_eq!(drops("release_to=+3d"), drops("release_to=%2B3d"));
        let (_, filter) =
            Params::new(Some("ends=bank")).search(today()).expect("no prefix is needed");
        assert_eq!(filter.prefix, None);
        assert!(Params::new(Some("min_len=3")).search(today()).is_err());
    }

    #[test]
    fn invalid_parameters_are_named() {
        for (query, error) in [
            ("limit=0", "limit: must be an integer from 1 to 1000"),
            ("limit=1001", "limit: must be an integer from 1 to 1000"),
            ("limit=%2B5", "limit: must be an integer from 1 to 1000"),
            ("limit=5.0", "limit: must be an integer from 1 to 1000"),
            ("offset=-1", "offset: must be an integer from 0 to 1000000"),
            ("min_dqs=101", "min_dqs: must be an integer from 0 to 100"),
            ("min_dqs=99999999999999999999", "min_dqs: must be an integer from 0 to 100"),
            ("max_len=64", "max_len: must be an integer from 1 to 63"),
            ("view=none", "view: must be one of active, today, all"),
            (
                "stage=Redemption",
                "stage: must be one of redemption, pending-delete, catchable, released",
            ),
            ("min_dqs=50&max_dqs=49", "min_dqs: must not be above max_dqs"),
            ("min_len=5&max_len=4", "min_len: must not be above max_len"),
            ("min_tlds=2&max_tlds=1", "min_tlds: must not be above max_tlds"),
            (
                "release_from=tomorrow&release_to=today",
                "release_from: must not be above release_to",
            ),
            ("starts=\"a", "starts: has a quote that is not closed"),
            ("starts=\"a\"b", "starts: must have a comma after a quoted item"),
            ("digits=many", "digits: must be one of none, some, only"),
            ("min_drops=0", "min_drops: must be an integer from 1 to 255"),
            ("max_rank=0", "max_rank: must be an integer from 1 to 1000000"),
            ("max_rank=1000001", "max_rank: must be an integer from 1 to 1000000"),
            (
                "release_to=2026-02-30",
                "release_to: must be a date from 1985-01-01 to 2164-06-05: YYYY-MM-DD, today, tomorrow, \
                 yesterday, +3d or -3d, or an instant such as 2026-11-27T14:00Z",
            ),
            (
                "release_from=2026-11-27T14:00Z&release_to=2026-11-27T13:59:59Z",
                "release_from: must not be above release_to",
            ),
            (
                "listed_since=noon",
                "listed_since: must be a timestamp such as 2026-11-21T12:00:00Z, or a date",
            ),
            ("stage=released&view=x", "view: must be one of active, today, all"),
            ("limit=5&limit=5", "limit: is given more than once"),
            ("limit=5&li%6Dit=5", "limit: is given more than once"),
            ("limit=%zz&limit=5", "limit: is not percent-encoded UTF-8"),
            ("q=%ff", "q: is not percent-encoded UTF-8"),
            ("q=%zz", "q: is not percent-encoded UTF-8"),
            ("q=%4", "q: is not percent-encoded UTF-8"),
            ("q=a%00b", "q: must not hold NUL or control characters"),
        ] {
            assert_eq!(drops(query), Err(error.to_owned()), "{query}");
        }
    }
}
