//! `/portfolio`: backorder claims, what they cost and what they earned.

mod form;
mod page;
mod summary;

use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use maud::Markup;

use crate::accounts::{Claim, ClaimPatch, UserData};
use crate::http::error::ApiError;
use crate::http::params::{Params, path_id};
use crate::http::portfolio::{self, ClaimFilter, claims_cost_us};
use crate::http::work;
use crate::vocab::ids::ClaimId;
use crate::web::Web;
use crate::web::error::PageError;
use crate::web::field::FormError;
use crate::web::form::{Fields, Form};
use crate::web::notice::Notice;
use crate::web::owned::{ROW_LIMITS, address, idempotent_post};
use crate::web::viewer::LoggedIn;
use form::ClaimForm;
use summary::{By, Summary};

/// Where the page is.
const PATH: &str = "/portfolio";

const ADDED: Notice = Notice::new("added", "The claim was added.");
const SAVED: Notice = Notice::new("saved", "The claim was saved.");
const REMOVED: Notice = Notice::new("removed", "The claim was deleted.");
const NOTICES: [Notice; 3] = [ADDED, SAVED, REMOVED];

/// The routes of the portfolio.
pub fn routes() -> Router<Web> {
    Router::new()
        .route(PATH, get(show))
        .route("/portfolio/new", get(ask_new).post(add))
        .route("/portfolio/{id}", get(show_claim).post(save))
        .route("/portfolio/{id}/delete", get(ask_removal).post(remove))
}

type ClaimPath = Result<Path<String>, PathRejection>;

/// Claims that fit a filter, and what all of them come to.
struct List {
    filter: ClaimFilter,
    /// As sent: a filter does not say it as a day.
    from: String,
    to: String,
    by: By,
    owned: Arc<UserData>,
    summary: Summary,
    /// Those of the page.
    claims: Vec<Claim>,
}

impl List {
    /// `path` with this filter; a page also says how its sums are grouped, and where it begins.
    fn address(&self, path: &str, by: Option<By>, offset: u32) -> String {
        let by = by.filter(|by| *by != By::default()).map(By::as_str).unwrap_or_default();
        let offset = if offset == 0 { String::new() } else { offset.to_string() };
        let statuses = statuses(self.filter.statuses().iter().map(|status| status.as_str()));
        let pairs = [
            ("status", statuses.as_str()),
            ("from", &self.from),
            ("to", &self.to),
            ("by", by),
            ("offset", &offset),
        ];
        address(path, &pairs)
    }

    fn is_filtered(&self) -> bool {
        !self.filter.statuses().is_empty() || !self.from.is_empty() || !self.to.is_empty()
    }
}

/// `GET /portfolio`.
async fn show(
    State(web): State<Web>,
    member: LoggedIn,
    RawQuery(query): RawQuery,
) -> Result<Markup, PageError> {
    let list = list(&web, &member, &Fields::from_query(query.as_deref())).await?;
    Ok(page::show(&member, &list, query.as_deref()))
}

/// `GET /portfolio/new`: an empty form, or one about the name that a link gives.
async fn ask_new(State(web): State<Web>, member: LoggedIn, RawQuery(query): RawQuery) -> Markup {
    let owned = web.user_data(&member);
    let form = ClaimForm::blank(Fields::from_query(query.as_deref()).text("domain").trim());
    page::editor(&member, &owned, &form, None, None)
}

/// `POST /portfolio/new`.
async fn add(
    State(web): State<Web>,
    member: LoggedIn,
    Form(fields): Form<Fields>,
) -> Result<Response, PageError> {
    let form = ClaimForm::from_fields(&fields);
    let post = idempotent_post(&fields, member.viewer.now);
    let added = match form.sent() {
        Ok(sent) => portfolio::add(&web.app, &member.caller, sent, post).await,
        Err(err) => Err(err),
    };
    match added {
        Ok(_) => Ok(ADDED.at(PATH).into_response()),
        Err(err) => Ok(refused(&web, &member, &form, None, err)),
    }
}

/// `GET /portfolio/{id}`.
async fn show_claim(
    State(web): State<Web>,
    member: LoggedIn,
    id: ClaimPath,
) -> Result<Markup, PageError> {
    let owned = web.user_data(&member);
    let claim = owned.claim(path_id(id, ClaimId::parse)?).ok_or(ApiError::NotFound)?;
    Ok(page::editor(&member, &owned, &ClaimForm::for_claim(claim), Some(claim), None))
}

/// `POST /portfolio/{id}`: the claim as its form has it.
async fn save(
    State(web): State<Web>,
    member: LoggedIn,
    id: ClaimPath,
    Form(fields): Form<Fields>,
) -> Result<Response, PageError> {
    let (caller, now) = (&member.caller, member.viewer.now.0);
    let owned = web.app.store.user_data(caller);
    let claim = owned.claim(path_id(id, ClaimId::parse)?).ok_or(ApiError::NotFound)?;
    let form = ClaimForm::from_fields(&fields);
    let changed = match form.patch(claim).and_then(ClaimPatch::try_from) {
        Ok(patch) => {
            web.app.store.change_claim(caller, claim.id, patch, now).await.map_err(ApiError::from)
        }
        Err(err) => Err(err),
    };
    match changed {
        Ok(_) => Ok(SAVED.at(PATH).into_response()),
        Err(err) => Ok(refused(&web, &member, &form, Some(claim), err)),
    }
}

/// `GET /portfolio/{id}/delete`.
async fn ask_removal(
    State(web): State<Web>,
    member: LoggedIn,
    id: ClaimPath,
) -> Result<Markup, PageError> {
    let owned = web.user_data(&member);
    let claim = owned.claim(path_id(id, ClaimId::parse)?).ok_or(ApiError::NotFound)?;
    Ok(page::removal(&member, claim))
}

/// `POST /portfolio/{id}/delete`.
async fn remove(
    State(web): State<Web>,
    member: LoggedIn,
    id: ClaimPath,
) -> Result<Redirect, PageError> {
    web.app.store.remove_claim(&member.caller, path_id(id, ClaimId::parse)?).await?;
    Ok(REMOVED.at(PATH))
}

/// The form again, with what is wrong.
fn refused(
    web: &Web,
    member: &LoggedIn,
    form: &ClaimForm,
    claim: Option<&Claim>,
    err: ApiError,
) -> Response {
    let fault = match err {
        ApiError::IdempotencyConflict => {
            let text =
                "This form was sent before, with other values. Look at them and send it again.";
            FormError::new(StatusCode::CONFLICT, None, text)
        }
        err => FormError::of(err, ClaimForm::field_of),
    };
    let owned = web.user_data(&member);
    let page = page::editor(member, &owned, form, claim, Some(&fault));
    fault.answer(page)
}

/// The claims that a query string asks for. A form sends a status for each that was chosen, the API
/// takes a list.
async fn list(web: &Web, member: &LoggedIn, fields: &Fields) -> Result<List, PageError> {
    let (from, to) = (fields.text("from").to_owned(), fields.text("to").to_owned());
    let asked = [
        ("status", statuses(fields.all("status"))),
        ("from", from.clone()),
        ("to", to.clone()),
        ("offset", fields.text("offset").to_owned()),
    ];
    let asked = asked.each_ref().map(|(name, value)| (*name, value.as_str()));
    let asked = address("", &asked);
    let filter = ClaimFilter::parse(Params::new(asked.strip_prefix('?')), ROW_LIMITS)?;
    let by = match fields.text("by") {
        "" => By::default(),
        text => text.parse().map_err(|err| ApiError::parameter("by", err))?,
    };
    let owned = web.user_data(&member);
    let list = work::run(claims_cost_us(&owned).saturating_mul(2), move || {
        let summary = Summary::of(filter.matching(&owned), by, &owned);
        let claims = filter.page_of(&owned).cloned().collect();
        Ok(List { filter, from, to, by, owned, summary, claims })
    });
    Ok(list.await?)
}

fn statuses<'a>(words: impl Iterator<Item = &'a str>) -> String {
    words.collect::<Vec<_>>().join(",")
}
