//! Every call of a journal's life fails once, in every way: no acknowledged data is lost, nothing is
//! acknowledged after a failed sync, a full disk is survived, and the next open works.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dropdex::journal::AppendError;

use super::crash::Effort;
use super::disk::Disk;
use super::explore::{Depth, Explorer, check_order};
use super::fs::{Call, Event, Fault, Note, Plan, SimFs};
use super::in_parallel;
use super::store::{ABOVE, Ledger, Shape, Step, Store, script};
use crate::common::rng::Rng;
use crate::common::runs::{full, say, seed};

const SHAPE: Shape = Shape::inline(2_048);
/// A journal on a full disk probes for space at fixed intervals, so most of the time of a case is
/// spent waiting.
const THREADS: usize = 16;
/// Deadline for a journal to notice free space; its purpose is only to detect a hang.
const ROOM_WAIT_MAX: Duration = Duration::from_secs(20);

/// Number of crash states per case; few, since there are many cases.
const EFFORT: Effort = Effort { all_up_to: 4, samples: 3 };

/// Returns a life with every kind of step.
fn whole_life() -> Vec<Step> {
    vec![
        Step::Append(2),
        Step::Lazy(3),
        Step::Group(vec![1, 5, 2]),
        Step::Append(7),
        Step::Snapshot,
        Step::Append(6),
        Step::Lazy(4),
        Step::Append(5),
        Step::Reopen { is_clean: false },
        Step::Append(6),
        Step::Snapshot,
        Step::Group(vec![7, 0]),
        Step::Append(4),
        Step::Snapshot,
        Step::Append(3),
        Step::Reopen { is_clean: true },
        Step::Append(3),
        Step::Append(6),
    ]
}

/// All ways in which a call can fail.
fn faults(call: Call) -> Vec<Fault> {
    let mut faults = vec![Fault::Io, Fault::Interrupted, Fault::NoRoom];
    if call.needs_room() {
        faults.push(Fault::Full);
    }
    faults
}

/// Returns a plan for each call of `steps` and each way to fail.
fn plans(steps: &[Step]) -> Vec<Plan> {
    let fs = SimFs::new(Disk::with_dir(ABOVE.as_ref()), None, 0);
    let mut store = Store::open(&fs, SHAPE, 0);
    steps.iter().for_each(|step| store.step(step));
    store.journal = None;
    let mut plans = Vec::new();
    for call in Call::ALL {
        for nth in 1..=fs.calls(call) {
            plans.extend(faults(call).into_iter().map(|fault| Plan { call, nth, fault }));
        }
    }
    plans
}

/// One life with one failing call.
struct Case<'a> {
    steps: &'a [Step],
    plan: Plan,
    seed: u64,
}

impl Case<'_> {
    fn run(&self) -> u64 {
        let start = Disk::with_dir(ABOVE.as_ref());
        let fs = SimFs::new(start.clone(), Some(self.plan), self.seed);
        let mut store = Store::open(&fs, SHAPE, 0);
        for step in self.steps {
            self.open_again(&mut store);
            store.step(step);
        }
        self.open_again(&mut store);
        let survived = self.make_room(&mut store);
        self.end(&mut store, survived);
        self.judge(&start, &fs.events())
    }

    /// Repeats a failed open with space on the disk, because only one call fails.
    fn open_again(&self, store: &mut Store) {
        if store.journal.is_none() {
            store.fs.free_space();
            if let Some(err) = store.reopen() {
                self.fail(&format!("does not open again: {err}"), &store.fs.events());
            }
        }
    }

    /// Frees the disk; returns whether appends succeed again, without a restart.
    fn make_room(&self, store: &mut Store) -> bool {
        self.append_with_room(store, 2).is_none()
    }

    /// Appends, and frees the disk each time the journal finds it full.
    fn append_with_room(&self, store: &mut Store, records: usize) -> Option<AppendError> {
        let deadline = Instant::now() + ROOM_WAIT_MAX;
        loop {
            // The disk is freed each time, because the call that finds it full may be one of these.
            store.fs.free_space();
            match store.append(records) {
                Some(AppendError::DiskFull) if Instant::now() < deadline => {
                    // The journal probes for space four times a second.
                    thread::park_timeout(Duration::from_millis(20));
                }
                Some(AppendError::DiskFull) => self.fail("finds no room", &store.fs.events()),
                other => return other,
            }
        }
    }

    fn end(&self, store: &mut Store, survived: bool) {
        let is_lack_of_room = matches!(self.plan.fault, Fault::NoRoom | Fault::Full);
        if !survived && is_lack_of_room && self.plan.call == Call::Write {
            self.fail("a full disk needs a restart", &store.fs.events());
        }
        // A failed call may leave state in memory that is not on the disk. That state must not affect the
        // next open.
        let held = store.ids();
        store.step(&Step::Reopen { is_clean: false });
        self.open_again(store);
        if survived && store.ids() != held {
            let text = format!("reads {:?} after {held:?}", store.ids());
            self.fail(&text, &store.fs.events());
        }
        // The planned call may have failed only now.
        let was_struck = store.fs.has_struck();
        if let Some(err) = self.append_with_room(store, 1)
            && was_struck
        {
            self.fail(&format!("takes no append after a restart: {err}"), &store.fs.events());
        }
        store.journal = None;
    }

    fn judge(&self, start: &Disk, events: &[Event]) -> u64 {
        check_order(start, events).unwrap_or_else(|err| self.fail(&err, events));
        if let Some(id) = applied_after_failed_sync(events) {
            self.fail(&format!("{id} applied after a failed sync"), events);
        }
        let context = format!("{:?}, drawn from {}", self.plan, self.seed);
        let percent = if full() { 50 } else { 5 };
        let depths = [Depth { percent, effort: EFFORT, deeper_per_mille: 0 }];
        let mut explorer = Explorer::new(&depths, SHAPE, self.seed, context);
        explorer.explore(start, events, &Ledger::with_full_disk(), 0);
        explorer.images
    }

    fn fail(&self, what: &str, events: &[Event]) -> ! {
        let events = super::explore::describe_last(events);
        panic!("{what}: {:?}, drawn from {} {:?}\n{events}", self.plan, self.seed, self.steps);
    }
}

/// Returns an append that was applied, and thus acknowledged, although a sync of a segment had
/// failed.
fn applied_after_failed_sync(events: &[Event]) -> Option<u32> {
    let mut segments = Vec::new();
    let mut is_poisoned = false;
    for event in events {
        match event {
            Event::Op(super::disk::Op::Write { ino, bytes, .. })
                if super::store::marks(bytes).next().is_some() =>
            {
                segments.push(*ino);
            }
            Event::Op(super::disk::Op::SyncFailed(ino, _)) => {
                is_poisoned |= segments.contains(ino);
            }
            Event::Note(Note::Opening) => is_poisoned = false,
            Event::Note(Note::Applied(id)) if is_poisoned => return Some(*id),
            _ => {}
        }
    }
    None
}

fn run_all(steps: &[Step], seed: u64, one_in: usize) {
    let plans = plans(steps);
    let chosen: Vec<Plan> =
        plans.into_iter().skip(seed as usize % one_in).step_by(one_in).collect();
    let images = AtomicU64::new(0);
    in_parallel(THREADS, chosen.len(), |at| {
        let case = Case { steps, plan: chosen[at], seed: seed.wrapping_add(at as u64) };
        images.fetch_add(case.run(), Ordering::Relaxed);
        true
    });
    say(&format!("{} failing calls, {} crash images", chosen.len(), images.into_inner()));
}

#[test]
fn every_call_may_fail_with_every_error() {
    run_all(&whole_life(), seed(), if full() { 1 } else { 3 });
}

#[test]
fn any_call_of_random_lives_may_fail_in_any_way() {
    let seed = seed();
    let mut rng = Rng::new(seed);
    let lives = if full() { 200 } else { 4 };
    for _ in 0..lives {
        let steps = script(&mut rng, 8);
        run_all(&steps, seed, if full() { 1 } else { 7 });
    }
}
