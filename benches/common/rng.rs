//! Random numbers that depend only on a seed and a place, never on earlier draws, so that threads may
//! draw in any order with the same result.

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
#[derive(Clone, Debug)]
pub struct Rng(u64);

/// The odd increment of SplitMix64: 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl Rng {
    /// Creates the generator of a place; equal arguments lead to equal numbers.
    pub fn at(seed: u64, place: u64) -> Rng {
        Rng(mix(seed ^ mix(place.wrapping_add(GOLDEN))))
    }

    /// Creates the generator of the place that a text names.
    pub fn of(seed: u64, text: &str) -> Rng {
        // FNV-1a, which never changes, unlike the standard library's hasher.
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Rng::at(seed, hash)
    }

    /// Returns any 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// Returns a number in `0..end`; 0 if `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// Returns true `per_mille` times in a thousand.
    pub fn chance(&mut self, per_mille: u32) -> bool {
        self.below(1000) < u64::from(per_mille)
    }

    /// Returns one of `items`, or `None` if there are none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len() as u64) as usize)
    }
}

fn mix(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Returns the numbers `0..len`, each once, in a random order. There is no list of them, because it
/// would take more memory than some corpora.
///
/// A Feistel network over the next even power of two; numbers that are not below `len` are skipped.
pub fn shuffled(len: u64, seed: u64) -> impl Iterator<Item = u64> {
    let half = len.next_power_of_two().trailing_zeros().div_ceil(2).max(1);
    let mask = (1_u64 << half) - 1;
    let permute = move |number: u64| {
        let (left, right) = (0..4).fold((number >> half, number & mask), |(left, right), round| {
            (right, left ^ (mix(seed ^ mix(right << 8 | round)) & mask))
        });
        left << half | right
    };
    (0..1_u64 << (2 * half)).map(permute).filter(move |&number| number < len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_differ_and_repeat() {
        let numbers = |seed, place| {
            let mut rng = Rng::at(seed, place);
            [rng.next(), rng.next()]
        };
        assert_eq!(numbers(1, 2), numbers(1, 2));
        assert_ne!(numbers(1, 2), numbers(1, 3));
        assert_ne!(numbers(1, 2), numbers(2, 2));
        assert_ne!(Rng::of(1, "a.com").next(), Rng::of(1, "b.com").next());
    }

    #[test]
    fn draws_are_even() {
        let mut rng = Rng::at(7, 0);
        let mut seen = [0_u32; 10];
        for _ in 0..100_000 {
            seen[rng.below(10) as usize] += 1;
        }
        assert!(seen.iter().all(|&count| (9_500..10_500).contains(&count)), "{seen:?}");
        let hits = (0..100_000).filter(|_| rng.chance(30)).count();
        assert!((2_700..3_300).contains(&hits), "{hits}");
        assert_eq!((rng.below(0), rng.below(1)), (0, 0));
        assert_eq!(rng.pick::<u8>(&[]), None);
    }

    #[test]
    fn shuffled_numbers_are_complete_and_in_random_order() {
        for len in [0, 1, 2, 3, 64, 1_000, 65_537] {
            let mut numbers: Vec<u64> = shuffled(len, 1).collect();
            let rises = numbers.windows(2).filter(|pair| pair[0] < pair[1]).count() as u64;
            assert!(len < 1_000 || rises.abs_diff(len / 2) < len / 20, "{rises} of {len} rise");
            assert!(len < 1_000 || !shuffled(len, 2).eq(numbers.iter().copied()));
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq(0..len), "{len}");
        }
    }
}
