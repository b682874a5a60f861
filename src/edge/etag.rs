//! Entity tags. A tag is a digest of a response's inputs (index generation, day, query), so the
//! server can send a 304 to a client with a current response before any query runs (RFC 9110
//! §13.1.2).

use std::sync::Arc;

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH, VARY};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};

use crate::index::Index;
use crate::index::filter::AsOf;

/// Version of the response format. Increment the version whenever the response to the same query on
/// the same index changes.
const FORMAT_VERSION: u32 = 4;
/// Length of the digest in a tag, in bytes; enough to make collisions infeasible.
const TAG_BYTES: usize = 16;
/// Suffixes of the tags of compressed responses, since each is a separate representation.
const SUFFIXES: [&str; 2] = ["-gzip", "-zstd"];

/// Header with the index generation that served the response.
pub const GENERATION: HeaderName = HeaderName::from_static("x-index-generation");

/// The tag of a response, with the index generation that the response comes from.
pub struct Tag {
    value: HeaderValue,
    /// `None` for responses that do not use the index.
    generation: Option<HeaderValue>,
}

impl Tag {
    /// The tag of the response to `uri` from `index` as of `as_of`. `more` are further inputs of
    /// the response.
    pub fn for_query(index: &Arc<Index>, as_of: AsOf, uri: &Uri, more: &[u64]) -> Tag {
        let manifest = index.manifest();
        let mut hasher = hasher();
        for number in
            [manifest.generation.0, u64::from(manifest.scorer_version), u64::from(as_of.catch_days)]
        {
            hasher.update(&number.to_le_bytes());
        }
        hasher.update(manifest.corpus.as_bytes());
        hasher.update(&as_of.today.raw().to_le_bytes());
        for number in more {
            hasher.update(&number.to_le_bytes());
        }
        // The URI is used as sent, because tags are compared per URI.
        hasher.update(uri.path().as_bytes());
        hasher.update(b"?");
        hasher.update(uri.query().unwrap_or_default().as_bytes());
        Tag { value: value(&hasher), generation: Some(generation(index)) }
    }

    /// The tag of a constant response.
    pub fn for_bytes(bytes: &[u8]) -> Tag {
        let mut hasher = hasher();
        hasher.update(bytes);
        Tag { value: value(&hasher), generation: None }
    }

    /// A 304 if `If-None-Match` lists the tag, with or without the suffix of an encoding.
    pub fn not_modified(&self, headers: &HeaderMap) -> Option<Response> {
        let matched = headers.get_all(IF_NONE_MATCH).iter().find_map(|line| self.find(line))?;
        let mut response = StatusCode::NOT_MODIFIED.into_response();
        self.put(response.headers_mut(), matched);
        response.headers_mut().insert(VARY, HeaderValue::from_static("accept-encoding"));
        Some(response)
    }

    /// Whether `If-Match` contains `*` or the tag. The comparison is strong (RFC 9110 §13.1.1).
    pub fn is_matched(&self, headers: &HeaderMap) -> bool {
        let is_it = |line: &HeaderValue| {
            let is_weak = line.as_bytes().trim_ascii_start().starts_with(b"W/");
            !is_weak && self.find(line).is_some()
        };
        // Our tags contain no commas.
        let parts = |line: &HeaderValue| -> Vec<HeaderValue> {
            let parts = line.as_bytes().split(|byte| *byte == b',');
            parts.filter_map(|part| HeaderValue::from_bytes(part.trim_ascii()).ok()).collect()
        };
        headers.get_all(IF_MATCH).iter().flat_map(parts).any(|part| is_it(&part))
    }

    /// Whether a header names this tag. The comparison is strong (RFC 9110 §13.1.5).
    pub fn is(&self, sent: &HeaderValue) -> bool {
        self.value == *sent
    }

    /// The value of `ETag`.
    pub fn value(&self) -> &HeaderValue {
        &self.value
    }

    /// Adds the tag to a response.
    pub fn on(&self, mut response: Response) -> Response {
        self.put(response.headers_mut(), self.value.clone());
        response
    }

    fn put(&self, headers: &mut HeaderMap, tag: HeaderValue) {
        headers.insert(ETAG, tag);
        // Only the client may cache the response, and it must revalidate: a new list or day changes
        // it.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
        if let Some(generation) = &self.generation {
            headers.insert(GENERATION, generation.clone());
        }
    }

    /// Returns the matching tag of an `If-None-Match` line, as the client sent it.
    fn find(&self, line: &HeaderValue) -> Option<HeaderValue> {
        let line = line.to_str().ok()?;
        if line.trim() == "*" {
            return Some(self.value.clone());
        }
        let own = self.value.to_str().ok()?;
        let opaque = own.trim_matches('"');
        line.split(',').map(str::trim).find_map(|sent| {
            let strong = sent.strip_prefix("W/").unwrap_or(sent);
            let text = strong.strip_prefix('"')?.strip_suffix('"')?;
            let suffix = text.strip_prefix(opaque)?;
            let known = suffix.is_empty() || SUFFIXES.contains(&suffix);
            known.then(|| HeaderValue::from_str(strong).ok())?
        })
    }
}

/// Adds the header that names the index generation.
pub fn from_generation(index: &Arc<Index>, mut response: Response) -> Response {
    response.headers_mut().insert(GENERATION, generation(index));
    response
}

/// The tag of a compressed response: `"abc-gzip"`.
pub fn encoded(tag: &HeaderValue, encoding: &str) -> Option<HeaderValue> {
    let text = tag.to_str().ok()?.strip_suffix('"')?;
    HeaderValue::try_from(format!("{text}-{encoding}\"")).ok()
}

/// A constant response, or a 304.
pub fn constant(
    tag: &Tag,
    headers: &HeaderMap,
    kind: &'static str,
    bytes: &'static [u8],
) -> Response {
    tag.not_modified(headers)
        .unwrap_or_else(|| tag.on(([(CONTENT_TYPE, kind)], bytes).into_response()))
}

fn generation(index: &Arc<Index>) -> HeaderValue {
    HeaderValue::from(index.manifest().generation.0)
}

fn hasher() -> blake3::Hasher {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&FORMAT_VERSION.to_le_bytes());
    hasher.update(env!("CARGO_PKG_VERSION").as_bytes());
    hasher
}

fn value(hasher: &blake3::Hasher) -> HeaderValue {
    // The digest in quotes.
    let mut text = [b'"'; 2 * TAG_BYTES + 2];
    let digest = hasher.finalize();
    hex::encode_to_slice(&digest.as_bytes()[..TAG_BYTES], &mut text[1..=2 * TAG_BYTES])
        .expect("two digits a byte");
    HeaderValue::from_bytes(&text).expect("hexadecimal digits are a value")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn if_none_match_lists_are_compared_weakly() {
        let tag = Tag::for_bytes(b"abc");
        let own = tag.value.to_str().expect("ASCII").to_owned();
        let zipped = own.replace("\"", "") + "-gzip";
        for (sent, echo) in [
            (own.clone(), Some(own.clone())),
            (format!("W/{own}"), Some(own.clone())),
            (format!("\"a\", \"b,c\" , {own}"), Some(own.clone())),
            (format!("\"{zipped}\""), Some(format!("\"{zipped}\""))),
            ("*".to_owned(), Some(own.clone())),
            (format!("\"{zipped}x\""), None),
            (own.replace('"', ""), None),
            ("\"abc\"".to_owned(), None),
            (String::new(), None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(IF_NONE_MATCH, sent.parse().expect("a value"));
            let response = tag.not_modified(&headers);
            let got = response.as_ref().map(|it| it.headers()[ETAG].to_str().expect("ASCII"));
            assert_eq!(got, echo.as_deref(), "{sent}");
            assert!(response.is_none_or(|it| it.status() == StatusCode::NOT_MODIFIED));
        }
        assert!(tag.not_modified(&HeaderMap::new()).is_none());
    }

    #[test]
    fn if_match_lists_are_compared_strongly() {
        let tag = Tag::for_bytes(b"abc");
        let own = tag.value.to_str().expect("ASCII").to_owned();
        let zipped = format!("\"{}-gzip\"", own.replace('"', ""));
        for (sent, is_matched) in [
            (own.clone(), true),
            (format!("\"a\", {own}"), true),
            (zipped, true),
            ("*".to_owned(), true),
            (format!("W/{own}"), false),
            ("\"a\"".to_owned(), false),
            (String::new(), false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(IF_MATCH, sent.parse().expect("a value"));
            assert_eq!(tag.is_matched(&headers), is_matched, "{sent}");
        }
    }

    #[test]
    fn encodings_have_their_own_tags() {
        let tag = HeaderValue::from_static("\"abc\"");
        assert_eq!(encoded(&tag, "zstd"), Some(HeaderValue::from_static("\"abc-zstd\"")));
    }
}
