//! `/api/v1/alerts`: the caller's alert rules (api.md; decisions.md §5).

pub mod deliveries;
pub mod preview;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::{Extension, Json};
use compact_str::CompactString;
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};

use crate::accounts::{
    Answered, Caller, ChangedRule, Channel, NewRule, OffReason, Post, Rule, RuleFilter, RulePatch,
    SwitchedOff, UserData, WebhookSecret,
};
use crate::http::answer::{self, Deleted, Timestamp};
use crate::http::body::{JsonBody, JsonInteger, Object, Patch, PostBody, required};
use crate::http::error::ApiError;
use crate::http::params::{Limits, Params, path_id};
use crate::http::{App, ConfiguredChannels, work};
use crate::index::filter::{Narrow, RuleQuery, StageSet};
use crate::outbound::guard::{Guard, GuardError};
use crate::vocab::dqs::Dqs;
use crate::vocab::ids::RuleId;
use crate::vocab::limits::{
    ENTRIES_OFFSET_MAX, LABEL_CHARS_MAX, OWNED_LIMIT_DEFAULT, OWNED_LIMIT_MAX, RULE_TLDS_MAX,
};
use crate::vocab::query::{Substring, fold_tld, is_suffix};
use crate::vocab::stage::Stage;
use crate::vocab::url::{HostRules, WebhookUrl};

const LIMITS: Limits = Limits { default: OWNED_LIMIT_DEFAULT, max: OWNED_LIMIT_MAX };
/// Where a rule has its address.
const PATH: &str = "/api/v1/alerts";
/// Microseconds that shaping one rule takes, about.
const RULE_US: usize = 2;

/// An alert rule (api.md).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AlertAnswer<'a> {
    id: RuleId,
    name: &'a str,
    filter: FilterAnswer<'a>,
    channels: Vec<ChannelAnswer<'a>>,
    active: bool,
    created_at: Timestamp,
}

/// The members that filter; what is absent does not.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FilterAnswer<'a> {
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tlds: &'a [CompactString],
    #[serde(skip_serializing_if = "Option::is_none")]
    min_dqs: Option<Dqs>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_length: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    contains: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stages: &'a [Stage],
}

/// A channel of a rule, and whether it is off.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ChannelAnswer<'a> {
    #[serde(flatten)]
    kind: ChannelKind<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    switched_off: Option<SwitchedOffAnswer>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
enum ChannelKind<'a> {
    Email,
    Webhook { url: &'a WebhookUrl },
    Telegram { chat_id: &'a str },
}

/// Why nothing is sent through a channel, since when.
#[derive(Serialize)]
struct SwitchedOffAnswer {
    reason: &'static str,
    at: Timestamp,
}

impl<'a> AlertAnswer<'a> {
    /// A rule that has just been added: all its channels are on.
    fn of_new(rule: &'a Rule) -> AlertAnswer<'a> {
        AlertAnswer::with(rule, |_| None)
    }

    /// A rule as `owned` has it.
    fn new(rule: &'a Rule, owned: &UserData) -> AlertAnswer<'a> {
        AlertAnswer::with(rule, |channel| owned.switched_off(rule.id, channel))
    }

    fn with(
        rule: &'a Rule,
        switched_off: impl Fn(&Channel) -> Option<SwitchedOff>,
    ) -> AlertAnswer<'a> {
        let channel = |channel| ChannelAnswer {
            kind: ChannelKind::new(channel),
            switched_off: switched_off(channel).map(SwitchedOffAnswer::new),
        };
        let filter = &rule.filter;
        AlertAnswer {
            id: rule.id,
            name: &rule.name,
            filter: FilterAnswer {
                tlds: &filter.tlds,
                min_dqs: filter.min_dqs,
                max_length: filter.max_length,
                contains: filter.contains.as_ref().map(Substring::as_str),
                stages: &filter.stages,
            },
            channels: rule.channels.iter().map(channel).collect(),
            active: rule.active,
            created_at: Timestamp(rule.created_at),
        }
    }
}

impl<'a> ChannelKind<'a> {
    fn new(channel: &'a Channel) -> ChannelKind<'a> {
        match channel {
            Channel::Email => ChannelKind::Email,
            Channel::Webhook { url } => ChannelKind::Webhook { url },
            Channel::Telegram { chat_id } => ChannelKind::Telegram { chat_id },
        }
    }
}

impl SwitchedOffAnswer {
    fn new(off: SwitchedOff) -> SwitchedOffAnswer {
        let reason = match off.reason {
            OffReason::Gone => "gone",
            OffReason::Unsubscribed => "unsubscribed",
        };
        SwitchedOffAnswer { reason, at: Timestamp(off.at) }
    }
}

/// Signing secrets, shown this once: of the first new webhook alone, and of each in their order.
#[derive(Serialize)]
struct SecretsAnswer<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    secrets: Vec<SecretAnswer<'a>>,
}

#[derive(Serialize)]
struct SecretAnswer<'a> {
    url: &'a WebhookUrl,
    secret: &'a str,
}

impl<'a> SecretsAnswer<'a> {
    fn new(secrets: &'a [WebhookSecret]) -> SecretsAnswer<'a> {
        let shown =
            |of: &'a WebhookSecret| SecretAnswer { url: &of.url, secret: of.secret.reveal() };
        SecretsAnswer {
            secret: secrets.first().map(|first| first.secret.reveal()),
            secrets: secrets.iter().map(shown).collect(),
        }
    }
}

#[derive(Serialize)]
struct AddedAlert<'a> {
    id: RuleId,
    alert: AlertAnswer<'a>,
    #[serde(flatten)]
    secrets: SecretsAnswer<'a>,
}

#[derive(Serialize)]
struct OneAlert<'a> {
    alert: AlertAnswer<'a>,
    #[serde(flatten)]
    secrets: SecretsAnswer<'a>,
}

/// The alert list response (api.md).
#[derive(Serialize)]
struct AlertsAnswer<'a> {
    count: usize,
    limit: u32,
    offset: u32,
    alerts: Vec<AlertAnswer<'a>>,
}

/// A rule to be added, as sent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RuleRequest {
    pub name: Option<String>,
    pub filter: Option<Object<RuleFilterRequest>>,
    pub channels: Option<Vec<Object<ChannelRequest>>>,
}

/// A change of a rule, as sent.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct RulePatchRequest {
    pub name: Patch<String>,
    pub filter: Patch<Object<RuleFilterRequest>>,
    pub channels: Patch<Vec<Object<ChannelRequest>>>,
    pub active: Patch<bool>,
}

/// A filter, as sent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RuleFilterRequest {
    pub tlds: Option<Vec<String>>,
    pub min_dqs: Option<JsonInteger>,
    pub max_length: Option<JsonInteger>,
    pub contains: Option<String>,
    pub stages: Option<Vec<String>>,
}

/// A channel, as sent: the members of all types.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ChannelRequest {
    pub r#type: Option<String>,
    pub url: Option<String>,
    pub chat_id: Option<ChatIdRequest>,
}

/// Telegram writes ids of chats as numbers, names of public ones as text.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "invalid type: expected a string or an integer")]
pub enum ChatIdRequest {
    Text(String),
    Number(i64),
}

fn new_rule(sent: RuleRequest, rules: &HostRules) -> Result<NewRule, ApiError> {
    Ok(NewRule {
        name: required(sent.name, "name")?,
        filter: filter(required(sent.filter, "filter")?)?,
        channels: channels(required(sent.channels, "channels")?, rules)?,
    })
}

fn rule_patch(sent: RulePatchRequest, rules: &HostRules) -> Result<RulePatch, ApiError> {
    let channels = sent.channels.try_map(|sent| channels(sent, rules))?;
    Ok(RulePatch {
        name: sent.name.not_null("name")?,
        filter: sent.filter.try_map(filter)?.not_null("filter")?,
        channels: channels.not_null("channels")?,
        active: sent.active.not_null("active")?,
    })
}

/// The filter of a rule that is not to be added: of its other members, those that are sent must be
/// sound.
///
/// # Errors
/// 400 for the first that is not.
pub fn draft_filter(sent: RuleRequest, rules: &HostRules) -> Result<RuleFilter, ApiError> {
    if let Some(sent) = sent.channels {
        channels(sent, rules)?;
    }
    filter(required(sent.filter, "filter")?)
}

/// The same conditions, as the index asks them.
pub fn rule_query(filter: &RuleFilter) -> RuleQuery {
    RuleQuery {
        narrow: Narrow {
            tlds: filter.tlds.clone(),
            min_dqs: filter.min_dqs.unwrap_or(Dqs::MIN),
            max_len: filter.max_length.unwrap_or(LABEL_CHARS_MAX),
        },
        contains: filter.contains.clone(),
        stages: StageSet::of(&filter.stages),
    }
}

fn filter(Object(sent): Object<RuleFilterRequest>) -> Result<RuleFilter, ApiError> {
    let substring = |text: String| {
        Substring::parse(&text).map_err(|err| ApiError::parameter("filter.contains", err))
    };
    let min_dqs = within(sent.min_dqs, 0, Dqs::MAX.points(), "filter.minDqs")?;
    Ok(RuleFilter {
        tlds: tlds(sent.tlds.unwrap_or_default())?,
        min_dqs: min_dqs.and_then(Dqs::new),
        max_length: within(sent.max_length, 1, LABEL_CHARS_MAX, "filter.maxLength")?,
        contains: sent.contains.map(substring).transpose()?,
        stages: stages(sent.stages.unwrap_or_default())?,
    })
}

fn within(
    number: Option<JsonInteger>,
    least: u8,
    most: u8,
    name: &'static str,
) -> Result<Option<u8>, ApiError> {
    let Some(JsonInteger(number)) = number else { return Ok(None) };
    let fits = u8::try_from(number).ok().filter(|number| (least..=most).contains(number));
    let wrong = || ApiError::parameter(name, format!("must be an integer from {least} to {most}"));
    fits.map(Some).ok_or_else(wrong)
}

/// TLDs as they are compared, each once.
fn tlds(sent: Vec<String>) -> Result<Vec<CompactString>, ApiError> {
    if sent.len() > RULE_TLDS_MAX {
        let what = format!("must have at most {RULE_TLDS_MAX} items");
        return Err(ApiError::parameter("filter.tlds", what));
    }
    let mut tlds = Vec::with_capacity(sent.len());
    for (at, text) in sent.iter().enumerate() {
        // One that nobody knows matches nothing, today; one that cannot be is a slip.
        let tld = fold_tld(text).filter(|tld| is_suffix(tld)).ok_or_else(|| {
            let what = "must be a public suffix, such as com or co.uk";
            ApiError::parameter(format!("filter.tlds[{at}]"), what)
        })?;
        if !tlds.contains(&tld) {
            tlds.push(tld);
        }
    }
    Ok(tlds)
}

/// Stages, each once.
fn stages(sent: Vec<String>) -> Result<Vec<Stage>, ApiError> {
    let mut stages = Vec::new();
    for (at, text) in sent.iter().enumerate() {
        let stage =
            text.parse().map_err(|err| ApiError::parameter(format!("filter.stages[{at}]"), err))?;
        if !stages.contains(&stage) {
            stages.push(stage);
        }
    }
    Ok(stages)
}

fn channels(
    sent: Vec<Object<ChannelRequest>>,
    rules: &HostRules,
) -> Result<Vec<Channel>, ApiError> {
    sent.into_iter().enumerate().map(|(at, Object(sent))| channel(at, sent, rules)).collect()
}

fn channel(at: usize, sent: ChannelRequest, rules: &HostRules) -> Result<Channel, ApiError> {
    let wrong = |member: &str, what: &dyn std::fmt::Display| {
        ApiError::parameter(format!("channels[{at}].{member}"), what)
    };
    let kind = sent.r#type.as_deref().ok_or_else(|| wrong("type", &"is required"))?;
    match (kind, sent.url, sent.chat_id) {
        ("email", None, None) => Ok(Channel::Email),
        ("webhook", Some(url), None) => {
            let url = WebhookUrl::parse_by(rules, &url).map_err(|err| wrong("url", &err))?;
            Ok(Channel::Webhook { url })
        }
        ("telegram", None, Some(ChatIdRequest::Text(chat_id))) => Ok(Channel::Telegram { chat_id }),
        ("telegram", None, Some(ChatIdRequest::Number(number))) => {
            Ok(Channel::Telegram { chat_id: number.to_string() })
        }
        ("webhook", None, _) => Err(wrong("url", &"is required")),
        ("telegram", _, None) => Err(wrong("chatId", &"is required")),
        ("email" | "telegram", Some(_), _) => Err(wrong("url", &"belongs to a webhook")),
        ("email" | "webhook", _, Some(_)) => Err(wrong("chatId", &"belongs to telegram")),
        _ => Err(wrong("type", &"must be one of email, webhook, telegram")),
    }
}

/// Whether this server can send there at all. What it lacks is for the operator to know: the log
/// names the setting.
fn check_configured(configured: ConfiguredChannels, channels: &[Channel]) -> Result<(), ApiError> {
    for (at, channel) in channels.iter().enumerate() {
        let (is_there, what, setting) = match channel {
            Channel::Email => (configured.email, "email", "smtp.host"),
            Channel::Webhook { .. } => (configured.webhook, "webhook", "webhooks"),
            Channel::Telegram { .. } => (configured.telegram, "telegram", "telegram.token"),
        };
        if !is_there {
            tracing::warn!(setting, "an alert rule was refused: {what} delivery is not set up");
            let why = "delivery is not set up on this server; ask its operator";
            return Err(ApiError::parameter(format!("channels[{at}]"), format!("{what} {why}")));
        }
    }
    Ok(())
}

/// Judges webhooks by where their names lead now. A name that leads nowhere yet passes: it is judged
/// again whenever it is called.
async fn judge(guard: &Guard, channels: &[Channel]) -> Result<(), ApiError> {
    let judged = channels.iter().enumerate().map(async |(at, channel)| {
        let Channel::Webhook { url } = channel else { return Ok(()) };
        match guard.judge(&url.to_url()).await {
            Ok(_) | Err(GuardError::Unresolved { .. }) => Ok(()),
            Err(err) => Err(ApiError::parameter(format!("channels[{at}].url"), err)),
        }
    });
    join_all(judged).await.into_iter().collect()
}

/// `GET /api/v1/alerts`: the caller's rules, newest first.
pub async fn list_alerts(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let page = Params::new(query.as_deref()).page(LIMITS, ENTRIES_OFFSET_MAX)?;
    let owned = app.store.user_data(&caller);
    let cost_us = u32::try_from(owned.rules().len() * RULE_US).unwrap_or(u32::MAX);
    let body = work::run(cost_us, move || {
        let alerts: Vec<_> =
            page.of(owned.rules()).map(|rule| AlertAnswer::new(rule, &owned)).collect();
        let (count, limit, offset) = (alerts.len(), page.limit, page.offset);
        work::json_bytes(&AlertsAnswer { count, limit, offset, alerts })
    });
    Ok(work::json_response(body.await?))
}

/// `GET /api/v1/alerts/{id}`: one rule.
pub async fn find_alert(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, ApiError> {
    let owned = app.store.user_data(&caller);
    let rule = owned.rule(path_id(id, RuleId::parse)?).ok_or(ApiError::NotFound)?;
    one_alert(rule, &owned, &[])
}

/// `POST /api/v1/alerts`: adds a rule, which is active.
pub async fn add_alert(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    PostBody { body, post }: PostBody<RuleRequest>,
) -> Result<Response, ApiError> {
    let answered = add(&app, &caller, body, post).await?;
    let id = answer::added_id(&answered, |rule| rule.id.get());
    let response = answer::posted(answered, id.map(|id| format!("{PATH}/{id}")));
    Ok(answer::not_stored(response))
}

/// Adds a rule as sent; the kept response is the API's, with the secrets of its webhooks.
///
/// # Errors
/// As the API refuses it.
pub async fn add(
    app: &App,
    caller: &Caller,
    sent: RuleRequest,
    post: Post,
) -> Result<Answered<Rule>, ApiError> {
    let rule = new_rule(sent, app.guard.rules())?;
    check_configured(app.channels, &rule.channels)?;
    judge(&app.guard, &rule.channels).await?;
    let draft = app.store.add_rule(caller, rule, post).await?;
    let reply = |rule: &Rule| {
        let secrets = SecretsAnswer::new(&rule.secrets);
        let added = AddedAlert { id: rule.id, alert: AlertAnswer::of_new(rule), secrets };
        answer::reply(StatusCode::CREATED, &added)
    };
    Ok(draft.respond(reply).await?)
}

/// `PATCH /api/v1/alerts/{id}`: changes the members that are sent.
pub async fn change_alert(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
    JsonBody(body): JsonBody<RulePatchRequest>,
) -> Result<Response, ApiError> {
    let id = path_id(id, RuleId::parse)?;
    let ChangedRule { rule, new_secrets } = change(&app, &caller, id, body).await?;
    one_alert(&rule, &app.store.user_data(&caller), &new_secrets).map(answer::not_stored)
}

/// Changes the members of a rule that are sent.
///
/// # Errors
/// As the API refuses it.
pub async fn change(
    app: &App,
    caller: &Caller,
    id: RuleId,
    sent: RulePatchRequest,
) -> Result<ChangedRule, ApiError> {
    let patch = rule_patch(sent, app.guard.rules())?;
    let channels = patch.channels.as_deref().unwrap_or_default();
    check_configured(app.channels, channels)?;
    judge(&app.guard, channels).await?;
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
    Ok(Json(Deleted { id: id.get(), deleted: true }))
}

fn one_alert(
    rule: &Rule,
    owned: &UserData,
    secrets: &[WebhookSecret],
) -> Result<Response, ApiError> {
    let secrets = SecretsAnswer::new(secrets);
    let body = work::json_bytes(&OneAlert { alert: AlertAnswer::new(rule, owned), secrets })?;
    Ok(work::json_response(body))
}
