//! `/api/v1/alerts`: the caller's alert rules.

pub mod deliveries;
pub mod preview;
pub mod watchlist;

use std::borrow::Cow;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::accounts::{
    Answered, Caller, ChangedRule, Channel, NewRule, OffReason, Post, Rule, RuleFilter, RulePatch,
    SwitchedOff, UserData, WebhookSecret,
};
use crate::http::body::{JsonBody, JsonInteger, Object, Patch, PostBody, required};
use crate::http::filter::{FilterRequest, FilterResponse};
use crate::http::json;
use crate::http::params::path_id;
use crate::http::response::{self, Deleted, Timestamp};
use crate::outbound::chat::{self, Sent};
use crate::outbound::guard::{Guard, GuardError};
use crate::query::params::{Limits, Params};
use crate::service::app::App;
use crate::service::app::ConfiguredChannels;
use crate::service::app::Now;
use crate::service::error::ApiError;
use crate::service::work;
use crate::vocab::chat::{Chat, Part};
use crate::vocab::day::Day;
use crate::vocab::ids::{RuleId, SearchId};
use crate::vocab::limits::{ENTRIES_OFFSET_MAX, OWNED_LIMIT_DEFAULT, OWNED_LIMIT_MAX};
use crate::vocab::secret::Secret;
use crate::vocab::url::{HostRules, WebhookUrl};

const LIMITS: Limits = Limits { default: OWNED_LIMIT_DEFAULT, max: OWNED_LIMIT_MAX };
/// Collection path; a rule lives at `PATH/{id}`.
const PATH: &str = "/api/v1/alerts";
/// Approximate cost of serialising one rule, in microseconds.
const RULE_US: usize = 2;

/// An alert rule.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AlertRule)]
struct RuleResponse<'a> {
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
struct ChannelResponse<'a> {
    r#type: ChannelType<'a>,
    /// Address of a webhook; that of a chat service as its host and last four characters
    /// (`https://hooks.slack.com/…wxyz`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    url: Option<Cow<'a, str>>,
    /// Telegram chat.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    chat_id: Option<&'a str>,
    /// Token of a chat service, as its last four characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    token: Option<String>,
    /// User key of a chat service, as its last four characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    user: Option<String>,
    /// Present while nothing is sent through the channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = SwitchedOffResponse)]
    switched_off: Option<SwitchedOffResponse>,
}

/// Type of a channel: one of [`OWN_TYPES`], or the name of a chat service.
#[derive(Serialize)]
struct ChannelType<'a>(&'a str);

/// Types of channels other than chat services.
const OWN_TYPES: [&str; 3] = ["email", "webhook", "telegram"];

/// All types of channels.
fn channel_types() -> impl Iterator<Item = &'static str> {
    OWN_TYPES.into_iter().chain(chat::SERVICES.iter().map(|service| service.about().name))
}

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

/// Why and since when nothing is sent through a channel.
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
    /// A rule with the state of its channels.
    fn new(rule: &'a Rule, owned: &UserData) -> RuleResponse<'a> {
        RuleResponse::with(rule, |channel| owned.switched_off(rule.id, channel))
    }

    /// A rule; a new one has no channel that is switched off.
    fn with(
        rule: &'a Rule,
        switched_off: impl Fn(&Channel) -> Option<SwitchedOff>,
    ) -> RuleResponse<'a> {
        RuleResponse {
            id: rule.id,
            name: &rule.name,
            filter: FilterResponse(rule.filter.conditions()),
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
#[schema(as = WebhookSecret)]
struct SecretResponse<'a> {
    #[schema(value_type = String)]
    url: &'a WebhookUrl,
    secret: &'a str,
}

impl<'a> SecretResponse<'a> {
    fn all(secrets: &'a [WebhookSecret]) -> Vec<SecretResponse<'a>> {
        let response =
            |of: &'a WebhookSecret| SecretResponse { url: &of.url, secret: of.secret.reveal() };
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
    /// Secret of the first new webhook.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    secret: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    secrets: Vec<SecretResponse<'a>>,
}

/// A page of alert rules, newest first.
#[derive(Serialize, ToSchema)]
#[schema(as = Alerts)]
pub struct RuleList<'a> {
    #[schema(value_type = u32)]
    count: usize,
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

/// A channel. `url` belongs to a webhook, `chatId` to Telegram; the others are chat services. They take
/// `url`, ntfy and Gotify a `token` beside it, and Pushover `token` and `user`.
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
    /// An https URL of a public host, on port 443 or 8443. In a PATCH, the shortened one of a response stands
    /// for the one that the rule has.
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
    rules: &HostRules,
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
            (RuleFilter::new(&search.conditions.unordered()), Some(search.id))
        }
        None => (parse_filter(required(request.filter, "filter")?, today)?, None),
    };
    let channels = parse_channels(required(request.channels, "channels")?, rules, &[])?;
    Ok(NewRule { name, filter, channels, search })
}

fn parse_patch(
    request: RulePatchRequest,
    rules: &HostRules,
    before: &[Channel],
    today: Day,
) -> Result<RulePatch, ApiError> {
    let channels = request.channels.try_map(|channels| parse_channels(channels, rules, before))?;
    let filter = request.filter.try_map(|filter| parse_filter(filter, today))?;
    Ok(RulePatch {
        name: request.name.not_null("name")?,
        filter: filter.not_null("filter")?,
        channels: channels.not_null("channels")?,
        active: request.active.not_null("active")?,
    })
}

/// The filter of a rule to preview.
///
/// # Errors
/// 400 for the first invalid member, channels included.
pub fn preview_filter(
    request: PreviewRequest,
    rules: &HostRules,
    today: Day,
) -> Result<RuleFilter, ApiError> {
    if let Some(channels) = request.channels {
        parse_channels(channels, rules, &[])?;
    }
    parse_filter(required(request.filter, "filter")?, today)
}

fn parse_filter(request: FilterRequest, today: Day) -> Result<RuleFilter, ApiError> {
    Ok(RuleFilter::new(&request.parse(today)?))
}

fn parse_channels(
    sent: Vec<Object<ChannelRequest>>,
    rules: &HostRules,
    before: &[Channel],
) -> Result<Vec<Channel>, ApiError> {
    let mut kept: Vec<_> = before.iter().filter_map(Channel::chat).collect();
    let channels = sent.into_iter().enumerate();
    channels.map(|(at, Object(sent))| parse_channel(at, sent, rules, &mut kept)).collect()
}

/// Parses a channel. A chat that is sent as responses show it is one of the `kept`.
fn parse_channel(
    at: usize,
    sent: ChannelRequest,
    rules: &HostRules,
    kept: &mut Vec<&Chat>,
) -> Result<Channel, ApiError> {
    let wrong = |member: &str, what: &dyn std::fmt::Display| {
        ApiError::parameter(format!("channels[{at}].{member}"), what)
    };
    let ChannelRequest { r#type, url, chat_id, token, user } = sent;
    let kind = r#type.as_deref().ok_or_else(|| wrong("type", &"is required"))?;
    if let Some(service) = chat::service(kind) {
        if chat_id.is_some() {
            return Err(wrong("chatId", &"belongs to telegram"));
        }
        let parsed = chat::parse(service, &Sent { url, token, user }, rules, kept);
        let chat = parsed.map_err(|refused| wrong(refused.part.as_str(), &refused.why))?;
        return Ok(Channel::Chat(chat));
    }
    if !OWN_TYPES.contains(&kind) {
        let types: Vec<_> = channel_types().collect();
        return Err(wrong("type", &format_args!("must be one of {}", types.join(", "))));
    }
    for (member, is_sent) in [("token", token.is_some()), ("user", user.is_some())] {
        if is_sent {
            return Err(wrong(member, &"belongs to a chat service"));
        }
    }
    match (kind, url, chat_id) {
        ("email", None, None) => Ok(Channel::Email),
        ("webhook", Some(url), None) => {
            let url = WebhookUrl::parse_by(rules, url.reveal())
                .map_err(|err| wrong("url", &err.of_channel()))?;
            Ok(Channel::Webhook { url })
        }
        ("telegram", None, Some(ChatIdRequest::Text(chat_id))) => Ok(Channel::Telegram { chat_id }),
        ("telegram", None, Some(ChatIdRequest::Number(number))) => {
            Ok(Channel::Telegram { chat_id: number.to_string() })
        }
        ("webhook", None, _) => Err(wrong("url", &"is required")),
        ("telegram", _, None) => Err(wrong("chatId", &"is required")),
        ("email" | "telegram", Some(_), _) => {
            Err(wrong("url", &"belongs to a webhook or a chat service"))
        }
        _ => Err(wrong("chatId", &"belongs to telegram")),
    }
}

/// Refuses channels that the operator has not set up. The log names the missing setting.
fn check_configured(configured: ConfiguredChannels, channels: &[Channel]) -> Result<(), ApiError> {
    for (at, channel) in channels.iter().enumerate() {
        let (is_there, what, setting) = match channel {
            Channel::Email => (configured.email, "email", "smtp.host"),
            Channel::Webhook { .. } | Channel::Chat(_) => {
                (configured.webhook, "webhook", "webhooks")
            }
            Channel::Telegram { .. } => (configured.telegram, "telegram", "telegram.token"),
        };
        if !is_there {
            tracing::warn!(setting, "alert rule refused: {what} delivery is not set up");
            let why = "delivery is not set up on this server; ask its operator";
            return Err(ApiError::parameter(format!("channels[{at}]"), format!("{what} {why}")));
        }
    }
    Ok(())
}

/// Checks the addresses that the hosts of webhooks and chat services resolve to now. A host that does not resolve
/// passes: the guard checks again at every call.
async fn check_webhooks(guard: &Guard, channels: &[Channel]) -> Result<(), ApiError> {
    let refused = |at, what: String| ApiError::parameter(format!("channels[{at}].url"), what);
    let checks = channels.iter().enumerate().map(async |(at, channel)| {
        let Some(url) = channel.url() else { return Ok(()) };
        match guard.vet(&url.to_url()).await {
            Ok(_) | Err(GuardError::Unresolved { .. }) => Ok(()),
            Err(GuardError::Refused(err)) => Err(refused(at, err.of_channel())),
            Err(err) => Err(refused(at, err.to_string())),
        }
    });
    join_all(checks).await.into_iter().collect()
}

/// `GET /api/v1/alerts`: the caller's rules, newest first.
pub async fn list_alerts(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let page = Params::new(query.as_deref()).page(LIMITS, ENTRIES_OFFSET_MAX)?;
    let owned = app.store.user_data(&caller);
    let cost_us = work::cost_us(owned.rule_count(), RULE_US);
    let body = work::run(cost_us, move || {
        let alerts: Vec<_> =
            page.rows(owned.rules()).map(|rule| RuleResponse::new(rule, &owned)).collect();
        let (count, limit, offset) = (alerts.len(), page.limit, page.offset);
        json::json_bytes(&RuleList { count, limit, offset, alerts })
    });
    Ok(json::json_response(body.await?))
}

/// `GET /api/v1/alerts/{id}`: one rule.
pub async fn find_alert(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, ApiError> {
    let owned = app.store.user_data(&caller);
    let rule = owned.rule(path_id(id, RuleId::parse)?).ok_or(ApiError::NotFound)?;
    Ok(one_rule(rule, &owned, &[]))
}

/// `POST /api/v1/alerts`: adds an active rule.
pub async fn add_alert(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    PostBody { body, post }: PostBody<RuleRequest>,
) -> Result<Response, ApiError> {
    let answered = add(&app, &caller, body, post).await?;
    Ok(response::not_stored(response::added(answered, PATH, |rule| rule.id.get())))
}

/// Adds a rule. The reply has the JSON of the API, with the secrets of its webhooks.
///
/// # Errors
/// The same as the endpoint.
pub async fn add(
    app: &App,
    caller: &Caller,
    request: RuleRequest,
    post: Post,
) -> Result<Answered<Rule>, ApiError> {
    let (of_app, owned) = (app.clone(), app.store.user_data(caller));
    let today = app.as_of(Now(post.now)).today;
    let compiles = request.filter.as_ref().is_some_and(FilterRequest::compiles);
    let parse = move || parse_rule(request, &owned, of_app.reach.guard.rules(), today);
    let rule = work::run_or_scan(compiles, 0, parse).await?;
    check_configured(app.reach.channels, &rule.channels)?;
    check_webhooks(&app.reach.guard, &rule.channels).await?;
    let draft = app.store.add_rule(caller, rule, post).await?;
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
    Ok(draft.respond(receipt).await?)
}

/// `PATCH /api/v1/alerts/{id}`: changes the given members.
pub async fn change_alert(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
    JsonBody(body): JsonBody<RulePatchRequest>,
) -> Result<Response, ApiError> {
    let id = path_id(id, RuleId::parse)?;
    let ChangedRule { rule, new_secrets } = change(&app, &caller, id, body).await?;
    let response = one_rule(&rule, &app.store.user_data(&caller), &new_secrets);
    Ok(response::not_stored(response))
}

/// Changes the given members of a rule.
///
/// # Errors
/// The same as the endpoint.
pub async fn change(
    app: &App,
    caller: &Caller,
    id: RuleId,
    request: RulePatchRequest,
) -> Result<ChangedRule, ApiError> {
    let (of_app, today) = (app.clone(), app.clock.today());
    let compiles = matches!(&request.filter, Patch::Value(filter) if filter.compiles());
    let owned = app.store.user_data(caller);
    let parse = move || {
        let before = owned.rule(id).map(|rule| rule.channels.as_slice()).unwrap_or_default();
        parse_patch(request, of_app.reach.guard.rules(), before, today)
    };
    let patch = work::run_or_scan(compiles, 0, parse).await?;
    let channels = patch.channels.as_deref().unwrap_or_default();
    check_configured(app.reach.channels, channels)?;
    check_webhooks(&app.reach.guard, channels).await?;
    Ok(app.store.change_rule(caller, id, patch).await?)
}

/// `DELETE /api/v1/alerts/{id}`: removes a rule.
pub async fn remove_alert(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<Deleted>, ApiError> {
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
