//! Alert rules: what fits, and what the plan allows (decisions.md §4, §5; api.md, `POST
//! /api/v1/alerts`).

use std::collections::HashSet;

use base64::Engine as _;
use compact_str::CompactString;

use super::{Decided, check_text, draw_id, invalid};
use crate::accounts::event::Event;
use crate::accounts::owned::rules::{
    ChangedRule, Channel, NewRule, Rule, RuleFilter, RulePatch, WebhookSecret,
};
use crate::accounts::secret::Secret;
use crate::accounts::state::Account;
use crate::accounts::write::WriteError;
use crate::vocab::ids::RuleId;
use crate::vocab::limits::{
    LABEL_CHARS_MAX, RULE_CHANNELS_MAX, RULE_NAME_CHARS_MAX, RULE_TLDS_MAX, RULES_MAX,
};
use crate::vocab::name::NAME_OCTETS_MAX;
use crate::vocab::plan::{Plan, PlanLimits};
use crate::vocab::time::UnixMs;

/// What every webhook secret starts with (Standard Webhooks, "Signature scheme").
const SECRET_PREFIX: &str = "whsec_";
/// Random bytes of a webhook secret.
const SECRET_BYTES: usize = 32;

/// Adds a rule at `now`.
pub(in crate::accounts) fn add(
    account: &Account,
    limits: &PlanLimits,
    new: NewRule,
    now: UnixMs,
) -> Result<Decided<Rule>, WriteError> {
    check_filter(&new.filter)?;
    check_channels(&new.channels)?;
    let name = name(new.name)?;
    check_gate(account, &new.channels)?;
    check_address(account, &new.channels)?;
    let rules = &account.owned.rules;
    if rules.len() >= RULES_MAX as usize {
        return Err(WriteError::TooMany { what: "alert rules", limit: RULES_MAX });
    }
    check_active(account, limits)?;
    let rule = Rule {
        id: draw_id(RuleId::new, |id| rules.get(id).is_some())?,
        name,
        filter: new.filter,
        secrets: secrets(&new.channels, &[])?,
        channels: new.channels,
        active: true,
        created_at: now,
    };
    let event = Event::RuleAdded { account: account.id, rule: Box::new(rule.clone().into()) };
    Ok(Decided { events: vec![event], answer: rule })
}

/// Changes a rule.
pub(in crate::accounts) fn change(
    account: &Account,
    limits: &PlanLimits,
    id: RuleId,
    patch: RulePatch,
) -> Result<Decided<ChangedRule>, WriteError> {
    let before = account.owned.rules.get(id).ok_or(WriteError::NotFound)?;
    let mut rule = before.clone();
    if let Some(text) = patch.name {
        rule.name = name(text)?;
    }
    if let Some(filter) = patch.filter {
        check_filter(&filter)?;
        rule.filter = filter;
    }
    let has_new_channels = patch.channels.is_some();
    if let Some(channels) = patch.channels {
        check_channels(&channels)?;
        rule.secrets = secrets(&channels, &before.secrets)?;
        rule.channels = channels;
    }
    rule.active = patch.active.unwrap_or(rule.active);
    let is_activated = rule.active && !before.active;
    // A plan may have shrunk since: what was allowed then may stay, and be stopped or renamed.
    if has_new_channels || is_activated {
        check_gate(account, &rule.channels)?;
        check_address(account, &rule.channels)?;
    }
    if is_activated {
        check_active(account, limits)?;
    }
    let is_new = |it: &&WebhookSecret| !before.secrets.contains(it);
    let new_secrets = rule.secrets.iter().filter(is_new).cloned().collect();
    let changed = Event::RuleChanged { account: account.id, rule: Box::new(rule.clone().into()) };
    let mut events = if rule == *before { Vec::new() } else { vec![changed] };
    // Whoever sends channels wants them used.
    if has_new_channels && account.owned.has_channel_off(id) {
        events.push(Event::ChannelsSwitchedOn { account: account.id, rule: id });
    }
    Ok(Decided { events, answer: ChangedRule { rule, new_secrets } })
}

/// Removes a rule.
pub(in crate::accounts) fn remove(
    account: &Account,
    id: RuleId,
) -> Result<Decided<()>, WriteError> {
    account.owned.rules.get(id).ok_or(WriteError::NotFound)?;
    let event = Event::RuleRemoved { account: account.id, rule: id };
    Ok(Decided { events: vec![event], answer: () })
}

fn name(text: String) -> Result<CompactString, WriteError> {
    check_text("name", &text, 1..=RULE_NAME_CHARS_MAX, char::is_control)?;
    Ok(text.into())
}

fn check_filter(filter: &RuleFilter) -> Result<(), WriteError> {
    if filter.tlds.len() > RULE_TLDS_MAX {
        return Err(invalid("filter.tlds", format!("at most {RULE_TLDS_MAX} TLDs")));
    }
    if let Some(at) = filter.tlds.iter().position(|tld| tld.len() > NAME_OCTETS_MAX) {
        return Err(invalid(format!("filter.tlds[{at}]"), "longer than any TLD"));
    }
    if filter.max_length.is_some_and(|length| !(1..=LABEL_CHARS_MAX).contains(&length)) {
        return Err(invalid("filter.maxLength", format!("must be 1 to {LABEL_CHARS_MAX}")));
    }
    let stages: HashSet<_> = filter.stages.iter().collect();
    if stages.len() < filter.stages.len() {
        return Err(invalid("filter.stages", "names a stage twice"));
    }
    Ok(())
}

fn check_channels(channels: &[Channel]) -> Result<(), WriteError> {
    if !(1..=RULE_CHANNELS_MAX).contains(&channels.len()) {
        return Err(invalid("channels", format!("must be 1 to {RULE_CHANNELS_MAX} channels")));
    }
    for (at, channel) in channels.iter().enumerate() {
        if channels[..at].contains(channel) {
            return Err(invalid(format!("channels[{at}]"), "is there twice"));
        }
        if let Channel::Telegram { chat_id } = channel
            && !is_chat_id(chat_id)
        {
            let what = "must be a chat's number, or @ and the name of a public one";
            return Err(invalid(format!("channels[{at}].chatId"), what));
        }
    }
    Ok(())
}

/// A chat of Telegram's: a number, which is negative for groups, or `@` and 4 to 32 letters, digits
/// and underscores.
pub(super) fn is_chat_id(text: &str) -> bool {
    if let Some(name) = text.strip_prefix('@') {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        return (4..=32).contains(&name.len()) && name.bytes().all(plain);
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    (1..=19).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Webhooks and Telegram are for those who pay (api.md, `POST /api/v1/alerts`).
fn check_gate(account: &Account, channels: &[Channel]) -> Result<(), WriteError> {
    let plan = account.plan;
    if plan != Plan::Free || channels.iter().all(|channel| *channel == Channel::Email) {
        return Ok(());
    }
    let message = format!("the {plan} plan sends alerts by email only");
    Err(WriteError::PlanLimit { plan, limit: None, message })
}

/// Mails go to nobody who has not said that the address is theirs.
fn check_address(account: &Account, channels: &[Channel]) -> Result<(), WriteError> {
    match channels.iter().position(|channel| *channel == Channel::Email) {
        Some(at) if !account.access.is_verified() => {
            let what = "verify your e-mail address first; your account's notifications page sends \
                        you a link";
            Err(invalid(format!("channels[{at}]"), what))
        }
        _ => Ok(()),
    }
}

/// Room for one more active rule.
fn check_active(account: &Account, limits: &PlanLimits) -> Result<(), WriteError> {
    let (plan, limit) = (account.plan, limits.active_rules);
    if account.owned.rules.active() < limit as usize {
        return Ok(());
    }
    let message = format!("the {plan} plan allows {limit} active alert rules, and all are used");
    Err(WriteError::PlanLimit { plan, limit: Some(limit), message })
}

/// A secret for each webhook: the one it had, or a new one.
fn secrets(
    channels: &[Channel],
    before: &[WebhookSecret],
) -> Result<Vec<WebhookSecret>, WriteError> {
    let webhooks = channels.iter().filter_map(|channel| match channel {
        Channel::Webhook { url } => Some(url),
        Channel::Email | Channel::Telegram { .. } => None,
    });
    webhooks
        .map(|url| match before.iter().find(|it| it.url == *url) {
            Some(kept) => Ok(kept.clone()),
            None => Ok(WebhookSecret { url: url.clone(), secret: new_secret()? }),
        })
        .collect()
}

fn new_secret() -> Result<Secret, WriteError> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes).map_err(WriteError::Random)?;
    let text = base64::engine::general_purpose::STANDARD.encode(bytes);
    Ok(Secret::new(format!("{SECRET_PREFIX}{text}")))
}
