//! Limits on bytes and on writes, and the time for which a write locks the state.

use std::time::Instant;

use super::*;
use crate::SessionLife;
use crate::event::{AddedBy, Event, Transaction};
use crate::journal::Position;
use crate::store::snapshotter::SnapshotError;
use crate::store::state::State;
use crate::vocab::ids::AccountId;
use crate::vocab::limits::VOTES_MAX;
use crate::vocab::plan::AccountLimits;
use crate::vocab::secret::Secret;

const NO_LIMITS: AccountLimits =
    AccountLimits { total_bytes: u64::MAX, unverified_bytes: u64::MAX };

fn options(dir: &std::path::Path, plans: Plans, limits: AccountLimits) -> StoreOptions {
    let clock = Clock::pinned_to("2026-11-21".parse().expect("a day"));
    StoreOptions { limits: Some(limits), ..StoreOptions::new(dir, plans, clock) }
}

/// Returns a world whose free plan has 1 MiB and this number of writes per minute.
fn world(limits: AccountLimits, writes_per_minute: u32) -> World {
    let World { dir, store, runtime } = World::new();
    drop(store.close());
    let mut plans = Plans::default();
    for plan in Plan::ALL {
        plans.limits_mut(plan).writes_per_minute = writes_per_minute.try_into().expect("above 0");
    }
    plans.limits_mut(Plan::Free).data_mb = 1;
    let store = Store::open_with(options(dir.path(), plans, limits)).expect("opened");
    World { dir, store, runtime }
}

fn with_notes(chars: usize) -> NewClaim {
    NewClaim { user_notes: Some("n".repeat(chars)), ..attempted("a.com") }
}

fn plan_limit<T: std::fmt::Debug>(result: Result<T, WriteError>) -> String {
    match result {
        Err(WriteError::PlanLimit { message, .. }) => message,
        other => panic!("{other:?}"),
    }
}

impl World {
    /// Adds claims with the longest notes until one is refused.
    fn fill(&self, caller: &Caller) -> (Vec<ClaimId>, WriteError) {
        let mut ids = Vec::new();
        loop {
            match self.add_claim(caller, with_notes(10_000)) {
                Ok(id) => ids.push(id),
                Err(refused) => return (ids, refused),
            }
        }
    }
}

#[test]
fn an_account_is_limited_in_bytes() {
    let world = world(NO_LIMITS, 100_000);
    let ann = world.account("ann@example.com", Plan::Free);
    let bob = world.account("bob@example.com", Plan::Free);
    let (ids, refused) = world.fill(&ann);
    assert!((90..110).contains(&ids.len()), "1 MiB of notes of 10,000 bytes: {}", ids.len());
    let text = plan_limit::<()>(Err(refused));
    assert!(text.contains("free plan") && text.contains("1 MiB"), "{text}");

    // Rows of every kind count towards the limit and are refused when it is reached.
    let kept = world.add_claim_by(&ann, attempted("b.com"), keyed(noon(), "k", 1));
    let small = kept.is_ok();
    let long = "n".repeat(200);
    let mut votes = 0;
    let refused = loop {
        let voted = format!("{}{votes}.com", &long[..50]);
        match world.wait(world.store.vote(&ann, &name(&voted), Some(Vote::Up))) {
            Ok(_) => votes += 1,
            Err(refused) => break refused,
        }
        assert!(votes < VOTES_MAX, "not limited");
    };
    plan_limit::<()>(Err(refused));
    plan_limit(world.add_watch(&ann, watch(&format!("{}.com", &long[..60]), true)));
    plan_limit(world.add_rule(&ann, by_email(&long[..100])));
    assert!(small, "a claim without notes fitted before");
    world.add_claim(&bob, with_notes(10_000)).expect("another account has room");

    // A change that does not add bytes is allowed, and removals make room.
    let shorter = ClaimPatch { user_notes: Some(Some("n".into())), ..ClaimPatch::default() };
    world.change_claim(&ann, ids[0], shorter).expect("shorter");
    world.add_watch(&ann, watch("c.com", true)).expect("room again");
    world.wait(world.store.remove_claim(&ann, ids[1])).expect("removed");
    world.add_claim(&ann, with_notes(9_000)).expect("room again");

    // The bytes are the same after a replay and from a snapshot.
    let before = world.store.data_bytes();
    let World { dir, store, runtime } = world;
    store.close().expect("closed");
    let store = open(dir.path());
    assert_eq!(store.data_bytes(), before);
    store.snapshot_now().expect("written");
    store.close().expect("closed");
    let store = open(dir.path());
    assert_eq!(store.data_bytes(), before);
    drop(runtime);
}

#[test]
fn kept_responses_count_and_make_room_after_a_day() {
    let world = world(NO_LIMITS, 100_000);
    let ann = world.account("ann@example.com", Plan::Free);
    let post = |key: usize, now| {
        let (claim, post) = (attempted("a.com"), keyed(now, &format!("k{key}"), 1));
        world.wait(async {
            let draft = world.store.add_claim(&ann, claim, post).await?;
            draft.respond(|_| Receipt { code: 201, bytes: vec![b'x'; 200_000] }).await
        })
    };
    let added = (0..20).take_while(|key| post(*key, noon()).is_ok()).count();
    assert_eq!(added, 5, "responses of 200,000 bytes in 1 MiB");
    assert!(world.add_claim(&ann, attempted("b.com")).is_ok(), "a small row fits");
    // A day later, the first write is decided before its event drops the expired responses.
    let later = noon() + Duration::hours(25);
    world
        .wait(add_claim(world.store.clone(), ann.clone(), attempted("c.com"), plain(later)))
        .expect("fits");
    assert!(post(20, later).is_ok());
}

#[test]
fn an_unverified_address_has_little_room_until_it_is_verified() {
    let limits = AccountLimits { unverified_bytes: 64 << 10, ..NO_LIMITS };
    let world = world(limits, 100_000);
    let address = email("new@example.com");
    let secret = Secret::new("a long pass phrase".into());
    let password = Password::new(secret.clone()).expect("long");
    let added = world.store.sign_up(address.clone(), Plan::Free, password, false, ATTEMPT, noon());
    assert!(world.wait(added).expect("written"));
    let token = world.wait(world.store.log_in(
        &address,
        secret,
        SessionLife::Short,
        IfLeaving::Ask,
        ATTEMPT,
        noon(),
    ));
    let token = token.expect("written").token().expect("a session");
    let new = world.store.person(&token, noon()).expect("a session").caller;
    let (ids, refused) = world.fill(&new);
    assert_eq!(ids.len(), 6);
    let text = plan_limit::<()>(Err(refused));
    assert!(text.contains("64 KiB") && text.contains("verify"), "{text}");
    let asked = world.wait(world.store.ask_verification(&new, noon())).expect("asked");
    let VerificationLink::Made { token, .. } = asked else { panic!("no link") };
    assert!(world.wait(world.store.verify_email(&token, noon())).expect("written"));
    world.add_claim(&new, with_notes(10_000)).expect("the plan's limit");
}

#[test]
fn the_server_refuses_rows_and_accounts_above_its_limit() {
    let limits = AccountLimits { total_bytes: 600_000, ..NO_LIMITS };
    let world = world(limits, 100_000);
    let [ann, bob] = ["a@b.com", "b@b.com"].map(|it| world.account(it, Plan::Api));
    let (ids, refused) = world.fill(&ann);
    assert!(matches!(refused, WriteError::ServerFull), "{refused:?}");
    assert!(world.store.data_bytes() < 620_000, "{}", world.store.data_bytes());
    assert!(matches!(world.add_claim(&bob, attempted("a.com")), Err(WriteError::ServerFull)));
    let password = || Password::new(Secret::new("a long pass phrase".into())).expect("long");
    let new = world.wait(world.store.sign_up(
        email("c@b.com"),
        Plan::Free,
        password(),
        false,
        ATTEMPT,
        noon(),
    ));
    assert!(matches!(new, Err(WriteError::ServerFull)));
    let new = world.store.add_account(&email("d@b.com"), Plan::Free, None);
    assert!(matches!(new, Err(CommandError::Refused(Refusal::Full))), "{new:?}");
    for id in &ids[..5] {
        world.wait(world.store.remove_claim(&ann, *id)).expect("removed");
    }
    world.add_claim(&bob, attempted("a.com")).expect("room again");
}

#[test]
fn writes_are_limited_per_account_and_minute() {
    let world = world(NO_LIMITS, 5);
    let ann = world.account("ann@example.com", Plan::Free);
    let bob = world.account("bob@example.com", Plan::Free);
    for _ in 0..5 {
        world.wait(world.store.vote(&ann, &name("a.com"), Some(Vote::Up))).expect("allowed");
    }
    let refused = world.add_claim(&ann, attempted("a.com"));
    let Err(WriteError::TooManyWrites { plan, limit, retry_after_s }) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!((plan, limit), (Plan::Free, 5));
    assert!((11..=13).contains(&retry_after_s), "one write in 12 s: {retry_after_s}");
    assert!(world.wait(world.store.vote(&ann, &name("a.com"), None)).is_err(), "by any method");
    world.add_claim(&bob, attempted("a.com")).expect("another account");
    world.wait(world.store.log_out_everywhere(&ann)).expect("always possible");
}

fn claim_number(number: u64) -> Claim {
    let id = ClaimId::new(number).expect("an id");
    Claim { id, ..super::super::fixtures::claim() }
}

/// Returns the longest of these changes without the slowest tenth, since a busy machine interrupts
/// some of them.
fn longest_us(times: &mut [u128]) -> u128 {
    times.sort_unstable();
    times[times.len() * 9 / 10]
}

#[test]
fn a_change_of_the_largest_account_locks_the_state_briefly() {
    let account = AccountId(1);
    let mut state = State::default();
    let email = email("ann@example.com");
    let on = "2026-11-21".parse().expect("a day");
    let (plan, by) = (Plan::Free, AddedBy::Operator);
    let added = Event::AccountAdded { account, email, plan, on, password: None, by };
    state.apply(Transaction(vec![added]), Position::default());
    let put = |state: &mut State, number| {
        let claim = Box::new(claim_number(number));
        state.apply(Transaction(vec![Event::ClaimPut { account, claim }]), Position::default());
    };
    (1..=60_000).for_each(|number| put(&mut state, number * 2));
    let mut times: Vec<_> = (0..100)
        .map(|number| {
            // A request and a snapshot hold the previous state.
            let (data, frozen) =
                (Arc::clone(&state.account(account).expect("there").data), state.freeze());
            let begun = Instant::now();
            put(&mut state, 60_001 + number * 2);
            let took = begun.elapsed().as_micros();
            assert_eq!(
                data.claim_count() + 1,
                state.account(account).expect("there").data.claim_count()
            );
            drop(frozen);
            took
        })
        .collect();
    let longest = longest_us(&mut times);
    assert!(longest < 1_000, "{longest} us");
}

#[test]
fn a_snapshot_of_a_partly_changed_state_is_refused() {
    let world = World::new();
    world.account("ann@example.com", Plan::Free);
    let state = Arc::clone(&world.store.0.shared.state);
    let panicked = std::thread::spawn(move || {
        let _state = state.write();
        panic!("halfway through a change");
    });
    assert!(panicked.join().is_err());
    assert!(matches!(world.store.snapshot_now(), Err(SnapshotError::Poisoned)));
    let backup = world.dir.path().join("backup");
    assert!(matches!(world.store.backup(&backup), Err(SnapshotError::Poisoned)));
    assert_eq!(world.store.list().len(), 1, "reads continue");
}
