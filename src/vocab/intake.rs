//! What became of the lists that were put into the inbox since the start: written by whoever takes
//! them in, read by whoever shows it. No names of files: they are the operator's.

use std::sync::{Mutex, MutexGuard};

use chrono::{DateTime, Utc};

/// What became of one list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intake {
    /// It is in the corpus now.
    Added,
    /// It was there already: nothing changed.
    Already,
    /// It is no list that can be taken; a note beside it says why.
    Refused,
}

impl Intake {
    /// Every outcome.
    pub const ALL: [Intake; 3] = [Intake::Added, Intake::Already, Intake::Refused];

    /// In one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Intake::Added => "added",
            Intake::Already => "already",
            Intake::Refused => "refused",
        }
    }
}

/// Sums since the start.
#[derive(Clone, Debug, Default)]
pub struct IntakeSums {
    /// Lists by outcome, in the order of [`Intake::ALL`].
    lists: [u64; Intake::ALL.len()],
    /// The last one, and when.
    pub last: Option<(DateTime<Utc>, Intake)>,
    /// Lists that wait to be taken in.
    pub waiting: usize,
    /// Why nothing goes on at the moment.
    pub problem: Option<String>,
}

impl IntakeSums {
    /// Lists with this outcome.
    pub fn lists(&self, outcome: Intake) -> u64 {
        self.lists[outcome as usize]
    }
}

/// The sums, for all who share them.
#[derive(Debug, Default)]
pub struct IntakeLog(Mutex<IntakeSums>);

impl IntakeLog {
    /// The sums as they are now.
    pub fn sums(&self) -> IntakeSums {
        self.lock().clone()
    }

    /// One more list is done.
    pub fn add(&self, outcome: Intake, now: DateTime<Utc>) {
        let mut sums = self.lock();
        sums.lists[outcome as usize] += 1;
        sums.last = Some((now, outcome));
    }

    /// So many wait.
    pub fn set_waiting(&self, waiting: usize) {
        self.lock().waiting = waiting;
    }

    /// What stands in the way; `None` for nothing.
    pub fn set_problem(&self, problem: Option<String>) {
        self.lock().problem = problem;
    }

    fn lock(&self) -> MutexGuard<'_, IntakeSums> {
        self.0.lock().expect("no code panics holding this lock")
    }
}
