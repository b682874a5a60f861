//! Merges sorted results of several layers.

use std::cmp::Ordering;

/// Merges sorted lists and keeps the first `take` elements.
pub fn merged<T>(
    lists: impl IntoIterator<Item = Vec<T>>,
    take: usize,
    mut compare: impl FnMut(&T, &T) -> Ordering,
) -> Vec<T> {
    let mut lists = lists.into_iter();
    let mut all = lists.next().unwrap_or_default();
    for list in lists {
        let (mut one, mut other) = (all.into_iter().peekable(), list.into_iter().peekable());
        let next = || match (one.peek(), other.peek()) {
            (Some(a), Some(b)) if compare(a, b).is_gt() => other.next(),
            (Some(_), _) => one.next(),
            (None, _) => other.next(),
        };
        all = std::iter::from_fn(next).take(take).collect();
    }
    all.truncate(take);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_elements_of_all_lists_are_kept_in_order() {
        let lists = || vec![vec![1, 4, 4, 9], vec![], vec![0, 2, 9, 10]];
        let all = [0, 1, 2, 4, 4, 9, 9, 10];
        for take in 0..10 {
            assert_eq!(merged(lists(), take, Ord::cmp), all[..take.min(all.len())]);
        }
        assert_eq!(merged([vec![3, 5]], 1, Ord::cmp), [3]);
        assert!(merged([], 1, u8::cmp).is_empty());
    }
}
