//! Who may ask, how often, and what they own: accounts, keys, usage; claims, watchlists, alert rules,
//! votes.
//!
//! Commands come in; [`decide`] reads the state and refuses or names [`event::Event`]s; they go to the
//! journal as one record; once it is on disk [`state`] applies it, which cannot fail and is all that
//! a restart runs. [`store::Store`] is those three in order, and the one door for everybody else.
//! What one account owns is [`owned::Owned`]. `snapshot` is the whole state as bytes, `snapshotter`
//! writes it down now and then.
//!
//! Nothing here knows of HTTP, of sockets or of the index: whether the index holds a name, and which
//! names it holds by now, comes in as an argument.

pub mod access;
pub mod admin;
mod audit;
pub mod decide;
mod dispatch;
pub mod email;
pub mod event;
mod figures;
mod hashing;
pub mod keys;
mod outbox;
pub mod owned;
pub mod password;
mod people;
pub mod quota;
mod resources;
mod snapshot;
mod snapshotter;
pub mod state;
pub mod store;
mod stripes;
#[cfg(test)]
mod tests;
pub mod token;
mod watched;
pub mod write;

pub use crate::journal::AppendError;
pub use crate::vocab::secret;
pub use audit::{Audit, audit, journal_folder};
pub use email::Email;
pub use keys::ApiKey;
pub use outbox::{MatchableRule, PendingDelivery, Queues, RuleMatch, Target};
pub use owned::Owned;
pub use owned::claims::{Attribution, Claim, ClaimPatch, NewClaim};
pub use owned::deliveries::{
    Delivery, DeliveryStatus, MatchedName, Message, MessageKind, OffReason, Problem, Settled,
    StatusClass, SwitchedOff,
};
pub use owned::rules::{ChangedRule, Channel, NewRule, Rule, RuleFilter, RulePatch, WebhookSecret};
pub use owned::watches::{Watch, WatchEntry};
pub use password::{Password, PasswordError, PasswordHash};
pub use people::{PasswordChange, Person, Profile, SignUp, VerificationLink};
pub use quota::Allowance;
pub use snapshotter::SnapshotError;
pub use state::Counts;
pub use store::{AccountSummary, Caller, CommandError, IssuedKey, Store, StoreError, StoreOptions};
pub use token::{Token, TokenDigest};
pub use write::{
    Answered, Feedback, Idempotency, IdempotencyKey, Outcome, Post, Reply, WriteError,
};
