//! Keys of the data that an event changes: a decision is refused if another node changed the same meanwhile.

use std::hash::{BuildHasher, Hash};

use rustc_hash::FxBuildHasher;

use super::{Event, Transaction};

/// Data that decisions depend on.
#[derive(Hash)]
enum Key<'a, A: Hash> {
    Account(A),
    /// The allowance of an account.
    Allowance(A),
    /// An address has one account.
    Email(&'a str),
    /// A single-user server has one owner.
    Owner,
    /// A cluster has one leader.
    Lead,
}

impl Transaction {
    /// Returns the keys of what the events change, sorted. Equal on all nodes of one version.
    pub fn touched(&self) -> Vec<u64> {
        let mut keys = Vec::new();
        self.0.iter().for_each(|event| event.touched(&mut keys));
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

/// Returns the key of what the leader of a cluster decides: refused once another node has taken the lead.
pub fn of_leader() -> u64 {
    key(&Key::<()>::Lead)
}

impl Event {
    fn touched(&self, keys: &mut Vec<u64>) {
        let account = match self {
            // Counted, or the latest wins: nothing is decided on them.
            Event::DayBegan { .. }
            | Event::DayCorrected { .. }
            | Event::Checkpoint { .. }
            | Event::KeyUsed { .. }
            | Event::SessionSeen { .. }
            // Of the leader, which decides without the lock of an account.
            | Event::ListMatched { .. }
            | Event::ChangesMatched { .. }
            | Event::WatchAlertsBegan { .. }
            | Event::NamesVerified { .. }
            | Event::DeliverySettled { .. }
            | Event::WatchesArrived { .. }
            | Event::ChannelSwitchedOff { .. }
            | Event::FilesAnnounced { .. }
            | Event::FilesServed { .. } => return,
            Event::LeadTaken { .. } => return keys.push(of_leader()),
            // What nodes reserve, while other data of the account changes.
            Event::UsageNoted { account, .. } | Event::UsageReset { account, .. } => return keys.push(key(&Key::Allowance(account))),
            Event::AccountAdded { account, email, .. }
            | Event::AccountSignedUp { account, email, .. } => {
                keys.push(key(&Key::<()>::Email(email.as_str())));
                account
            }
            Event::OwnerAdded { account, email, .. } => {
                keys.extend([key(&Key::<()>::Email(email.as_str())), key(&Key::<()>::Owner)]);
                account
            }
            Event::PlanSet { account, .. }
            | Event::KeyIssued { account, .. }
            | Event::AccountDisabled { account, .. }
            | Event::ClaimAdded { account, .. }
            | Event::ClaimChanged { account, .. }
            | Event::ClaimRemoved { account, .. }
            | Event::WatchAdded { account, .. }
            | Event::WatchRemoved { account, .. }
            | Event::RuleAdded { account, .. }
            | Event::RuleChanged { account, .. }
            | Event::RuleRemoved { account, .. }
            | Event::VoteSet { account, .. }
            | Event::ReplyKept { account, .. }
            | Event::TestQueued { account, .. }
            | Event::DeliveryRequeued { account, .. }
            | Event::ChannelsSwitchedOn { account, .. }
            | Event::PasswordSet { account, .. }
            | Event::SessionBegan { account, .. }
            | Event::SessionEnded { account, .. }
            | Event::EmailVerificationAsked { account, .. }
            | Event::EmailVerified { account, .. }
            | Event::TelegramChatSet { account, .. }
            | Event::UnsubscribeTokenSet { account, .. }
            | Event::WatchDetailsSet { account, .. }
            | Event::NamesHidden { account, .. }
            | Event::NamesShown { account, .. }
            | Event::ClaimTradeSet { account, .. }
            | Event::SessionKept { account, .. }
            | Event::RuleDetailsSet { account, .. }
            | Event::SearchSaved { account, .. }
            | Event::SearchRemoved { account, .. }
            | Event::SearchSeen { account, .. }
            | Event::ColumnsChosen { account, .. }
            | Event::KeyAdded { account, .. }
            | Event::KeyRemoved { account, .. }
            | Event::KeyUntilSet { account, .. }
            | Event::FeedMade { account, .. }
            | Event::FeedRevoked { account, .. }
            | Event::WatchAlertsSet { account, .. }
            | Event::EntryAlertsSet { account, .. }
            | Event::WatchTestQueued { account, .. } => account,
        };
        keys.push(key(&Key::Account(account)));
    }
}

fn key(key: &impl Hash) -> u64 {
    FxBuildHasher.hash_one(key)
}
