//! `POST /undo`, and the button for it beside the notice of an action. Actions can be undone for ten minutes.

use axum::Router;
use axum::extract::State;
use axum::http::header::{HeaderName, HeaderValue};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::post;
use maud::{Markup, html};

use crate::Web;
use crate::accounts::{Caller, Undone};
use crate::components::{counted, grouped};
use crate::error::PageError;
use crate::form::{Fields, Form};
use crate::fragment::{Wanted, wanted};
use crate::logged_in::LoggedIn;
use crate::next::local_path;
use crate::service::error::ApiError;
use crate::service::undo;
use crate::vocab::ids::ActionId;
use crate::vocab::time::UnixMs;

/// Parameter with the action that led to a page.
const UNDO: &str = "undo";
/// Parameters with the numbers of restored rows, and of rows that were changed meanwhile.
const UNDONE: &str = "undone";
const KEPT: &str = "kept";
/// Header of the response to a script, with the action.
const HEADER: HeaderName = HeaderName::from_static("undo");

pub fn routes() -> Router<Web> {
    Router::new().route("/undo", post(undo))
}

/// An action that is being done.
pub struct Acting<'a> {
    web: &'a Web,
    member: &'a LoggedIn,
    /// The caller whose writes belong to the action.
    pub caller: Caller,
    id: ActionId,
}

impl Acting<'_> {
    pub fn new<'a>(web: &'a Web, member: &'a LoggedIn) -> Result<Acting<'a>, PageError> {
        let (caller, id) = member.caller.acting().map_err(ApiError::from)?;
        Ok(Acting { web, member, caller, id })
    }

    /// Redirects to a page with further parameters, and with the action if it can be undone.
    pub fn redirect(&self, to: &str, parameters: &[(&str, &str)]) -> Response {
        let id = self.recorded().map(|id| id.to_string()).unwrap_or_default();
        Redirect::to(&with(to, &[parameters, &[(UNDO, &id)]].concat())).into_response()
    }

    /// Returns the response to a script.
    pub fn no_content(&self) -> Response {
        let mut response = StatusCode::NO_CONTENT.into_response();
        if let Some(id) = self.recorded() {
            response.headers_mut().insert(HEADER, HeaderValue::from(id.get()));
        }
        response
    }

    /// Returns the query of a page that offers to undo the action, if it can be undone.
    pub fn query(&self) -> Option<String> {
        self.recorded().map(|id| format!("{UNDO}={id}"))
    }

    /// Returns the action; `None` if it changed nothing or is too large to be undone.
    fn recorded(&self) -> Option<ActionId> {
        let now = UnixMs::from_instant(self.member.viewer.now.0);
        self.web.user_data(self.member).action(self.id, now).map(|action| action.id)
    }
}

/// Adds parameters, whose values need no escapes, to a local address, which may have a query and a
/// fragment. Those of an earlier action are removed, and empty ones are left out.
fn with(address: &str, parameters: &[(&str, &str)]) -> String {
    let (address, fragment) = match address.split_once('#') {
        Some((address, fragment)) => (address, format!("#{fragment}")),
        None => (address, String::new()),
    };
    let (path, sent) = address.split_once('?').unwrap_or((address, ""));
    let is_ours = |part: &&str| {
        let name = part.split('=').next().unwrap_or_default();
        name.is_empty() || [UNDO, UNDONE, KEPT, "notice"].contains(&name)
    };
    let kept = sent.split('&').filter(|part| !is_ours(part)).map(str::to_owned);
    let new = parameters.iter().filter(|(_, value)| !value.is_empty());
    let all: Vec<_> = kept.chain(new.map(|(name, value)| format!("{name}={value}"))).collect();
    let mark = if all.is_empty() { "" } else { "?" };
    format!("{path}{mark}{}{fragment}", all.join("&"))
}

/// Renders what was done on this `page`, with the button that undoes the action in a query string, or the
/// result of an undo.
pub fn shown(sent: &Fields, page: &str, done: Option<&str>) -> Markup {
    let number = |name: &str| sent.text(name).parse::<u32>().ok();
    let action = ActionId::parse(sent.text(UNDO));
    html! {
        @if action.is_some() || done.is_some() {
            div.notice role="status" {
                (done.unwrap_or("Saved."))
                @if let Some(id) = action {
                    form method="post" action="/undo" {
                        input type="hidden" name="id" value=(id);
                        input type="hidden" name="next" value=(page);
                        button.quiet { "Undo" }
                    }
                }
            }
        }
        @if let Some(undone) = number(UNDONE) {
            p.notice role="status" {
                (counted(undone, "change")) " undone."
                @if let Some(kept) = number(KEPT).filter(|kept| *kept > 0) {
                    " " (grouped(kept.into())) " stayed, because they were changed again later."
                }
            }
        }
    }
}

/// `POST /undo`.
async fn undo(
    State(web): State<Web>,
    member: LoggedIn,
    headers: HeaderMap,
    Form(fields): Form<Fields>,
) -> Result<Response, PageError> {
    let id = ActionId::parse(fields.text("id")).ok_or(ApiError::NotFound)?;
    let Undone { restored, kept } =
        undo::undo(&web.app, &member.caller, id, member.viewer.now).await?;
    if wanted(&headers) != Wanted::Page {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let next = local_path(Some(fields.text("next")));
    let (restored, kept) = (restored.to_string(), kept.to_string());
    Ok(Redirect::to(&with(next, &[(UNDONE, &restored), (KEPT, &kept)])).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_added_before_the_fragment_and_replace_older_ones() {
        for (address, expected) in [
            ("/", "/?undo=7"),
            ("/?tld=com", "/?tld=com&undo=7"),
            ("/watchlist?notice=removed&undo=6&undone=1&kept=0&tag=a", "/watchlist?tag=a&undo=7"),
            ("/domain/a.com?a=b#watching", "/domain/a.com?a=b&undo=7#watching"),
            ("/?contains=a%26b&undone=1", "/?contains=a%26b&undo=7"),
        ] {
            assert_eq!(with(address, &[(UNDO, "7")]), expected);
        }
        assert_eq!(with("/?undo=7", &[(UNDO, "")]), "/");
    }
}
