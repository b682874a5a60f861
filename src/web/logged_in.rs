//! The account that a page requires.

use std::ops::Deref;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::Web;
use crate::accounts::Person;
use crate::error::PageError;
use crate::viewer::Viewer;

/// Extractor of a visitor with a valid session. Other visitors are redirected to the login page,
/// and back after logging in. Derefs to the account.
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
