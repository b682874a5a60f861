//! `/api/v1/alerts/{id}/deliveries` and `/test`: pending and sent messages of a rule.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Serialize;
use utoipa::ToSchema;

use super::ChannelResponse;
use crate::accounts::{
    Caller, Delivery, DeliveryStatus, MessageKind, Post, Problem, Receipt, StatusClass, UserData,
};
use crate::body::BarePost;
use crate::edge::error::Refusal;
use crate::params::path_id;
use crate::response::{self, Timestamp};
use crate::service::app::{App, Now};
use crate::service::error::ApiError;
use crate::service::rules;
use crate::vocab::ids::{DeliveryId, RuleId};
use crate::vocab::watched_change::WatchedChange;

/// A message to one channel, and its delivery status.
// Only the class of a receiver's response is shown, because the URL may not belong to the account.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Delivery)]
pub struct DeliveryResponse<'a> {
    /// The same in every attempt, so that receivers can deduplicate.
    #[schema(value_type = String)]
    id: DeliveryId,
    channel: ChannelResponse<'a>,
    /// `match`, `changes` (of watched names) or `test`.
    kind: &'static str,
    /// `pending`, `delivered` or `failed`.
    status: &'static str,
    attempts: u16,
    /// Number of names that matched, or of changes.
    names: u32,
    /// Changes of watched names; after delivery, only the first 20.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<WatchedChange>)]
    changes: Vec<&'a WatchedChange>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime, required)]
    last_attempt_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime, required)]
    next_attempt_at: Option<Timestamp>,
    /// Why the last attempt failed: `refused`, `timeout`, `unreachable`, `tls`, `3xx`, `4xx`, `5xx`,
    /// `bad-status`, `gone`, `rejected`, `not-configured` or `switched-off`.
    #[schema(required)]
    problem: Option<&'static str>,
}

impl<'a> DeliveryResponse<'a> {
    pub fn new(delivery: &'a Delivery) -> DeliveryResponse<'a> {
        DeliveryResponse {
            id: delivery.id,
            channel: ChannelResponse::new(&delivery.channel, None),
            kind: match delivery.message.kind {
                MessageKind::Match => "match",
                MessageKind::Test => "test",
                MessageKind::Changes => "changes",
            },
            status: match delivery.status {
                DeliveryStatus::Pending { .. } => "pending",
                DeliveryStatus::Delivered => "delivered",
                DeliveryStatus::Failed => "failed",
            },
            attempts: delivery.attempts,
            names: delivery.message.total,
            changes: delivery.message.changes().iter().map(|it| &**it).collect(),
            created_at: Timestamp(delivery.message.at),
            last_attempt_at: delivery.last_attempt_at.map(Timestamp),
            next_attempt_at: delivery.next_at().map(Timestamp),
            problem: delivery.last_problem.map(problem_name),
        }
    }
}

/// Returns the name of a problem in the API.
fn problem_name(problem: Problem) -> &'static str {
    match problem {
        Problem::Refused => "refused",
        Problem::Timeout => "timeout",
        Problem::Unreachable => "unreachable",
        Problem::Tls => "tls",
        Problem::Status(StatusClass::Redirect) => "3xx",
        Problem::Status(StatusClass::ClientError) => "4xx",
        Problem::Status(StatusClass::ServerError) => "5xx",
        Problem::Status(StatusClass::Other) => "bad-status",
        Problem::Gone => "gone",
        Problem::Rejected => "rejected",
        Problem::NotConfigured => "not-configured",
        Problem::SwitchedOff => "switched-off",
    }
}

/// The most recent deliveries of a rule, newest first.
#[derive(Serialize, ToSchema)]
#[schema(as = Deliveries)]
pub struct DeliveryList<'a> {
    #[schema(value_type = u32)]
    count: usize,
    deliveries: Vec<DeliveryResponse<'a>>,
}

impl DeliveryList<'_> {
    /// Creates the list of deliveries of a rule, or of the watchlist.
    pub fn new(owned: &UserData, rule: RuleId) -> DeliveryList<'_> {
        let deliveries: Vec<_> = owned.deliveries(rule).map(DeliveryResponse::new).collect();
        DeliveryList { count: deliveries.len(), deliveries }
    }
}

/// The receipt of a test message.
pub(super) fn queued(deliveries: &[Delivery]) -> Receipt {
    let deliveries = deliveries.iter().map(DeliveryResponse::new).collect();
    response::receipt(StatusCode::ACCEPTED, &QueuedDeliveries { deliveries })
}

/// Deliveries that were queued.
#[derive(Serialize, ToSchema)]
pub struct QueuedDeliveries<'a> {
    deliveries: Vec<DeliveryResponse<'a>>,
}

/// One delivery.
#[derive(Serialize, ToSchema)]
pub struct OneDelivery<'a> {
    delivery: DeliveryResponse<'a>,
}

/// `GET /api/v1/alerts/{id}/deliveries`: the most recent deliveries of a rule, newest first.
pub async fn list_deliveries(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, Refusal> {
    let owned = app.store.user_data(&caller);
    let rule = owned.rule(path_id(id, RuleId::parse)?).ok_or(ApiError::NotFound)?.id;
    Ok(Json(DeliveryList::new(&owned, rule)).into_response())
}

/// `POST /api/v1/alerts/{id}/test`: sends a test message with some names that match now to every
/// channel of the rule that is not switched off.
pub async fn test_alert(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Extension(now): Extension<Now>,
    id: Result<Path<String>, PathRejection>,
    BarePost(post): BarePost,
) -> Result<Response, Refusal> {
    let draft = rules::draft_test(&app, &caller, path_id(id, RuleId::parse)?, now, post).await?;
    let answered = draft.respond(|deliveries| queued(deliveries)).await?;
    Ok(response::posted(answered))
}

/// `POST /api/v1/alerts/{id}/deliveries/{delivery}/retry`: queues a failed delivery again, with all its
/// attempts.
pub async fn retry_delivery(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    ids: Result<Path<(String, String)>, PathRejection>,
    BarePost(post): BarePost,
) -> Result<Response, Refusal> {
    let Path((rule, delivery)) = ids.map_err(|_| ApiError::NotFound)?;
    let rule = RuleId::parse(&rule).ok_or(ApiError::NotFound)?;
    let delivery = DeliveryId::parse(&delivery).ok_or(ApiError::NotFound)?;
    Ok(retry(&app, &caller, rule, delivery, post).await?)
}

/// Queues a failed delivery of a rule, or of the watchlist, again.
pub(super) async fn retry(
    app: &App,
    caller: &Caller,
    rule: RuleId,
    delivery: DeliveryId,
    post: Post,
) -> Result<Response, ApiError> {
    let draft = app.store.requeue(caller, rule, delivery, post).await?;
    let receipt = |delivery: &Delivery| {
        let delivery = DeliveryResponse::new(delivery);
        response::receipt(StatusCode::ACCEPTED, &OneDelivery { delivery })
    };
    Ok(response::posted(draft.respond(receipt).await?))
}
