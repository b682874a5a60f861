//! A cache of a few values by key, such as the data of a day.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;

/// The last `N` values that were asked for first.
pub(crate) struct Kept<K, T, const N: usize> {
    /// Newest first.
    values: ArcSwap<Vec<(K, Arc<T>)>>,
    making: Mutex<()>,
}

impl<K, T, const N: usize> Default for Kept<K, T, N> {
    fn default() -> Kept<K, T, N> {
        Kept { values: ArcSwap::default(), making: Mutex::default() }
    }
}

impl<K: Copy + PartialEq, T, const N: usize> Kept<K, T, N> {
    /// Returns a value if it was made.
    pub(crate) fn find(&self, key: K) -> Option<Arc<T>> {
        let values = self.values.load();
        values.iter().find(|(of, _)| *of == key).map(|(_, value)| Arc::clone(value))
    }

    /// Returns a value, which one thread makes while others wait.
    pub(crate) fn get(&self, key: K, make: impl FnOnce() -> T) -> Arc<T> {
        if let Some(value) = self.find(key) {
            return value;
        }
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = self.find(key) {
            return value;
        }
        let value = Arc::new(make());
        let older = self.values.load().iter().take(N - 1).cloned().collect();
        self.values.store(Arc::new([vec![(key, Arc::clone(&value))], older].concat()));
        value
    }
}
