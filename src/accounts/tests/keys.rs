use super::*;
use crate::vocab::day::Day;
use crate::vocab::ids::KeyId;
use crate::vocab::scope::{Scope, Scopes};

fn open_on(dir: &std::path::Path, day: &str) -> Store {
    let clock = Clock::pinned_to(day.parse().expect("a day"));
    Store::open(dir, Plans::default(), clock).expect("opened")
}

fn new(name: &str, scopes: &[Scope], days: Option<u16>) -> NewKey {
    let scopes = Scopes::of(scopes.iter().copied()).expect("scopes");
    NewKey { name: name.into(), scopes, days }
}

fn id_of(world: &World, caller: &Caller, key: &ApiKey) -> KeyId {
    let profile = world.store.profile(caller, noon()).expect("there");
    let key = profile.keys.iter().find(|it| it.key == key.stored());
    key.expect("a listed key").id
}

fn works(store: &Store, key: &ApiKey) -> bool {
    store.authenticate(key.reveal()).is_some()
}

#[test]
fn keys_have_scopes_names_and_days_of_use() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Pro);
    let (agent, scopes) = ("agent", [Scope::Read, Scope::Mcp]);
    let key = world.wait(world.store.make_key(&ann, new(agent, &scopes, None), noon()));
    let key = key.expect("made");
    let caller = world.store.authenticate(key.reveal()).expect("it works");
    assert!(caller.scopes.holds(Scope::Mcp) && !caller.scopes.holds(Scope::Watchlist));
    assert_eq!((caller.account, ann.scopes), (ann.account, Scopes::ALL));
    let world = world.reopened();
    let profile = world.store.profile(&ann, noon()).expect("there");
    let rows: Vec<_> = profile.keys.iter().map(|key| (key.name.as_str(), key.used)).collect();
    let today = Some(Day::nearest(noon()));
    assert_eq!(rows, [("API key", today), ("agent", today)]);
    assert!(works(&world.store, &key));
    world.store.snapshot_now().expect("written");
    assert!(works(&world.reopened().store, &key), "and from a snapshot");
}

#[test]
fn expired_keys_do_not_work_and_are_removed_later() {
    let World { dir, store, runtime } = World::new();
    store.add_account(&email("ann@example.com"), Plan::Pro, None).expect("added");
    let day = |store: &Store, days| {
        let named = new("short", &[Scope::Read], Some(days));
        store.add_key(&email("ann@example.com"), named).expect("made").key
    };
    let (short, long) = (day(&store, 1), day(&store, 100));
    assert!(works(&store, &short) && works(&store, &long));
    store.close().expect("closed");
    let store = open_on(dir.path(), "2026-11-23");
    assert!(!works(&store, &short) && works(&store, &long));
    let ann = store.authenticate(long.reveal()).expect("it works");
    let listed = |store: &Store| store.profile(&ann, noon()).expect("there").keys.len();
    assert_eq!(listed(&store), 2, "so that its owner sees why it fails");
    store.close().expect("closed");
    let store = open_on(dir.path(), "2027-01-02");
    let _ = day(&store, 5);
    assert_eq!(listed(&store), 2, "the expired one is gone");
    drop(runtime);
}

#[test]
fn a_replaced_key_stops_at_once_or_a_day_later() {
    let World { dir, store, runtime } = World::new();
    let world = World { dir, store, runtime };
    let ann = world.account("ann@example.com", Plan::Pro);
    let make = |name| {
        let named = new(name, &[Scope::Export], Some(30));
        world.wait(world.store.make_key(&ann, named, noon())).expect("made")
    };
    let replace = |key: &ApiKey, old| {
        let id = id_of(&world, &ann, key);
        world.wait(world.store.replace_key(&ann, id, old, noon())).expect("replaced")
    };
    let (one, other) = (make("one"), make("other"));
    let (next_one, next_other) =
        (replace(&one, Replaced::AtOnce), replace(&other, Replaced::AfterGrace));
    assert!(!works(&world.store, &one) && works(&world.store, &other));
    assert!(works(&world.store, &next_one) && works(&world.store, &next_other));
    let profile = world.store.profile(&ann, noon()).expect("there");
    let heir = profile.keys.iter().find(|key| key.key == next_other.stored()).expect("listed");
    assert_eq!((heir.name.as_str(), heir.scopes.to_string().as_str()), ("other", "export"));
    assert_eq!(heir.lifetime_days(), Some(30));
    let World { dir, store, runtime } = world;
    store.close().expect("closed");
    let store = open_on(dir.path(), "2026-11-23");
    assert!(!works(&store, &other) && works(&store, &next_other));
    drop(runtime);
}

#[test]
fn an_account_has_at_most_ten_keys() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Pro);
    let make = |name: &str| {
        world.wait(world.store.make_key(&ann, new(name, &[Scope::Read], None), noon()))
    };
    let keys: Vec<_> = (1..10).map(|at| make(&format!("key {at}")).expect("made")).collect();
    let full = make("one more").map(|_| ());
    assert!(matches!(full, Err(WriteError::TooMany { limit: 10, .. })), "{full:?}");
    let id = id_of(&world, &ann, &keys[0]);
    let graced = world.wait(world.store.replace_key(&ann, id, Replaced::AfterGrace, noon()));
    assert!(matches!(graced.map(|_| ()), Err(WriteError::TooMany { .. })), "eleven for a day");
    assert!(works(&world.store, &keys[0]), "it was not replaced");
    let replaced = world.wait(world.store.issue_own_key(&ann, noon())).expect("replaced");
    assert!(replaced.replaced, "the first key is replaced, not added");
    world.wait(world.store.revoke_key(&ann, id)).expect("revoked");
    assert!(!works(&world.store, &keys[0]));
    assert_not_found(world.wait(world.store.revoke_key(&ann, id)));
    make("one more").expect("there is room again");
    for (name, days) in
        [("", None), (" ", None), ("a\nb", None), ("x", Some(0)), ("x", Some(3_651))]
    {
        let made = world.wait(world.store.make_key(&ann, new(name, &[Scope::Read], days), noon()));
        let refused = made.map(|_| ());
        assert!(
            matches!(refused, Err(WriteError::Invalid { .. })),
            "{name:?} {days:?}: {refused:?}"
        );
    }
    world.store.disable(&email("ann@example.com")).expect("disabled");
    assert!(!works(&world.store, &keys[1]));
}
