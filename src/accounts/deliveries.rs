//! Matches, test messages, and what owners do with deliveries: what is queued and for whom.

use std::mem;

use rustc_hash::FxHashMap;

use super::Decided;
use crate::accounts::event::{
    Event, StoredDay, StoredMatch, StoredMatchedName, StoredOff, StoredTest,
};
use crate::accounts::outbox::RuleMatch;
use crate::accounts::owned::deliveries::{
    Delivery, DeliveryStatus, MatchedName, OffReason, RuleOutbox, SwitchedOff,
};
use crate::accounts::owned::rules::{Channel, Rule};
use crate::accounts::state::{Account, State};
use crate::accounts::write::WriteError;
use crate::vocab::day::Day;
use crate::vocab::ids::{DeliveryId, RuleId};
use crate::vocab::limits::{MESSAGE_NAMES_MAX, TEST_NAMES_MAX, TESTS_PER_DAY_MAX};
use crate::vocab::plan::Plan;
use crate::vocab::time::UnixMs;
use crate::vocab::watermark::Watermark;

/// A record of matches is ended before it has more bytes: half of what a record may have.
const MATCHES_BYTES_MAX: usize = 512 << 10;
/// Bytes of a match and of a name in a record, about, beside the name's own and its places.
const MATCH_BYTES: usize = 64;
const NAME_BYTES: usize = 24;

/// Places in `rule.channels` of those that are used: on, within the plan, to a verified address.
pub(in crate::accounts) fn live_channels(account: &Account, rule: &Rule) -> Vec<usize> {
    let outbox = account.owned.outbox.of(rule.id);
    let is_live = |channel: &Channel| {
        let within_plan = account.plan != Plan::Free || *channel == Channel::Email;
        let is_reachable = *channel != Channel::Email || account.access.is_verified();
        within_plan
            && is_reachable
            && outbox.is_none_or(|outbox| outbox.switched_off(channel).is_none())
    };
    let channels = rule.channels.iter().enumerate();
    channels.filter(|(_, channel)| is_live(channel)).map(|(place, _)| place).collect()
}

/// One record's worth of matches, being filled.
#[derive(Default)]
pub(in crate::accounts) struct Batch {
    names: Vec<StoredMatchedName>,
    /// Where in `names` the caller's table's names are.
    places: FxHashMap<u32, u16>,
    matches: Vec<StoredMatch>,
    bytes: usize,
}

impl Batch {
    /// Takes a match in, if it fits; a record takes one of any length. A rule that is done with the
    /// list, was stopped or removed, or has no channel left, gets nothing.
    ///
    /// # Errors
    /// No id could be drawn.
    pub(in crate::accounts) fn take(
        &mut self,
        state: &State,
        through: Watermark,
        found: &RuleMatch,
        table: &[MatchedName],
    ) -> Result<bool, WriteError> {
        let Some((account, rule)) = at_work(state, found) else { return Ok(true) };
        let is_done = state.matched(found.account, found.rule).is_some_and(|it| it.covers(through));
        let channels = live_channels(account, rule);
        if is_done || channels.is_empty() {
            return Ok(true);
        }
        let best = &found.names[..found.names.len().min(MESSAGE_NAMES_MAX)];
        let new = best.iter().filter(|place| !self.places.contains_key(place));
        let new = new.filter_map(|place| table.get(*place as usize));
        let new_bytes: usize = new.map(|matched| matched.name.as_str().len() + NAME_BYTES).sum();
        let bytes = MATCH_BYTES + 2 * best.len() + new_bytes;
        let is_full = self.bytes + bytes > MATCHES_BYTES_MAX
            || self.names.len() + best.len() > usize::from(u16::MAX);
        if is_full && !self.is_empty() {
            return Ok(false);
        }
        self.bytes += bytes;
        let names = best.iter().filter_map(|place| self.place(*place, table)).collect();
        let (account, rule, total) = (found.account, found.rule, found.total);
        let deliveries = draw(&channels)?;
        self.matches.push(StoredMatch { account, rule, total, names, deliveries });
        Ok(true)
    }

    pub(in crate::accounts) fn is_empty(&self) -> bool {
        self.matches.is_empty()
    }

    /// The record, and an empty one begun.
    pub(in crate::accounts) fn event(
        &mut self,
        through: Watermark,
        at: UnixMs,
        done: bool,
    ) -> Event {
        let Batch { names, matches, .. } = mem::take(self);
        Event::ListMatched { through: through.into(), done, at, names, matches }
    }

    fn place(&mut self, place: u32, table: &[MatchedName]) -> Option<u16> {
        if let Some(known) = self.places.get(&place) {
            return Some(*known);
        }
        let name = table.get(place as usize)?;
        let new = u16::try_from(self.names.len()).ok()?;
        self.names.push(name.into());
        self.places.insert(place, new);
        Some(new)
    }
}

fn at_work<'a>(state: &'a State, found: &RuleMatch) -> Option<(&'a Account, &'a Rule)> {
    let account = state.account(found.account).filter(|account| !account.disabled)?;
    let rule = account.owned.rules.get(found.rule).filter(|rule| rule.active)?;
    Some((account, rule))
}

/// Queues a test message of a rule at `now`, with some names it matches and how many there are.
pub(in crate::accounts) fn test(
    account: &Account,
    rule: RuleId,
    (names, total): (&[MatchedName], u32),
    now: UnixMs,
) -> Result<Decided<Vec<Delivery>>, WriteError> {
    let rule = account.owned.rules.get(rule).ok_or(WriteError::NotFound)?;
    let channels = live_channels(account, rule);
    if channels.is_empty() {
        let what = "all channels of this alert rule are switched off; PATCH it with `channels` to \
                    switch them on";
        return Err(WriteError::Conflict(what.into()));
    }
    let today = Day::of(now.instant()).unwrap_or(Day::MAX);
    check_tests(account, now, today, channels.len())?;
    let names = names.iter().take(TEST_NAMES_MAX).map(Into::into).collect();
    let (day, deliveries) = (StoredDay(today), draw(&channels)?);
    let test = StoredTest { rule: rule.id, at: now, day, total, names, deliveries };
    let answer = {
        // What applying the event will put there.
        let mut queued = RuleOutbox::default();
        queued.queue(rule, test.clone().into());
        queued.deliveries.into()
    };
    let event = Event::TestQueued { account: account.id, test: Box::new(test) };
    Ok(Decided { events: vec![event], answer })
}

/// Room for `more` test messages today.
fn check_tests(account: &Account, now: UnixMs, today: Day, more: usize) -> Result<(), WriteError> {
    let (last, sent) = account.owned.tests.filter(|(day, _)| *day >= today).unwrap_or((today, 0));
    if sent as usize + more <= TESTS_PER_DAY_MAX as usize {
        return Ok(());
    }
    let (limit, resets_at) = (TESTS_PER_DAY_MAX, last.plus(1).start());
    // Rounded up: one second early would be refused again.
    let retry_after_s = (resets_at - now.instant()).num_seconds() + 1;
    Err(WriteError::TooManyTests { limit, resets_at, retry_after_s })
}

/// Queues a failed delivery again at `now`.
pub(in crate::accounts) fn requeue(
    account: &Account,
    rule: RuleId,
    id: DeliveryId,
    now: UnixMs,
) -> Result<Decided<Delivery>, WriteError> {
    let rule = account.owned.rules.get(rule).ok_or(WriteError::NotFound)?;
    let delivery = account.owned.delivery(rule.id, id).ok_or(WriteError::NotFound)?;
    let is_live = live_channels(account, rule)
        .into_iter()
        .any(|place| rule.channels[place] == *delivery.channel);
    let refusal = match delivery.status {
        DeliveryStatus::Pending { .. } => Some("it is pending: it will be tried by itself"),
        DeliveryStatus::Delivered => Some("it was delivered"),
        DeliveryStatus::Failed if !delivery.can_be_retried() => {
            Some("newer deliveries have failed since, and its names are no longer kept")
        }
        DeliveryStatus::Failed if !is_live => {
            Some("its channel is switched off or no longer one of the rule's")
        }
        DeliveryStatus::Failed => None,
    };
    if let Some(why) = refusal {
        return Err(WriteError::Conflict(format!("this delivery cannot be retried: {why}")));
    }
    let mut outbox = RuleOutbox::default();
    outbox.put(delivery.clone());
    outbox.requeue(id, now);
    let answer = outbox.deliveries.pop_front().expect("one was put there");
    let event =
        Event::DeliveryRequeued { account: account.id, rule: rule.id, delivery: id, at: now };
    Ok(Decided { events: vec![event], answer })
}

/// Switches the mails of a rule off at `now`, if they are on.
pub(in crate::accounts) fn unsubscribe(
    account: &Account,
    rule: RuleId,
    now: UnixMs,
) -> Decided<()> {
    let mails = account.owned.rules.get(rule).filter(|it| it.channels.contains(&Channel::Email));
    let is_on = mails.is_some() && account.owned.switched_off(rule, &Channel::Email).is_none();
    let off = SwitchedOff { reason: OffReason::Unsubscribed, at: now };
    let event = || Event::ChannelSwitchedOff {
        account: account.id,
        rule,
        off: StoredOff::of(&Channel::Email, off),
    };
    Decided { events: is_on.then(event).into_iter().collect(), answer: () }
}

/// An id for each of these channels.
fn draw(channels: &[usize]) -> Result<Vec<(u8, DeliveryId)>, WriteError> {
    let id = |place: &usize| {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(WriteError::Random)?;
        let place = u8::try_from(*place).expect("a rule has at most five channels");
        Ok((place, DeliveryId::new(bytes)))
    };
    channels.iter().map(id).collect()
}
