//! Possible states after a power loss: all of them if there are few, otherwise a sample that covers
//! every kind.

use super::disk::{Chooser, Disk};
use crate::common::rng::Rng;

/// Number of states to try.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// If there are at most this many states, all of them are tried.
    pub all_up_to: usize,
    /// Number of states that are sampled if there are more than that.
    pub samples: usize,
}

/// Returns possible contents of `disk` after a power loss.
pub fn images(disk: &Disk, effort: Effort, rng: &mut Rng) -> Vec<Disk> {
    let mut counter = Counter::default();
    let newest = disk.crash(&mut counter);
    if counter.ways <= effort.all_up_to {
        return all(disk);
    }
    let mut images = vec![newest];
    for at in 1..effort.samples {
        let mut sampler = Sampler::new(at, counter.choices, rng);
        images.push(disk.crash(&mut sampler));
    }
    images
}

fn all(disk: &Disk) -> Vec<Disk> {
    let mut odometer = Odometer::default();
    let mut images = Vec::new();
    loop {
        odometer.at = 0;
        images.push(disk.crash(&mut odometer));
        if !odometer.advance() {
            return images;
        }
    }
}

/// Keeps everything, and counts the possible states.
struct Counter {
    ways: usize,
    choices: usize,
}

impl Default for Counter {
    fn default() -> Counter {
        Counter { ways: 1, choices: 0 }
    }
}

impl Chooser for Counter {
    fn choose(&mut self, count: usize, _unit: u64) -> usize {
        self.choices += 1;
        self.ways = self.ways.saturating_mul(count);
        count - 1
    }
}

/// Steps through all combinations of choices.
#[derive(Default)]
struct Odometer {
    /// The choices made, each with its number of options.
    picks: Vec<(usize, usize)>,
    at: usize,
}

impl Odometer {
    /// Advances to the next combination; false after the last.
    fn advance(&mut self) -> bool {
        while let Some((pick, count)) = self.picks.pop() {
            if pick + 1 < count {
                self.picks.push((pick + 1, count));
                return true;
            }
        }
        false
    }
}

impl Chooser for Odometer {
    fn choose(&mut self, count: usize, _unit: u64) -> usize {
        if self.at == self.picks.len() {
            self.picks.push((0, count));
        }
        self.at += 1;
        self.picks[self.at - 1].0
    }
}

/// Kinds of samples.
enum Sort {
    /// Nothing was kept.
    Oldest,
    /// Each change was kept with this probability in percent, or otherwise reverted to any earlier
    /// state.
    Coin(usize),
    /// The first changes were kept, later ones lost.
    First(usize),
    /// All but the first changes were kept.
    Last(usize),
    /// All but this change were kept.
    AllBut(usize),
    /// Exactly one change was kept.
    Only(usize),
    /// Pages were kept or lost as a whole.
    Pages(u64),
}

struct Sampler {
    sort: Sort,
    rng: Rng,
    seen: usize,
}

impl Sampler {
    /// Creates the `at`-th sample of a crash with about this many choices. The kinds take turns.
    fn new(at: usize, choices: usize, rng: &mut Rng) -> Sampler {
        let seed = rng.below(usize::MAX) as u64;
        let place = rng.below(choices.max(1));
        let sort = match at % 8 {
            1 => Sort::Oldest,
            2 => Sort::Coin(90),
            3 => Sort::AllBut(place),
            4 => Sort::First(place),
            5 => Sort::Last(place),
            6 => Sort::Pages(seed),
            7 => Sort::Only(place),
            _ => Sort::Coin(*rng.pick(&[0, 20, 50, 80])),
        };
        Sampler { sort, rng: Rng::new(seed), seen: 0 }
    }
}

impl Chooser for Sampler {
    fn choose(&mut self, count: usize, unit: u64) -> usize {
        let at = self.seen;
        self.seen += 1;
        let is_kept = match self.sort {
            Sort::Oldest => false,
            Sort::Coin(percent) if self.rng.chance(percent) => true,
            Sort::Coin(_) => return self.rng.below(count),
            Sort::First(end) => at < end,
            Sort::Last(start) => at >= start,
            Sort::AllBut(place) => at != place,
            Sort::Only(place) => at == place,
            Sort::Pages(seed) => Rng::new(seed ^ unit).chance(50),
        };
        if is_kept { count - 1 } else { 0 }
    }
}
