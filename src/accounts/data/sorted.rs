//! A sorted map whose clone shares its rows.
//!
//! A change happens under the lock of the whole state, while a reader or a snapshot may hold the rows
//! as they were. A plain map would then be copied whole, which takes tens of milliseconds for the
//! largest accounts. This one keeps its rows in short chunks: a change copies the chunk that holds the
//! row, and one pointer for each of the others.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::sync::Arc;

/// Maximum rows of a chunk: a hundred thousand rows take about a thousand chunks.
const CHUNK_ROWS_MAX: usize = 128;

/// A map in ascending order of keys.
#[derive(Clone, Debug)]
pub struct Sorted<K, V> {
    /// Invariant: ascending, and none is empty.
    chunks: Vec<Arc<Vec<(K, V)>>>,
    len: usize,
}

impl<K, V> Default for Sorted<K, V> {
    fn default() -> Sorted<K, V> {
        Sorted { chunks: Vec::new(), len: 0 }
    }
}

impl<K: PartialEq, V: PartialEq> PartialEq for Sorted<K, V> {
    /// Compares the rows; their chunks depend on the order of insertion.
    fn eq(&self, other: &Sorted<K, V>) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl<K: Eq, V: Eq> Eq for Sorted<K, V> {}

impl<K, V> Sorted<K, V> {
    pub fn len(&self) -> usize {
        self.len
    }

    /// In ascending order of keys.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.chunks.iter().flat_map(|chunk| chunk.iter()).map(|(key, value)| (key, value))
    }

    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// The row with the smallest key.
    pub fn first(&self) -> Option<&(K, V)> {
        self.chunks.first()?.first()
    }
}

impl<K: Ord, V> Sorted<K, V> {
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let (chunk, at) = self.find(key)?;
        Some(&self.chunks[chunk][at].1)
    }

    /// The chunk and position of a key.
    fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Option<(usize, usize)>
    where
        K: Borrow<Q>,
    {
        let chunk = self.chunk_of(key);
        let at = self.chunks.get(chunk)?.binary_search_by(|row| row.0.borrow().cmp(key)).ok()?;
        Some((chunk, at))
    }

    /// The only chunk that may hold a key: the last one that does not begin after it.
    fn chunk_of<Q: Ord + ?Sized>(&self, key: &Q) -> usize
    where
        K: Borrow<Q>,
    {
        let begins = |chunk: &Arc<Vec<(K, V)>>| chunk[0].0.borrow().cmp(key) != Ordering::Greater;
        self.chunks.partition_point(begins).saturating_sub(1)
    }
}

impl<K: Ord + Clone, V: Clone> Sorted<K, V> {
    /// The value of a key, to be changed. Copies its chunk if that is shared.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let (chunk, at) = self.find(key)?;
        Some(&mut Arc::make_mut(&mut self.chunks[chunk])[at].1)
    }

    /// Adds a row, or replaces the value of its key, which is returned.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let found = self.chunk_of(&key);
        let is_last = found + 1 >= self.chunks.len();
        let Some(chunk) = self.chunks.get_mut(found).map(Arc::make_mut) else {
            self.chunks.push(Arc::new(vec![(key, value)]));
            self.len = 1;
            return None;
        };
        let at = match chunk.binary_search_by(|row| row.0.cmp(&key)) {
            Ok(at) => return Some(std::mem::replace(&mut chunk[at].1, value)),
            Err(at) => at,
        };
        self.len += 1;
        if chunk.len() < CHUNK_ROWS_MAX {
            chunk.insert(at, (key, value));
        } else if is_last && at == chunk.len() {
            // Rows that arrive in order fill their chunks.
            self.chunks.push(Arc::new(vec![(key, value)]));
        } else {
            let mut upper = chunk.split_off(CHUNK_ROWS_MAX / 2);
            match at.checked_sub(chunk.len()) {
                Some(at) => upper.insert(at, (key, value)),
                None => chunk.insert(at, (key, value)),
            }
            self.chunks.insert(found + 1, Arc::new(upper));
        }
        None
    }

    /// Removes a row and returns its value.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let (found, at) = self.find(key)?;
        let chunk = Arc::make_mut(&mut self.chunks[found]);
        let (_, value) = chunk.remove(at);
        if chunk.is_empty() {
            self.chunks.remove(found);
        }
        self.len -= 1;
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn same(ours: &Sorted<u16, u32>, model: &BTreeMap<u16, u32>) {
        assert!(ours.iter().eq(model.iter()) && ours.len() == model.len());
        assert!(ours.iter().rev().eq(model.iter().rev()));
        assert_eq!(ours.first().map(|(key, _)| key), model.keys().next());
        let bounded = |chunk: &Arc<Vec<_>>| (1..=CHUNK_ROWS_MAX).contains(&chunk.len());
        assert!(ours.chunks.iter().all(bounded));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn behaves_as_a_map_and_shares_with_its_clones(
            steps in prop::collection::vec((0u16..1_000, 0u8..5), 0..3_000),
        ) {
            let (mut ours, mut model) = (Sorted::default(), BTreeMap::new());
            let mut kept = Vec::new();
            for (step, (key, what)) in steps.into_iter().enumerate() {
                let value = step as u32;
                match what {
                    0 => prop_assert_eq!(ours.remove(&key), model.remove(&key)),
                    1 => prop_assert_eq!(ours.get(&key), model.get(&key)),
                    2 => {
                        let (ours, model) = (ours.get_mut(&key), model.get_mut(&key));
                        prop_assert_eq!(&ours, &model);
                        ours.into_iter().chain(model).for_each(|it| *it = value);
                    }
                    _ => prop_assert_eq!(ours.insert(key, value), model.insert(key, value)),
                }
                if step % 500 == 0 {
                    kept.push((ours.clone(), model.clone()));
                }
            }
            same(&ours, &model);
            kept.iter().for_each(|(ours, model)| same(ours, model));
            let (rows, mut again) = (model.iter().rev(), Sorted::default());
            for (key, value) in rows {
                again.insert(*key, *value);
            }
            prop_assert_eq!(again, ours);
        }
    }

    #[test]
    fn rows_in_order_fill_their_chunks() {
        let mut rows = Sorted::default();
        for key in 0..100_000u32 {
            rows.insert(key, ());
        }
        assert_eq!(rows.chunks.len(), 100_000usize.div_ceil(CHUNK_ROWS_MAX));
    }

    #[test]
    fn a_change_of_shared_rows_copies_one_chunk() {
        let mut rows = Sorted::default();
        for key in 0..10_000u32 {
            rows.insert(key, key);
        }
        let held = rows.clone();
        rows.insert(5_000, 7);
        rows.remove(&1);
        let shared = |chunk: &Arc<_>| held.chunks.iter().any(|other| Arc::ptr_eq(chunk, other));
        assert_eq!(rows.chunks.iter().filter(|chunk| !shared(chunk)).count(), 2);
        assert_eq!((held.get(&5_000), held.get(&1)), (Some(&5_000), Some(&1)));
    }
}
