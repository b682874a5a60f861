//! The person a page is made for: handlers take a [`Viewer`], or a [`LoggedIn`] where an account is
//! required.

use std::convert::Infallible;
use std::ops::Deref;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::accounts::Person;
use crate::http::allowance::Now;
use crate::http::session;
use crate::web::Web;
use crate::web::error::PageError;

/// A visitor, logged in or not, and the time of the request. The clock is read once per request.
#[derive(Clone)]
pub struct Viewer {
    pub now: Now,
    /// `None` without a valid session.
    pub member: Option<Person>,
}

impl FromRequestParts<Web> for Viewer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, web: &Web) -> Result<Viewer, Infallible> {
        let now = web.app.clock.now();
        Ok(Viewer { now: Now(now), member: session::find(&web.app, &parts.headers, now) })
    }
}

/// A visitor with a valid session. Others are redirected to the login page and back. Derefs to the
/// account.
#[derive(Clone)]
pub struct LoggedIn {
    pub viewer: Viewer,
    person: Person,
}

impl Deref for LoggedIn {
    type Target = Person;

    fn deref(&self) -> &Person {
        &self.person
    }
}

impl FromRequestParts<Web> for LoggedIn {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, web: &Web) -> Result<LoggedIn, PageError> {
        let Ok(viewer) = Viewer::from_request_parts(parts, web).await;
        match viewer.member.clone() {
            Some(person) => Ok(LoggedIn { viewer, person }),
            None => Err(PageError::log_in_for(&parts.method, &parts.uri)),
        }
    }
}
