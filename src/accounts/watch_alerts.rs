//! Alerts about watched names: the settings of an account, and test messages
//! (`data/docs/watch-alerts.md`).

use super::data::account::Account;
use super::data::deliveries::{Delivery, Message, MessageRows, RuleOutbox};
use super::data::rules::{Channel, WebhookSecret};
use super::data::watch_alerts::{WatchAlerts, WatchSender, WatchSettings};
use super::decide::Decided;
use super::deliveries::{check_test_limit, draw_deliveries, live_channels, new_unsubscribe_token};
use super::error::WriteError;
use super::event::{Event, RecordedChanges};
use super::idempotency::{Draft, Post};
use super::rules::{check_address, check_channels, check_plan_channels, secrets};
use super::store::{Caller, Store};
use crate::vocab::change::ChangeKind;
use crate::vocab::day::Day;
use crate::vocab::ids::RuleId;
use crate::vocab::limits::{MESSAGE_NAMES_MAX, TEST_NAMES_MAX};
use crate::vocab::name::DomainName;
use crate::vocab::time::UnixMs;
use crate::vocab::watched_change::WatchedChange;

/// Settings to be saved.
#[derive(Clone, Debug)]
pub struct NewWatchAlerts {
    pub alerts: WatchAlerts,
    /// Up to 5 distinct channels; without any, nothing is sent.
    pub channels: Vec<Channel>,
    /// Whether to switch all channels on again.
    pub switch_on: bool,
}

impl Store {
    /// Saves the settings of watch alerts, which then apply to all watched names. Returns the
    /// secrets of new webhooks, to be shown once.
    ///
    /// # Errors
    /// [`WriteError`]: an invalid value, channels that the plan does not include.
    pub async fn set_watch_alerts(
        &self,
        caller: &Caller,
        new: NewWatchAlerts,
        at: UnixMs,
    ) -> Result<Vec<WebhookSecret>, WriteError> {
        self.write(caller, |account, _| set(account, new, at)).await
    }

    /// Queues a test message for each live channel of the watchlist, about the first watched names.
    /// `has_mail` is true if this server sends mail.
    ///
    /// # Errors
    /// [`WriteError`]: no live channel, too many test messages today, an idempotency key used before.
    pub async fn queue_watch_test(
        &self,
        caller: &Caller,
        has_mail: bool,
        post: Post,
    ) -> Result<Draft<'_, Vec<Delivery>>, WriteError> {
        let now = UnixMs::from_instant(post.now);
        self.draft(caller, post, |account, _| queue_test(account, has_mail, now)).await
    }
}

fn set(
    account: &Account,
    new: NewWatchAlerts,
    at: UnixMs,
) -> Result<Decided<Vec<WebhookSecret>>, WriteError> {
    let NewWatchAlerts { alerts, channels, switch_on } = new;
    let before = account.data.watch_sender();
    check_channels(&channels, 0)?;
    if channels != before.rule.channels || !account.data.has_watch_sender() {
        check_plan_channels(account, &channels)?;
        check_address(account, &channels)?;
    }
    let secrets = secrets(&channels, &before.rule.secrets)?;
    let is_new = |it: &&WebhookSecret| !before.rule.secrets.contains(it);
    let new_secrets = secrets.iter().filter(is_new).cloned().collect();
    let id = account.id;
    let is_same = account.data.has_watch_sender()
        && (before.alerts, &before.rule.channels) == (alerts, &channels);
    let settings = Box::new(WatchSettings { alerts, channels, secrets, at });
    let set = Event::WatchAlertsSet { account: id, settings };
    let mut events = Vec::from_iter((!is_same).then_some(set));
    let outbox = account.data.outbox.get(RuleId::WATCHLIST);
    if switch_on && outbox.is_some_and(|outbox| !outbox.off.is_empty()) {
        let rule = RuleId::WATCHLIST;
        events.push(Event::ChannelsSwitched { account: id, rule, off: None });
    }
    Ok(Decided { events, value: new_secrets })
}

fn queue_test(
    account: &Account,
    has_mail: bool,
    now: UnixMs,
) -> Result<Decided<Vec<Delivery>>, WriteError> {
    let WatchSender { alerts, rule } = account.data.watch_sender();
    let mut channels = live_channels(account, rule);
    channels.retain(|at| has_mail || rule.channels[*at] != Channel::Email);
    if channels.is_empty() {
        let is_set = account.data.has_watch_sender() && !rule.channels.is_empty();
        let what = match is_set {
            true => {
                "every channel of the watchlist is off; save the settings again to switch them on"
            }
            false => "no channel is set: save the settings with a channel first",
        };
        return Err(WriteError::Conflict(what.into()));
    }
    let day = Day::nearest(now.instant());
    check_test_limit(account, now, day, channels.len())?;
    let changes = samples(account, *alerts, day);
    let deliveries = draw_deliveries(&channels)?;
    // Returns the deliveries that applying the event will add.
    let mut queued = RuleOutbox::default();
    let total = changes.len() as u32;
    let message = Message::test(rule.id, now, day, total, Vec::new(), changes.clone());
    queued.queue(rule, &message, &deliveries);
    let token = new_unsubscribe_token(account, rule, &channels)?;
    let event = Event::TestQueued {
        account: account.id,
        rule: rule.id,
        at: now,
        day,
        total,
        names: Vec::new(),
        changes,
        deliveries,
    };
    Ok(Decided::new(token.into_iter().chain([event]), queued.deliveries.into()))
}

/// Queues messages about names that an account begins to watch so close to their release that the change of
/// the day is matched already. No change is reported twice.
///
/// # Errors
/// [`WriteError::Random`].
pub(super) fn tell(
    account: &Account,
    mut changes: Vec<WatchedChange>,
    has_mail: bool,
    at: UnixMs,
) -> Result<Vec<Event>, WriteError> {
    changes.retain(|change| !was_told(account, change));
    let queued = queue(account, changes, has_mail, at)?;
    Ok(queued.map_or_else(Vec::new, |Queued { token, changes, messages }| {
        let told = Event::ChangesTold { account: account.id, at, changes, messages };
        token.into_iter().chain([told]).collect()
    }))
}

/// Messages to be queued.
pub(super) struct Queued {
    /// The unsubscribe token of an account that gets its first mail.
    pub token: Option<Event>,
    pub changes: Vec<WatchedChange>,
    pub messages: Vec<RecordedChanges>,
}

/// Returns messages about changes for the channels of an account; `None` if it wants none.
///
/// # Errors
/// [`WriteError::Random`].
pub(super) fn queue(
    account: &Account,
    mut changes: Vec<WatchedChange>,
    has_mail: bool,
    at: UnixMs,
) -> Result<Option<Queued>, WriteError> {
    let WatchSender { alerts, rule } = account.data.watch_sender();
    changes.retain(|change| alerts.kinds.has(change.kind));
    let mut channels = live_channels(account, rule);
    channels.retain(|at| has_mail || rule.channels[*at] != Channel::Email);
    if changes.is_empty() || channels.is_empty() {
        return Ok(None);
    }
    let (total, due) = (changes.len() as u32, UnixMs::from_instant(alerts.due(at.instant())));
    changes.truncate(MESSAGE_NAMES_MAX);
    let messages = draw_deliveries(&channels)?.into_iter().map(|(channel, delivery)| {
        let changes = (0..changes.len() as u16).collect();
        RecordedChanges { account: account.id, channel, delivery, due, total, changes }
    });
    let messages = messages.collect();
    let token = new_unsubscribe_token(account, rule, &channels)?;
    Ok(Some(Queued { token, changes, messages }))
}

/// Whether a message about a change was queued before, for a name that left the watchlist since.
fn was_told(account: &Account, change: &WatchedChange) -> bool {
    let outbox = account.data.outbox.get(RuleId::WATCHLIST);
    let messages = outbox.into_iter().flat_map(|outbox| &outbox.deliveries);
    let is_same = |known: &WatchedChange| {
        (known.kind, &known.name, known.day) == (change.kind, &change.name, change.day)
    };
    messages.filter_map(|delivery| delivery.message.content.as_ref()).any(|rows| match rows {
        MessageRows::Changes(changes) => changes.iter().any(|known| is_same(known)),
        MessageRows::Names(_) | MessageRows::Digest(_) => false,
    })
}

/// Returns invented changes of the first watched names, or of `example.com` if the watchlist is empty.
fn samples(account: &Account, alerts: WatchAlerts, day: Day) -> Vec<WatchedChange> {
    let kind = alerts.kinds.iter().next().unwrap_or(ChangeKind::DropsTomorrow);
    let nobodys = DomainName::parse("example.com").expect("a name");
    let mut names: Vec<_> =
        account.data.watches().map(|entry| entry.name).take(TEST_NAMES_MAX).collect();
    if names.is_empty() {
        names.push(nobodys);
    }
    let change =
        |name| WatchedChange { kind, name, day, verified: false, dqs: None, dqs_before: None };
    names.into_iter().map(change).collect()
}
