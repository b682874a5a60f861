//! Reads after writes in a cluster. The response to a write returns the position of the shared log in a header, and to
//! browsers in a cookie. A request that sends it is answered from no older state on any node, and refused
//! how far that was.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::header::{AUTHORIZATION, SET_COOKIE};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum_extra::extract::CookieJar;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::accounts::Store;
use crate::index::generation::live::LiveIndex;
use crate::service::error::ApiError;
use crate::service::site::CookieKind;

/// Header of responses to writes, and of requests that depend on them.
pub const HEADER: HeaderName = HeaderName::from_static("x-log-position");
const COOKIE: &str = "dropdex-position";
/// Long after it all nodes are as far, or not ready.
const COOKIE_LIFE_S: u32 = 60;
/// Time for a node to come as far. Most take a few milliseconds.
const WAIT_MAX: Duration = Duration::from_millis(100);

/// A position in the shared log. Opaque to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LogPosition(u64);

impl fmt::Display for LogPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0.to_be_bytes()))
    }
}

impl FromStr for LogPosition {
    type Err = ();

    fn from_str(text: &str) -> Result<LogPosition, ()> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| ())?;
        Ok(LogPosition(u64::from_be_bytes(bytes.try_into().map_err(|_| ())?)))
    }
}

/// When a request began, by the index in use then.
#[derive(Clone, Copy, Debug)]
pub struct Moment(Option<u64>);

/// Returns and awaits positions, for a node of a cluster.
#[derive(Clone)]
pub struct Positions {
    pub store: Store,
    pub live: Arc<LiveIndex>,
    pub cookie: CookieKind,
}

impl Positions {
    /// Waits until this node is as far as a request shows.
    ///
    /// # Errors
    /// 400 for a header that no node sent, 503 if the node stays behind, or the other nodes serve newer lists.
    pub async fn reach(&self, headers: &HeaderMap) -> Result<Moment, ApiError> {
        if self.live.is_behind() {
            return Err(ApiError::NodeBehind);
        }
        if let Some(LogPosition(seq)) = shown(headers)?
            && !self.store.reaches(seq, WAIT_MAX).await
        {
            return Err(ApiError::NodeBehind);
        }
        Ok(Moment(self.live.epoch()))
    }

    /// Returns the position of the log to a client, at least that of the state behind the response.
    pub fn tell(&self, request: &HeaderMap, response: &mut HeaderMap) {
        let position = LogPosition(self.store.log_position()).to_string();
        if !request.contains_key(AUTHORIZATION) {
            let secure = if self.cookie.is_secure() { "; Secure" } else { "" };
            let cookie = format!(
                "{COOKIE}={position}; Path=/; Max-Age={COOKIE_LIFE_S}; HttpOnly; SameSite=Strict{secure}"
            );
            if let Ok(cookie) = HeaderValue::try_from(cookie) {
                response.append(SET_COOKIE, cookie);
            }
        }
        if let Ok(position) = HeaderValue::try_from(position) {
            response.insert(HEADER, position);
        }
    }

    /// Whether one index was in use since then, and belongs to the position that was returned. Otherwise a response may
    /// be of another.
    pub fn saw_one_index(&self, Moment(epoch): Moment) -> bool {
        epoch.is_some() && self.live.epoch() == epoch && !self.live.is_behind()
    }
}

fn shown(headers: &HeaderMap) -> Result<Option<LogPosition>, ApiError> {
    if let Some(value) = headers.get(HEADER) {
        let position = value.to_str().ok().and_then(|value| value.parse().ok());
        return position.map(Some).ok_or_else(|| {
            ApiError::parameter("X-Log-Position", "is not a position that this service returned")
        });
    }
    // A browser may keep a cookie of an older service.
    let cookie =
        CookieJar::from_headers(headers).get(COOKIE).and_then(|it| it.value().parse().ok());
    Ok(cookie)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_as_they_are_told() {
        for seq in [0, 1, 0x0102_0304, u64::MAX] {
            assert_eq!(LogPosition(seq).to_string().parse(), Ok(LogPosition(seq)));
        }
        for text in ["", "AAAA", "!", "AAAAAAAAAAAAAAAA"] {
            assert_eq!(text.parse::<LogPosition>(), Err(()), "{text}");
        }
    }

    #[test]
    fn the_header_comes_before_the_cookie() {
        let mut headers = HeaderMap::new();
        assert!(matches!(shown(&headers), Ok(None)));
        let value = |seq| LogPosition(seq).to_string();
        headers.insert("cookie", format!("{COOKIE}={}", value(3)).parse().expect("a header"));
        assert!(matches!(shown(&headers), Ok(Some(LogPosition(3)))));
        headers.insert(HEADER, value(4).parse().expect("a header"));
        assert!(matches!(shown(&headers), Ok(Some(LogPosition(4)))));
        headers.insert(HEADER, "4".parse().expect("a header"));
        assert!(shown(&headers).is_err());
    }
}
