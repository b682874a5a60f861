//! Rank of a name as one number.

use crate::vocab::dqs::Dqs;

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
    u64::from(key >> 8) << 32 | u64::from(u16::MAX - rank) << 16 | u64::from(key & 0xff)
}

/// Returns the score of a [`rank_key`].
#[inline]
pub fn dqs_of(key: u16) -> Dqs {
    Dqs::clamped(i32::from(Dqs::MAX.points()) - i32::from(key >> 8))
}

/// Returns the length of a [`rank_key`].
#[inline]
pub fn length_of(key: u16) -> u8 {
    (key & 0xff) as u8
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
            }
        }
        let dqs = |points| Dqs::new(points).expect("in range");
        assert!(rank_key(dqs(80), 9) < rank_key(dqs(79), 1));
        assert!(rank_key(dqs(80), 8) < rank_key(dqs(80), 9));
        let ordered = [(81, 1, 9), (80, 7, 9), (80, 6, 8), (80, 6, 9), (79, 9, 1)];
        assert!(ordered.is_sorted_by(|one, next| {
            let of = |&(points, rank, length)| order_key(rank_key(dqs(points), length), rank);
            of(one) < of(next)
        }));
    }
}
