//! Query strings parsed into filters. Values out of range and repeated parameters are errors, and an
//! empty value counts as absent. Unknown parameters are errors of the API ([`refuse_unknown`]); pages
//! ignore them.

use std::borrow::Cow;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderMap, HeaderName};
use compact_str::CompactString;
use percent_encoding::percent_decode_str;

use crate::http::cursor::{self, QueryDigest};
use crate::http::operation::{Operation, Parameter, ParameterPlace};
use crate::http::rows::Member;
use crate::index::filter::{DropFilter, Facet, Filter, RowPosition, SearchFilter, Sort, View};
use crate::query::filter::{DayRange, DropConditions, LabelFilter, ReadingFilter};
use crate::query::matcher::{Matcher, MatcherError};
use crate::query::text::{NamePrefix, Substring};
use crate::service::error::{ApiError, ParameterCode};
use crate::vocab::change::{ChangeKind, ChangeKinds};
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::limits::{
    CHANGES_LIMIT_DEFAULT, CHANGES_LIMIT_MAX, CHANGES_WAIT_SECONDS_MAX, DROPS_OFFSET_MAX,
    EXCLUDED_TEXTS_MAX, LABEL_CHARS_MAX, LABEL_TEXTS_MAX, LIKE_DISTANCE_MAX, MIN_DROPS_MAX,
    OTHER_TLDS_MAX, SEARCH_LIMIT_DEFAULT, SEARCH_LIMIT_MAX, SEARCH_OFFSET_MAX,
    SUGGEST_LIMIT_DEFAULT, SUGGEST_LIMIT_MAX, TLD_FILTER_MAX, WORDS_MAX,
};
use crate::vocab::name::DomainName;
use crate::vocab::popularity::ListRank;
use crate::vocab::similar;
use crate::vocab::time::UnixMs;
use crate::vocab::tld::fold_tld;

/// The id in a path.
///
/// # Errors
/// 404 for text that is not an id.
pub fn path_id<T>(
    path: Result<Path<String>, PathRejection>,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, ApiError> {
    path.ok().and_then(|Path(text)| parse(&text)).ok_or(ApiError::NotFound)
}

const PREFER: HeaderName = HeaderName::from_static("prefer");

/// Characters of an unknown parameter that an error repeats.
const ECHO_CHARS_MAX: usize = 64;

/// Checks that an operation has all parameters of a query string. `Prefer: handling=lenient`
/// (RFC 7240 §4.4) ignores the others.
///
/// # Errors
/// 400 for the first unknown parameter.
pub fn refuse_unknown(
    operation: &Operation,
    query: Option<&str>,
    headers: &HeaderMap,
) -> Result<(), ApiError> {
    let Some(query) = query else { return Ok(()) };
    let names = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let name = pair.split_once('=').map_or(pair, |(name, _)| name);
        // A name that does not decode is shown as it was sent.
        decode(name).unwrap_or(Cow::Borrowed(name))
    });
    let mut names = names.into_iter();
    let is_known = |name: &str| in_query(operation.parameters).any(|known| known == name);
    match names.find(|name| !is_known(name)) {
        Some(unknown) if !is_lenient(headers) => {
            Err(unknown_parameter(&unknown, operation.parameters))
        }
        _ => Ok(()),
    }
}

/// The names of the parameters in the query string.
fn in_query(parameters: &'static [Parameter]) -> impl Iterator<Item = &'static str> {
    let in_query = parameters.iter().filter(|known| known.place == ParameterPlace::Query);
    in_query.map(|known| known.name)
}

/// The error for a name that is not among `known`.
pub fn unknown_parameter(name: &str, known: &'static [Parameter]) -> ApiError {
    let name: String = name.chars().take(ECHO_CHARS_MAX).collect();
    let nearest = similar::nearest(&name, in_query(known));
    ApiError::UnknownParameter { name, nearest }
}

/// Whether the client prefers lenient handling. The header is a list, and may be repeated.
fn is_lenient(headers: &HeaderMap) -> bool {
    let values = headers.get_all(PREFER).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|preference| {
        let token = preference.split(';').next().unwrap_or_default();
        let pair = token.split_once('=').map(|(name, value)| (name.trim(), value.trim()));
        pair.is_some_and(|(name, value)| {
            name.eq_ignore_ascii_case("handling")
                && value.trim_matches('"').eq_ignore_ascii_case("lenient")
        })
    })
}

/// Default and maximum of `limit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub default: u32,
    pub max: u32,
}

/// A window of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    pub limit: u32,
    pub offset: u32,
}

impl Page {
    /// The rows of this page among all `rows`.
    pub fn rows<I: Iterator>(self, rows: I) -> impl Iterator<Item = I::Item> {
        rows.skip(self.offset as usize).take(self.limit as usize)
    }
}

/// The events of names that a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangesQuery {
    /// Sequence number after which they come.
    pub since: Option<u64>,
    pub limit: u32,
    pub kinds: ChangeKinds,
    /// Conditions on the names today.
    pub filter: Filter,
    pub view: Option<View>,
    /// How long to wait for the first one.
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
    /// Parameters that are already decoded.
    pub fn from_pairs(pairs: &[(&'a str, &'a str)]) -> Params<'a> {
        let pair = |&(name, value): &(&'a str, &'a str)| (name.into(), Some(value.into()));
        Params { pairs: pairs.iter().map(pair).collect() }
    }

    /// Splits the part of a URL after the question mark.
    pub fn new(query: Option<&'a str>) -> Params<'a> {
        let mut pairs = Vec::with_capacity(PAIRS_EXPECTED);
        for pair in query.unwrap_or_default().split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            pairs.extend(decode(name).map(|name| (name, decode(value))));
        }
        Params { pairs }
    }

    /// The drops filter, with the row limits of the endpoint.
    ///
    /// # Errors
    /// 400 for the first invalid parameter.
    pub fn drops(&self, limits: Limits, today: Day) -> Result<DropFilter, ApiError> {
        let contains = match self.get("q")? {
            Some(text) => {
                Some(Substring::of_name(text).map_err(|err| ApiError::parameter("q", err))?)
            }
            None => None,
        };
        let filter = DropFilter {
            common: self.filter(today)?,
            view: self.view()?.unwrap_or(View::Active),
            contains,
            sort: self.sort()?,
            after: None,
            limit: self.integer("limit", 1..=limits.max)?.unwrap_or(limits.default),
            offset: self.integer("offset", 0..=DROPS_OFFSET_MAX)?.unwrap_or(0),
        };
        Ok(DropFilter { after: self.after(&filter)?, ..filter })
    }

    /// `q` as it was sent, and the search filter.
    ///
    /// # Errors
    /// 400 for the first invalid parameter.
    pub fn search(&self, today: Day) -> Result<(String, SearchFilter), ApiError> {
        let common = self.filter(today)?;
        let sent = self.sent("q")?.unwrap_or_default();
        // Without a prefix, another condition on the text narrows the search.
        let prefix = match NamePrefix::parse(sent) {
            Err(_) if sent.is_empty() && common.label.has_text() => None,
            parsed => Some(parsed.map_err(|err| ApiError::parameter("q", err))?),
        };
        let filter = SearchFilter {
            prefix,
            common,
            // `all` is every name, as without a view.
            view: self.view()?.filter(|view| *view != View::All),
            limit: self.integer("limit", 1..=SEARCH_LIMIT_MAX)?.unwrap_or(SEARCH_LIMIT_DEFAULT),
            offset: self.integer("offset", 0..=SEARCH_OFFSET_MAX)?.unwrap_or(0),
        };
        Ok((sent.to_owned(), filter))
    }

    /// The events of names that are asked for.
    ///
    /// # Errors
    /// 400 for the first invalid parameter.
    pub fn changes(&self, today: Day) -> Result<ChangesQuery, ApiError> {
        let since = self.get("since")?.map(sequence).transpose();
        let kinds: Vec<ChangeKind> = self.list("event")?;
        let wait = self.integer("wait", 0..=CHANGES_WAIT_SECONDS_MAX)?.unwrap_or(0);
        Ok(ChangesQuery {
            since: since.map_err(|what| ApiError::parameter("since", what))?,
            limit: self.integer("limit", 1..=CHANGES_LIMIT_MAX)?.unwrap_or(CHANGES_LIMIT_DEFAULT),
            kinds: if kinds.is_empty() { ChangeKinds::ALL } else { kinds.into_iter().collect() },
            filter: self.filter(today)?,
            view: self.view()?,
            wait: Duration::from_secs(wait.into()),
        })
    }

    /// `q` and `limit` of a type-ahead.
    ///
    /// # Errors
    /// 400 for the first invalid parameter.
    pub fn suggest(&self) -> Result<SearchFilter, ApiError> {
        let sent = self.sent("q")?.unwrap_or_default();
        let prefix = NamePrefix::parse(sent).map_err(|err| ApiError::parameter("q", err))?;
        let limit = self.integer("limit", 1..=SUGGEST_LIMIT_MAX)?;
        Ok(SearchFilter {
            prefix: Some(prefix),
            common: Filter::default(),
            view: None,
            limit: limit.unwrap_or(SUGGEST_LIMIT_DEFAULT),
            offset: 0,
        })
    }

    /// `limit` and `offset` of a list.
    ///
    /// # Errors
    /// 400 if one of them does not parse or is out of range.
    pub fn page(&self, limits: Limits, offset_max: u32) -> Result<Page, ApiError> {
        Ok(Page {
            limit: self.integer("limit", 1..=limits.max)?.unwrap_or(limits.default),
            offset: self.integer("offset", 0..=offset_max)?.unwrap_or(0),
        })
    }

    /// A parameter that holds one `T`.
    ///
    /// # Errors
    /// 400 if it does not parse.
    pub fn one<T: FromStr<Err: Display>>(&self, name: &'static str) -> Result<Option<T>, ApiError> {
        let Some(text) = self.get(name)? else { return Ok(None) };
        text.parse().map(Some).map_err(|err| ApiError::parameter(name, err))
    }

    /// A parameter that holds a text of at most `chars_max` characters.
    ///
    /// # Errors
    /// 400 if it is longer.
    pub fn text(&self, name: &'static str, chars_max: usize) -> Result<Option<String>, ApiError> {
        let text = self.get(name)?;
        if text.is_some_and(|text| text.chars().count() > chars_max) {
            let what = format!("must have at most {chars_max} characters");
            return Err(ApiError::parameter(name, what));
        }
        Ok(text.map(str::to_owned))
    }

    /// A parameter that holds part of a suffix, with or without a leading dot.
    ///
    /// # Errors
    /// 400 if it is too long or has control characters.
    pub fn suffix_part(&self, name: &'static str) -> Result<Option<Substring>, ApiError> {
        let Some(text) = self.get(name)? else { return Ok(None) };
        let text = text.trim();
        let part = Substring::parse(text.strip_prefix('.').unwrap_or(text));
        part.map(Some).map_err(|err| ApiError::parameter(name, err))
    }

    /// A parameter that is `true` or `false`; false if it is absent.
    ///
    /// # Errors
    /// 400 for any other text.
    pub fn flag(&self, name: &'static str) -> Result<bool, ApiError> {
        match self.get(name)? {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(ApiError::parameter(name, "must be one of true, false")),
        }
    }

    /// A parameter that holds a comma-separated list of `T`. White space around items and empty items
    /// are ignored.
    ///
    /// # Errors
    /// 400 if an item does not parse.
    pub fn list<T: FromStr<Err: Display>>(&self, name: &'static str) -> Result<Vec<T>, ApiError> {
        let Some(text) = self.get(name)? else { return Ok(Vec::new()) };
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        items.map(|item| item.parse().map_err(|err| ApiError::parameter(name, err))).collect()
    }

    /// A required domain name.
    ///
    /// # Errors
    /// 400 if it is absent or not registrable.
    pub fn domain(&self, name: &'static str) -> Result<DomainName, ApiError> {
        let text = self.get(name)?.ok_or_else(|| ApiError::parameter(name, "is required"))?;
        DomainName::parse_or_address(text).map_err(|err| ApiError::parameter(name, err))
    }

    /// `sort` and `order`.
    fn sort(&self) -> Result<Sort, ApiError> {
        let sort = Sort::natural(self.one("sort")?.unwrap_or_default());
        let descending = match self.get("order")? {
            None => sort.descending,
            Some("asc") => false,
            Some("desc") => true,
            Some(_) => return Err(ApiError::parameter("order", "must be one of asc, desc")),
        };
        Ok(Sort { descending, ..sort })
    }

    /// The row that `cursor` stands for, on the pages of `filter`.
    fn after(&self, filter: &DropFilter) -> Result<Option<RowPosition>, ApiError> {
        let Some(cursor) = self.get("cursor")? else { return Ok(None) };
        // Generated clients send the default of `offset`, too.
        if filter.offset > 0 {
            let what = "must not be given with an offset above 0";
            return Err(ApiError::parameter("cursor", what));
        }
        cursor::decode(cursor, QueryDigest::of(filter)).map(Some)
    }

    /// The members of a row that the parameter `name` asks for, in its order and each once; `None`
    /// without it. `beside` is another name that it accepts; the flag says whether it is there.
    ///
    /// # Errors
    /// 400 for an unknown member.
    pub fn members(
        &self,
        name: &'static str,
        beside: Option<&str>,
    ) -> Result<Option<(Vec<Member>, bool)>, ApiError> {
        let Some(list) = self.get(name)? else { return Ok(None) };
        let (mut members, mut has_beside) = (Vec::new(), false);
        for item in list.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            if Some(item) == beside {
                has_beside = true;
                continue;
            }
            let known = Member::ALL.into_iter().find(|member| member.as_str() == item);
            let member = known.ok_or_else(|| {
                let what = format!("must be some of {}", Member::NAMES.join(", "));
                ApiError::coded(ParameterCode::UnknownField, name, what)
            })?;
            if !members.contains(&member) {
                members.push(member);
            }
        }
        Ok(Some((members, has_beside)))
    }

    /// `facets`, each once.
    ///
    /// # Errors
    /// 400 for an unknown facet.
    pub fn facets(&self) -> Result<Vec<Facet>, ApiError> {
        let mut facets = Vec::new();
        let list = self.get("facets")?.unwrap_or_default();
        for item in list.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let facet = item.parse().map_err(|_| {
                let what = format!("must be some of {}", Facet::NAMES.join(", "));
                ApiError::coded(ParameterCode::UnknownFacet, "facets", what)
            })?;
            if !facets.contains(&facet) {
                facets.push(facet);
            }
        }
        Ok(facets)
    }

    /// The conditions that the drops list, the search and the exports share; `today` is what relative
    /// dates refer to.
    fn filter(&self, today: Day) -> Result<Filter, ApiError> {
        let open = Filter::default();
        let dqs = |points: u32| Dqs::clamped(points as i32);
        let (min_dqs, max_dqs) =
            self.between(("min_dqs", "max_dqs"), |name| self.integer(name, 0..=100))?;
        let (min_len, max_len) = self.between(("min_len", "max_len"), |name| {
            self.integer(name, 1..=u32::from(LABEL_CHARS_MAX))
        })?;
        let (min_tlds, max_tlds) =
            self.between(("min_tlds", "max_tlds"), |name| self.integer(name, 0..=OTHER_TLDS_MAX))?;
        let (min_words, max_words) = self
            .between(("min_words", "max_words"), |name| self.integer(name, 0..=WORDS_MAX.into()))?;
        let (min_drops, listed_since) =
            (self.integer("min_drops", 1..=MIN_DROPS_MAX)?, self.instant("listed_since", today)?);
        let filter = Filter {
            tlds: self.tlds("tld")?,
            not_tlds: self.tlds("not_tld")?,
            min_dqs: min_dqs.map_or(open.min_dqs, dqs),
            max_dqs: max_dqs.map_or(open.max_dqs, dqs),
            min_len: min_len.map_or(open.min_len, |length| length as u8),
            max_len: max_len.map_or(open.max_len, |length| length as u8),
            label: LabelFilter {
                contains: self.texts("contains", LABEL_TEXTS_MAX)?,
                starts: self.texts("starts", LABEL_TEXTS_MAX)?,
                ends: self.texts("ends", LABEL_TEXTS_MAX)?,
                not_contains: self.texts("not_contains", EXCLUDED_TEXTS_MAX)?,
                not_starts: self.texts("not_starts", EXCLUDED_TEXTS_MAX)?,
                not_ends: self.texts("not_ends", EXCLUDED_TEXTS_MAX)?,
                matchers: Vec::new(),
                digits: self.one("digits")?,
                hyphens: self.one("hyphens")?,
                idn: self.one("idn")?,
            },
            reading: ReadingFilter {
                min_words: min_words.map_or(open.reading.min_words, |words| words as u8),
                max_words: max_words.map_or(open.reading.max_words, |words| words as u8),
                languages: self.list("language")?,
                kinds: self.list("kind")?,
                caps: self.one("caps")?,
            },
            min_tlds: min_tlds.map_or(open.min_tlds, |number| number as u16),
            max_tlds: max_tlds.map_or(open.max_tlds, |number| number as u16),
            drop: DropConditions {
                dropped: self.days(("dropped_from", "dropped_to"), today)?,
                release: self.days(("release_from", "release_to"), today)?,
                min_drops: min_drops.unwrap_or(0) as u8,
                listed_since,
                max_rank: self.integer("max_rank", 1..=ListRank::MAX)?.and_then(ListRank::new),
                after_batch: None,
            },
        };
        Ok(filter.with_matchers(self.matchers()?))
    }

    /// `pattern`, `regex` and `like`.
    fn matchers(&self) -> Result<Vec<Matcher>, ApiError> {
        let mut matchers = Vec::new();
        if let Some(text) = self.get("pattern")? {
            matchers.push(Matcher::pattern(text).map_err(|err| refused("pattern", err))?);
        }
        if let Some(text) = self.get("regex")? {
            matchers.push(Matcher::regex(text).map_err(|err| refused("regex", err))?);
        }
        let distance = self.integer("distance", 1..=u32::from(LIKE_DISTANCE_MAX))?;
        // Generated clients send the default of `distance` without `like`, too.
        if let Some(text) = self.get("like")? {
            let matcher = Matcher::like(text, distance.unwrap_or(1) as u8);
            matchers.push(matcher.map_err(|err| refused("like", err))?);
        }
        Ok(matchers)
    }

    /// Returns true if parsing compiles a regular expression, which takes up to some 20 ms.
    pub fn compiles(&self) -> bool {
        self.get("regex").is_ok_and(|text| text.is_some_and(|text| !Matcher::is_kept(text)))
    }

    /// A lower and an upper bound.
    fn between<T: PartialOrd + Copy>(
        &self,
        (low, high): (&'static str, &'static str),
        parse: impl Fn(&'static str) -> Result<Option<T>, ApiError>,
    ) -> Result<(Option<T>, Option<T>), ApiError> {
        let (from, to) = (parse(low)?, parse(high)?);
        if from.zip(to).is_some_and(|(from, to)| from > to) {
            let what = format!("must not be above {high}");
            return Err(ApiError::coded(ParameterCode::CrossedRange, low, what));
        }
        Ok((from, to))
    }

    fn days(&self, names: (&'static str, &'static str), today: Day) -> Result<DayRange, ApiError> {
        let day = |name| -> Result<Option<Day>, ApiError> {
            let Some(text) = self.get(name)? else { return Ok(None) };
            let day = Day::parse_from(text, today);
            day.map(Some).map_err(|err| ApiError::parameter(name, err))
        };
        let (from, to) = self.between(names, day)?;
        Ok(DayRange { from, to })
    }

    /// An instant, or the start of a day.
    fn instant(&self, name: &'static str, today: Day) -> Result<Option<UnixMs>, ApiError> {
        let Some(text) = self.get(name)? else { return Ok(None) };
        // A form encodes a space as `+`, so that the `+` of an offset arrives as a space.
        let instant = text.replace(' ', "+").parse().ok();
        let start = || Day::parse_from(text, today).map(|day| UnixMs::from_instant(day.start()));
        let what = "must be a timestamp such as 2026-11-21T12:00:00Z, or a date";
        instant.or_else(|| start().ok()).map(Some).ok_or_else(|| ApiError::parameter(name, what))
    }

    fn tlds(&self, name: &'static str) -> Result<Vec<CompactString>, ApiError> {
        let tlds: Vec<_> = match self.get(name)? {
            Some(list) => list.split(',').filter_map(fold_tld).collect(),
            None => Vec::new(),
        };
        if tlds.len() > TLD_FILTER_MAX {
            return Err(too_many(name, TLD_FILTER_MAX));
        }
        Ok(tlds)
    }

    /// Texts separated by commas; one may be quoted.
    fn texts(&self, name: &'static str, most: usize) -> Result<Vec<Substring>, ApiError> {
        let Some(text) = self.get(name)? else { return Ok(Vec::new()) };
        let mut texts = Vec::new();
        for item in items(text) {
            let item = item.map_err(|what| ApiError::parameter(name, what))?;
            texts.push(Substring::parse(&item).map_err(|err| ApiError::parameter(name, err))?);
        }
        if texts.len() > most { Err(too_many(name, most)) } else { Ok(texts) }
    }

    /// `stage`, or else `view`. An invalid view is an error even next to a stage.
    fn view(&self) -> Result<Option<View>, ApiError> {
        let view = match self.get("view")? {
            None => None,
            Some("active") => Some(View::Active),
            Some("today") => Some(View::Today),
            Some("all") => Some(View::All),
            Some(_) => {
                return Err(ApiError::parameter("view", "must be one of active, today, all"));
            }
        };
        Ok(View::of_stages(&self.list("stage")?).or(view))
    }

    /// A parameter that holds an integer in a range.
    ///
    /// # Errors
    /// 400 for any other text.
    pub fn integer(
        &self,
        name: &'static str,
        range: RangeInclusive<u32>,
    ) -> Result<Option<u32>, ApiError> {
        let Some(text) = self.get(name)? else { return Ok(None) };
        // `parse` alone would accept `+5`.
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse::<u32>() {
            Ok(value) if digits && range.contains(&value) => Ok(Some(value)),
            _ => {
                let (start, end) = (range.start(), range.end());
                let what = format!("must be an integer from {start} to {end}");
                Err(ApiError::parameter(name, what))
            }
        }
    }

    /// The decoded value; `None` when it is absent or empty.
    fn get(&self, name: &'static str) -> Result<Option<&str>, ApiError> {
        Ok(self.sent(name)?.filter(|value| !value.is_empty()))
    }

    /// The decoded value, empty or not.
    fn sent(&self, name: &'static str) -> Result<Option<&str>, ApiError> {
        let mut values = self.pairs.iter().filter(|(sent, _)| sent == name);
        let Some((_, value)) = values.next() else { return Ok(None) };
        match value {
            None => Err(ApiError::parameter(name, "is not percent-encoded UTF-8")),
            Some(_) if values.next().is_some() => Err(ApiError::repeated(name)),
            Some(value) => Ok(Some(value)),
        }
    }
}

/// A text that is not a pattern, regular expression or label.
fn refused(name: &'static str, err: MatcherError) -> ApiError {
    let code = match (name, &err) {
        ("pattern", _) => ParameterCode::InvalidPattern,
        (_, MatcherError::TooLarge) => ParameterCode::RegexTooLarge,
        ("regex", _) => ParameterCode::InvalidRegex,
        _ => ParameterCode::InvalidValue,
    };
    ApiError::coded(code, name, err)
}

fn too_many(name: &'static str, most: usize) -> ApiError {
    ApiError::parameter(name, format!("must have at most {most} items"))
}

/// Splits a list at its commas. An item may be quoted with `"`, and a quote in it is doubled. White
/// space around items and empty items are ignored.
pub fn items(list: &str) -> impl Iterator<Item = Result<Cow<'_, str>, &'static str>> {
    let mut rest = list;
    let next = move || {
        rest = rest.trim_start_matches([',', ' ']);
        if rest.is_empty() {
            return None;
        }
        let Some(quoted) = rest.strip_prefix('"') else {
            let (item, after) = rest.split_once(',').unwrap_or((rest, ""));
            rest = after;
            return Some(Ok(Cow::Borrowed(item.trim())));
        };
        let mut item = String::new();
        let mut left = quoted;
        while let Some((text, after)) = left.split_once('"') {
            item.push_str(text);
            let Some(more) = after.strip_prefix('"') else {
                rest = after.trim_start();
                let ends = rest.is_empty() || rest.starts_with(',');
                return Some(if ends { Ok(item.into()) } else { Err(UNQUOTED) });
            };
            item.push('"');
            left = more;
        }
        rest = "";
        Some(Err("has a quote that is not closed"))
    };
    std::iter::from_fn(next)
}

/// Parses a sequence number.
///
/// # Errors
/// Other text than digits, or more than there can be.
pub fn sequence(text: &str) -> Result<u64, &'static str> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|number| digits && *number <= i64::MAX as u64);
    number.ok_or("must be the sequence number of an event, or 0")
}

/// Text after the closing quote of an item.
const UNQUOTED: &str = "must have a comma after a quoted item";

/// Decodes `application/x-www-form-urlencoded` text; `None` for a broken escape or invalid UTF-8.
fn decode(text: &str) -> Option<Cow<'_, str>> {
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
    use crate::vocab::limits::{DROPS_LIMIT_DEFAULT, DROPS_LIMIT_MAX};
    use crate::vocab::stage::Stage;

    const LIMITS: Limits = Limits { default: DROPS_LIMIT_DEFAULT, max: DROPS_LIMIT_MAX };

    fn today() -> Day {
        "2026-11-23".parse().expect("a date")
    }

    fn drops(query: &str) -> Result<DropFilter, String> {
        Params::new(Some(query)).drops(LIMITS, today()).map_err(|err| match err {
            ApiError::BadParameter { name, what, .. } => format!("{name}: {what}"),
            other => format!("{other:?}"),
        })
    }

    #[test]
    fn sequence_numbers_are_digits() {
        assert_eq!(sequence("0"), Ok(0));
        assert_eq!(sequence("9223372036854775807"), Ok(i64::MAX as u64));
        for bad in ["", "+1", "-1", "1.0", " 1", "9223372036854775808", "99999999999999999999"] {
            assert!(sequence(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn absent_and_empty_are_the_same() {
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
        assert_eq!(common.drop.release, DayRange { from: day(0), to: day(3) });
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
                 yesterday, +3d or -3d",
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
