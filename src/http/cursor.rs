//! Page cursors: opaque texts with the position of the last row, so that the next page starts after
//! it even in a newer generation. A cursor belongs to one query, and a checksum rejects texts that
//! the server did not create.
//!
//! Layout, in base64: version, digest of the query, value of the sort key, place in rank order, name, checksum.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::index::filter::{DropFilter, RowPosition};
use crate::query::error::ParameterCode;
use crate::query::params::{Limits, Params};
use crate::service::error::ApiError;
use crate::vocab::day::Day;

const VERSION: u8 = 1;
const DIGEST_BYTES: usize = 8;
const HEAD_BYTES: usize = 1 + DIGEST_BYTES + 8 + 8;
/// Context string of the checksum; see [`blake3::derive_key`].
const CONTEXT: &str = "dropdex 2026-11-23 cursor";

/// Digest of the query that a cursor belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryDigest([u8; DIGEST_BYTES]);

impl QueryDigest {
    /// Computes the digest of filters and order by their meaning: explicit defaults, the order of list
    /// items, and `tomorrow` instead of its date make no difference.
    pub fn of(filter: &DropFilter) -> QueryDigest {
        let DropFilter { common, view, contains, sort, sort_fact, .. } = filter;
        let mut common = common.clone();
        common.sort_lists();
        // A cursor outlives the editions of the facts.
        common.drop.facts.iter_mut().for_each(|fact| fact.resolved = None);
        let sort = (sort.key, sort.descending, sort_fact);
        // The digest may differ between builds, because a cursor is only used while a client pages
        // through a list.
        let meant = format!("{common:?} {view:?} {contains:?} {sort:?}");
        QueryDigest::new(vec![("query", &meant)])
    }

    /// Computes the digest of names and values in any order.
    pub fn new<'a>(mut pairs: Vec<(&'a str, &'a str)>) -> QueryDigest {
        pairs.sort_unstable();
        let mut hasher = blake3::Hasher::new();
        for text in pairs.iter().flat_map(|&(name, value)| [name, value]) {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        QueryDigest(first(hasher.finalize().as_bytes()))
    }
}

/// Parses the query of a page of the drops list, which may start after the row of a cursor.
///
/// # Errors
/// 400 for the first invalid parameter.
pub fn page(params: &Params<'_>, limits: Limits, today: Day) -> Result<DropFilter, ApiError> {
    let filter = params.drops(limits, today)?;
    let Some(cursor) = params.get("cursor")? else { return Ok(filter) };
    // Generated clients also send the default of `offset`.
    if filter.offset > 0 {
        let what = "must not be given with an offset above 0";
        return Err(ApiError::parameter("cursor", what));
    }
    let after = decode(cursor, QueryDigest::of(&filter))?;
    Ok(DropFilter { after: Some(after), ..filter })
}

/// Returns the cursor of the page after a row.
pub fn encode(position: &RowPosition, query: QueryDigest) -> String {
    let mut bytes = vec![VERSION];
    bytes.extend_from_slice(&query.0);
    bytes.extend_from_slice(&position.value.to_le_bytes());
    bytes.extend_from_slice(&position.key.to_le_bytes());
    bytes.extend_from_slice(position.name.as_bytes());
    bytes.extend_from_slice(&checksum(&bytes));
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Returns the row that a cursor represents.
///
/// # Errors
/// 400 if the cursor was not created by [`encode`], or belongs to another query.
pub fn decode(cursor: &str, query: QueryDigest) -> Result<RowPosition, ApiError> {
    let (digest, position) = parse(cursor).ok_or_else(|| {
        let what = "is not a cursor of this service; use nextCursor of the page before";
        ApiError::coded(ParameterCode::InvalidCursor, "cursor", what)
    })?;
    if digest != query {
        let what = "belongs to other filters or another sort; start without a cursor";
        return Err(ApiError::coded(ParameterCode::CursorMismatch, "cursor", what));
    }
    Ok(position)
}

fn parse(cursor: &str) -> Option<(QueryDigest, RowPosition)> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    let (body, sum) = bytes.split_last_chunk::<DIGEST_BYTES>()?;
    let (head, name) = body.split_first_chunk::<HEAD_BYTES>()?;
    if checksum(body) != *sum || head[0] != VERSION {
        return None;
    }
    let (digest, rest) = head[1..].split_first_chunk()?;
    let (value, key) = rest.split_first_chunk()?;
    let position = RowPosition {
        value: u64::from_le_bytes(*value),
        key: u64::from_le_bytes(key.try_into().ok()?),
        name: String::from_utf8(name.to_vec()).ok()?,
    };
    Some((QueryDigest(*digest), position))
}

fn checksum(bytes: &[u8]) -> [u8; DIGEST_BYTES] {
    first(&blake3::derive_key(CONTEXT, bytes))
}

fn first(hash: &[u8; 32]) -> [u8; DIGEST_BYTES] {
    *hash.first_chunk().expect("32 bytes have a start")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn code(result: Result<RowPosition, ApiError>) -> ParameterCode {
        match result {
            Err(ApiError::BadParameter { code, .. }) => code,
            other => panic!("{other:?}"),
        }
    }

    fn digest(query: &str) -> QueryDigest {
        let limits = Limits { default: 100, max: 1_000 };
        let today = "2026-11-23".parse().expect("a date");
        QueryDigest::of(&Params::new(Some(query)).drops(limits, today).expect(query))
    }

    #[test]
    fn a_query_has_one_digest_in_every_spelling() {
        for (one, other) in [
            (
                "",
                "view=active&sort=dqs&order=desc&offset=0&limit=5&min_dqs=0&max_len=63&fields=name",
            ),
            ("tld=com,net,com", "tld=.NET,%20com"),
            ("stage=redemption,catchable", "stage=catchable,redemption&view=today"),
            ("stage=catchable,redemption,pending-delete", "view=active"),
            ("contains=solar,wind&language=en,de", "language=de,en&contains=WIND,solar"),
            ("kind=word,words&not_tld=xyz,info", "not_tld=info,xyz&kind=words,word"),
            (
                "release_from=tomorrow&release_to=%2B3d",
                "release_from=2026-11-24&release_to=2026-11-26",
            ),
            ("like=solar", "like=solar&distance=1"),
            ("listed_since=2026-11-20", "listed_since=2026-11-20T00:00:00Z"),
            ("min_drops=1", "min_drops=1&max_dqs=100&min_tlds=0&min_words=0"),
        ] {
            assert_eq!(digest(one), digest(other), "{one} {other}");
        }
        let queries = [
            "",
            "view=all",
            "view=today",
            "stage=catchable",
            "tld=com",
            "not_tld=com",
            "q=com",
            "contains=com",
            "starts=com",
            "pattern=com",
            "regex=com",
            "like=com",
            "like=com&distance=2",
            "sort=name",
            "order=asc",
            "min_dqs=1",
            "max_dqs=1",
            "min_len=2",
            "max_len=2",
            "language=en",
            "kind=word",
            "digits=none",
            "caps=none",
            "release_from=today",
            "release_to=today",
            "dropped_to=today",
            "min_drops=2",
            "max_rank=5",
        ];
        let digests: HashSet<_> = queries.iter().map(|query| digest(query).0).collect();
        assert_eq!(digests.len(), queries.len());
    }

    #[test]
    fn cursors_are_read_as_written_and_no_other_text_is() {
        let query = digest("tld=com&sort=name");
        let position = RowPosition { value: u64::MAX - 3, key: 700, name: "solar.com".into() };
        let cursor = encode(&position, query);
        assert_eq!(decode(&cursor, query).expect("sound"), position);
        let other = digest("tld=co&sort=name");
        assert_eq!(code(decode(&cursor, other)), ParameterCode::CursorMismatch);
        for at in 0..cursor.len() {
            let mut bent = cursor.clone().into_bytes();
            bent[at] = if bent[at] == b'A' { b'B' } else { b'A' };
            let bent = String::from_utf8(bent).expect("ASCII");
            assert_eq!(code(decode(&bent, query)), ParameterCode::InvalidCursor, "{at}");
            assert_eq!(code(decode(&cursor[..at], query)), ParameterCode::InvalidCursor, "{at}");
        }
    }
}
