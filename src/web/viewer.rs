//! Who looks at a page: every handler takes a [`Viewer`], or a [`Member`] where a log-in is needed.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::accounts::{Caller, Email, Person, TokenDigest};
use crate::http::allowance::Now;
use crate::http::session;
use crate::web::Web;
use crate::web::error::PageError;

/// Whoever asks for a page, and when: the request's one reading of the clock.
#[derive(Clone)]
pub struct Viewer {
    pub now: Now,
    /// `None` for somebody who has not logged in.
    pub member: Option<Member>,
}

/// Somebody who has logged in.
#[derive(Clone)]
pub struct Member {
    pub caller: Caller,
    pub email: Email,
    /// What their session is told apart by.
    pub session: TokenDigest,
}

impl FromRequestParts<Web> for Viewer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, web: &Web) -> Result<Viewer, Infallible> {
        let now = web.app.clock.now();
        let found = session::find(&web.app, &parts.headers, now);
        let member =
            found.map(|Person { caller, email, session }| Member { caller, email, session });
        Ok(Viewer { now: Now(now), member })
    }
}

/// A viewer who has logged in; others are sent to the log-in page, and back from there.
#[derive(Clone)]
pub struct LoggedIn {
    pub viewer: Viewer,
    pub member: Member,
}

impl FromRequestParts<Web> for LoggedIn {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, web: &Web) -> Result<LoggedIn, PageError> {
        let Ok(viewer) = Viewer::from_request_parts(parts, web).await;
        match viewer.member.clone() {
            Some(member) => Ok(LoggedIn { viewer, member }),
            None => Err(PageError::log_in_for(&parts.method, &parts.uri)),
        }
    }
}
