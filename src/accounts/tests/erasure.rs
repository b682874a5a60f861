//! Accounts that are disabled for some days and then erased.

use std::fs;
use std::path::PathBuf;

use super::*;
use crate::store::snapshot::write_chunks;
use crate::vocab::secret::Secret;

const ADDRESS: &str = "leaving@example.com";
const PASSWORD: &str = "correct horse";
/// Parts of the account that must not remain.
const TRACES: [&str; 5] = ["leaving@", "claimed.com", "watched.com", "Their rule", "voted.com"];

/// Ways into the account.
struct Ways {
    key: String,
    feed: Token,
    session: Token,
}

impl World {
    /// Adds an account with data of many kinds.
    fn leaving(&self) -> Ways {
        let secret = || Secret::new(PASSWORD.to_owned());
        let hash = Password::new(secret()).expect("long enough").hash().expect("a hash");
        self.store.add_account(&email(ADDRESS), Plan::Pro, Some(hash)).expect("added");
        let key = self.store.issue_key(&email(ADDRESS)).expect("issued").key.reveal().to_owned();
        let caller = self.store.authenticate(&key).expect("a working key");
        self.add_claim(&caller, attempted("claimed.com")).expect("added");
        self.add_watch(&caller, watch("watched.com", true)).expect("added");
        let rule = self.add_rule(&caller, by_email("Their rule")).expect("added");
        self.wait(self.store.vote(&caller, &name("voted.com"), Some(Vote::Up))).expect("voted");
        let test = async {
            self.store.queue_test(&caller, rule, &[], 0, plain(noon())).await?.finish().await
        };
        self.wait(test).expect("queued");
        let feed = self.wait(self.store.make_feed(&caller, FeedOf::Rule(rule), noon()));
        let life = SessionLife::Short;
        let address = email(ADDRESS);
        let log_in = self.store.log_in(&address, secret(), life, IfLeaving::Ask, ATTEMPT, noon());
        let session = self.wait(log_in).expect("written").token().expect("the right password");
        Ways { key, feed: feed.expect("made"), session }
    }

    /// Returns whether key, feed and session work.
    fn open_ways(&self, ways: &Ways) -> [bool; 3] {
        [
            self.store.authenticate(&ways.key).is_some(),
            self.store.feed(&ways.feed).is_some(),
            self.store.person(&ways.session, noon()).is_some(),
        ]
    }

    /// Returns the files of the journal that have this text.
    fn files_with(&self, text: &str) -> Vec<PathBuf> {
        let files = fs::read_dir(journal_folder(self.dir.path())).expect("a journal");
        let files = files.map(|file| file.expect("readable").path());
        let has = |path: &PathBuf| {
            let bytes = fs::read(path).unwrap_or_default();
            bytes.windows(text.len()).any(|it| it == text.as_bytes())
        };
        files.filter(has).collect()
    }

    /// Returns the traces in a snapshot.
    fn traces(&self) -> Vec<&'static str> {
        let mut bytes = Vec::new();
        let Ok(()) = write_chunks(&self.store.state().freeze(), |chunk| {
            bytes.extend_from_slice(chunk);
            Ok::<_, std::convert::Infallible>(())
        });
        let has = |text: &&str| bytes.windows(text.len()).any(|it| it == text.as_bytes());
        TRACES.into_iter().filter(has).collect()
    }
}

#[test]
fn an_account_is_restored_within_seven_days() {
    let world = World::new();
    let ways = world.leaving();
    assert_eq!(world.open_ways(&ways), [true; 3]);
    let at = world.store.ask_erasure(&email(ADDRESS), noon()).expect("asked");
    assert_eq!(at.instant(), noon() + Duration::days(7));
    let later = noon() + Duration::days(3);
    assert_eq!(world.store.ask_erasure(&email(ADDRESS), later).expect("again"), at, "the first");
    assert_eq!(world.open_ways(&ways), [false; 3]);
    assert!(world.store.pending_deliveries().is_empty(), "nothing is sent");
    for refused in [
        world.store.issue_key(&email(ADDRESS)).map(drop),
        world.store.add_account(&email(ADDRESS), Plan::Free, None).map(drop),
    ] {
        refused.expect_err("it is leaving");
    }
    let world = world.reopened();
    world.store.snapshot_now().expect("written");
    let world = world.reopened();
    assert!(world.store.erase_due(at.instant() - Duration::seconds(1)).expect("read").is_empty());
    world.store.restore_account(&email(ADDRESS)).expect("restored");
    world.store.restore_account(&email(ADDRESS)).expect_err("it stays already");
    assert_eq!(world.open_ways(&ways), [true, true, false], "sessions have ended");
    assert!(world.store.erase_due(later + Duration::days(30)).expect("read").is_empty());
    assert_eq!(world.traces(), TRACES);
}

#[test]
fn nothing_of_an_erased_account_remains() {
    let world = World::new();
    let other = world.account("other@example.com", Plan::Free);
    world.add_watch(&other, watch("others.com", true)).expect("added");
    world.wait(world.store.vote(&other, &name("voted.org"), Some(Vote::Up))).expect("voted");
    let before = (world.store.counts(), world.store.data_bytes(), world.store.queues());
    let ways = world.leaving();
    let number = world.store.list()[1].id;
    let at = world.store.ask_erasure(&email(ADDRESS), noon()).expect("asked");
    assert_eq!(world.traces(), TRACES);
    assert_eq!(world.store.erase_due(at.instant()).expect("erased"), [email(ADDRESS)]);
    let world = world.reopened();
    assert!(world.traces().is_empty(), "{:?}", world.traces());
    assert_eq!(world.open_ways(&ways), [false; 3]);
    let after = (world.store.counts(), world.store.data_bytes(), world.store.queues());
    assert_eq!(after, before);
    assert_eq!(world.store.feedback(&name("voted.com")).up, 0);
    world.store.restore_account(&email(ADDRESS)).expect_err("it is gone");
    world.store.snapshot_now().expect("written");
    // The address is free, and the number is not used again.
    let world = world.reopened();
    world.store.add_account(&email(ADDRESS), Plan::Free, None).expect("added");
    let new = &world.store.list()[1];
    assert!(new.id > number && new.key_last4.is_none(), "{new:?}");
    assert_eq!(world.reopened().store.counts().accounts, 2);
}

#[test]
fn an_erased_account_leaves_the_disk() {
    let world = World::new();
    let other = world.account("other@example.com", Plan::Free);
    world.leaving();
    world.store.snapshot_now().expect("written");
    let at = world.store.ask_erasure(&email(ADDRESS), noon()).expect("asked");
    let mut purge = Purge::new(world.store.clone());
    let mut step = || purge.step().expect("written");
    step();
    assert!(!world.files_with(ADDRESS).is_empty());
    world.store.erase_due(at.instant()).expect("erased");
    step();
    step();
    let snapshots = world.files_with(ADDRESS);
    assert!(!snapshots.is_empty(), "the snapshot before the erasure is the older of two");
    step();
    assert_eq!(world.files_with(ADDRESS), snapshots, "nothing was written since");
    world.add_watch(&other, watch("others.com", true)).expect("added");
    step();
    assert_eq!(world.files_with(ADDRESS), Vec::<PathBuf>::new());
    drop(purge);
    assert_eq!(world.reopened().store.counts().accounts, 1);
}

#[test]
fn an_owner_leaves_and_returns_with_the_password() {
    let world = World::new();
    let ways = world.leaving();
    let (store, address) = (&world.store, email(ADDRESS));
    let person = store.person(&ways.session, noon()).expect("a session").caller;
    let leave = |typed: &str| {
        let typed = Secret::new(typed.to_owned());
        world.wait(store.leave(&person, typed, ATTEMPT, noon())).expect("written")
    };
    let log_in = |typed: &str, leaving: IfLeaving| {
        let (typed, life) = (Secret::new(typed.to_owned()), SessionLife::Short);
        let done = store.log_in(&address, typed, life, leaving, ATTEMPT, noon());
        world.wait(done).expect("written")
    };
    assert_eq!(leave("wrong horse"), None);
    assert_eq!(world.open_ways(&ways), [true; 3]);
    let at = leave(PASSWORD).expect("the right password");
    assert_eq!(at.instant(), noon() + Duration::days(7));
    assert_eq!(world.open_ways(&ways), [false; 3]);
    assert!(matches!(log_in(PASSWORD, IfLeaving::Ask), LogIn::Leaving(until) if until == at));
    for leaving in [IfLeaving::Restore, IfLeaving::Ask] {
        assert!(matches!(log_in("wrong horse", leaving), LogIn::Refused));
    }
    assert_eq!(store.list()[0].erase_at, Some(at), "no log-in changed that");
    let token = log_in(PASSWORD, IfLeaving::Restore).token().expect("a session");
    assert!(store.person(&token, noon()).is_some());
    assert_eq!(world.open_ways(&ways), [true, true, false]);
    assert!(store.erase_due(at.instant()).expect("read").is_empty());
    // A restored account that an operator disables cannot be restored.
    store.disable(&address).expect("disabled");
    assert!(matches!(log_in(PASSWORD, IfLeaving::Restore), LogIn::Refused));
}

#[test]
fn the_owner_of_a_server_cannot_leave_it() {
    let world = World::new();
    let chosen = Password::new(Secret::new(PASSWORD.to_owned())).expect("long enough");
    let added = world.store.add_owner(Some(email(ADDRESS)), Some(chosen), ATTEMPT, noon());
    world.wait(added).expect("written").expect("the first account");
    let (typed, address) = (|| Secret::new(PASSWORD.to_owned()), email(ADDRESS));
    let log_in =
        world.store.log_in(&address, typed(), SessionLife::Short, IfLeaving::Ask, ATTEMPT, noon());
    let token = world.wait(log_in).expect("written").token().expect("a session");
    let owner = world.store.person(&token, noon()).expect("valid").caller;
    let refused = world.wait(world.store.leave(&owner, typed(), ATTEMPT, noon()));
    assert!(matches!(refused, Err(WriteError::Conflict(_))), "{refused:?}");
    world.store.ask_erasure(&address, noon()).expect_err("an operator cannot take it away either");
    assert_eq!(world.store.list()[0].erase_at, None);
}
