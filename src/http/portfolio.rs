//! `/api/v1/portfolio`: the caller's backorder claims (api.md; decisions.md §5).

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};

use crate::accounts::{Answered, Attribution, Caller, Claim, ClaimPatch, NewClaim, Post, UserData};
use crate::http::allowance::Now;
use crate::http::answer::{self, Deleted, Timestamp};
use crate::http::body::{JsonBody, JsonInteger, Money, Patch, PostBody, required};
use crate::http::error::ApiError;
use crate::http::params::{Limits, Page, Params, path_id};
use crate::http::{App, work};
use crate::vocab::budget;
use crate::vocab::claim::ClaimStatus;
use crate::vocab::day::Day;
use crate::vocab::ids::{ClaimId, RuleId};
use crate::vocab::limits::{CLAIMS_OFFSET_MAX, OWNED_LIMIT_DEFAULT, OWNED_LIMIT_MAX};
use crate::vocab::name::DomainName;
use crate::vocab::time::UnixMs;

const LIMITS: Limits = Limits { default: OWNED_LIMIT_DEFAULT, max: OWNED_LIMIT_MAX };
/// Where a claim has its address.
const PATH: &str = "/api/v1/portfolio";
/// Microseconds that shaping one claim takes, about.
const CLAIM_US: usize = 2;

/// Which claims, as a query means it.
#[derive(Clone, Debug)]
pub struct ClaimFilter {
    /// One of these; none does not filter.
    statuses: Vec<ClaimStatus>,
    /// Reported at or after the start of this day.
    from: Option<UnixMs>,
    /// Reported before the start of this day.
    to: Option<UnixMs>,
    page: Page,
}

impl ClaimFilter {
    /// The filter of a query string.
    ///
    /// # Errors
    /// The first parameter that is not as it should be.
    pub fn parse(params: Params<'_>, limits: Limits) -> Result<ClaimFilter, ApiError> {
        let start = |day: Day| UnixMs::from_instant(day.start());
        Ok(ClaimFilter {
            statuses: params.list("status")?,
            from: params.one("from")?.map(start),
            to: params.one("to")?.map(start),
            page: params.page(limits, CLAIMS_OFFSET_MAX)?,
        })
    }

    /// The claims of the page, newest first.
    pub fn of<'a>(&'a self, owned: &'a UserData) -> impl Iterator<Item = &'a Claim> {
        self.page.of(self.matching(owned))
    }

    /// The claims of all pages, newest first.
    pub fn matching<'a>(&'a self, owned: &'a UserData) -> impl Iterator<Item = &'a Claim> {
        owned.claims().take_while(|_| !budget::spent()).filter(|claim| {
            let at = claim.reported_at;
            (self.statuses.is_empty() || self.statuses.contains(&claim.status))
                && self.from.is_none_or(|from| at >= from)
                && self.to.is_none_or(|to| at < to)
        })
    }

    /// One of these statuses; none does not filter.
    pub fn statuses(&self) -> &[ClaimStatus] {
        &self.statuses
    }

    /// Which of the claims that pass are on the page.
    pub fn page(&self) -> Page {
        self.page
    }
}

/// Microseconds that walking and shaping an account's claims takes at most, for [`work::run`].
pub fn claims_cost_us(owned: &UserData) -> u32 {
    u32::try_from(owned.claim_count() * CLAIM_US).unwrap_or(u32::MAX)
}

/// A claim (api.md).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ClaimAnswer<'a> {
    id: ClaimId,
    domain: &'a DomainName,
    tld: &'a str,
    status: ClaimStatus,
    registrar: Option<&'a str>,
    acquired_price_usd: Option<Money>,
    resale_price_usd: Option<Money>,
    sold_at: Option<Timestamp>,
    reported_at: Timestamp,
    updated_at: Timestamp,
    /// Empty for none.
    user_notes: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    alert_rule: Option<AttributionAnswer<'a>>,
}

/// The rule that led to a claim (api.md).
#[derive(Serialize)]
struct AttributionAnswer<'a> {
    id: RuleId,
    name: &'a str,
}

impl<'a> ClaimAnswer<'a> {
    fn new(claim: &'a Claim) -> ClaimAnswer<'a> {
        let rule = |rule: &'a Attribution| AttributionAnswer { id: rule.id, name: &rule.name };
        ClaimAnswer {
            id: claim.id,
            domain: &claim.domain,
            tld: claim.domain.tld(),
            status: claim.status,
            registrar: claim.registrar.as_deref(),
            acquired_price_usd: claim.acquired_price.map(Money),
            resale_price_usd: claim.resale_price.map(Money),
            sold_at: claim.sold_at.map(Timestamp),
            reported_at: Timestamp(claim.reported_at),
            updated_at: Timestamp(claim.updated_at),
            user_notes: claim.user_notes.as_deref().unwrap_or_default(),
            alert_rule: claim.alert_rule.as_deref().map(rule),
        }
    }
}

#[derive(Serialize)]
struct PortfolioAnswer<'a> {
    count: usize,
    claims: Vec<ClaimAnswer<'a>>,
}

#[derive(Serialize)]
struct OneClaim<'a> {
    claim: ClaimAnswer<'a>,
}

#[derive(Serialize)]
struct AddedClaim<'a> {
    id: ClaimId,
    claim: ClaimAnswer<'a>,
}

/// A claim to be added, as sent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ClaimRequest {
    pub domain: Option<String>,
    pub status: Option<String>,
    pub registrar: Option<String>,
    pub acquired_price_usd: Option<Money>,
    pub resale_price_usd: Option<Money>,
    pub sold_at: Option<String>,
    pub user_notes: Option<String>,
    pub alert_rule_id: Option<JsonInteger>,
}

/// A change of a claim, as sent.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct ClaimPatchRequest {
    pub status: Patch<String>,
    pub registrar: Patch<String>,
    pub acquired_price_usd: Patch<Money>,
    pub resale_price_usd: Patch<Money>,
    pub sold_at: Patch<String>,
    pub user_notes: Patch<String>,
    pub alert_rule_id: Patch<JsonInteger>,
}

fn status(text: &str) -> Result<ClaimStatus, ApiError> {
    text.parse().map_err(|err| ApiError::parameter("status", err))
}

fn sold_at(text: &str) -> Result<UnixMs, ApiError> {
    text.parse().map_err(|err| ApiError::parameter("soldAt", err))
}

fn alert_rule_id(number: JsonInteger) -> Result<RuleId, ApiError> {
    let id = u64::try_from(number.0).ok().and_then(RuleId::new);
    id.ok_or_else(|| ApiError::parameter("alertRuleId", "is no id of an alert rule"))
}

impl TryFrom<ClaimRequest> for NewClaim {
    type Error = ApiError;

    fn try_from(sent: ClaimRequest) -> Result<NewClaim, ApiError> {
        let domain = required(sent.domain, "domain")?;
        Ok(NewClaim {
            domain: DomainName::parse(&domain).map_err(|err| ApiError::parameter("domain", err))?,
            status: status(&required(sent.status, "status")?)?,
            registrar: sent.registrar,
            acquired_price: sent.acquired_price_usd.map(|price| price.0),
            resale_price: sent.resale_price_usd.map(|price| price.0),
            sold_at: sent.sold_at.as_deref().map(sold_at).transpose()?,
            user_notes: sent.user_notes,
            alert_rule: sent.alert_rule_id.map(alert_rule_id).transpose()?,
        })
    }
}

impl TryFrom<ClaimPatchRequest> for ClaimPatch {
    type Error = ApiError;

    fn try_from(sent: ClaimPatchRequest) -> Result<ClaimPatch, ApiError> {
        let price = |Money(price)| Ok(price);
        Ok(ClaimPatch {
            status: sent.status.try_map(|text| status(&text))?.not_null("status")?,
            registrar: sent.registrar.nested(),
            acquired_price: sent.acquired_price_usd.try_map(price)?.nested(),
            resale_price: sent.resale_price_usd.try_map(price)?.nested(),
            sold_at: sent.sold_at.try_map(|text| sold_at(&text))?.nested(),
            user_notes: sent.user_notes.nested(),
            alert_rule: sent.alert_rule_id.try_map(alert_rule_id)?.nested(),
        })
    }
}

/// `GET /api/v1/portfolio`: the caller's claims, newest first.
pub async fn list_claims(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let filter = ClaimFilter::parse(Params::new(query.as_deref()), LIMITS)?;
    let owned: Arc<UserData> = app.store.user_data(&caller);
    let body = work::run(claims_cost_us(&owned), move || {
        let claims: Vec<_> = filter.of(&owned).map(ClaimAnswer::new).collect();
        work::json_bytes(&PortfolioAnswer { count: claims.len(), claims })
    });
    Ok(work::json_response(body.await?))
}

/// `GET /api/v1/portfolio/{id}`: one claim.
pub async fn find_claim(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, ApiError> {
    let owned = app.store.user_data(&caller);
    let claim = owned.claim(path_id(id, ClaimId::parse)?).ok_or(ApiError::NotFound)?;
    let body = work::json_bytes(&OneClaim { claim: ClaimAnswer::new(claim) })?;
    Ok(work::json_response(body))
}

/// `POST /api/v1/portfolio`: adds a claim.
pub async fn add_claim(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    PostBody { body, post }: PostBody<ClaimRequest>,
) -> Result<Response, ApiError> {
    let answered = add(&app, &caller, body, post).await?;
    let id = answer::added_id(&answered, |claim| claim.id.get());
    Ok(answer::posted(answered, id.map(|id| format!("{PATH}/{id}"))))
}

/// Adds a claim as sent; the kept response is the API's.
///
/// # Errors
/// As the API refuses it.
pub async fn add(
    app: &App,
    caller: &Caller,
    sent: ClaimRequest,
    post: Post,
) -> Result<Answered<Claim>, ApiError> {
    let draft = app.store.add_claim(caller, NewClaim::try_from(sent)?, post).await?;
    let reply = |claim: &Claim| {
        let added = AddedClaim { id: claim.id, claim: ClaimAnswer::new(claim) };
        answer::reply(StatusCode::CREATED, &added)
    };
    Ok(draft.respond(reply).await?)
}

/// `PATCH /api/v1/portfolio/{id}`: changes the members that are sent.
pub async fn change_claim(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Extension(Now(now)): Extension<Now>,
    id: Result<Path<String>, PathRejection>,
    JsonBody(body): JsonBody<ClaimPatchRequest>,
) -> Result<Response, ApiError> {
    let patch = ClaimPatch::try_from(body)?;
    let claim = app.store.change_claim(&caller, path_id(id, ClaimId::parse)?, patch, now).await?;
    let body = work::json_bytes(&OneClaim { claim: ClaimAnswer::new(&claim) })?;
    Ok(work::json_response(body))
}

/// `DELETE /api/v1/portfolio/{id}`: removes a claim.
pub async fn remove_claim(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<Deleted>, ApiError> {
    let id = path_id(id, ClaimId::parse)?;
    app.store.remove_claim(&caller, id).await?;
    Ok(Json(Deleted { id: id.get(), deleted: true }))
}
