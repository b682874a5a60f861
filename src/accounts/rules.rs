//! Alert rules: validation and the limits of plans (`data/docs/api.md`, Alerts).

use base64::Engine as _;
use chrono::TimeDelta;
use compact_str::CompactString;

use super::data::account::Account;
use super::data::rules::{Channel, Rule, WebhookSecret};
use super::data::watch_alerts::WatchSettings;
use super::decide::{Decided, check_text, draw_id, invalid, random_bytes};
use super::error::{InvalidField, WriteError};
use super::event::{Event, RowOf};
use super::idempotency::{Draft, Post};
use super::store::{Caller, Store};
use crate::query::stored::Conditions;
use crate::vocab::ids::{RuleId, SearchId};
use crate::vocab::limits::{RULE_CHANNELS_MAX, RULE_NAME_CHARS_MAX, RULES_MAX};
use crate::vocab::plan::{Plan, PlanLimits};
use crate::vocab::secret::Secret;
use crate::vocab::time::UnixMs;

/// Prefix of webhook secrets (Standard Webhooks, "Signature scheme").
const SECRET_PREFIX: &str = "whsec_";
/// Random bytes of a webhook secret.
const SECRET_BYTES: usize = 32;
/// How long messages are also signed with a secret that was replaced.
const OVERLAP: TimeDelta = TimeDelta::hours(24);
/// Error message for an invalid Telegram chat.
pub const CHAT_ID_INVALID: &str = "must be a chat's number, or @ and the name of a public one";

/// A rule to be added; it is active. Fields are limited as in [`Rule`].
#[derive(Clone, Debug)]
pub struct NewRule {
    pub name: String,
    pub filter: Conditions,
    pub channels: Vec<Channel>,
    /// The saved search from which the filter was taken.
    pub search: Option<SearchId>,
}

/// A change of a rule; `None` leaves a field unchanged. Fields are limited as in [`Rule`].
#[derive(Clone, Debug, Default)]
pub struct RulePatch {
    pub name: Option<String>,
    pub filter: Option<Conditions>,
    pub channels: Option<Vec<Channel>>,
    pub active: Option<bool>,
}

/// A rule after its change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedRule {
    pub rule: Rule,
    /// The secrets of new webhooks, to be shown once. Other webhooks keep their secrets.
    pub new_secrets: Vec<WebhookSecret>,
}

impl Store {
    /// Adds an alert rule. The secrets of its webhooks are shown only in the response.
    ///
    /// # Errors
    /// [`WriteError`]: an invalid value, the plan's limits and channels, an idempotency key used
    /// before.
    pub async fn add_rule(
        &self,
        caller: &Caller,
        rule: NewRule,
        post: Post,
    ) -> Result<Draft<'_, Rule>, WriteError> {
        let now = UnixMs::from_instant(post.now);
        self.draft(caller, post, |account, limits| add(account, limits, rule, now)).await
    }

    /// Changes an alert rule.
    ///
    /// # Errors
    /// [`WriteError`]: no such rule, an invalid value, or the plan's limits and channels.
    pub async fn change_rule(
        &self,
        caller: &Caller,
        id: RuleId,
        patch: RulePatch,
    ) -> Result<ChangedRule, WriteError> {
        self.write(caller, |account, limits| change(account, limits, id, patch)).await
    }

    /// Replaces the secrets of the webhooks of a rule or the watchlist. For a day, messages are also
    /// signed with the former ones.
    ///
    /// # Errors
    /// [`WriteError`]: no such rule, no webhook, an idempotency key used before.
    pub async fn replace_secrets(
        &self,
        caller: &Caller,
        rule: RuleId,
        post: Post,
    ) -> Result<Draft<'_, Vec<WebhookSecret>>, WriteError> {
        let until = UnixMs::from_instant(post.now + OVERLAP);
        self.draft(caller, post, |account, _| replace_secrets(account, rule, until)).await
    }

    /// Removes an alert rule. Claims that refer to it keep its name.
    ///
    /// # Errors
    /// [`WriteError::NotFound`].
    pub async fn remove_rule(&self, caller: &Caller, id: RuleId) -> Result<(), WriteError> {
        self.write(caller, |account, _| {
            account.data.rules.get(id).ok_or(WriteError::NotFound)?;
            let removed = Event::Removed { account: account.id, row: RowOf::Rule(id) };
            Ok(Decided::new([removed], ()))
        })
        .await
    }
}

fn add(
    account: &Account,
    limits: &PlanLimits,
    new: NewRule,
    now: UnixMs,
) -> Result<Decided<Rule>, WriteError> {
    check_channels(&new.channels, 1)?;
    let name = name(new.name)?;
    check_plan_channels(account, &new.channels)?;
    check_address(account, &new.channels)?;
    let rules = &account.data.rules;
    if rules.len() >= RULES_MAX as usize {
        return Err(WriteError::TooMany { what: "alert rules", limit: RULES_MAX });
    }
    check_active_limit(account, limits)?;
    let rule = Rule {
        id: draw_id(RuleId::new, |id| {
            [RuleId::WATCHLIST, RuleId::DIGEST].contains(&id) || rules.get(id).is_some()
        })?,
        name,
        filter: new.filter,
        secrets: secrets(&new.channels, &[])?,
        channels: new.channels,
        active: true,
        created_at: now,
        search: new.search,
    };
    let event = Event::RulePut { account: account.id, rule: Box::new(rule.clone()) };
    Ok(Decided::new([event], rule))
}

fn change(
    account: &Account,
    limits: &PlanLimits,
    id: RuleId,
    patch: RulePatch,
) -> Result<Decided<ChangedRule>, WriteError> {
    let before = account.data.rules.get(id).ok_or(WriteError::NotFound)?;
    let mut rule = before.clone();
    if let Some(text) = patch.name {
        rule.name = name(text)?;
    }
    if let Some(filter) = patch.filter {
        // A filter that was changed no longer belongs to the saved search.
        if filter != rule.filter {
            rule.search = None;
        }
        rule.filter = filter;
    }
    let has_new_channels = patch.channels.is_some();
    if let Some(channels) = patch.channels {
        check_channels(&channels, 1)?;
        rule.secrets = secrets(&channels, &before.secrets)?;
        rule.channels = channels;
    }
    rule.active = patch.active.unwrap_or(rule.active);
    let is_activated = rule.active && !before.active;
    // The account may have moved to a smaller plan. A rule beyond the limits of that plan may be
    // kept, paused or renamed.
    if has_new_channels || is_activated {
        check_plan_channels(account, &rule.channels)?;
        check_address(account, &rule.channels)?;
    }
    if is_activated {
        check_active_limit(account, limits)?;
    }
    let is_new = |it: &&WebhookSecret| !before.secrets.contains(it);
    let new_secrets = rule.secrets.iter().filter(is_new).cloned().collect();
    let mut events = Vec::new();
    if rule != *before {
        events.push(Event::RulePut { account: account.id, rule: Box::new(rule.clone()) });
    }
    // A change of the channels switches all of them on.
    let is_any_off = account.data.outbox.get(id).is_some_and(|outbox| !outbox.off.is_empty());
    if has_new_channels && is_any_off {
        events.push(Event::ChannelsSwitched { account: account.id, rule: id, off: None });
    }
    Ok(Decided { events, value: ChangedRule { rule, new_secrets } })
}

fn replace_secrets(
    account: &Account,
    rule: RuleId,
    until: UnixMs,
) -> Result<Decided<Vec<WebhookSecret>>, WriteError> {
    let before = account.data.sender(rule).ok_or(WriteError::NotFound)?;
    if before.secrets.is_empty() {
        let what = "no webhook is set: save a channel of type webhook first";
        return Err(WriteError::Conflict(what.into()));
    }
    let replaced = before.secrets.iter().map(|old| {
        let former = Some((old.secret.clone(), until));
        Ok(WebhookSecret { url: old.url.clone(), secret: new_secret()?, former })
    });
    let secrets = replaced.collect::<Result<Vec<_>, WriteError>>()?;
    let new = Rule { secrets: secrets.clone(), ..Rule::clone(before) };
    let event = match rule {
        RuleId::WATCHLIST => {
            let alerts = account.data.watch_sender().alerts;
            let Rule { channels, secrets, created_at: at, .. } = new;
            let settings = Box::new(WatchSettings { alerts, channels, secrets, at });
            Event::WatchAlertsSet { account: account.id, settings }
        }
        _ => Event::RulePut { account: account.id, rule: Box::new(new) },
    };
    Ok(Decided::new([event], secrets))
}

fn name(text: String) -> Result<CompactString, WriteError> {
    check_text(InvalidField::RuleName, &text, 1..=RULE_NAME_CHARS_MAX, char::is_control)?;
    Ok(text.into())
}

/// Checks each channel, and that there are at least `least` channels.
pub(super) fn check_channels(channels: &[Channel], least: usize) -> Result<(), WriteError> {
    if !(least..=RULE_CHANNELS_MAX).contains(&channels.len()) {
        let what = format!("must be {least} to {RULE_CHANNELS_MAX} channels");
        return Err(invalid(InvalidField::Channels, what));
    }
    for (at, channel) in channels.iter().enumerate() {
        if channels[..at].contains(channel) {
            return Err(invalid(InvalidField::Channel(at), "must not repeat another channel"));
        }
        if let Channel::Telegram { chat_id } = channel
            && !is_chat_id(chat_id)
        {
            return Err(invalid(InvalidField::ChannelChatId(at), CHAT_ID_INVALID));
        }
    }
    Ok(())
}

/// Returns true if the text is a Telegram chat: a number (negative for groups), or `@` and 4 to 32
/// letters, digits and underscores.
pub fn is_chat_id(text: &str) -> bool {
    if let Some(name) = text.strip_prefix('@') {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        return (4..=32).contains(&name.len()) && name.bytes().all(plain);
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    (1..=19).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Channels other than mail need a paid plan (`data/docs/api.md`, Alerts).
pub(super) fn check_plan_channels(
    account: &Account,
    channels: &[Channel],
) -> Result<(), WriteError> {
    let plan = account.plan;
    if plan != Plan::Free || channels.iter().all(|channel| *channel == Channel::Email) {
        return Ok(());
    }
    let message = format!("the {plan} plan sends alerts by email only");
    Err(WriteError::PlanLimit { plan, limit: None, message })
}

/// Alerts are mailed only to a verified address.
pub(super) fn check_address(account: &Account, channels: &[Channel]) -> Result<(), WriteError> {
    match channels.iter().position(|channel| *channel == Channel::Email) {
        Some(at) if !account.access.is_verified() => {
            let what = "verify your e-mail address first; your account's notifications page sends \
                        you a link";
            Err(invalid(InvalidField::Channel(at), what))
        }
        _ => Ok(()),
    }
}

/// Checks that the plan allows one more active rule.
fn check_active_limit(account: &Account, limits: &PlanLimits) -> Result<(), WriteError> {
    let (plan, limit) = (account.plan, limits.active_rules);
    if account.data.rules.active() < limit as usize {
        return Ok(());
    }
    let message = format!("the {plan} plan allows {limit} active alert rules, and all are used");
    Err(WriteError::PlanLimit { plan, limit: Some(limit), message })
}

/// Returns a secret for each webhook: its old one, or a new one.
pub(super) fn secrets(
    channels: &[Channel],
    before: &[WebhookSecret],
) -> Result<Vec<WebhookSecret>, WriteError> {
    let webhooks = channels.iter().filter_map(|channel| match channel {
        Channel::Webhook { url } => Some(url),
        Channel::Email | Channel::Telegram { .. } | Channel::Chat(_) => None,
    });
    webhooks
        .map(|url| match before.iter().find(|it| it.url == *url) {
            Some(kept) => Ok(kept.clone()),
            None => Ok(WebhookSecret::new(url.clone(), new_secret()?)),
        })
        .collect()
}

fn new_secret() -> Result<Secret, WriteError> {
    let bytes: [u8; SECRET_BYTES] = random_bytes()?;
    let text = base64::engine::general_purpose::STANDARD.encode(bytes);
    Ok(Secret::new(format!("{SECRET_PREFIX}{text}")))
}
