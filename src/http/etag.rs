//! Answers that clients hold already: what an answer will say is told by what it is made from, so a
//! client that has it is answered 304 before anything is looked up (RFC 9110 §13.1.2).

use std::sync::Arc;

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};

use crate::index::Index;
use crate::index::filter::Moment;

/// What answers look like: raised whenever the same question to the same index is answered otherwise.
const ANSWERS_VERSION: u32 = 1;
/// Bytes of a tag: nobody finds two answers with the same one.
const TAG_BYTES: usize = 16;
/// What the tag of an encoded answer ends in, before its quote: it is another representation.
const SUFFIXES: [&str; 2] = ["-gzip", "-zstd"];

/// The header that says which generation of the index answered.
pub const GENERATION: HeaderName = HeaderName::from_static("x-index-generation");

/// The tag of an answer, and of which generation it is.
pub struct Tag {
    value: HeaderValue,
    /// `None` for what does not come from the index.
    generation: Option<HeaderValue>,
}

impl Tag {
    /// The tag of what `index` answers to a question on the day of `moment`. `more` is what else goes
    /// into the answer.
    pub fn of(index: &Arc<Index>, moment: Moment, uri: &Uri, more: &[u64]) -> Tag {
        let manifest = index.manifest();
        let mut hasher = hasher();
        for number in [
            manifest.generation.0,
            u64::from(manifest.scorer_version),
            u64::from(moment.catch_days),
        ] {
            hasher.update(&number.to_le_bytes());
        }
        hasher.update(manifest.corpus.as_bytes());
        hasher.update(&moment.today.raw().to_le_bytes());
        for number in more {
            hasher.update(&number.to_le_bytes());
        }
        // As it was sent: another spelling has another address, and a tag is of one address.
        hasher.update(uri.path().as_bytes());
        hasher.update(b"?");
        hasher.update(uri.query().unwrap_or_default().as_bytes());
        Tag { value: value(&hasher), generation: Some(generation(index)) }
    }

    /// The tag of bytes that are the same for everybody.
    pub fn of_bytes(bytes: &[u8]) -> Tag {
        let mut hasher = hasher();
        hasher.update(bytes);
        Tag { value: value(&hasher), generation: None }
    }

    /// 304 for a client that holds the answer, in whatever encoding it was sent.
    pub fn held(&self, headers: &HeaderMap) -> Option<Response> {
        let held = headers.get_all(IF_NONE_MATCH).iter().find_map(|line| self.find(line))?;
        let mut response = StatusCode::NOT_MODIFIED.into_response();
        self.put(response.headers_mut(), held);
        response.headers_mut().insert(VARY, HeaderValue::from_static("accept-encoding"));
        Some(response)
    }

    /// The same answer with its tag.
    pub fn on(&self, mut response: Response) -> Response {
        self.put(response.headers_mut(), self.value.clone());
        response
    }

    fn put(&self, headers: &mut HeaderMap, tag: HeaderValue) {
        headers.insert(ETAG, tag);
        // Kept by its client alone, and asked about before each use: lists and days change.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
        if let Some(generation) = &self.generation {
            headers.insert(GENERATION, generation.clone());
        }
    }

    /// The one of the tags in a line of `If-None-Match` that stands for this answer, as it was sent.
    fn find(&self, line: &HeaderValue) -> Option<HeaderValue> {
        let line = line.to_str().ok()?;
        if line.trim() == "*" {
            return Some(self.value.clone());
        }
        let own = self.value.to_str().ok()?;
        let opaque = own.trim_matches('"');
        line.split(',').map(str::trim).find_map(|sent| {
            let held = sent.strip_prefix("W/").unwrap_or(sent);
            let text = held.strip_prefix('"')?.strip_suffix('"')?;
            let suffix = text.strip_prefix(opaque)?;
            let known = suffix.is_empty() || SUFFIXES.contains(&suffix);
            known.then(|| HeaderValue::from_str(held).ok())?
        })
    }
}

/// Marks an answer as made by a generation of the index.
pub fn from_generation(index: &Arc<Index>, mut response: Response) -> Response {
    response.headers_mut().insert(GENERATION, generation(index));
    response
}

/// The tag of an answer that was encoded on its way: `"abc-gzip"`.
pub fn encoded(tag: &HeaderValue, encoding: &str) -> Option<HeaderValue> {
    let text = tag.to_str().ok()?.strip_suffix('"')?;
    HeaderValue::try_from(format!("{text}-{encoding}\"")).ok()
}

/// Bytes that are the same for everybody, or 304 for who holds them.
pub fn constant(
    tag: &Tag,
    headers: &HeaderMap,
    kind: &'static str,
    bytes: &'static [u8],
) -> Response {
    tag.held(headers).unwrap_or_else(|| tag.on(([(CONTENT_TYPE, kind)], bytes).into_response()))
}

fn generation(index: &Arc<Index>) -> HeaderValue {
    HeaderValue::from(index.manifest().generation.0)
}

fn hasher() -> blake3::Hasher {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&ANSWERS_VERSION.to_le_bytes());
    hasher.update(env!("CARGO_PKG_VERSION").as_bytes());
    hasher
}

fn value(hasher: &blake3::Hasher) -> HeaderValue {
    // In quotes.
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
    fn a_client_that_holds_it_is_told_so() {
        let tag = Tag::of_bytes(b"abc");
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
            let answer = tag.held(&headers);
            let got = answer.as_ref().map(|it| it.headers()[ETAG].to_str().expect("ASCII"));
            assert_eq!(got, echo.as_deref(), "{sent}");
            assert!(answer.is_none_or(|it| it.status() == StatusCode::NOT_MODIFIED));
        }
        assert!(tag.held(&HeaderMap::new()).is_none());
    }

    #[test]
    fn an_encoded_answer_has_a_tag_of_its_own() {
        let tag = HeaderValue::from_static("\"abc\"");
        assert_eq!(encoded(&tag, "zstd"), Some(HeaderValue::from_static("\"abc-zstd\"")));
    }
}
