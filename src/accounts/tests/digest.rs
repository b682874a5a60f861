//! Morning digests: queued once for an hour, also when a record is repeated; unsubscribed, off and on.

use super::*;
use crate::data::deliveries::{DigestRows, DigestSearch};
use crate::digest::{FoundDigest, NewDigest};
use crate::vocab::ids::SearchId;
use crate::vocab::zone::{Hour, Zone};

const MORNING: &str = "2026-11-22T08:00:00Z";

fn instant(text: &str) -> DateTime<Utc> {
    text.parse().expect("a time")
}

fn settings(hour: u8) -> NewDigest {
    let hour = Hour::new(hour).expect("an hour");
    NewDigest { hour, zone: Zone::UTC, best: true, searches: true }
}

impl World {
    fn turn(&self, caller: &Caller, new: Option<NewDigest>, at: &str) {
        let at = UnixMs::from_instant(instant(at));
        self.wait(self.store.set_digest(caller, new, 7, at)).expect("saved");
    }

    /// Returns what a worker finds for all digests that are due at a time.
    fn found(&self, at: &str, names: u32) -> Vec<FoundDigest> {
        let due = self.store.due_digests(instant(at)).into_iter();
        let search = DigestSearch {
            id: SearchId::new(9).expect("an id"),
            name: "Mine".into(),
            total: names,
            names: Vec::new(),
        };
        let searches = Vec::from_iter((names > 0).then_some(search));
        let rows = DigestRows { best: Vec::new(), searches };
        let found = due.map(|due| FoundDigest {
            account: due.account,
            hour: due.hour,
            total: names,
            rows: rows.clone(),
        });
        found.collect()
    }

    fn queue_digests(&self, found: Vec<FoundDigest>) {
        self.wait(self.store.record_digests(8, found)).expect("recorded");
    }

    fn digests(&self, caller: &Caller) -> usize {
        self.store.user_data(caller).deliveries(RuleId::DIGEST).count()
    }
}

#[test]
fn a_digest_is_queued_once_for_its_hour() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Free);
    world.turn(&ann, Some(settings(8)), "2026-11-21T12:00:00Z");
    assert!(world.found("2026-11-22T07:59:59Z", 1).is_empty());
    let found = world.found(MORNING, 3);
    assert_eq!(found.len(), 1);
    world.queue_digests(found.clone());
    // The outcome of the first record was not known.
    world.queue_digests(found.clone());
    assert_eq!(world.digests(&ann), 1);
    let pending = &world.store.pending_deliveries()[0];
    assert_eq!((pending.rule.id, pending.delivery.message.total), (RuleId::DIGEST, 3));
    let token = pending.unsubscribe.expect("a link");

    let world = world.reopened();
    assert!(world.found("2026-11-22T09:00:00Z", 3).is_empty(), "not again after a restart");
    world.queue_digests(found);
    assert_eq!(world.digests(&ann), 1);

    // On a day without new names, nothing is queued, and the next hour is that of the next day.
    world.queue_digests(world.found("2026-11-23T08:00:01Z", 0));
    assert!(world.found("2026-11-23T23:00:00Z", 3).is_empty());
    assert_eq!(world.digests(&ann), 1);
    let digest = world.store.user_data(&ann).digest().expect("it is on");
    assert_eq!(
        (digest.through, digest.batch),
        (UnixMs::from_instant(instant("2026-11-23T08:00:00Z")), 8)
    );

    // The link in the mail stops it, until it is saved again.
    let at = UnixMs::from_instant(instant(MORNING));
    assert!(world.wait(world.store.unsubscribe(token, at)).expect("done"));
    assert!(world.found("2026-11-24T09:00:00Z", 3).is_empty());
    assert_eq!(world.store.pending_deliveries().len(), 0);
    world.turn(&ann, Some(settings(8)), "2026-11-24T10:00:00Z");
    assert!(world.found("2026-11-24T11:00:00Z", 3).is_empty(), "that hour has passed");
    assert_eq!(world.found("2026-11-25T08:00:00Z", 3).len(), 1);

    // Turned off, it cancels what waits.
    world.queue_digests(world.found("2026-11-25T08:00:00Z", 3));
    assert_eq!(world.store.pending_deliveries().len(), 1);
    world.turn(&ann, None, "2026-11-25T08:00:01Z");
    assert_eq!(world.store.pending_deliveries().len(), 0);
    assert!(world.found("2026-11-26T09:00:00Z", 3).is_empty());
}

#[test]
fn visits_survive_a_restart() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Free);
    let at = |text: &str| UnixMs::from_instant(instant(text));
    let visit = |world: &World, batch, text| world.wait(world.store.visit(&ann, batch, at(text)));
    let first = visit(&world, 7, "2026-11-21T12:00:00Z").expect("a visit");
    assert_eq!((first.batch, first.since), (7, None));
    // Requests within half an hour of each other belong to one visit, which takes one write.
    let before = world.store.state_digest();
    assert_eq!(visit(&world, 8, "2026-11-21T12:20:00Z"), Some(first));
    assert_eq!(visit(&world, 8, "2026-11-21T12:45:00Z"), Some(first));
    assert_eq!(world.store.state_digest(), before);
    let world = world.reopened();
    let second = visit(&world, 8, "2026-11-21T13:00:00Z").expect("a visit");
    assert_eq!((second.batch, second.since), (8, Some((first.began, 7))));
    let marked = world.wait(world.store.mark_seen(&ann, 8, at("2026-11-21T13:01:00Z")));
    let since = marked.expect("marked").and_then(|visit| visit.since);
    assert_eq!(since, Some((at("2026-11-21T13:01:00Z"), 8)));
}
