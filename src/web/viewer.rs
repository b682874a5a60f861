//! The person that a page is rendered for. Handlers that require an account take a
//! [`LoggedIn`](crate::logged_in::LoggedIn) instead.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::Web;
use crate::accounts::Person;
use crate::edge::session;
use crate::service::app::Now;

/// A visitor, logged in or not, with the time of the request. The clock is read once per request.
#[derive(Clone)]
pub struct Viewer {
    pub now: Now,
    /// `None` without a valid session.
    pub member: Option<Person>,
    /// Whether the server shows sample data.
    pub demo: bool,
}

impl FromRequestParts<Web> for Viewer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, web: &Web) -> Result<Viewer, Infallible> {
        let now = web.app.clock.now();
        let member = session::of_request(&web.app, parts, now);
        Ok(Viewer { now: Now(now), member, demo: web.settings.demo })
    }
}
