//! Keys of the data that an event changes. A decision conflicts if another node has changed one of
//! its keys.

use std::hash::{BuildHasher, Hash};

use rustc_hash::FxBuildHasher;

use super::{AddedBy, Event, Transaction};

/// Data that decisions depend on.
#[derive(Hash)]
enum Dependency<'a, A: Hash> {
    Account(A),
    /// An account's allowance.
    Allowance(A),
    /// An address, which only one account can have.
    Email(&'a str),
    /// The owner of a single-user server, of which only one exists.
    Owner,
    /// The leader of a cluster, of which only one exists.
    Lead,
}

impl Transaction {
    /// Returns the sorted keys of the data that the events change. The keys are equal on all nodes
    /// of the same version.
    pub fn touched(&self) -> Vec<u64> {
        let mut keys = Vec::new();
        self.0.iter().for_each(|event| event.touched(&mut keys));
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

/// Returns the key of decisions of a cluster's leader, which are refused once another node has
/// taken the lead.
pub fn of_leader() -> u64 {
    key(&Dependency::<()>::Lead)
}

impl Event {
    fn touched(&self, keys: &mut Vec<u64>) {
        let account = match self {
            // These events change counters, or values of which the latest wins; no decision depends
            // on them.
            Event::DayBegan { .. }
            | Event::Checkpoint { .. }
            | Event::KeyChanged { until: None, .. }
            | Event::SessionSeen { .. }
            // The leader writes these events without holding the lock of an account.
            | Event::ListMatched { .. }
            | Event::ChangesMatched { .. }
            | Event::DigestQueued { .. }
            | Event::WatchAlertsBegan { .. }
            | Event::NamesVerified { .. }
            | Event::SampleDrawn { .. }
            | Event::SampleAnswered { .. }
            | Event::DeliverySettled { .. }
            | Event::ChannelsSwitched { off: Some(_), .. }
            | Event::FilesAnnounced { .. } => return,
            Event::LeadTaken { .. } => return keys.push(of_leader()),
            // Nodes reserve parts of an allowance; a reservation does not conflict with other
            // changes of the account.
            Event::UsageNoted { account, .. } => return keys.push(key(&Dependency::Allowance(account))),
            Event::AccountAdded { account, email, by, .. } => {
                keys.push(key(&Dependency::<()>::Email(email.as_str())));
                keys.extend((*by == AddedBy::Owner).then(|| key(&Dependency::<()>::Owner)));
                account
            }
            Event::AccountChanged { account, .. }
            | Event::KeyPut { account, .. }
            | Event::KeyChanged { account, .. }
            | Event::ClaimPut { account, .. }
            | Event::WatchPut { account, .. }
            | Event::WatchesArrived { account, .. }
            | Event::RulePut { account, .. }
            | Event::Removed { account, .. }
            | Event::VoteSet { account, .. }
            | Event::ReplyKept { account, .. }
            | Event::TestQueued { account, .. }
            | Event::DeliveryRequeued { account, .. }
            | Event::ChannelsSwitched { account, .. }
            | Event::SessionBegan { account, .. }
            | Event::EmailVerificationAsked { account, .. }
            | Event::EmailVerified { account, .. }
            | Event::PreferencesSet { account, .. }
            | Event::UnsubscribeTokenSet { account, .. }
            | Event::NamesHidden { account, .. }
            | Event::SearchPut { account, .. }
            | Event::FeedPut { account, .. }
            | Event::FactsPart { account, .. }
            | Event::FactsPut { account, .. }
            | Event::FactsMapped { account, .. }
            | Event::ActionBegan { account, .. }
            | Event::ActionUndone { account, .. }
            | Event::ChangesTold { account, .. }
            | Event::RenewalsDue { account, .. }
            | Event::ListVisited { account, .. }
            | Event::DigestSet { account, .. }
            | Event::ErasureAsked { account, .. }
            | Event::AccountErased { account }
            | Event::WatchAlertsSet { account, .. } => account,
        };
        keys.push(key(&Dependency::Account(account)));
    }
}

fn key(key: &impl Hash) -> u64 {
    FxBuildHasher.hash_one(key)
}
