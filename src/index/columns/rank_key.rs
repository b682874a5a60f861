//! Rank of a name as one number.

use crate::vocab::dqs::Dqs;

/// Combines `dqs` (descending) and `length` (ascending) into a number that sorts ascending.
#[inline]
pub fn rank_key(dqs: Dqs, length: u8) -> u16 {
    u16::from(Dqs::MAX.points() - dqs.points()) << 8 | u16::from(length)
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
    }
}
