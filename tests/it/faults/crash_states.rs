//! Power loss at every call of short lives of a journal, and at every call of the recovery.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dropdex::journal::Marking;

use super::crash::Effort;
use super::disk::Disk;
use super::explore::{Depth, Explorer, check_order};
use super::fs::{Event, SimFs};
use super::store::{ABOVE, Ledger, Shape, Step, Store, script};
use super::{cores, in_parallel};
use crate::common::rng::Rng;
use crate::common::runs::{full, say, seed};

/// Segment sizes, small enough that a short life has several segments.
const SEGMENT_BYTES: [u64; 3] = [1_024, 2_048, 4_096];
const STEPS: usize = 8;
/// Pause between marks of the background thread, so that marks are written at different moments in
/// each run.
const MARK_PAUSE: Duration = Duration::from_millis(1);

/// Runs a script on an empty disk, and returns the disk with all events.
fn live(steps: &[Step], shape: Shape) -> (Disk, Vec<Event>) {
    let start = Disk::with_dir(ABOVE.as_ref());
    let fs = SimFs::sound(start.clone());
    let mut store = Store::open(&fs, shape, 0);
    steps.iter().for_each(|step| store.step(step));
    assert!(store.journal.is_some(), "the last open failed: {steps:?}");
    store.journal = None;
    (start, fs.events())
}

/// Crashes scripts until `images` crash images were tried; returns the number tried and the number
/// opened.
fn crash_scripts(seed: u64, depths: &[Depth], images: u64) -> (u64, u64) {
    let (tried, opened) = (AtomicU64::new(0), AtomicU64::new(0));
    in_parallel(cores(), usize::MAX, |at| {
        if tried.load(Ordering::Relaxed) >= images {
            return false;
        }
        let seed = seed.wrapping_add(at as u64);
        let mut rng = Rng::new(seed);
        let steps = script(&mut rng, STEPS);
        let shape = Shape {
            segment_bytes: *rng.pick(&SEGMENT_BYTES),
            marking: *rng.pick(&[Marking::Inline, Marking::Background(MARK_PAUSE)]),
        };
        let context = format!("DROPDEX_SEED={seed}, {shape:?}: {steps:?}");
        let (start, events) = live(&steps, shape);
        check_order(&start, &events).unwrap_or_else(|err| panic!("{err}: {context}"));
        let mut explorer = Explorer::new(depths, shape, seed, context);
        explorer.explore(&start, &events, &Ledger::new(), 0);
        tried.fetch_add(explorer.images, Ordering::Relaxed);
        opened.fetch_add(explorer.opened, Ordering::Relaxed);
        true
    });
    (tried.into_inner(), opened.into_inner())
}

#[test]
fn power_loss_at_any_call_keeps_acknowledged_records_and_opens() {
    let effort = Effort { all_up_to: 128, samples: 16 };
    let depths = [Depth { percent: 100, effort, deeper_per_mille: 0 }];
    let images = if full() { 1_000_000 } else { 10_000 };
    let (tried, opened) = crash_scripts(seed(), &depths, images);
    say(&format!("{tried} crash images, {opened} of them different ones that were opened"));
}

#[test]
fn power_loss_during_nested_recoveries_keeps_acknowledged_records() {
    let at = |percent, all_up_to, samples, deeper_per_mille| Depth {
        percent,
        effort: Effort { all_up_to, samples },
        deeper_per_mille,
    };
    let depths = [at(20, 8, 4, 200), at(100, 32, 8, 20), at(100, 16, 6, 0)];
    let images = if full() { 1_000_000 } else { 10_000 };
    let (tried, opened) = crash_scripts(seed(), &depths, images);
    say(&format!("{tried} crash images, {opened} of them different ones that were opened"));
}
