//! `/api/v1/alerts/{id}/deliveries` and `/test`: what was, is and will be sent for a rule.

use std::sync::Arc;

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;

use super::{ChannelKind, rule_query};
use crate::accounts::{
    Answered, Caller, Delivery, DeliveryStatus, MatchedName, MessageKind, Post, Problem,
    RuleFilter, StatusClass,
};
use crate::http::allowance::Now;
use crate::http::answer::{self, Timestamp};
use crate::http::body::BarePost;
use crate::http::error::ApiError;
use crate::http::params::path_id;
use crate::http::{App, work};
use crate::index::Index;
use crate::index::filter::Moment;
use crate::index::query::preview::Preview;
use crate::vocab::ids::{DeliveryId, RuleId};
use crate::vocab::name::DomainName;

/// A delivery, as its owner sees it: nothing of what a receiver said but what kind of thing it was.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DeliveryAnswer<'a> {
    id: DeliveryId,
    channel: ChannelKind<'a>,
    kind: &'static str,
    status: &'static str,
    attempts: u16,
    /// How many matched.
    names: u32,
    created_at: Timestamp,
    last_attempt_at: Option<Timestamp>,
    next_attempt_at: Option<Timestamp>,
    problem: Option<&'static str>,
}

impl<'a> DeliveryAnswer<'a> {
    fn new(delivery: &'a Delivery) -> DeliveryAnswer<'a> {
        DeliveryAnswer {
            id: delivery.id,
            channel: ChannelKind::new(&delivery.channel),
            kind: match delivery.message.kind {
                MessageKind::Match => "match",
                MessageKind::Test => "test",
            },
            status: match delivery.status {
                DeliveryStatus::Pending { .. } => "pending",
                DeliveryStatus::Delivered => "delivered",
                DeliveryStatus::Failed => "failed",
            },
            attempts: delivery.attempts,
            names: delivery.message.total,
            created_at: Timestamp(delivery.message.at),
            last_attempt_at: delivery.last_attempt_at.map(Timestamp),
            next_attempt_at: delivery.next_at().map(Timestamp),
            problem: delivery.last_problem.map(word),
        }
    }
}

/// The word of the API.
fn word(problem: Problem) -> &'static str {
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

#[derive(Serialize)]
struct DeliveriesAnswer<'a> {
    count: usize,
    deliveries: Vec<DeliveryAnswer<'a>>,
}

#[derive(Serialize)]
struct QueuedAnswer<'a> {
    deliveries: Vec<DeliveryAnswer<'a>>,
}

#[derive(Serialize)]
struct OneDelivery<'a> {
    delivery: DeliveryAnswer<'a>,
}

/// `GET /api/v1/alerts/{id}/deliveries`: the last ones of a rule, newest first.
pub async fn list_deliveries(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, ApiError> {
    let owned = app.store.user_data(&caller);
    let rule = owned.rule(path_id(id, RuleId::parse)?).ok_or(ApiError::NotFound)?.id;
    let deliveries: Vec<_> = owned.deliveries(rule).map(DeliveryAnswer::new).collect();
    let answer = DeliveriesAnswer { count: deliveries.len(), deliveries };
    Ok(work::json_response(work::json_bytes(&answer)?))
}

/// `POST /api/v1/alerts/{id}/test`: a message that is marked as a test, to every channel of a rule
/// that is on, with some of the names that match it now.
pub async fn test_alert(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Extension(now): Extension<Now>,
    id: Result<Path<String>, PathRejection>,
    BarePost(post): BarePost,
) -> Result<Response, ApiError> {
    let answered = test(&app, &caller, path_id(id, RuleId::parse)?, now, post).await?;
    Ok(answer::posted(answered, None))
}

/// Queues a test message of a rule; the kept response is the API's.
///
/// # Errors
/// As the API refuses it.
pub async fn test(
    app: &App,
    caller: &Caller,
    id: RuleId,
    now: Now,
    post: Post,
) -> Result<Answered<Vec<Delivery>>, ApiError> {
    let filter = app.store.user_data(caller).rule(id).ok_or(ApiError::NotFound)?.filter.clone();
    let (index, moment) = (app.live.current(), app.moment(now));
    let cost_us = index.preview_cost_us(moment);
    let (names, total) = work::run(cost_us, move || samples(&filter, &index, moment)).await?;
    let draft = app.store.queue_test(caller, id, &names, total, post).await?;
    let reply = |deliveries: &Vec<Delivery>| {
        let deliveries = deliveries.iter().map(DeliveryAnswer::new).collect();
        answer::reply(StatusCode::ACCEPTED, &QueuedAnswer { deliveries })
    };
    Ok(draft.respond(reply).await?)
}

/// `POST /api/v1/alerts/{id}/deliveries/{delivery}/retry`: a failed delivery is tried again from the
/// start.
pub async fn retry_delivery(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    ids: Result<Path<(String, String)>, PathRejection>,
    BarePost(post): BarePost,
) -> Result<Response, ApiError> {
    let Path((rule, delivery)) = ids.map_err(|_| ApiError::NotFound)?;
    let rule = RuleId::parse(&rule).ok_or(ApiError::NotFound)?;
    let delivery = DeliveryId::parse(&delivery).ok_or(ApiError::NotFound)?;
    let answered = retry(&app, &caller, rule, delivery, post).await?;
    Ok(answer::posted(answered, None))
}

/// Queues a failed delivery again; the kept response is the API's.
///
/// # Errors
/// As the API refuses it.
pub async fn retry(
    app: &App,
    caller: &Caller,
    rule: RuleId,
    delivery: DeliveryId,
    post: Post,
) -> Result<Answered<Delivery>, ApiError> {
    let draft = app.store.requeue(caller, rule, delivery, post).await?;
    let reply = |delivery: &Delivery| {
        let delivery = DeliveryAnswer::new(delivery);
        answer::reply(StatusCode::ACCEPTED, &OneDelivery { delivery })
    };
    Ok(draft.respond(reply).await?)
}

/// Some of the names that match now, and how many do.
fn samples(
    filter: &RuleFilter,
    index: &Arc<Index>,
    moment: Moment,
) -> Result<(Vec<MatchedName>, u32), ApiError> {
    let preview = index.preview(&rule_query(filter), moment)?;
    Ok((matched_samples(&preview, index, moment), preview.today))
}

/// The names that a preview shows, as a match would tell of them.
pub fn matched_samples(preview: &Preview<'_>, index: &Index, moment: Moment) -> Vec<MatchedName> {
    let mut names = Vec::new();
    preview.for_each_sample(|row| names.extend(DomainName::parse(row.name).ok()));
    let matched = |name: DomainName| {
        let facts = index.facts(&name, moment)?;
        let ((stage, release), drop_date, dqs) = (facts.stage?, facts.latest_drop?, facts.dqs);
        Some(MatchedName { name, dqs, drop_date, release, stage })
    };
    names.into_iter().filter_map(matched).collect()
}
