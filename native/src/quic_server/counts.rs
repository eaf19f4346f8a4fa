//! How many handshakes and connections each address and account has; only those with some have an
//! entry.

use std::collections::HashMap;
use std::hash::Hash;

/// Counts by address or account.
#[derive(Debug)]
pub(super) struct Counts<K>(HashMap<K, usize>);

impl<K: Eq + Hash + Copy> Counts<K> {
    pub(super) fn new() -> Self {
        Self(HashMap::new())
    }

    pub(super) fn of(&self, key: K) -> usize {
        self.0.get(&key).copied().unwrap_or(0)
    }

    pub(super) fn add(&mut self, key: K) {
        *self.0.entry(key).or_insert(0) += 1;
    }

    pub(super) fn remove(&mut self, key: K) {
        match self.0.get_mut(&key) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(self.0.remove(&key)),
        }
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
        assert_eq!((counts.of(1), counts.of(2)), (1, 0));
        counts.remove(1);
        counts.remove(1);
        assert!(counts.0.is_empty());
    }
}
