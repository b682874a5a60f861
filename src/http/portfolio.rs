//! `/api/v1/portfolio`: the caller's backorder claims.

use std::borrow::Cow;

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::accounts::{
    Attribution, Caller, Claim, ClaimPatch, Commission, NewClaim, Price, UserData,
};
use crate::body::{JsonBody, JsonInteger, Money, Number, Patch, PostBody};
use crate::edge::error::Refusal;
use crate::json;
use crate::params::path_id;
use crate::query::params::{Limits, Paging, Params};
use crate::response::{self, Deleted, Timestamp};
use crate::service::app::{App, Now};
use crate::service::error::{ApiError, required};
use crate::service::portfolio::{ClaimFilter, claims_cost_us};
use crate::service::work;
use crate::vocab::claim::{ClaimStatus, RenewalDecision};
use crate::vocab::day::Day;
use crate::vocab::ids::{ClaimId, RuleId};
use crate::vocab::limits::{OWNED_LIMIT_DEFAULT, OWNED_LIMIT_MAX};
use crate::vocab::money::{Amount, AmountError, Currency, Percent, PercentError, Usd};
use crate::vocab::name::DomainName;
use crate::vocab::time::UnixMs;

const LIMITS: Limits = Limits { default: OWNED_LIMIT_DEFAULT, max: OWNED_LIMIT_MAX };
/// Path of the collection; a claim is at `PATH/{id}`.
const PATH: &str = "/api/v1/portfolio";
/// A backorder claim.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Claim)]
pub struct ClaimResponse<'a> {
    #[schema(value_type = u64)]
    id: ClaimId,
    #[schema(value_type = String)]
    domain: &'a DomainName,
    /// Its Unicode form; equal to the name unless it is an IDN.
    #[schema(value_type = String)]
    unicode: Cow<'a, str>,
    tld: &'a str,
    status: ClaimStatus,
    #[schema(required)]
    registrar: Option<&'a str>,
    #[schema(value_type = Option<f64>, required)]
    acquired_price_usd: Option<Money>,
    #[schema(value_type = Option<f64>, required)]
    resale_price_usd: Option<Money>,
    #[schema(value_type = Option<String>, format = DateTime, required)]
    sold_at: Option<Timestamp>,
    #[schema(value_type = String, format = DateTime)]
    reported_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
    /// Empty without notes.
    user_notes: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    alert_rule: Option<AttributionResponse<'a>>,
    /// The bid, which is not a cost until the name is won.
    #[schema(value_type = Option<f64>, required)]
    bid_usd: Option<Money>,
    /// Where the bid was placed.
    #[schema(required)]
    venue: Option<&'a str>,
    #[schema(value_type = Option<String>, format = Date, required)]
    renews_on: Option<Day>,
    /// The fee of the next renewal.
    #[schema(value_type = Option<f64>, required)]
    renewal_usd: Option<Money>,
    /// Amounts that were entered in other currencies than the US dollar, as entered. Their members with `Usd`
    /// are null.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    other_amounts: Option<OtherAmountsResponse>,
    /// Share of the price that the venue of the sale kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>, nullable = false)]
    commission_percent: Option<Money>,
    /// Commission as an amount; absent if it is a share.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    commission: Option<AmountResponse>,
    /// Where the name was sold.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    sold_venue: Option<&'a str>,
    /// Decision about the next renewal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    renewal_decision: Option<RenewalDecision>,
}

/// An amount in the currency in which it was entered.
#[derive(Serialize, ToSchema)]
#[schema(as = Amount)]
struct AmountResponse {
    #[schema(value_type = f64)]
    amount: Number,
    /// ISO 4217 code.
    #[schema(value_type = String)]
    currency: Currency,
}

/// Amounts in other currencies than the US dollar.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OtherAmounts)]
struct OtherAmountsResponse {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    bid: Option<AmountResponse>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    acquired_price: Option<AmountResponse>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    resale_price: Option<AmountResponse>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    renewal: Option<AmountResponse>,
}

impl AmountResponse {
    fn new(amount: Amount) -> AmountResponse {
        AmountResponse { amount: Number(amount), currency: amount.currency() }
    }
}

impl OtherAmountsResponse {
    /// Returns `None` if all amounts are in US dollars.
    fn new(claim: &Claim) -> Option<OtherAmountsResponse> {
        let other = |price| {
            let amount = claim.amount(price).filter(|amount| amount.usd().is_none());
            amount.map(AmountResponse::new)
        };
        let others = OtherAmountsResponse {
            bid: other(Price::Bid),
            acquired_price: other(Price::Acquired),
            resale_price: other(Price::Resale),
            renewal: other(Price::Renewal),
        };
        let OtherAmountsResponse { bid, acquired_price, resale_price, renewal } = &others;
        let all = [bid, acquired_price, resale_price, renewal];
        all.iter().any(|it| it.is_some()).then_some(others)
    }
}

/// The alert rule that led to a claim, under the name it had then.
#[derive(Serialize, ToSchema)]
#[schema(as = Attribution)]
struct AttributionResponse<'a> {
    #[schema(value_type = u64)]
    id: RuleId,
    name: &'a str,
}

impl<'a> ClaimResponse<'a> {
    pub fn new(claim: &'a Claim) -> ClaimResponse<'a> {
        let rule = |rule: &'a Attribution| AttributionResponse { id: rule.id, name: &rule.name };
        let (commission, sold_venue) = claim.sale_terms();
        let (percent, fee) = match commission {
            Some(Commission::Percent(percent)) => {
                (Usd::from_cents(percent.hundredths().into()), None)
            }
            Some(Commission::Amount(amount)) => (None, Some(amount)),
            None => (None, None),
        };
        ClaimResponse {
            id: claim.id,
            domain: &claim.domain,
            unicode: claim.domain.unicode(),
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
            bid_usd: claim.bid.map(Money),
            venue: claim.venue.as_deref(),
            renews_on: claim.renews_on,
            renewal_usd: claim.renewal.map(Money),
            other_amounts: OtherAmountsResponse::new(claim),
            commission_percent: percent.map(Money),
            commission: fee.map(AmountResponse::new),
            sold_venue,
            renewal_decision: claim.decision(),
        }
    }
}

/// A page of claims, newest first.
#[derive(Serialize, ToSchema)]
#[schema(as = Portfolio)]
pub struct ClaimList<'a> {
    #[schema(value_type = u32)]
    count: usize,
    /// Claims that pass the filters, on all pages.
    #[schema(value_type = u32)]
    total: usize,
    limit: u32,
    offset: u32,
    claims: Vec<ClaimResponse<'a>>,
}

/// One claim.
#[derive(Serialize, ToSchema)]
pub struct OneClaim<'a> {
    claim: ClaimResponse<'a>,
}

/// A new claim.
#[derive(Serialize, ToSchema)]
pub struct AddedClaim<'a> {
    #[schema(value_type = u64)]
    id: ClaimId,
    claim: ClaimResponse<'a>,
}

/// A claim to add. Prices have at most two decimals.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = ClaimBody, example = json!({
    "domain": "solar.com", "status": "caught", "registrar": "Example", "acquiredPriceUsd": 69.5
}))]
pub struct ClaimRequest {
    #[schema(value_type = String, format = "domain", min_length = 1, max_length = 253)]
    pub domain: Option<String>,
    #[schema(value_type = ClaimStatus)]
    pub status: Option<String>,
    #[schema(min_length = 1, max_length = 200)]
    pub registrar: Option<String>,
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 1000000000, multiple_of = 0.01)]
    pub acquired_price_usd: Option<Money>,
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 1000000000, multiple_of = 0.01)]
    pub resale_price_usd: Option<Money>,
    /// Only with status `sold`. Defaults to now.
    #[schema(format = DateTime)]
    pub sold_at: Option<String>,
    #[schema(max_length = 10000)]
    pub user_notes: Option<String>,
    /// Id of one of your rules.
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 9007199254740991i64)]
    pub alert_rule_id: Option<JsonInteger>,
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 1000000000, multiple_of = 0.01)]
    pub bid_usd: Option<Money>,
    #[schema(min_length = 1, max_length = 60)]
    pub venue: Option<String>,
    #[schema(format = Date)]
    pub renews_on: Option<String>,
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 1000000000, multiple_of = 0.01)]
    pub renewal_usd: Option<Money>,
    pub other_amounts: Option<OtherAmountsRequest>,
    /// Only with status `sold`, as `commission` and `soldVenue`.
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 100, multiple_of = 0.01)]
    pub commission_percent: Option<Money>,
    pub commission: Option<AmountRequest>,
    #[schema(min_length = 1, max_length = 60)]
    pub sold_venue: Option<String>,
}

/// An amount in any currency. It has at most the decimals of its currency.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AmountBody, example = json!({"amount": 12.5, "currency": "EUR"}))]
pub struct AmountRequest {
    #[schema(value_type = f64, minimum = 0)]
    amount: Box<RawValue>,
    #[schema(min_length = 3, max_length = 3)]
    currency: String,
}

/// Amounts in other currencies than the US dollar, each instead of the member with `Usd`.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = OtherAmountsBody, example = json!({"bid": {"amount": 12.5, "currency": "EUR"}}))]
pub struct OtherAmountsRequest {
    bid: Option<AmountRequest>,
    acquired_price: Option<AmountRequest>,
    resale_price: Option<AmountRequest>,
    renewal: Option<AmountRequest>,
}

impl AmountRequest {
    fn parse(self, name: &'static str) -> Result<Amount, ApiError> {
        let currency = Currency::parse(&self.currency);
        let currency =
            currency.ok_or_else(|| ApiError::parameter(name, "has an unknown currency"))?;
        let amount = Amount::from_json_number(self.amount.get(), currency);
        amount.ok_or_else(|| ApiError::parameter(name, AmountError::Range(currency)))
    }
}

/// Changes to a claim. Absent members are unchanged; `null` clears a value.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = ClaimPatchBody, example = json!({"status": "sold", "resalePriceUsd": 950}))]
pub struct ClaimPatchRequest {
    #[serde(default)]
    #[schema(value_type = ClaimStatus)]
    pub status: Patch<String>,
    #[serde(default)]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 200)]
    pub registrar: Patch<String>,
    #[serde(default)]
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 1000000000, multiple_of = 0.01)]
    pub acquired_price_usd: Patch<Money>,
    #[serde(default)]
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 1000000000, multiple_of = 0.01)]
    pub resale_price_usd: Patch<Money>,
    #[serde(default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub sold_at: Patch<String>,
    #[serde(default)]
    #[schema(value_type = Option<String>, max_length = 10000)]
    pub user_notes: Patch<String>,
    /// Id of one of your rules.
    #[serde(default)]
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 9007199254740991i64)]
    pub alert_rule_id: Patch<JsonInteger>,
    #[serde(default)]
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 1000000000, multiple_of = 0.01)]
    pub bid_usd: Patch<Money>,
    #[serde(default)]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 60)]
    pub venue: Patch<String>,
    #[serde(default)]
    #[schema(value_type = Option<String>, format = Date)]
    pub renews_on: Patch<String>,
    #[serde(default)]
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 1000000000, multiple_of = 0.01)]
    pub renewal_usd: Patch<Money>,
    /// Replaces the amounts that it has.
    pub other_amounts: Option<OtherAmountsRequest>,
    /// Replaces `commission`.
    #[serde(default)]
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 100, multiple_of = 0.01)]
    pub commission_percent: Patch<Money>,
    /// Replaces `commissionPercent`.
    #[serde(default)]
    #[schema(value_type = Option<AmountRequest>)]
    pub commission: Patch<AmountRequest>,
    #[serde(default)]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 60)]
    pub sold_venue: Patch<String>,
    /// Ends the reminders of the renewal on `renewsOn`: `keep` or `drop`.
    #[serde(default)]
    #[schema(value_type = Option<RenewalDecision>)]
    pub renewal_decision: Patch<String>,
}

fn renewal_decision(text: &str) -> Result<RenewalDecision, ApiError> {
    text.parse().map_err(|err| ApiError::parameter("renewalDecision", err))
}

fn status(text: &str) -> Result<ClaimStatus, ApiError> {
    text.parse().map_err(|err| ApiError::parameter("status", err))
}

fn sold_at(text: &str) -> Result<UnixMs, ApiError> {
    text.parse().map_err(|err| ApiError::parameter("soldAt", err))
}

fn renews_on(text: &str) -> Result<Day, ApiError> {
    text.parse().map_err(|err| ApiError::parameter("renewsOn", err))
}

fn alert_rule_id(number: JsonInteger) -> Result<RuleId, ApiError> {
    let id = u64::try_from(number.0).ok().and_then(RuleId::new);
    id.ok_or_else(|| ApiError::parameter("alertRuleId", "is not the id of an alert rule"))
}

/// Returns the amount in US dollars or the one in another currency. `name` is that of the other one.
fn one_of(
    usd: Option<Money>,
    other: Option<AmountRequest>,
    name: &'static str,
) -> Result<Option<Amount>, ApiError> {
    match (usd, other) {
        (Some(_), Some(_)) => Err(ApiError::parameter(name, "is given in US dollars too")),
        (Some(Money(price)), None) => Ok(Some(price.into())),
        (None, other) => other.map(|it| it.parse(name)).transpose(),
    }
}

/// As [`one_of`], for a change.
fn changed(
    usd: Patch<Money>,
    other: Option<AmountRequest>,
    name: &'static str,
) -> Result<Option<Option<Amount>>, ApiError> {
    match (usd.nested(), other) {
        (None | Some(None), Some(other)) => Ok(Some(Some(other.parse(name)?))),
        (usd, other) => usd.map(|usd| one_of(usd, other, name)).transpose(),
    }
}

fn percent(Money(number): Money) -> Result<Commission, ApiError> {
    let hundredths = u16::try_from(number.cents()).map_err(|_| PercentError);
    let percent = hundredths.and_then(Percent::try_from);
    let percent = percent.map_err(|err| ApiError::parameter("commissionPercent", err))?;
    Ok(Commission::Percent(percent))
}

fn fee(amount: AmountRequest) -> Result<Commission, ApiError> {
    amount.parse("commission").map(Commission::Amount)
}

impl TryFrom<ClaimRequest> for NewClaim {
    type Error = ApiError;

    fn try_from(request: ClaimRequest) -> Result<NewClaim, ApiError> {
        let other = request.other_amounts.unwrap_or_default();
        let commission = match (request.commission_percent, request.commission) {
            (Some(_), Some(_)) => {
                return Err(ApiError::parameter("commission", "is given in percent too"));
            }
            (share, amount) => share.map(percent).transpose()?.or(amount.map(fee).transpose()?),
        };
        let domain = required(request.domain, "domain")?;
        Ok(NewClaim {
            domain: DomainName::parse_or_address(&domain)
                .map_err(|err| ApiError::parameter("domain", err))?,
            status: status(&required(request.status, "status")?)?,
            registrar: request.registrar,
            acquired_price: one_of(
                request.acquired_price_usd,
                other.acquired_price,
                "otherAmounts.acquiredPrice",
            )?,
            resale_price: one_of(
                request.resale_price_usd,
                other.resale_price,
                "otherAmounts.resalePrice",
            )?,
            sold_at: request.sold_at.as_deref().map(sold_at).transpose()?,
            user_notes: request.user_notes,
            alert_rule: request.alert_rule_id.map(alert_rule_id).transpose()?,
            bid: one_of(request.bid_usd, other.bid, "otherAmounts.bid")?,
            venue: request.venue,
            renews_on: request.renews_on.as_deref().map(renews_on).transpose()?,
            renewal: one_of(request.renewal_usd, other.renewal, "otherAmounts.renewal")?,
            commission,
            sold_venue: request.sold_venue,
        })
    }
}

impl TryFrom<ClaimPatchRequest> for ClaimPatch {
    type Error = ApiError;

    fn try_from(request: ClaimPatchRequest) -> Result<ClaimPatch, ApiError> {
        let other = request.other_amounts.unwrap_or_default();
        let share = request.commission_percent.try_map(percent)?.nested();
        let commission = request.commission.try_map(fee)?.nested();
        Ok(ClaimPatch {
            status: request.status.try_map(|text| status(&text))?.not_null("status")?,
            registrar: request.registrar.nested(),
            acquired_price: changed(
                request.acquired_price_usd,
                other.acquired_price,
                "otherAmounts.acquiredPrice",
            )?,
            resale_price: changed(
                request.resale_price_usd,
                other.resale_price,
                "otherAmounts.resalePrice",
            )?,
            sold_at: request.sold_at.try_map(|text| sold_at(&text))?.nested(),
            user_notes: request.user_notes.nested(),
            alert_rule: request.alert_rule_id.try_map(alert_rule_id)?.nested(),
            bid: changed(request.bid_usd, other.bid, "otherAmounts.bid")?,
            venue: request.venue.nested(),
            renews_on: request.renews_on.try_map(|text| renews_on(&text))?.nested(),
            renewal: changed(request.renewal_usd, other.renewal, "otherAmounts.renewal")?,
            // A value of either kind replaces the other one, and null clears both.
            commission: share
                .flatten()
                .or(commission.flatten())
                .map(Some)
                .or(share.or(commission).and(Some(None))),
            sold_venue: request.sold_venue.nested(),
            decision: request.renewal_decision.try_map(|text| renewal_decision(&text))?.nested(),
        })
    }
}

/// `GET /api/v1/portfolio`: the caller's claims, newest first.
pub async fn list_claims(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
) -> Result<Response, Refusal> {
    let filter = ClaimFilter::parse(Params::new(uri.query()), LIMITS)?;
    let owned: Arc<UserData> = app.store.user_data(&caller);
    let page = filter.page();
    let found = work::run(claims_cost_us(&owned), move || {
        let matching: Vec<&Claim> = filter.matching(&owned).collect();
        let (total, Paging { limit, offset }) = (matching.len(), page);
        let claims: Vec<_> = page.rows(matching.into_iter()).map(ClaimResponse::new).collect();
        let list = ClaimList { count: claims.len(), total, limit, offset, claims };
        Ok((json::json_bytes(&list)?, total))
    });
    let (body, total) = found.await?;
    Ok(response::with_next(json::json_response(body), &uri, page, total))
}

/// `GET /api/v1/portfolio/{id}`: one claim.
pub async fn find_claim(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, Refusal> {
    let owned = app.store.user_data(&caller);
    let claim = owned.claim(path_id(id, ClaimId::parse)?).ok_or(ApiError::NotFound)?;
    Ok(Json(OneClaim { claim: ClaimResponse::new(claim) }).into_response())
}

/// `POST /api/v1/portfolio`: adds a claim.
pub async fn add_claim(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    PostBody { body, post }: PostBody<ClaimRequest>,
) -> Result<Response, Refusal> {
    let draft = app.store.add_claim(&caller, NewClaim::try_from(body)?, post).await?;
    let receipt = |claim: &Claim| {
        let added = AddedClaim { id: claim.id, claim: ClaimResponse::new(claim) };
        response::receipt(StatusCode::CREATED, &added)
    };
    let answered = draft.respond(receipt).await?;
    Ok(response::added(answered, PATH, |claim| claim.id.get()))
}

/// `PATCH /api/v1/portfolio/{id}`: changes the given members.
pub async fn change_claim(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Extension(Now(now)): Extension<Now>,
    id: Result<Path<String>, PathRejection>,
    JsonBody(body): JsonBody<ClaimPatchRequest>,
) -> Result<Response, Refusal> {
    let patch = ClaimPatch::try_from(body)?;
    let claim = app.store.change_claim(&caller, path_id(id, ClaimId::parse)?, patch, now).await?;
    Ok(Json(OneClaim { claim: ClaimResponse::new(&claim) }).into_response())
}

/// `DELETE /api/v1/portfolio/{id}`: removes a claim.
pub async fn remove_claim(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<Deleted>, Refusal> {
    let id = path_id(id, ClaimId::parse)?;
    app.store.remove_claim(&caller, id).await?;
    Ok(Json(Deleted::new(id.get())))
}
