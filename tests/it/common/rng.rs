//! Random numbers from a seed, the same on every platform (splitmix64).

/// A stream of random numbers.
pub struct Rng(u64);

impl Rng {
    /// Creates the stream of `seed`.
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns 0 to `end - 1`; `end` is 1 or more.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Returns `first` to `last`, both included.
    pub fn between(&mut self, first: i32, last: i32) -> i32 {
        first + self.below((last - first + 1) as usize) as i32
    }

    /// Returns true in about `percent` of 100 cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Returns `value` in about `percent` of 100 cases.
    pub fn maybe<T>(&mut self, percent: usize, value: impl FnOnce(&mut Rng) -> T) -> Option<T> {
        self.chance(percent).then(|| value(self))
    }

    /// Returns one of `choices`, which are not empty.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    /// Puts `items` in a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, self.below(end + 1));
        }
    }
}
