//! Settings of watch alerts: the changes of watched names that an account is notified of, and when.

use std::sync::{Arc, LazyLock};

use chrono::{DateTime, Utc};
use compact_str::CompactString;
use serde::{Deserialize, Serialize};

use crate::data::fields::row;
use crate::data::rules::{Channel, Rule, WebhookSecret};
use crate::query::stored::Conditions;
use crate::vocab::change::{ChangeKind, ChangeKinds};
use crate::vocab::ids::RuleId;
use crate::vocab::time::UnixMs;
use crate::vocab::zone::{Hour, Zone};

/// Settings of the kinds of changes that are sent, and of the time when they are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchAlerts {
    /// Changes reported for entries without their own choice; may be empty.
    pub kinds: ChangeKinds,
    /// Hour of the daily digest; `None` sends at once.
    pub digest: Option<Hour>,
    /// Quiet hours; messages that fall due in these hours are sent when the hours end.
    pub quiet: Option<Quiet>,
    /// Time zone of the hours.
    pub zone: Zone,
}

row!(WatchAlerts { 1 zone } optional { 2 kinds, 3 digest, 4 quiet });

/// Stored alert settings of a watchlist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchSettings {
    pub alerts: WatchAlerts,
    pub channels: Vec<Channel>,
    /// Secrets of the webhook channels, in order of the channels.
    pub secrets: Vec<WebhookSecret>,
    pub at: UnixMs,
}

row!(WatchSettings { 1 alerts, 2 at } optional { 3 channels, 4 secrets });

/// Hours without messages. Invariant: `from` is not `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quiet {
    from: Hour,
    to: Hour,
}

impl Quiet {
    /// Returns the hours from one hour to another; `None` if both are the same.
    pub fn new(from: Hour, to: Hour) -> Option<Quiet> {
        (from != to).then_some(Quiet { from, to })
    }

    pub fn from(self) -> Hour {
        self.from
    }

    pub fn to(self) -> Hour {
        self.to
    }

    fn holds(self, hour: Hour) -> bool {
        match self.from < self.to {
            true => (self.from..self.to).contains(&hour),
            false => hour >= self.from || hour < self.to,
        }
    }
}

impl Default for WatchAlerts {
    /// Defaults for an investor who wants to catch names; messages are sent at once.
    fn default() -> WatchAlerts {
        let kinds = [
            ChangeKind::DropsTomorrow,
            ChangeKind::Available,
            ChangeKind::Renewed,
            ChangeKind::RenewalDue,
        ];
        WatchAlerts {
            kinds: kinds.into_iter().collect(),
            digest: None,
            quiet: None,
            zone: Zone::UTC,
        }
    }
}

impl WatchAlerts {
    /// Returns when a message that is queued at `now` is due.
    pub fn due(self, now: DateTime<Utc>) -> DateTime<Utc> {
        let due = self.digest.map_or(now, |hour| self.zone.next(hour, now));
        match self.quiet {
            Some(quiet) if quiet.holds(self.zone.hour_at(due)) => self.zone.next(quiet.to, due),
            _ => due,
        }
    }
}

/// The settings of an account, with its channels as a rule without a filter. The outbox of that
/// rule holds the messages about watched names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchSender {
    pub alerts: WatchAlerts,
    pub rule: Arc<Rule>,
}

impl WatchSender {
    pub fn new(settings: WatchSettings) -> WatchSender {
        let WatchSettings { alerts, channels, secrets, at } = settings;
        let rule = Rule {
            id: RuleId::WATCHLIST,
            name: "Watchlist".into(),
            filter: Conditions::default(),
            channels,
            active: true,
            created_at: at,
            secrets,
            search: None,
        };
        WatchSender { alerts, rule: Arc::new(rule) }
    }

    /// Returns the stored form.
    pub fn settings(&self) -> WatchSettings {
        let Rule { channels, secrets, created_at, .. } = &*self.rule;
        let (channels, secrets) = (channels.clone(), secrets.clone());
        WatchSettings { alerts: self.alerts, channels, secrets, at: *created_at }
    }

    /// Returns the default for accounts without saved settings: mail.
    pub fn usual() -> &'static WatchSender {
        static USUAL: LazyLock<WatchSender> = LazyLock::new(|| {
            WatchSender::new(WatchSettings {
                alerts: WatchAlerts::default(),
                channels: vec![Channel::Email],
                secrets: Vec::new(),
                at: UnixMs::new(0).expect("1970 is in range"),
            })
        });
        &USUAL
    }
}

/// The owner's choice for one watched name, which overrides the account's settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryAlerts {
    /// Kinds of changes that are reported; empty for none.
    pub kinds: ChangeKinds,
    /// Types of the account's channels that are used, such as `email`; empty for all. The choice
    /// may include types whose channels have since been removed.
    pub channels: Vec<CompactString>,
}

row!(EntryAlerts { } optional { 1 kinds, 2 channels });

/// Approximate size in memory of a choice without its texts.
const CHOICE_BYTES: u64 = 128;

impl EntryAlerts {
    /// Returns true if nothing is sent.
    pub fn is_mute(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Returns true if messages about the name go to channels of this type; `types` are the types
    /// of the account's channels. If the account has none of the chosen types, messages go to all,
    /// so that removing a channel does not silence a name.
    pub fn goes_to<'a>(&self, channel: &str, mut all: impl Iterator<Item = &'a str>) -> bool {
        let is_chosen = |name: &str| self.channels.iter().any(|it| it == name);
        is_chosen(channel) || !all.any(is_chosen)
    }

    /// Approximate memory.
    pub fn bytes(&self) -> u64 {
        CHOICE_BYTES + (self.channels.len() * size_of::<CompactString>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_and_quiet_hours_decide_when_a_message_is_due() {
        let hour = |hour| Hour::new(hour).expect("an hour");
        let quiet = |from, to| Quiet::new(hour(from), hour(to));
        let (day, night) = (quiet(9, 17), quiet(22, 7));
        for (digest, quiet, now, due) in [
            (None, None, "2026-11-23T12:00:00Z", "2026-11-23T12:00:00Z"),
            (Some(8), None, "2026-11-23T06:59:59Z", "2026-11-23T07:00:00Z"),
            (Some(8), None, "2026-11-23T07:00:00Z", "2026-11-24T07:00:00Z"),
            (None, night, "2026-11-23T20:59:59Z", "2026-11-23T20:59:59Z"),
            (None, night, "2026-11-23T21:00:00Z", "2026-11-24T06:00:00Z"),
            (None, night, "2026-11-24T05:59:59Z", "2026-11-24T06:00:00Z"),
            (None, night, "2026-11-24T06:00:00Z", "2026-11-24T06:00:00Z"),
            (None, day, "2026-11-23T12:00:00Z", "2026-11-23T16:00:00Z"),
            // A digest due in quiet hours is sent when they end.
            (Some(8), day, "2026-11-23T12:00:00Z", "2026-11-24T07:00:00Z"),
            (Some(12), day, "2026-11-23T12:00:00Z", "2026-11-24T16:00:00Z"),
            // The clocks go forward at 2:00 on 29 March, and back at 3:00 on 25 October.
            (None, night, "2026-03-28T22:00:00Z", "2026-03-29T05:00:00Z"),
            (Some(8), None, "2026-03-28T12:00:00Z", "2026-03-29T06:00:00Z"),
            (None, night, "2026-10-24T21:00:00Z", "2026-10-25T06:00:00Z"),
            (Some(8), None, "2026-10-24T12:00:00Z", "2026-10-25T07:00:00Z"),
        ] {
            let zone = "Europe/Berlin".parse().expect("a zone");
            let alerts =
                WatchAlerts { digest: digest.map(hour), quiet, zone, ..WatchAlerts::default() };
            let [now, due] = [now, due].map(|it| it.parse::<DateTime<Utc>>().expect("a time"));
            assert_eq!(alerts.due(now), due, "{digest:?} {quiet:?} at {now}");
        }
        assert_eq!(Quiet::new(hour(3), hour(3)), None);
    }
}
