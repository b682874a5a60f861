//! Limits of bytes and writes on the pages, which have no daily allowance.

use std::thread;
use std::time::{Duration, Instant};

use super::World;
use super::person::Person;
use crate::common::runs::{figure, say};
use crate::server::raw::resident;

/// Writes per minute of an account: few in the default run, whose unoptimised server is slow; the
/// default limit in full runs.
const WRITES: (usize, usize) = (10, 120);
const FLOOD_S: (usize, usize) = (3, 20);
const ACCOUNTS: usize = 8;
/// Maximum time that a busy machine takes for a minute's writes.
const REFUSAL_WAIT_MAX: Duration = Duration::from_secs(120);
/// Maximum growth of memory by the accepted writes of the flood: each note of 40 kB is in memory
/// twice, in the state and in buffers.
const GROWTH_MAX: u64 = 160 << 20;

#[test]
fn a_flood_of_notes_on_the_pages_is_bounded_in_writes_and_memory() {
    let writes = figure(WRITES.0, WRITES.1) as u64;
    let flood_max = Duration::from_secs(figure(FLOOD_S.0, FLOOD_S.1) as u64);
    let world = World::with(&format!("[plans.free]\nwrites_per_minute = {writes}\n"));
    let emails: Vec<_> = (0..ACCOUNTS).map(|at| format!("flood{at}@example.com")).collect();
    let people: Vec<_> = emails.iter().map(|email| world.person(email, "free")).collect();
    let before = resident(&world.server);
    // The longest note of four-byte characters takes 40 kB.
    let note = "\u{1d5ae}".repeat(10_000);
    let begun = Instant::now();
    let (accepted, refused) = thread::scope(|scope| {
        let floods: Vec<_> = people
            .into_iter()
            .map(|person| scope.spawn(|| flood(person, &note, begun + flood_max)))
            .collect();
        let counts = floods.into_iter().map(|flood| flood.join().expect("no panic"));
        counts.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
    });
    let (took, peak) = (begun.elapsed(), resident(&world.server));
    thread::sleep(Duration::from_secs(1));
    let after = resident(&world.server);
    let mib = |bytes: u64| bytes >> 20;
    say(&format!(
        "{accepted} notes of 40 kB accepted and {refused} refused in {took:?}; resident {} MiB before, {} MiB \
         at the peak, {} MiB after",
        mib(before),
        mib(peak),
        mib(after)
    ));
    let per_account = writes + took.as_secs() * writes / 60 + 3;
    assert!(accepted <= ACCOUNTS as u64 * per_account && refused > 0, "{accepted}, {refused}");
    assert!(peak < before + GROWTH_MAX, "from {} to {} MiB", mib(before), mib(peak));
}

/// Posts claims until `end`, and at least until one is refused. Returns the numbers of accepted and
/// refused ones.
fn flood(mut person: Person, note: &str, end: Instant) -> (u64, u64) {
    let (mut accepted, mut refused) = (0, 0);
    while Instant::now() < end || refused == 0 && Instant::now() < end + REFUSAL_WAIT_MAX {
        let fields = [("domain", "a.com"), ("status", "lost"), ("notes", note)];
        match person.post("/portfolio/new", &fields).status {
            303 => accepted += 1,
            429 => refused += 1,
            503 => {}
            other => panic!("{other}"),
        }
    }
    (accepted, refused)
}

#[test]
fn pages_say_which_limit_is_exceeded() {
    let world = World::with("[plans.free]\ndata_mb = 1\n[plans.core]\nwrites_per_minute = 3\n");
    let mut free = world.person("free@example.com", "free");
    let note = "\u{1d5ae}".repeat(10_000);
    let fields = [("domain", "a.com"), ("status", "lost"), ("notes", note.as_str())];
    let refused = (0..40).map(|_| free.post("/portfolio/new", &fields)).find(|it| it.status != 303);
    let refused = refused.expect("1 MiB is full");
    assert_eq!(refused.status, 403, "{}", refused.visible());
    assert!(refused.text.contains("1 MiB"), "{}", refused.visible());

    let mut core = world.person("core@example.com", "core");
    for _ in 0..3 {
        assert_eq!(core.post("/watch", &[("domain", "solar.com")]).status, 303);
    }
    let refused = core.post("/unwatch", &[("domain", "solar.com")]);
    assert_eq!(refused.status, 429, "{}", refused.visible());
    assert!(refused.text.contains("3 writes a minute"), "{}", refused.visible());
    let wait = refused.header("retry-after").and_then(|wait| wait.parse().ok());
    let wait: u32 = wait.expect("a number of seconds");
    assert!((1..=21).contains(&wait), "{wait}");
    assert_eq!(free.get("/portfolio").status, 200, "reads continue");
}
