//! `/api/v1/alerts`: the caller's alert rules.

pub mod deliveries;
pub mod backtest;
pub mod preview;
pub mod watchlist;

use std::borrow::Cow;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::accounts::{
    Caller, ChangedRule, Channel, NewRule, OffReason, Post, Rule, RulePatch, SwitchedOff, UserData,
    WebhookSecret,
};
use crate::body::{BarePost, JsonBody, JsonInteger, Object, Patch, PostBody};
use crate::edge::error::Refusal;
use crate::filter::{FilterRequest, FilterResponse};
use crate::json;
use crate::params::path_id;
use crate::query::params::{Limits, Params};
use crate::query::stored::Conditions;
use crate::response::{self, Deleted, Timestamp};
use crate::service::app::App;
use crate::service::channels::{self, SentChannel, channel_types};
use crate::service::error::{ApiError, required};
use crate::service::{rules, work};
use crate::vocab::chat::Part;
use crate::vocab::day::Day;
use crate::vocab::ids::{RuleId, SearchId};
use crate::vocab::limits::{ENTRIES_OFFSET_MAX, OWNED_LIMIT_DEFAULT, OWNED_LIMIT_MAX};
use crate::vocab::secret::Secret;
use crate::vocab::url::{HostRules, WebhookUrl};

const LIMITS: Limits = Limits { default: OWNED_LIMIT_DEFAULT, max: OWNED_LIMIT_MAX };
/// Path of the collection; a rule is at `PATH/{id}`.
const PATH: &str = "/api/v1/alerts";
/// Approximate cost of serialising one rule, in microseconds.
const RULE_US: usize = 2;

/// An alert rule.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AlertRule)]
pub struct RuleResponse<'a> {
    #[schema(value_type = u64)]
    id: RuleId,
    name: &'a str,
    filter: FilterResponse,
    /// The saved search that the filter was copied from.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>, nullable = false)]
    search_id: Option<SearchId>,
    channels: Vec<ChannelResponse<'a>>,
    active: bool,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

/// A channel that messages go to.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RuleChannel)]
pub struct ChannelResponse<'a> {
    r#type: ChannelType<'a>,
    /// URL of a webhook; for a chat service, only its host and last four characters
    /// (`https://hooks.slack.com/…wxyz`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    url: Option<Cow<'a, str>>,
    /// Telegram chat.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    chat_id: Option<&'a str>,
    /// Last four characters of the token of a chat service.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    token: Option<String>,
    /// Last four characters of the user key of a chat service.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    user: Option<String>,
    /// Present while the channel is switched off.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = SwitchedOffResponse)]
    switched_off: Option<SwitchedOffResponse>,
}

/// Type of a channel: one of [`channel_types`].
#[derive(Serialize)]
struct ChannelType<'a>(&'a str);

impl PartialSchema for ChannelType<'_> {
    fn schema() -> RefOr<Schema> {
        let types: Vec<_> = channel_types().collect();
        let schema = json!({"type": "string", "description": "Type of a channel.", "enum": types});
        serde_json::from_value(schema).expect("an enum of texts is a schema")
    }
}

impl ToSchema for ChannelType<'_> {
    fn name() -> Cow<'static, str> {
        "ChannelType".into()
    }
}

/// Why and since when a channel is switched off.
#[derive(Serialize, ToSchema)]
#[schema(as = SwitchedOff)]
struct SwitchedOffResponse {
    /// `gone` (the receiver responded that it is gone), `failing` (nothing could be delivered for 5 days) or
    /// `unsubscribed`.
    reason: &'static str,
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
}

impl<'a> RuleResponse<'a> {
    /// Creates the response for a rule, with the state of its channels.
    pub fn new(rule: &'a Rule, owned: &UserData) -> RuleResponse<'a> {
        RuleResponse::with(rule, |channel| owned.switched_off(rule.id, channel))
    }

    /// Creates the response for a rule. A new rule has no switched-off channels.
    fn with(
        rule: &'a Rule,
        switched_off: impl Fn(&Channel) -> Option<SwitchedOff>,
    ) -> RuleResponse<'a> {
        RuleResponse {
            id: rule.id,
            name: &rule.name,
            filter: FilterResponse(rule.filter.clone()),
            search_id: rule.search,
            channels: rule
                .channels
                .iter()
                .map(|channel| ChannelResponse::new(channel, switched_off(channel)))
                .collect(),
            active: rule.active,
            created_at: Timestamp(rule.created_at),
        }
    }
}

impl ChannelRequest {
    /// Converts the channels as sent.
    fn all(sent: Vec<Object<ChannelRequest>>) -> Vec<SentChannel> {
        let channel = |Object(sent): Object<ChannelRequest>| SentChannel {
            kind: sent.r#type,
            url: sent.url,
            chat_id: sent.chat_id.map(|chat| match chat {
                ChatIdRequest::Text(text) => text,
                ChatIdRequest::Number(number) => number.to_string(),
            }),
            token: sent.token,
            user: sent.user,
        };
        sent.into_iter().map(channel).collect()
    }
}

impl<'a> ChannelResponse<'a> {
    fn new(channel: &'a Channel, switched_off: Option<SwitchedOff>) -> ChannelResponse<'a> {
        let (url, chat_id) = match channel {
            Channel::Email => (None, None),
            Channel::Webhook { url } => (Some(Cow::Borrowed(url.as_str())), None),
            Channel::Telegram { chat_id } => (None, Some(chat_id.as_str())),
            Channel::Chat(chat) => (chat.hook.shown(Part::Url).map(Cow::Owned), None),
        };
        let shown = |part| match channel {
            Channel::Chat(chat) => chat.hook.shown(part),
            _ => None,
        };
        ChannelResponse {
            r#type: ChannelType(channel.type_name()),
            url,
            chat_id,
            token: shown(Part::Token),
            user: shown(Part::User),
            switched_off: switched_off.map(SwitchedOffResponse::new),
        }
    }
}

impl SwitchedOffResponse {
    fn new(off: SwitchedOff) -> SwitchedOffResponse {
        let reason = match off.reason {
            OffReason::Gone => "gone",
            OffReason::Unsubscribed => "unsubscribed",
            OffReason::Failing => "failing",
        };
        SwitchedOffResponse { reason, at: Timestamp(off.at) }
    }
}

/// Secret that signs the messages of a webhook (Standard Webhooks).
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WebhookSecret)]
struct SecretResponse<'a> {
    #[schema(value_type = String)]
    url: &'a WebhookUrl,
    secret: &'a str,
    /// Until when messages are also signed with the secret that this one replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, format = DateTime)]
    former_until: Option<Timestamp>,
}

impl<'a> SecretResponse<'a> {
    fn all(secrets: &'a [WebhookSecret]) -> Vec<SecretResponse<'a>> {
        let response = |of: &'a WebhookSecret| SecretResponse {
            url: &of.url,
            secret: of.secret.reveal(),
            former_until: of.former.as_ref().map(|(_, until)| Timestamp(*until)),
        };
        secrets.iter().map(response).collect()
    }
}

/// A new rule and the secrets of its webhooks, which are not shown again.
#[derive(Serialize, ToSchema)]
#[schema(as = AddedAlert)]
pub struct AddedRule<'a> {
    #[schema(value_type = u64)]
    id: RuleId,
    alert: RuleResponse<'a>,
    /// Secret of the first webhook.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    secret: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    secrets: Vec<SecretResponse<'a>>,
}

/// A rule. Secrets are present only when a webhook is new, and are not shown again.
#[derive(Serialize, ToSchema)]
#[schema(as = OneAlert)]
pub struct OneRule<'a> {
    alert: RuleResponse<'a>,
    /// Signing secret of the first new webhook.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    secret: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    secrets: Vec<SecretResponse<'a>>,
}

/// New secrets of all webhooks of a rule or the watchlist, which are not shown again.
#[derive(Serialize, ToSchema)]
pub struct ReplacedSecrets<'a> {
    secrets: Vec<SecretResponse<'a>>,
}

/// A page of alert rules, newest first.
#[derive(Serialize, ToSchema)]
#[schema(as = Alerts)]
pub struct RuleList<'a> {
    #[schema(value_type = u32)]
    count: usize,
    /// Number on all pages.
    #[schema(value_type = u32)]
    total: usize,
    limit: u32,
    offset: u32,
    alerts: Vec<RuleResponse<'a>>,
}

/// A rule to add.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = RuleBody, example = json!({
    "name": "short .de", "filter": {"tlds": ["de"], "maxLength": 5}, "channels": [{"type": "email"}]
}))]
pub struct RuleRequest {
    #[schema(value_type = String, min_length = 1, max_length = 100)]
    pub name: Option<String>,
    /// Required without `searchId`.
    #[schema(nullable = false)]
    pub filter: Option<FilterRequest>,
    /// A saved search whose filter is copied, instead of `filter`.
    #[schema(value_type = Option<u64>, minimum = 1)]
    pub search_id: Option<JsonInteger>,
    #[schema(value_type = Vec<ChannelRequest>, min_items = 1, max_items = 5)]
    pub channels: Option<Vec<Object<ChannelRequest>>>,
}

/// Changes to a rule. Absent members are unchanged.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = RulePatchBody, example = json!({"active": false}))]
pub struct RulePatchRequest {
    #[serde(default)]
    #[schema(value_type = String, min_length = 1, max_length = 100)]
    pub name: Patch<String>,
    #[serde(default)]
    #[schema(value_type = FilterRequest)]
    pub filter: Patch<FilterRequest>,
    #[serde(default)]
    #[schema(value_type = Vec<ChannelRequest>, min_items = 1, max_items = 5)]
    pub channels: Patch<Vec<Object<ChannelRequest>>>,
    #[serde(default)]
    #[schema(value_type = bool)]
    pub active: Patch<bool>,
}

/// A rule to preview. Only the filter is used; other members may be absent.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = PreviewBody, example = json!({"filter": {"tlds": ["de"], "maxLength": 5}}))]
pub struct PreviewRequest {
    pub name: Option<String>,
    #[schema(value_type = FilterRequest)]
    pub filter: Option<FilterRequest>,
    #[schema(value_type = Option<Vec<ChannelRequest>>)]
    pub channels: Option<Vec<Object<ChannelRequest>>>,
}

/// A channel. A webhook needs `url`, and Telegram `chatId`. The other types except e-mail are chat
/// services: they need `url`, ntfy and Gotify also take `token`, and Pushover takes `token` and `user`
/// instead.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = ChannelBody, examples(
    json!({"type": "webhook", "url": "https://hooks.example.com/drops"}),
    json!({"type": "telegram", "chatId": "@drops"}),
    json!({"type": "slack", "url": "https://hooks.slack.com/services/T00/B00/XXXXXXXXXXXX"}),
    json!({"type": "discord", "url": "https://discord.com/api/webhooks/123/XXXXXXXXXXXX"}),
    json!({"type": "teams", "url": "https://prod-0.westus.logic.azure.com/workflows/0/triggers/manual/paths/invoke?sig=X"}),
    json!({"type": "mattermost", "url": "https://mattermost.example.com/hooks/XXXXXXXXXXXX"}),
    json!({"type": "rocketchat", "url": "https://chat.example.com/hooks/XXXX/XXXXXXXXXXXX"}),
    json!({"type": "googlechat", "url": "https://chat.googleapis.com/v1/spaces/X/messages?key=X&token=X"}),
    json!({"type": "ntfy", "url": "https://ntfy.sh/my-secret-topic", "token": "tk_XXXXXXXXXXXX"}),
    json!({"type": "pushover", "token": "azGDORePK8gMaC0QOYAMyEEuzJnyUi", "user": "uQiRzpo4DXghDmr9QzzfQu27cmVRsG"}),
    json!({"type": "gotify", "url": "https://gotify.example.com", "token": "AXXXXXXXXXXXXXX"}),
))]
pub struct ChannelRequest {
    #[schema(value_type = ChannelType<'static>)]
    pub r#type: Option<String>,
    /// An https URL of a public host, on port 443 or 8443. In a PATCH, the shortened URL of a response stands
    /// for the rule's current one.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 2048)]
    pub url: Option<Secret>,
    pub chat_id: Option<ChatIdRequest>,
    /// Token of ntfy, Gotify or Pushover.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 256)]
    pub token: Option<Secret>,
    /// User or group key of Pushover.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 256)]
    pub user: Option<Secret>,
}

/// A Telegram chat: its numeric id, or the name of a public chat.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "invalid type: expected a string or an integer")]
#[schema(as = ChatId)]
pub enum ChatIdRequest {
    Text(String),
    Number(i64),
}

fn parse_rule(
    request: RuleRequest,
    owned: &UserData,
    hosts: &HostRules,
    today: Day,
) -> Result<NewRule, ApiError> {
    let name = required(request.name, "name")?;
    let (filter, search) = match request.search_id {
        Some(_) if request.filter.is_some() => {
            return Err(ApiError::parameter("searchId", "must not be given with filter"));
        }
        Some(JsonInteger(id)) => {
            let search = u64::try_from(id).ok().and_then(SearchId::new);
            let search = search.and_then(|id| owned.search(id)).ok_or_else(|| {
                ApiError::parameter("searchId", "must be one of your saved searches")
            })?;
            (search.conditions.unordered(), Some(search.id))
        }
        None => (required(request.filter, "filter")?.parse(today)?, None),
    };
    let channels = ChannelRequest::all(required(request.channels, "channels")?);
    let channels = channels::parse(channels, hosts, &[])?;
    Ok(NewRule { name, filter, channels, search })
}

fn parse_patch(
    request: RulePatchRequest,
    hosts: &HostRules,
    before: &[Channel],
    today: Day,
) -> Result<RulePatch, ApiError> {
    let channels = request
        .channels
        .try_map(|sent| channels::parse(ChannelRequest::all(sent), hosts, before))?;
    let filter = request.filter.try_map(|filter| filter.parse(today))?;
    Ok(RulePatch {
        name: request.name.not_null("name")?,
        filter: filter.not_null("filter")?,
        channels: channels.not_null("channels")?,
        active: request.active.not_null("active")?,
    })
}

/// Parses the filter of a rule to preview.
///
/// # Errors
/// 400 for the first invalid member, channels included.
fn preview_filter(
    request: PreviewRequest,
    hosts: &HostRules,
    today: Day,
) -> Result<Conditions, ApiError> {
    if let Some(channels) = request.channels {
        channels::parse(ChannelRequest::all(channels), hosts, &[])?;
    }
    required(request.filter, "filter")?.parse(today)
}

/// `GET /api/v1/alerts`: the caller's rules, newest first.
pub async fn list_alerts(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
) -> Result<Response, Refusal> {
    let page = Params::new(uri.query()).page(LIMITS, ENTRIES_OFFSET_MAX)?;
    let owned = app.store.user_data(&caller);
    let total = owned.rule_count();
    let cost_us = work::cost_us(total, RULE_US);
    let body = work::run(cost_us, move || {
        let alerts: Vec<_> =
            page.rows(owned.rules()).map(|rule| RuleResponse::new(rule, &owned)).collect();
        let (count, limit, offset) = (alerts.len(), page.limit, page.offset);
        json::json_bytes(&RuleList { count, total, limit, offset, alerts })
    });
    Ok(response::with_next(json::json_response(body.await?), &uri, page, total))
}

/// `GET /api/v1/alerts/{id}`: one rule.
pub async fn find_alert(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, Refusal> {
    let owned = app.store.user_data(&caller);
    let rule = owned.rule(path_id(id, RuleId::parse)?).ok_or(ApiError::NotFound)?;
    Ok(one_rule(rule, &owned, &[]))
}

/// `POST /api/v1/alerts`: adds an active rule.
pub async fn add_alert(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    PostBody { body, post }: PostBody<RuleRequest>,
) -> Result<Response, Refusal> {
    let compiles = body.filter.as_ref().is_some_and(FilterRequest::compiles);
    let parse = |owned: &UserData, hosts: &HostRules, today| parse_rule(body, owned, hosts, today);
    let draft = rules::add(&app, &caller, compiles, parse, post).await?;
    let receipt = |rule: &Rule| {
        let secrets = &rule.secrets;
        let added = AddedRule {
            id: rule.id,
            alert: RuleResponse::with(rule, |_| None),
            secret: secrets.first().map(|first| first.secret.reveal()),
            secrets: SecretResponse::all(secrets),
        };
        response::receipt(StatusCode::CREATED, &added)
    };
    let answered = draft.respond(receipt).await?;
    Ok(response::not_stored(response::added(answered, PATH, |rule| rule.id.get())))
}

/// `PATCH /api/v1/alerts/{id}`: changes the given members.
pub async fn change_alert(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
    JsonBody(body): JsonBody<RulePatchRequest>,
) -> Result<Response, Refusal> {
    let id = path_id(id, RuleId::parse)?;
    let compiles = matches!(&body.filter, Patch::Value(filter) if filter.compiles());
    let parse =
        |before: &[Channel], hosts: &HostRules, today| parse_patch(body, hosts, before, today);
    let ChangedRule { rule, new_secrets } =
        rules::change(&app, &caller, id, compiles, parse).await?;
    let response = one_rule(&rule, &app.store.user_data(&caller), &new_secrets);
    Ok(response::not_stored(response))
}

/// `POST /api/v1/alerts/{id}/secrets`: replaces the secrets of a rule's webhooks.
pub async fn replace_secrets(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
    BarePost(post): BarePost,
) -> Result<Response, Refusal> {
    Ok(replaced(&app, &caller, path_id(id, RuleId::parse)?, post).await?)
}

async fn replaced(
    app: &App,
    caller: &Caller,
    rule: RuleId,
    post: Post,
) -> Result<Response, ApiError> {
    let draft = app.store.replace_secrets(caller, rule, post).await?;
    let receipt = |secrets: &Vec<WebhookSecret>| {
        let secrets = SecretResponse::all(secrets);
        response::receipt(StatusCode::OK, &ReplacedSecrets { secrets })
    };
    Ok(response::not_stored(response::posted(draft.respond(receipt).await?)))
}

/// `DELETE /api/v1/alerts/{id}`: removes a rule.
pub async fn remove_alert(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<Deleted>, Refusal> {
    let id = path_id(id, RuleId::parse)?;
    app.store.remove_rule(&caller, id).await?;
    Ok(Json(Deleted::new(id.get())))
}

fn one_rule(rule: &Rule, owned: &UserData, secrets: &[WebhookSecret]) -> Response {
    let body = OneRule {
        alert: RuleResponse::new(rule, owned),
        secret: secrets.first().map(|first| first.secret.reveal()),
        secrets: SecretResponse::all(secrets),
    };
    Json(body).into_response()
}
