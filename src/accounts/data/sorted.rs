//! A sorted map whose clone shares its rows.
//!
//! Changes are made under the lock of the whole state, while a reader or a snapshot may hold the
//! previous rows. A plain map would then be copied completely, which takes tens of milliseconds for
//! the largest accounts. This map keeps its rows in short chunks and its chunks in short groups: a
//! change copies the chunk of the row, the pointers of its group, and one pointer for each other
//! group.

use std::borrow::Borrow;
use std::sync::Arc;

/// Maximum rows of a chunk.
const CHUNK_ROWS_MAX: usize = 64;
/// Maximum chunks of a group. A hundred thousand rows need about thirty groups.
const GROUP_CHUNKS_MAX: usize = 64;

/// Rows in ascending order. Invariant: not empty.
type Chunk<K, V> = Vec<(K, V)>;
/// Chunks in ascending order. Invariant: not empty.
type Group<K, V> = Vec<Arc<Chunk<K, V>>>;

/// A map in ascending order of keys.
#[derive(Clone, Debug)]
pub struct Sorted<K, V> {
    groups: Vec<Arc<Group<K, V>>>,
    len: usize,
}

impl<K, V> Default for Sorted<K, V> {
    fn default() -> Sorted<K, V> {
        Sorted { groups: Vec::new(), len: 0 }
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

    /// Returns the rows in ascending order of keys.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        let chunks = self.groups.iter().flat_map(|group| group.iter());
        chunks.flat_map(|chunk| chunk.iter()).map(|(key, value)| (key, value))
    }

    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// Returns the row with the smallest key.
    pub fn first(&self) -> Option<&(K, V)> {
        self.groups.first()?.first()?.first()
    }
}

impl<K: Ord, V> Sorted<K, V> {
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let (group, chunk, row) = self.find(key)?;
        Some(&self.groups[group][chunk][row].1)
    }

    /// Returns the group, chunk and position of a key.
    fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Option<(usize, usize, usize)>
    where
        K: Borrow<Q>,
    {
        let group = group_of(&self.groups, key);
        let chunks = self.groups.get(group)?;
        let chunk = chunk_of(chunks, key);
        let row = chunks[chunk].binary_search_by(|row| row.0.borrow().cmp(key)).ok()?;
        Some((group, chunk, row))
    }
}

/// Returns the only group that may contain a key: the last one that does not begin after the key.
fn group_of<K: Borrow<Q>, V, Q: Ord + ?Sized>(groups: &[Arc<Group<K, V>>], key: &Q) -> usize {
    groups.partition_point(|group| group[0][0].0.borrow() <= key).saturating_sub(1)
}

/// Returns the only chunk of a group that may contain a key.
fn chunk_of<K: Borrow<Q>, V, Q: Ord + ?Sized>(chunks: &[Arc<Chunk<K, V>>], key: &Q) -> usize {
    chunks.partition_point(|chunk| chunk[0].0.borrow() <= key).saturating_sub(1)
}

impl<K: Ord + Clone, V: Clone> Sorted<K, V> {
    /// Returns the value of a key, to be changed. Copies the chunk if it is shared.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let (group, chunk, row) = self.find(key)?;
        let chunks = Arc::make_mut(&mut self.groups[group]);
        Some(&mut Arc::make_mut(&mut chunks[chunk])[row].1)
    }

    /// Adds a row, or replaces and returns the value of its key.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let group = group_of(&self.groups, &key);
        let is_last = group + 1 >= self.groups.len();
        let Some(chunks) = self.groups.get_mut(group).map(Arc::make_mut) else {
            self.groups.push(Arc::new(vec![Arc::new(vec![(key, value)])]));
            self.len = 1;
            return None;
        };
        let chunk = chunk_of(chunks, &key);
        let is_last = is_last && chunk + 1 == chunks.len();
        let rows = Arc::make_mut(&mut chunks[chunk]);
        let at = match rows.binary_search_by(|row| row.0.cmp(&key)) {
            Ok(at) => return Some(std::mem::replace(&mut rows[at].1, value)),
            Err(at) => at,
        };
        self.len += 1;
        if rows.len() < CHUNK_ROWS_MAX {
            if rows.len() == rows.capacity() {
                // A growing vector would double its capacity, possibly beyond the maximum.
                rows.reserve_exact(rows.len().min(CHUNK_ROWS_MAX - rows.len()));
            }
            rows.insert(at, (key, value));
            return None;
        }
        // Rows that are inserted in order fill their chunks.
        let is_last = is_last && at == rows.len();
        let mut upper = if is_last { Vec::new() } else { rows.split_off(CHUNK_ROWS_MAX / 2) };
        match at.checked_sub(rows.len()) {
            Some(at) => upper.insert(at, (key, value)),
            None => rows.insert(at, (key, value)),
        }
        chunks.insert(chunk + 1, Arc::new(upper));
        if chunks.len() > GROUP_CHUNKS_MAX {
            let kept = if is_last { GROUP_CHUNKS_MAX } else { GROUP_CHUNKS_MAX / 2 };
            let upper = chunks.split_off(kept);
            self.groups.insert(group + 1, Arc::new(upper));
        }
        None
    }

    /// Removes a row and returns its value.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let (group, chunk, row) = self.find(key)?;
        let chunks = Arc::make_mut(&mut self.groups[group]);
        let rows = Arc::make_mut(&mut chunks[chunk]);
        let (_, value) = rows.remove(row);
        if rows.is_empty() {
            chunks.remove(chunk);
        }
        if chunks.is_empty() {
            self.groups.remove(group);
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
        for group in &ours.groups {
            assert!((1..=GROUP_CHUNKS_MAX).contains(&group.len()));
            assert!(group.iter().all(|chunk| (1..=CHUNK_ROWS_MAX).contains(&chunk.len())));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn behaves_as_a_map_and_shares_with_its_clones(
            steps in prop::collection::vec((0u16..10_000, 0u8..8), 0..12_000),
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
                if step % 2_000 == 0 {
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
        let rows_max = CHUNK_ROWS_MAX * GROUP_CHUNKS_MAX;
        assert_eq!(rows.groups.len(), 100_000usize.div_ceil(rows_max));
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
        let chunks = |it: &Sorted<u32, u32>| -> Vec<_> {
            it.groups.iter().flat_map(|group| group.iter().map(Arc::as_ptr)).collect()
        };
        let held_chunks = chunks(&held);
        let copied = chunks(&rows).into_iter().filter(|chunk| !held_chunks.contains(chunk));
        assert_eq!(copied.count(), 2);
        assert_eq!((held.get(&5_000), held.get(&1)), (Some(&5_000), Some(&1)));
    }
}
