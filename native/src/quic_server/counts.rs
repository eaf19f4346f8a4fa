//! How many handshakes, connections and verdicts each address and account has; only those with some
//! have an entry.

use std::collections::HashMap;
use std::hash::Hash;

use parking_lot::Mutex;

/// Counts by address or account.
#[derive(Debug)]
pub(super) struct Counts<K> {
    counts: HashMap<K, usize>,
    total: usize,
}

impl<K: Eq + Hash + Copy> Counts<K> {
    pub(super) fn new() -> Self {
        Self { counts: HashMap::new(), total: 0 }
    }

    pub(super) fn of(&self, key: K) -> usize {
        self.counts.get(&key).copied().unwrap_or(0)
    }

    /// The sum of all counts.
    pub(super) fn total(&self) -> usize {
        self.total
    }

    pub(super) fn add(&mut self, key: K) {
        *self.counts.entry(key).or_insert(0) += 1;
        self.total += 1;
    }

    pub(super) fn remove(&mut self, key: K) {
        match self.counts.get_mut(&key) {
            Some(count) if *count > 1 => *count -= 1,
            Some(_) => drop(self.counts.remove(&key)),
            None => return,
        }
        self.total -= 1;
    }
}

/// Counts of all threads, with a bound.
#[derive(Debug)]
pub(super) struct SharedCounts<K> {
    counts: Mutex<Counts<K>>,
    each_max: usize,
    total_max: usize,
}

impl<K: Eq + Hash + Copy> SharedCounts<K> {
    /// At most so many of each address or account, and in all.
    pub(super) fn new(each_max: usize, total_max: usize) -> Self {
        Self { counts: Mutex::new(Counts::new()), each_max, total_max }
    }

    /// Counts one more; false, and does not, at a bound.
    pub(super) fn add(&self, key: K) -> bool {
        let mut counts = self.counts.lock();
        let has_room = counts.of(key) < self.each_max && counts.total() < self.total_max;
        if has_room {
            counts.add(key);
        }
        has_room
    }

    pub(super) fn remove(&self, key: K) {
        self.counts.lock().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_exist_while_something_is_counted() {
        let mut counts = Counts::new();
        counts.add(1);
        counts.add(1);
        counts.remove(1);
        assert_eq!((counts.of(1), counts.of(2), counts.total()), (1, 0, 1));
        counts.remove(1);
        counts.remove(1);
        assert!(counts.counts.is_empty() && counts.total() == 0);
    }

    #[test]
    fn shared_counts_end_at_the_bounds_of_one_and_of_all() {
        let counts = SharedCounts::new(2, 3);
        assert!(counts.add(1) && counts.add(1) && !counts.add(1));
        assert!(counts.add(2) && !counts.add(2) && !counts.add(3));
        counts.remove(1);
        assert!(counts.add(3) && !counts.add(1));
    }
}
