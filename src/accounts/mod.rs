//! Accounts: keys, login, usage, and the data that accounts own.
//!
//! The room has four layers, and imports point down:
//!
//! | layer | files |
//! | --- | --- |
//! | one file per resource: requests as meant, the decision on them, `Store` methods | `api_keys`, `claims`, `feeds`, `watches`, `watch_alerts`, `changes`, `votes`, `hidden`, `rules`, `searches`, `matches`, `deliveries`, `digest`, `undo`, `verification`, `visits`, `sample`, `facts`, `sessions`, `profile`, `idempotency`, `ceilings`, `erasure`, `admin`, `audit` |
//! | the durable store: decide, append, apply; snapshots | `store` |
//! | changes as the journal stores them | `event` |
//! | stored data and its collections | `data`, and values such as `email` and `keys` |
//!
//! Stored types such as `data::claims::Claim` are part of the journal's format: adding a field takes
//! a new event and a new item of snapshots. `data/docs/contributing.md` has the steps.
//!
//! Nothing here knows HTTP, sockets or the index: facts about names are passed as arguments, and
//! stored responses are opaque bytes.

pub mod admin;
mod api_keys;
mod audit;
mod ceilings;
mod changes;
mod claims;
mod data;
mod decide;
mod deliveries;
mod digest;
mod email;
mod erasure;
mod error;
pub mod event;
mod facts;
mod feeds;
#[cfg(test)]
mod fixtures;
mod hashing;
mod hidden;
mod idempotency;
mod imports;
mod keys;
mod matches;
mod owner;
mod password;
mod profile;
mod quota;
mod renewals;
mod rules;
mod sample;
mod searches;
mod sessions;
mod store;
#[cfg(test)]
mod tests;
mod token;
mod undo;
mod verification;
mod visits;
mod votes;
mod watch_alerts;
mod watches;

use dropdex_cluster as cluster;
use dropdex_journal as journal;
use dropdex_query as query;
use dropdex_vocab as vocab;

pub use crate::journal::AppendError;
pub use admin::{AccountSummary, CommandError, Refusal};
pub use api_keys::{NewKey, Replaced};
pub use audit::{Audit, audit, journal_folder};
pub use changes::WatchMatch;
pub use claims::{ClaimPatch, NewClaim};
pub use data::UserData;
pub use data::access::{LINK_AGE_MAX, SESSION_KEPT_MAX, Session, SessionLife};
pub use data::claims::{Attribution, Claim, Commission, Price};
pub use data::deliveries::{
    AttemptOutcome, Delivery, DeliveryStatus, DigestRows, DigestSearch, MatchedName, Message,
    MessageKind, MessageRows, OffReason, Problem, StatusClass, SwitchedOff,
};
pub use data::digest::Digest;
pub use data::facts::{Facts, FactsRow, OwnFacts};
pub use data::feeds::{Feed, FeedOf};
pub use data::keys::Key;
pub use data::money::MoneySettings;
pub use data::nodes::{Lead, Nodes, Publication};
pub use data::rules::{Channel, Rule, WebhookSecret};
pub use data::searches::SavedSearch;
pub use data::visits::Visit;
pub use data::watch_alerts::{EntryAlerts, Quiet, WatchAlerts, WatchSender};
pub use data::watches::{WatchDetails, WatchEntry, WatchRow};
pub use deliveries::{ClosedChannel, PendingDelivery};
pub use digest::{DueDigest, FoundDigest, NewDigest};
pub use email::Email;
pub use erasure::{GRACE, Purge};
pub use error::{InvalidField, WriteError};
pub use hashing::Attempt;
pub use hidden::Hid;
pub use idempotency::{Answered, Draft, Idempotency, IdempotencyKey, Post, Receipt};
pub use imports::{FileClaim, FileSale, Import};
pub use keys::{ApiKey, IssuedKey};
pub use matches::{MatchableRule, RuleMatch};
pub use password::{Password, PasswordError, PasswordHash, PasswordSeal};
pub use profile::{AccountCopy, Profile, VerificationLink};
pub use quota::{Allowance, Counter};
pub use rules::{ChangedRule, NewRule, RulePatch};
pub use sample::{SampleDraw, SampleTarget};
pub use searches::{NewSearch, SearchPatch};
pub use sessions::{IfLeaving, LogIn, PasswordChange, Person};
pub use store::limits::{MinuteLeft, MinuteUsedUp};
pub use store::metrics::Queues;
pub use store::snapshotter::SnapshotError;
pub use store::state::Counts;
pub use store::upgrade::back_up_former;
pub use store::{Caller, OnServe, StateChange, Store, StoreOptions};
pub use token::{Token, TokenDigest};
pub use undo::{MarkBefore, Undone, mark_print};
pub use verification::Target;
pub use votes::Feedback;
pub use watch_alerts::NewWatchAlerts;
pub use watches::{NearRelease, Outcome, Tags, Watch, WatchPatch};
