//! Numbers of a fixed number of bits, one after the other. A number is one unaligned read of eight bytes,
//! a shift and a mask.

use rayon::prelude::*;

use crate::error::{BuildError, GenerationError};
use crate::storage::draft::Draft;
use crate::storage::files::Files;

/// Bytes of a read.
const READ: usize = size_of::<u64>();
/// Maximum bits of a number: even with a shift of 7 bits, one read covers the number.
const BITS_MAX: u32 = 32;
/// Numbers per parallel task.
const NUMBERS_PER_PIECE: usize = 1 << 16;

/// Numbers below a bound, by position.
#[derive(Debug, Default)]
pub struct Packed {
    bits: u32,
    len: usize,
    /// The numbers, followed by the zeros that the last read needs.
    bytes: Vec<u8>,
}

impl Packed {
    /// Packs `len` numbers below `bound`.
    pub fn new(bound: usize, len: usize, numbers: impl Iterator<Item = u32>) -> Packed {
        let bits = bits_for(bound);
        let mut bytes = vec![0; bytes_for(bits, len)];
        for (at, number) in numbers.enumerate() {
            let bit = at * bits as usize;
            let place = &mut bytes[bit / 8..bit / 8 + READ];
            let shifted = u64::from(number) << (bit % 8);
            place.iter_mut().zip(shifted.to_le_bytes()).for_each(|(byte, more)| *byte |= more);
        }
        Packed { bits, len, bytes }
    }

    /// Returns the number of stored numbers.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the bytes of memory.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the number at a position below [`Packed::len`].
    #[inline]
    pub fn get(&self, at: usize) -> u32 {
        let bit = at * self.bits as usize;
        let read = self.bytes[bit / 8..].first_chunk().expect("padded to a whole read");
        let mask = (1u64 << self.bits) - 1;
        (u64::from_le_bytes(*read) >> (bit % 8) & mask) as u32
    }

    /// Returns the numbers in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        (0..self.len).map(|at| self.get(at))
    }

    /// Returns the position of the first number for which `holds` is false. `holds` must be true
    /// for all numbers before that one.
    pub fn partition_point(&self, holds: impl Fn(u32) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = low + (high - low) / 2;
            if holds(self.get(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Writes the file.
    ///
    /// # Errors
    /// A write fails.
    pub fn write(&self, name: &str, draft: &Draft) -> Result<(), BuildError> {
        draft.put(name, &self.bytes)
    }

    /// Opens the files that [`Packed::write`] wrote for `len` numbers below `bound`.
    ///
    /// # Errors
    /// The file is damaged, does not hold `len` numbers, or holds one that is not below the bound.
    pub fn open(
        name: &str,
        bound: usize,
        len: usize,
        files: &Files,
    ) -> Result<Packed, GenerationError> {
        let bits = bits_for(bound);
        let read = Packed { bits, len, bytes: files.take(name)? };
        let fits = read.bytes.len() == bytes_for(bits, len)
            && (0..len)
                .into_par_iter()
                .with_min_len(NUMBERS_PER_PIECE)
                .all(|at| (read.get(at) as usize) < bound);
        files.check(fits, name)?;
        Ok(read)
    }
}

/// Returns the bits of the numbers below `bound`.
fn bits_for(bound: usize) -> u32 {
    let bits = usize::BITS - bound.saturating_sub(1).leading_zeros();
    assert!(bits <= BITS_MAX, "numbers of {bits} bits are not packed");
    bits
}

fn bytes_for(bits: u32, len: usize) -> usize {
    (len * bits as usize).div_ceil(8) + READ
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::fixtures::round_trip;

    #[test]
    fn numbers_of_any_width_round_trip() {
        let mut rng = fastrand::Rng::with_seed(2);
        for bound in [1usize, 2, 3, 255, 256, 257, 1 << 11, (1 << 31) + 1, 1 << 32] {
            for len in [0usize, 1, 7, 64, 1_000] {
                let numbers: Vec<u32> =
                    (0..len).map(|_| rng.usize(0..bound).max(bound / 2) as u32).collect();
                let packed = Packed::new(bound, len, numbers.iter().copied());
                assert!(packed.iter().eq(numbers.iter().copied()), "{len} below {bound}");
                let (_folder, files) =
                    round_trip(|draft| packed.write("packed", draft)).expect("written");
                let read = Packed::open("packed", bound, len, &files).expect("sound");
                assert!(read.iter().eq(numbers.iter().copied()));
                let longer = Packed::open("packed", bound, len + 64, &files);
                assert!(longer.is_err() || bound == 1, "too short");
            }
        }
    }

    #[test]
    fn a_number_that_is_not_below_the_bound_is_refused() {
        let packed = Packed::new(8, 3, [1, 6, 2].into_iter());
        let (_folder, files) = round_trip(|draft| packed.write("packed", draft)).expect("written");
        assert!(Packed::open("packed", 7, 3, &files).is_ok());
        assert!(Packed::open("packed", 6, 3, &files).is_err());
    }
}
