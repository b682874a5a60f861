//! Query strings parsed into filters. Values out of range and repeated parameters are errors, and an
//! empty value counts as absent. Unknown parameters are errors of the API ([`refuse_unknown`]); pages
//! ignore them.

use std::borrow::Cow;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderMap, HeaderName};
use percent_encoding::percent_decode_str;

use crate::http::error::ApiError;
use crate::http::operation::{Operation, ParameterPlace};
use crate::index::filter::{CommonFilter, DropFilter, SearchFilter, View};
use crate::vocab::dqs::Dqs;
use crate::vocab::limits::{
    DROPS_OFFSET_MAX, LABEL_CHARS_MAX, SEARCH_LIMIT_DEFAULT, SEARCH_LIMIT_MAX, SEARCH_OFFSET_MAX,
    TLD_FILTER_MAX,
};
use crate::vocab::name::DomainName;
use crate::vocab::query::{NamePrefix, Substring, fold_tld};

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
    let known = || {
        let parameters = operation.parameters.iter();
        let in_query = parameters.filter(|known| known.place == ParameterPlace::Query);
        in_query.map(|known| known.name)
    };
    let names = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let name = pair.split_once('=').map_or(pair, |(name, _)| name);
        // A name that does not decode is shown as it was sent.
        decode(name).unwrap_or(Cow::Borrowed(name))
    });
    let Some(unknown) = names.into_iter().find(|name| !known().any(|known| known == *name)) else {
        return Ok(());
    };
    if is_lenient(headers) {
        return Ok(());
    }
    let name: String = unknown.chars().take(ECHO_CHARS_MAX).collect();
    let distance = |known: &&str| strsim::damerau_levenshtein(&name.to_lowercase(), known);
    // A third of the letters may differ: beyond that, names only share letters by chance.
    let similar = |known: &&str| distance(known) <= known.chars().count().div_ceil(3);
    let nearest = known().filter(similar).min_by_key(distance);
    Err(ApiError::UnknownParameter { name, nearest })
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
    pub fn drops(&self, limits: Limits) -> Result<DropFilter, ApiError> {
        let contains = match self.get("q")? {
            Some(text) => {
                Some(Substring::parse(text).map_err(|err| ApiError::parameter("q", err))?)
            }
            None => None,
        };
        Ok(DropFilter {
            common: self.common()?,
            view: self.view()?.unwrap_or(View::Active),
            contains,
            limit: self.integer("limit", 1..=limits.max)?.unwrap_or(limits.default),
            offset: self.integer("offset", 0..=DROPS_OFFSET_MAX)?.unwrap_or(0),
        })
    }

    /// `q` as it was sent, and the search filter.
    ///
    /// # Errors
    /// 400 for the first invalid parameter.
    pub fn search(&self) -> Result<(String, SearchFilter), ApiError> {
        let sent = self.sent("q")?.unwrap_or_default();
        let prefix = NamePrefix::parse(sent).map_err(|err| ApiError::parameter("q", err))?;
        let filter = SearchFilter {
            prefix,
            common: self.common()?,
            // `all` is every name, as without a view.
            view: self.view()?.filter(|view| *view != View::All),
            limit: self.integer("limit", 1..=SEARCH_LIMIT_MAX)?.unwrap_or(SEARCH_LIMIT_DEFAULT),
            offset: self.integer("offset", 0..=SEARCH_OFFSET_MAX)?.unwrap_or(0),
        };
        Ok((sent.to_owned(), filter))
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
        DomainName::parse(text).map_err(|err| ApiError::parameter(name, err))
    }

    fn common(&self) -> Result<CommonFilter, ApiError> {
        let min_dqs = self.integer("min_dqs", 0..=u32::from(Dqs::MAX.points()))?.unwrap_or(0);
        let longest = u32::from(LABEL_CHARS_MAX);
        let max_len = self.integer("max_len", 1..=longest)?.unwrap_or(longest);
        let tlds: Vec<_> = match self.get("tld")? {
            Some(list) => list.split(',').filter_map(fold_tld).collect(),
            None => Vec::new(),
        };
        if tlds.len() > TLD_FILTER_MAX {
            let what = format!("must have at most {TLD_FILTER_MAX} items");
            return Err(ApiError::parameter("tld", what));
        }
        Ok(CommonFilter { tlds, min_dqs: Dqs::clamped(min_dqs as i32), max_len: max_len as u8 })
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
        let stage = self.one("stage")?;
        Ok(stage.map(View::Stage).or(view))
    }

    fn integer(
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

    fn drops(query: &str) -> Result<DropFilter, String> {
        Params::new(Some(query)).drops(LIMITS).map_err(|err| match err {
            ApiError::BadParameter { name, what, .. } => format!("{name}: {what}"),
            other => format!("{other:?}"),
        })
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
