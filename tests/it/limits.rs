//! Accounts at their byte limits: a restart is quick, and memory stays below the stated bound.
//!
//! The default run has 40 accounts, and a run with `DROPDEX_FULL=1` has 10,000. Each account is filled
//! with the usual rows of a user, and then with the longest notes until a write is refused.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeZone, Utc};
use dropdex::accounts::{
    Attempt, Caller, Email, IfLeaving, NewClaim, Password, Post, Receipt, SessionLife, Store,
    StoreOptions, Watch, WatchPatch, WriteError,
};
use dropdex::vocab::claim::{ClaimStatus, Vote};
use dropdex::vocab::clock::Clock;
use dropdex::vocab::limits::NOTES_CHARS_MAX;
use dropdex::vocab::name::DomainName;
use dropdex::vocab::plan::{AccountLimits, Plan, Plans};
use dropdex::vocab::secret::Secret;

use crate::common::runs::{figure, say};
use crate::common::{Site, TODAY};
use crate::server::raw::resident;

const ACCOUNTS: (usize, usize) = (40, 10_000);
/// The default for an account whose address is unverified.
const ACCOUNT_BYTES: u64 = 256 << 10;
const RESTART_MAX: Duration = Duration::from_secs(20);
/// Number of accounts that are filled concurrently, so that their writes share a sync; fewer than the
/// places in the queue of password hashes.
const AT_ONCE: usize = 32;
/// Memory for the buffers of a start, in addition to that of an empty server, the counted bytes, and a
/// quarter of these for the allocator.
const BUFFERS: u64 = 96 << 20;

#[test]
fn accounts_at_their_limits_restart_quickly_within_the_stated_memory() {
    let site = Site::with_names(std::iter::once("some.com".to_owned()), TODAY);
    let server = site.serve(TODAY);
    let empty = resident(&server);
    server.stop();
    let counted = fill(&site.data());
    let begun = Instant::now();
    let server = site.serve(TODAY);
    let (took, full) = (begun.elapsed(), resident(&server));
    let mib = |bytes: u64| bytes >> 20;
    say(&format!(
        "{} accounts, {} MiB counted; resident {} MiB empty, {} MiB full; restart {took:?}",
        figure(ACCOUNTS.0, ACCOUNTS.1),
        mib(counted),
        mib(empty),
        mib(full)
    ));
    assert!(took < RESTART_MAX, "{took:?}");
    let bound = empty + counted + counted / 4 + BUFFERS;
    assert!(full < bound, "{} MiB resident, at most {}", mib(full), mib(bound));
    server.stop();
}

/// Fills accounts until each is refused, and returns the counted bytes.
fn fill(data: &Path) -> u64 {
    let mut plans = Plans::default();
    plans.limits_mut(Plan::Free).writes_per_minute = std::num::NonZeroU32::MAX;
    let limits = AccountLimits { total_bytes: u64::MAX, unverified_bytes: ACCOUNT_BYTES };
    let clock = Clock::pinned_to(TODAY.parse().expect("a day"));
    let options = StoreOptions { limits: Some(limits), ..StoreOptions::new(data, plans, clock) };
    let store = Store::open_with(options).expect("opened");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let (accounts, next) = (figure(ACCOUNTS.0, ACCOUNTS.1), Arc::new(AtomicUsize::new(0)));
    runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..AT_ONCE.min(accounts) {
            let (store, next) = (store.clone(), Arc::clone(&next));
            tasks.spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= accounts {
                        return;
                    }
                    fill_account(&store, number).await;
                }
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.expect("no panic");
        }
    });
    let counted = store.data_bytes();
    let most = accounts as u64 * (ACCOUNT_BYTES + 4096);
    assert!(counted > most * 9 / 10 && counted < most, "{counted} bytes are counted");
    store.close().expect("closed");
    counted
}

fn now() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 3, 15, 12, 0, 0).single().expect("an instant")
}

async fn fill_account(store: &Store, number: usize) {
    let email: Email = format!("a{number}@example.com").parse().expect("an address");
    let secret = Secret::new("correct horse battery".into());
    let password = Password::new(secret.clone()).expect("long");
    let added = store
        .sign_up(email.clone(), Plan::Free, password, false, Attempt::FIRST_VISIT, now())
        .await;
    assert!(added.expect("written"), "account {number} was not added");
    let token = store
        .log_in(&email, secret, SessionLife::Short, IfLeaving::Ask, Attempt::FIRST_VISIT, now())
        .await
        .expect("written")
        .token()
        .expect("a session");
    let caller = store.person(&token, now()).expect("a session").caller;
    let name = |kind: &str, at: usize| {
        DomainName::parse(&format!("{kind}-{number}-{at}.com")).expect("a name")
    };
    let watch = |at| Watch {
        name: name("watched", at),
        in_corpus: true,
        registered_again: false,
        arrived: Vec::new(),
        patch: WatchPatch::default(),
        near: None,
    };
    store.add_watches(&caller, (0..50).map(watch).collect(), now()).await.expect("written");
    for at in 0..50 {
        store.vote(&caller, &name("voted", at), Some(Vote::Up)).await.expect("written");
    }
    let ordinary = "Bought for a client; renew in spring. ".repeat(3);
    for at in 0..100 {
        add_claim(store, &caller, name("claimed", at), &ordinary).await.expect("room");
    }
    let longest = "n".repeat(NOTES_CHARS_MAX);
    while add_claim(store, &caller, name("noted", 0), &longest).await.is_ok() {}
    while add_claim(store, &caller, name("last", 0), &ordinary).await.is_ok() {}
}

async fn add_claim(
    store: &Store,
    caller: &Caller,
    domain: DomainName,
    notes: &str,
) -> Result<(), WriteError> {
    let claim = NewClaim {
        domain,
        status: ClaimStatus::Attempted,
        registrar: Some("Example Registrar".into()),
        acquired_price: None,
        resale_price: None,
        sold_at: None,
        user_notes: Some(notes.to_owned()),
        alert_rule: None,
        bid: None,
        venue: None,
        renews_on: None,
        renewal: None,
        commission: None,
        sold_venue: None,
    };
    let draft = store.add_claim(caller, claim, Post { now: now(), idempotency: None }).await?;
    draft.respond(|_| Receipt { code: 201, bytes: Vec::new() }).await.map(drop)
}
