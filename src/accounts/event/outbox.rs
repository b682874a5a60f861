//! What is sent, and what registries said, as events and snapshots store it. The rules of [`super`]
//! hold here too.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::StoredDay;
use super::stored::{StoredChannel, StoredName};
use crate::accounts::owned::deliveries::{
    Delivery, DeliveryStatus, MatchedName, Message, MessageKind, OffReason, Problem, Settled,
    StatusClass, SwitchedOff,
};
use crate::accounts::owned::rules::Channel;
use crate::vocab::dqs::Dqs;
use crate::vocab::ids::{AccountId, DeliveryId, RuleId};
use crate::vocab::observation::{Observation, ObservedBy, RdapState, RdapStatuses};
use crate::vocab::stage::Stage;
use crate::vocab::time::UnixMs;
use crate::vocab::watermark::Watermark;

/// A [`Watermark`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredWatermark {
    batch: u64,
    day: StoredDay,
}

impl From<Watermark> for StoredWatermark {
    fn from(Watermark { batch, day }: Watermark) -> StoredWatermark {
        StoredWatermark { batch, day: StoredDay(day) }
    }
}

impl From<StoredWatermark> for Watermark {
    fn from(StoredWatermark { batch, day }: StoredWatermark) -> Watermark {
        Watermark { batch, day: day.0 }
    }
}

/// A [`MatchedName`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredMatchedName {
    name: StoredName,
    dqs: Dqs,
    drop_date: StoredDay,
    release: StoredDay,
    stage: Stage,
}

impl From<&MatchedName> for StoredMatchedName {
    fn from(matched: &MatchedName) -> StoredMatchedName {
        StoredMatchedName {
            name: StoredName(matched.name.clone()),
            dqs: matched.dqs,
            drop_date: StoredDay(matched.drop_date),
            release: StoredDay(matched.release),
            stage: matched.stage,
        }
    }
}

impl From<StoredMatchedName> for MatchedName {
    fn from(stored: StoredMatchedName) -> MatchedName {
        let StoredMatchedName { name, dqs, drop_date, release, stage } = stored;
        let (drop_date, release) = (drop_date.0, release.0);
        MatchedName { name: name.0, dqs, drop_date, release, stage }
    }
}

/// What one rule matched in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredMatch {
    /// Whose.
    pub account: AccountId,
    /// The rule.
    pub rule: RuleId,
    /// How many names.
    pub total: u32,
    /// The best of them, by their places in the record's table.
    pub names: Vec<u16>,
    /// For each channel, by its place in the rule, the id of its delivery.
    pub deliveries: Vec<(u8, DeliveryId)>,
}

/// A test message of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredTest {
    /// Of which rule.
    pub rule: RuleId,
    /// When.
    pub at: UnixMs,
    /// The UTC day it counts for.
    pub day: StoredDay,
    /// How many names match.
    pub total: u32,
    /// Some of them.
    pub names: Vec<StoredMatchedName>,
    /// As in [`StoredMatch`].
    pub deliveries: Vec<(u8, DeliveryId)>,
}

/// What a try came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredAttempt {
    /// Of which rule.
    pub rule: RuleId,
    /// Of which delivery.
    pub delivery: DeliveryId,
    /// When.
    pub at: UnixMs,
    /// Which try it was.
    pub attempts: u16,
    /// What it came to.
    pub settled: StoredSettled,
}

/// A [`Settled`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StoredSettled {
    /// The receiver took it.
    Delivered,
    /// To be tried again.
    Retry { next_at: UnixMs, problem: StoredProblem },
    /// Given up.
    Failed { problem: StoredProblem },
    /// Given up, and the channel switched off.
    SwitchOff { problem: StoredProblem },
}

impl From<Settled> for StoredSettled {
    fn from(settled: Settled) -> StoredSettled {
        match settled {
            Settled::Delivered => StoredSettled::Delivered,
            Settled::Retry { next_at, problem } => {
                StoredSettled::Retry { next_at, problem: problem.into() }
            }
            Settled::Failed { problem } => StoredSettled::Failed { problem: problem.into() },
            Settled::SwitchOff { problem } => StoredSettled::SwitchOff { problem: problem.into() },
        }
    }
}

impl From<StoredSettled> for Settled {
    fn from(stored: StoredSettled) -> Settled {
        match stored {
            StoredSettled::Delivered => Settled::Delivered,
            StoredSettled::Retry { next_at, problem } => {
                Settled::Retry { next_at, problem: problem.into() }
            }
            StoredSettled::Failed { problem } => Settled::Failed { problem: problem.into() },
            StoredSettled::SwitchOff { problem } => Settled::SwitchOff { problem: problem.into() },
        }
    }
}

/// Two enums of the same units, one stored by place and one free to change.
macro_rules! stored_as {
    ($(#[$doc:meta])* $stored:ident of $live:ident { $($variant:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum $stored { $($variant),+ }

        impl From<$live> for $stored {
            fn from(live: $live) -> $stored {
                match live { $($live::$variant => $stored::$variant),+ }
            }
        }

        impl From<$stored> for $live {
            fn from(stored: $stored) -> $live {
                match stored { $($stored::$variant => $live::$variant),+ }
            }
        }
    };
}

stored_as! {
    /// A [`StatusClass`].
    StoredClass of StatusClass { Redirect, ClientError, ServerError, Other }
}
stored_as! {
    /// A [`MessageKind`].
    StoredKind of MessageKind { Match, Test }
}
stored_as! {
    /// An [`OffReason`].
    StoredReason of OffReason { Gone, Unsubscribed }
}
stored_as! {
    /// An [`RdapState`].
    StoredRdapState of RdapState {
        Redemption, PendingDelete, Available, Registered, Renewed, RegisteredAgain, Unknown,
    }
}
stored_as! {
    /// An [`ObservedBy`].
    StoredSource of ObservedBy { Dns, Rdap }
}

/// A [`Problem`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StoredProblem {
    /// As [`Problem::Refused`], and so on.
    Refused,
    Timeout,
    Unreachable,
    Tls,
    Status(StoredClass),
    Gone,
    Rejected,
    NotConfigured,
    SwitchedOff,
}

impl From<Problem> for StoredProblem {
    fn from(problem: Problem) -> StoredProblem {
        match problem {
            Problem::Refused => StoredProblem::Refused,
            Problem::Timeout => StoredProblem::Timeout,
            Problem::Unreachable => StoredProblem::Unreachable,
            Problem::Tls => StoredProblem::Tls,
            Problem::Status(class) => StoredProblem::Status(class.into()),
            Problem::Gone => StoredProblem::Gone,
            Problem::Rejected => StoredProblem::Rejected,
            Problem::NotConfigured => StoredProblem::NotConfigured,
            Problem::SwitchedOff => StoredProblem::SwitchedOff,
        }
    }
}

impl From<StoredProblem> for Problem {
    fn from(stored: StoredProblem) -> Problem {
        match stored {
            StoredProblem::Refused => Problem::Refused,
            StoredProblem::Timeout => Problem::Timeout,
            StoredProblem::Unreachable => Problem::Unreachable,
            StoredProblem::Tls => Problem::Tls,
            StoredProblem::Status(class) => Problem::Status(class.into()),
            StoredProblem::Gone => Problem::Gone,
            StoredProblem::Rejected => Problem::Rejected,
            StoredProblem::NotConfigured => Problem::NotConfigured,
            StoredProblem::SwitchedOff => Problem::SwitchedOff,
        }
    }
}

/// A channel that is off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredOff {
    channel: StoredChannel,
    reason: StoredReason,
    at: UnixMs,
}

impl StoredOff {
    /// As stored.
    pub fn of(channel: &Channel, off: SwitchedOff) -> StoredOff {
        let channel = channel.clone().into();
        StoredOff { channel, reason: off.reason.into(), at: off.at }
    }

    /// The channel, and why it is off.
    pub fn into_parts(self) -> (Channel, SwitchedOff) {
        let off = SwitchedOff { reason: self.reason.into(), at: self.at };
        (self.channel.into(), off)
    }
}

/// A [`Delivery`], in a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredDelivery {
    id: DeliveryId,
    channel: StoredChannel,
    kind: StoredKind,
    at: UnixMs,
    list_day: StoredDay,
    total: u32,
    /// Places in the snapshot's table of names.
    names: Option<Vec<u32>>,
    attempts: u16,
    status: StoredStatus,
    last_attempt_at: Option<UnixMs>,
    last_problem: Option<StoredProblem>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum StoredStatus {
    Pending { next_at: UnixMs },
    Delivered,
    Failed,
}

impl StoredDelivery {
    /// As stored; `place` finds names in the snapshot's table.
    pub fn of(delivery: &Delivery, place: impl FnMut(&Arc<MatchedName>) -> u32) -> StoredDelivery {
        let Message { kind, at, list_day, total, names } = &delivery.message;
        StoredDelivery {
            id: delivery.id,
            channel: (*delivery.channel).clone().into(),
            kind: (*kind).into(),
            at: *at,
            list_day: StoredDay(*list_day),
            total: *total,
            names: names.as_ref().map(|names| names.iter().map(place).collect()),
            attempts: delivery.attempts,
            status: match delivery.status {
                DeliveryStatus::Pending { next_at } => StoredStatus::Pending { next_at },
                DeliveryStatus::Delivered => StoredStatus::Delivered,
                DeliveryStatus::Failed => StoredStatus::Failed,
            },
            last_attempt_at: delivery.last_attempt_at,
            last_problem: delivery.last_problem.map(StoredProblem::from),
        }
    }

    /// What it was; `None` where it names what is not in `table`.
    pub fn into_delivery(self, table: &[Arc<MatchedName>]) -> Option<Delivery> {
        let name = |place: u32| table.get(usize::try_from(place).ok()?).map(Arc::clone);
        let names = match self.names {
            Some(places) => Some(places.into_iter().map(name).collect::<Option<_>>()?),
            None => None,
        };
        Some(Delivery {
            id: self.id,
            channel: Arc::new(self.channel.into()),
            message: Message {
                kind: self.kind.into(),
                at: self.at,
                list_day: self.list_day.0,
                total: self.total,
                names,
            },
            attempts: self.attempts,
            status: match self.status {
                StoredStatus::Pending { next_at } => DeliveryStatus::Pending { next_at },
                StoredStatus::Delivered => DeliveryStatus::Delivered,
                StoredStatus::Failed => DeliveryStatus::Failed,
            },
            last_attempt_at: self.last_attempt_at,
            last_problem: self.last_problem.map(Problem::from),
        })
    }
}

/// An [`Observation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredObservation {
    state: StoredRdapState,
    at: UnixMs,
    registered_on: Option<StoredDay>,
    statuses: u32,
    source: StoredSource,
}

impl From<Observation> for StoredObservation {
    fn from(seen: Observation) -> StoredObservation {
        StoredObservation {
            state: seen.state.into(),
            at: seen.at,
            registered_on: seen.registered_on.map(StoredDay),
            statuses: seen.statuses.bits(),
            source: seen.source.into(),
        }
    }
}

impl From<StoredObservation> for Observation {
    fn from(stored: StoredObservation) -> Observation {
        Observation {
            state: stored.state.into(),
            at: stored.at,
            registered_on: stored.registered_on.map(|day| day.0),
            statuses: RdapStatuses::from(stored.statuses),
            source: stored.source.into(),
        }
    }
}
