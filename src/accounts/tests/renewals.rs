//! Reminders of renewals.

use super::*;
use crate::vocab::change::{ChangeKind, ChangeKinds};
use crate::vocab::claim::RenewalDecision;
use crate::vocab::day::Day;
use crate::vocab::ids::RuleId;

fn day(text: &str) -> Day {
    text.parse().expect("a day")
}

impl World {
    fn remind(&self, today: &str) -> usize {
        self.wait(self.store.remind_of_renewals(day(today), true)).expect("recorded")
    }

    fn hold(&self, caller: &Caller, name: &str, renews_on: &str) -> ClaimId {
        let renews_on = Some(day(renews_on));
        let claim = NewClaim { status: ClaimStatus::Caught, renews_on, ..attempted(name) };
        self.add_claim(caller, claim).expect("added")
    }

    /// The names and days of each message, oldest first.
    fn reminders(&self, caller: &Caller) -> Vec<Vec<(String, String)>> {
        let data = self.store.user_data(caller);
        let mut messages: Vec<_> = data
            .deliveries(RuleId::WATCHLIST)
            .map(|sent| {
                let changes = sent.message.changes().iter();
                changes.map(|it| (it.name.to_string(), it.day.to_string())).collect::<Vec<_>>()
            })
            .collect();
        messages.reverse();
        messages
    }
}

#[test]
fn a_renewal_is_announced_60_30_and_7_days_before_and_once_each() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Free);
    world.hold(&ann, "a.com", "2027-03-01");
    world.hold(&ann, "b.com", "2027-03-01");
    world.hold(&ann, "far.com", "2028-03-01");
    let days = ["2026-12-30", "2026-12-31", "2027-01-30", "2027-02-22", "2027-03-01", "2027-03-02"];
    let told = days.map(|today| world.remind(today));
    assert_eq!(told, [0, 1, 1, 1, 0, 0]);
    let both = ["a.com", "b.com"].map(|name| (name.to_owned(), "2027-03-01".to_owned()));
    assert_eq!(world.reminders(&ann), vec![both.to_vec(); 3]);
    // Neither a restart nor another worker repeats a reminder.
    let world = world.reopened();
    assert_eq!(["2027-01-30", "2027-02-22"].map(|today| world.remind(today)), [0, 0]);
}

#[test]
fn a_server_that_was_off_reminds_when_it_is_back() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Free);
    world.hold(&ann, "a.com", "2027-03-01");
    assert_eq!(world.remind("2026-12-31"), 1);
    // Thirty days before came and went.
    assert_eq!(world.remind("2027-02-03"), 1);
    assert_eq!(world.remind("2027-02-03"), 0);
    assert_eq!(world.reminders(&ann).len(), 2);
}

#[test]
fn a_decision_ends_the_reminders_of_one_renewal() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Free);
    let id = world.hold(&ann, "a.com", "2027-03-01");
    let decided = |decision| ClaimPatch { decision: Some(decision), ..ClaimPatch::default() };
    for decision in RenewalDecision::ALL {
        let claim = world.change_claim(&ann, id, decided(Some(decision))).expect("changed");
        assert_eq!(claim.decision(), Some(decision));
        assert_eq!(world.remind("2026-12-31"), 0);
    }
    world.change_claim(&ann, id, decided(None)).expect("changed");
    assert_eq!(world.remind("2027-01-30"), 1);
    // The next year is another renewal.
    world.change_claim(&ann, id, decided(Some(RenewalDecision::Keep))).expect("changed");
    let renews_on = Some(Some(day("2028-03-01")));
    let renewed = ClaimPatch { renews_on, ..ClaimPatch::default() };
    assert_eq!(world.change_claim(&ann, id, renewed).expect("changed").decision(), None);
    assert_eq!(world.remind("2028-01-01"), 1);
    let without = NewClaim { status: ClaimStatus::Caught, ..attempted("b.com") };
    let without = world.add_claim(&ann, without).expect("added");
    let refused = world.change_claim(&ann, without, decided(Some(RenewalDecision::Keep)));
    assert_invalid(refused, InvalidField::RenewalDecision);
}

#[test]
fn names_that_are_not_held_and_owners_who_want_none_are_not_reminded() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Free);
    let renews_on = Some(day("2027-03-01"));
    for status in [ClaimStatus::Attempted, ClaimStatus::Lost, ClaimStatus::Sold] {
        world.add_claim(&ann, NewClaim { status, renews_on, ..attempted("a.com") }).expect("added");
    }
    assert_eq!(world.remind("2026-12-31"), 0);
    world.hold(&ann, "b.com", "2027-03-01");
    let alerts = WatchAlerts {
        kinds: ChangeKinds::NONE.with(ChangeKind::Renewed),
        ..WatchAlerts::default()
    };
    let new = NewWatchAlerts { alerts, channels: vec![Channel::Email], switch_on: true };
    let at = UnixMs::from_instant(noon());
    world.wait(world.store.set_watch_alerts(&ann, new, at)).expect("saved");
    assert_eq!(world.remind("2026-12-31"), 0);
}
