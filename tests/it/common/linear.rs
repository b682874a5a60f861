//! Checks that a history of one register is linearizable: uses the algorithm of Wing and Gong with
//! the cache of Lowe ("Testing for linearizability", 2017).
//!
//! The algorithm looks for an order of the operations in which each takes effect at one moment between
//! its start and its end, and each read returns the value of the write before it. A write without a
//! response may take effect at any time after its start, or never.

use std::collections::HashSet;
use std::thread;

const STACK_BYTES: usize = 1 << 30;

/// An operation on the register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Write(u64),
    /// The value that was read.
    Read(u64),
}

/// An operation, with the times at which it began and ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub op: Op,
    pub begin: u64,
    /// `None` without a response.
    pub end: Option<u64>,
}

/// Returns true if a register that begins with `value` can have this history.
pub fn is_linearizable(value: u64, history: &[Event]) -> bool {
    let mut events = history.to_vec();
    // A write without a response may be omitted, unless a client read its value.
    let is_read = |value| events.iter().any(|event| event.op == Op::Read(value));
    let counts = |event: &&Event| match event.op {
        Op::Write(value) => event.end.is_some() || is_read(value),
        Op::Read(_) => true,
    };
    events = events.iter().filter(counts).copied().collect();
    events.sort_unstable_by_key(|event| event.begin);
    let mut search = Search { events, done: Vec::new(), seen: HashSet::new() };
    search.done = vec![false; search.events.len()];
    // Recursion depth is the length of the history.
    let run = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || search.run(value));
    run.expect("a thread").join().expect("no panic")
}

struct Search {
    /// Sorted by begin.
    events: Vec<Event>,
    done: Vec<bool>,
    /// Sets of completed operations, each with the resulting value, for which no order of the
    /// remaining operations exists.
    seen: HashSet<(Vec<u64>, u64)>,
}

impl Search {
    fn run(&mut self, value: u64) -> bool {
        // Only operations without a response are left.
        let open = |(event, done): (&Event, &bool)| !done && event.end.is_some();
        let Some(first_end) = self
            .events
            .iter()
            .zip(&self.done)
            .filter(|&it| open(it))
            .filter_map(|(event, _)| event.end)
            .min()
        else {
            return true;
        };
        if !self.seen.insert((self.key(), value)) {
            return false;
        }
        // The next operation must have begun before any of the remaining ones ended.
        for at in 0..self.events.len() {
            let event = self.events[at];
            if event.begin > first_end {
                break;
            }
            if self.done[at] || event.op != Op::Read(value) && matches!(event.op, Op::Read(_)) {
                continue;
            }
            let after = match event.op {
                Op::Write(after) => after,
                Op::Read(_) => value,
            };
            self.done[at] = true;
            if self.run(after) {
                return true;
            }
            self.done[at] = false;
        }
        false
    }

    fn key(&self) -> Vec<u64> {
        let mut key = vec![0; self.done.len().div_ceil(64)];
        for (at, _) in self.done.iter().enumerate().filter(|(_, done)| **done) {
            key[at / 64] |= 1 << (at % 64);
        }
        key
    }
}

#[test]
fn the_checker_distinguishes_histories() {
    let event = |op, begin, end| Event { op, begin, end: Some(end) };
    let lost = |op, begin| Event { op, begin, end: None };
    let (write, read) = (Op::Write, Op::Read);
    let linearizable: [&[Event]; 6] = [
        &[],
        &[event(write(1), 0, 1), event(read(1), 2, 3)],
        // Concurrent operations, in either order.
        &[event(write(1), 0, 9), event(read(0), 1, 2), event(read(1), 3, 4)],
        &[event(write(1), 0, 9), event(write(2), 0, 9), event(read(1), 10, 11)],
        // A write without a response takes effect late, or never.
        &[lost(write(1), 0), event(read(0), 1, 2), event(read(1), 3, 4)],
        &[lost(write(1), 0), event(read(0), 1, 2), event(read(0), 3, 4)],
    ];
    for history in linearizable {
        assert!(is_linearizable(0, history), "{history:?}");
    }
    let others: [&[Event]; 5] = [
        // A lost write, and a value that was never written.
        &[event(write(1), 0, 1), event(read(0), 2, 3)],
        &[event(read(7), 0, 1)],
        // A return to an older value.
        &[event(write(1), 0, 9), event(read(1), 1, 2), event(read(0), 3, 4)],
        &[event(write(1), 0, 1), event(write(2), 2, 3), event(read(1), 4, 5)],
        // Two readers that see different orders.
        &[
            event(write(1), 0, 20),
            event(write(2), 0, 20),
            event(read(1), 1, 2),
            event(read(2), 3, 4),
            event(read(1), 5, 6),
        ],
    ];
    for history in others {
        assert!(!is_linearizable(0, history), "{history:?}");
    }
}
