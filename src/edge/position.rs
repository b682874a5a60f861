//! Read-your-writes consistency in a cluster. The response to a write returns the position of the shared log in a
//! header, and to browsers in a cookie. A node serves a request with a position only from a state at least as new, and
//! refuses it if it does not catch up in time.

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
/// By then, every node has either caught up or is not ready.
const COOKIE_LIFE_S: u32 = 60;
/// Time allowed for a node to catch up. Most take a few milliseconds.
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

/// The start of a request, identified by the index that was in use then.
#[derive(Clone, Copy, Debug)]
pub struct Moment(Option<u64>);

/// Returns positions to clients and waits for them, on a cluster node.
#[derive(Clone)]
pub struct Positions {
    pub store: Store,
    pub live: Arc<LiveIndex>,
    pub cookie: CookieKind,
}

impl Positions {
    /// Waits until this node has reached the position that a request sends.
    ///
    /// # Errors
    /// 400 for a header that no node sent, 503 if the node does not catch up in time or the other
    /// nodes serve newer lists.
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

    /// Adds the log position to a response. The position is at least that of the state from which
    /// the response was built.
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

    /// Whether the same index has been in use since the start of the request, and belongs to the returned position.
    /// Otherwise the response may come from another index.
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
    // An invalid cookie is ignored, because the browser may still have one from an earlier
    // installation.
    let cookie =
        CookieJar::from_headers(headers).get(COOKIE).and_then(|it| it.value().parse().ok());
    Ok(cookie)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_parsed_as_returned() {
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
