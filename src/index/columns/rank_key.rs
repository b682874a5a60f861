//! Rank of a name as one number.

use crate::vocab::dqs::Dqs;
use crate::vocab::limits::LABEL_CHARS_MAX;

/// Bit of the keys of adult names, above the bits of the length: they follow the others of their score.
pub const ADULT: u16 = 1 << 7;
const _: () = assert!(LABEL_CHARS_MAX < 1 << 7);

/// Combines `dqs` and `length` into a number. Ascending order of these numbers is descending by
/// score, then ascending by length.
#[inline]
pub fn rank_key(dqs: Dqs, length: u8) -> u16 {
    u16::from(Dqs::MAX.points() - dqs.points()) << 8 | u16::from(length)
}

/// Combines a [`rank_key`] and the unrounded score into a number that sorts like the drops list: by
/// score, then by unrounded score, both descending, then by length.
#[inline]
pub fn order_key(key: u16, rank: u16) -> u64 {
    u64::from(key >> 8) << 32 | u64::from(u16::MAX - rank) << 16 | u64::from(length_of(key))
}

/// Returns the score of a [`rank_key`].
#[inline]
pub fn dqs_of(key: u16) -> Dqs {
    Dqs::clamped(i32::from(Dqs::MAX.points()) - i32::from(key >> 8))
}

/// Returns the length of a [`rank_key`].
#[inline]
pub fn length_of(key: u16) -> u8 {
    (key & (ADULT - 1)) as u8
}

/// Returns the part of a [`rank_key`] that orders names of the same score: the length, plus [`ADULT`].
#[inline]
pub fn within_score(key: u16) -> u8 {
    key as u8
}

/// Returns true for the key of an adult name.
#[inline]
pub fn is_adult(key: u16) -> bool {
    key & ADULT != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_hold_score_and_length() {
        for points in 0..=100 {
            let dqs = Dqs::new(points).expect("in range");
            for length in [1, 63] {
                let key = rank_key(dqs, length);
                assert_eq!((dqs_of(key), length_of(key)), (dqs, length));
                let adult = key | ADULT;
                assert_eq!((dqs_of(adult), length_of(adult)), (dqs, length));
                assert_eq!([key, adult].map(is_adult), [false, true]);
            }
        }
        let dqs = |points| Dqs::new(points).expect("in range");
        assert!(rank_key(dqs(80), 9) < rank_key(dqs(79), 1));
        assert!(rank_key(dqs(80), 8) < rank_key(dqs(80), 9));
        assert!(rank_key(dqs(80), 63) < rank_key(dqs(80), 1) | ADULT);
        assert!(rank_key(dqs(80), 63) | ADULT < rank_key(dqs(79), 1));
        let ordered = [(81, 1, 9), (80, 7, 9), (80, 6, 8), (80, 6, 9), (79, 9, 1)];
        assert!(ordered.is_sorted_by(|one, next| {
            let of = |&(points, rank, length)| order_key(rank_key(dqs(points), length), rank);
            of(one) < of(next)
        }));
    }
}
