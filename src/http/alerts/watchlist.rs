//! `/api/v1/watchlist/alerts`: alert settings of watched names, and their messages.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use chrono::{DateTime, Utc};
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::deliveries::{self, DeliveryList, queued};
use super::{ChannelRequest, ChannelResponse, SecretResponse};
use crate::accounts::{Caller, Channel, EntryAlerts, UserData, WebhookSecret};
use crate::body::{BarePost, JsonBody, Object};
use crate::edge::error::Refusal;
use crate::response::{self, Timestamp};
use crate::service::app::{App, Now};
use crate::service::error::{ApiError, required};
use crate::service::watch_alerts::{self, SentAlerts};
use crate::service::watchlist::usable_channels;
use crate::vocab::change::ChangeKind;
use crate::vocab::ids::{DeliveryId, RuleId};
use crate::vocab::time::UnixMs;
use crate::vocab::zone::Hour;

/// Alert settings of the watchlist: the changes that are sent, and when.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WatchAlerts)]
pub struct WatchAlertsResponse<'a> {
    /// False while these are the defaults. They apply to names added since watch alerts were introduced; saving
    /// settings applies them to all names.
    saved: bool,
    /// Kinds of changes that are sent for names without settings of their own.
    kinds: Vec<ChangeKind>,
    channels: Vec<ChannelResponse<'a>>,
    /// Hour of the daily message, in the time zone; `null` sends at once.
    #[schema(required, minimum = 0, maximum = 23)]
    digest_hour: Option<u8>,
    /// Hours in which nothing is sent; messages are sent when they end.
    #[schema(required)]
    quiet_hours: Option<QuietResponse>,
    /// Name in the IANA database.
    time_zone: &'static str,
    /// When a message queued now would be sent.
    #[schema(value_type = String, format = DateTime)]
    next_at: Timestamp,
}

/// Hours in which nothing is sent.
#[derive(Serialize, ToSchema)]
#[schema(as = QuietHours)]
struct QuietResponse {
    /// 0 to 23.
    from: u8,
    /// The hour at which they end, 0 to 23. An hour before `from` is on the next day.
    to: u8,
}

/// The settings. Secrets are present only when a webhook is new, and are not shown again.
#[derive(Serialize, ToSchema)]
#[schema(as = OneWatchAlerts)]
pub struct OneWatchAlerts<'a> {
    alerts: WatchAlertsResponse<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    secrets: Vec<SecretResponse<'a>>,
}

/// The settings to save, all of them.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = WatchAlertsBody, example = json!({
    "kinds": ["drops-tomorrow", "available", "renewed"], "channels": [{"type": "email"}],
    "digestHour": 8, "quietHours": {"from": 22, "to": 7}, "timeZone": "Europe/Berlin"
}))]
pub struct WatchAlertsRequest {
    /// Kinds of changes to send. If empty, changes are sent only for names with settings of their own.
    #[schema(value_type = Vec<ChangeKind>, max_items = 8)]
    pub kinds: Option<Vec<String>>,
    /// Channels; if empty, no messages are sent. Channels that were switched off are switched on
    /// again.
    #[schema(value_type = Vec<ChannelRequest>, max_items = 5)]
    pub channels: Option<Vec<Object<ChannelRequest>>>,
    /// Hour of one daily message. Without it, messages are sent at once.
    #[schema(value_type = Option<u8>, minimum = 0, maximum = 23)]
    pub digest_hour: Option<JsonHour>,
    #[schema(value_type = Option<QuietHoursRequest>)]
    pub quiet_hours: Option<Object<QuietHoursRequest>>,
    /// Name in the IANA database; UTC without one.
    #[schema(value_type = Option<String>, format = "time-zone", max_length = 64)]
    pub time_zone: Option<String>,
}

/// Hours in which nothing is sent. `from` and `to` must differ.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = QuietHoursBody, example = json!({"from": 22, "to": 7}))]
pub struct QuietHoursRequest {
    #[schema(value_type = u8, minimum = 0, maximum = 23)]
    pub from: Option<JsonHour>,
    #[schema(value_type = u8, minimum = 0, maximum = 23)]
    pub to: Option<JsonHour>,
}

/// An hour in JSON, as a whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonHour(pub Hour);

impl<'de> Deserialize<'de> for JsonHour {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<JsonHour, D::Error> {
        let number = Box::<RawValue>::deserialize(deserializer)?;
        number.get().parse().map(JsonHour).map_err(de::Error::custom)
    }
}

/// Alert settings of one watched name, instead of those of the watchlist.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = EntryAlertsBody, example = json!({"kinds": ["available"], "channels": ["email"]}))]
pub struct EntryAlertsRequest {
    /// Kinds of changes to send; empty to mute the name.
    #[schema(value_type = Vec<ChangeKind>, max_items = 8)]
    pub kinds: Option<Vec<String>>,
    /// Types of channels to use, of those in the settings; empty or absent for all. If no channel of
    /// these types is left, all are used.
    #[schema(value_type = Option<Vec<super::ChannelType<'static>>>, max_items = 12)]
    pub channels: Option<Vec<String>>,
}

/// Alert settings of one watched name, instead of those of the watchlist.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = EntryAlerts)]
pub struct EntryAlertsResponse {
    /// Kinds of changes that are sent; empty if the name is muted.
    kinds: Vec<ChangeKind>,
    /// Types of channels that are used; empty for all.
    channels: Vec<String>,
}

impl EntryAlertsResponse {
    pub fn new(alerts: &EntryAlerts) -> EntryAlertsResponse {
        let channels = alerts.channels.iter().map(ToString::to_string).collect();
        EntryAlertsResponse { kinds: alerts.kinds.iter().collect(), channels }
    }
}

impl EntryAlertsRequest {
    /// Converts the settings to their stored form. `owned` are the channels of the account.
    ///
    /// # Errors
    /// 400 if a kind is unknown, or no channel has one of the types.
    pub fn parse(self, owned: &[Channel]) -> Result<EntryAlerts, ApiError> {
        let kinds = required(self.kinds, "alerts.kinds")?;
        watch_alerts::entry(kinds, self.channels.unwrap_or_default(), owned)
    }
}

impl WatchAlertsRequest {
    fn into_sent(self) -> SentAlerts {
        SentAlerts {
            kinds: self.kinds,
            digest: self.digest_hour.map(|JsonHour(hour)| hour),
            quiet: self.quiet_hours.map(|Object(QuietHoursRequest { from, to })| {
                (from.map(|JsonHour(hour)| hour), to.map(|JsonHour(hour)| hour))
            }),
            zone: self.time_zone,
            channels: self.channels.map(ChannelRequest::all),
        }
    }
}

/// `GET /api/v1/watchlist/alerts`: the settings.
pub async fn find_watch_alerts(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Extension(now): Extension<Now>,
) -> Response {
    shown(&app, &caller, &app.store.user_data(&caller), &[], now)
}

/// `PUT /api/v1/watchlist/alerts`: saves the settings.
pub async fn set_watch_alerts(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Extension(now): Extension<Now>,
    JsonBody(body): JsonBody<WatchAlertsRequest>,
) -> Result<Response, Refusal> {
    let secrets = watch_alerts::save(&app, &caller, body.into_sent(), true, now).await?;
    let response = shown(&app, &caller, &app.store.user_data(&caller), &secrets, now);
    Ok(response::not_stored(response))
}

fn shown(
    app: &App,
    caller: &Caller,
    owned: &UserData,
    secrets: &[WebhookSecret],
    now: Now,
) -> Response {
    let channels = usable_channels(app, caller, owned, now);
    let body = OneWatchAlerts {
        alerts: WatchAlertsResponse::new(owned, channels, now.0),
        secrets: SecretResponse::all(secrets),
    };
    Json(body).into_response()
}

impl<'a> WatchAlertsResponse<'a> {
    /// Creates the response for the settings of an account, of whose channels some may be usable.
    pub fn new(
        owned: &UserData,
        channels: &'a [Channel],
        now: DateTime<Utc>,
    ) -> WatchAlertsResponse<'a> {
        let alerts = owned.watch_sender().alerts;
        let off = |channel| owned.switched_off(RuleId::WATCHLIST, channel);
        WatchAlertsResponse {
            saved: owned.has_watch_sender(),
            kinds: alerts.kinds.iter().collect(),
            channels: channels.iter().map(|it| ChannelResponse::new(it, off(it))).collect(),
            digest_hour: alerts.digest.map(Hour::get),
            quiet_hours: alerts
                .quiet
                .map(|quiet| QuietResponse { from: quiet.from().get(), to: quiet.to().get() }),
            time_zone: alerts.zone.as_str(),
            next_at: Timestamp(UnixMs::from_instant(alerts.due(now))),
        }
    }
}

/// `POST /api/v1/watchlist/alerts/test`: sends a test message to every channel that is not switched off.
pub async fn test_watch_alerts(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    BarePost(post): BarePost,
) -> Result<Response, Refusal> {
    let draft = app.store.queue_watch_test(&caller, app.reach.channels.email, post).await?;
    Ok(response::posted(draft.respond(|deliveries| queued(deliveries)).await?))
}

/// `POST /api/v1/watchlist/alerts/secrets`: replaces the secrets of the webhooks.
pub async fn replace_watch_secrets(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    BarePost(post): BarePost,
) -> Result<Response, Refusal> {
    Ok(super::replaced(&app, &caller, RuleId::WATCHLIST, post).await?)
}

/// `GET /api/v1/watchlist/alerts/deliveries`: the most recent messages, newest first.
pub async fn list_watch_deliveries(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> Response {
    let owned = app.store.user_data(&caller);
    Json(DeliveryList::new(&owned, RuleId::WATCHLIST)).into_response()
}

/// `POST /api/v1/watchlist/alerts/deliveries/{delivery}/retry`: queues a failed message again.
pub async fn retry_watch_delivery(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    delivery: Result<Path<String>, PathRejection>,
    BarePost(post): BarePost,
) -> Result<Response, Refusal> {
    let delivery = delivery.ok().and_then(|Path(id)| DeliveryId::parse(&id));
    let delivery = delivery.ok_or(ApiError::NotFound)?;
    Ok(deliveries::retry(&app, &caller, RuleId::WATCHLIST, delivery, post).await?)
}
