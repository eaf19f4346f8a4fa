//! Which connections want receipts, by account. Those of all threads count for the account's bound.

use std::collections::HashMap;
use std::sync::Arc;

use crate::quic_server::counts::SharedCounts;

#[derive(Debug)]
pub(super) struct Followers {
    by_account: HashMap<u64, Vec<usize>>,
    count: usize,
    accounts: Arc<SharedCounts<u64>>,
}

impl Followers {
    /// With the counts of all threads.
    pub(super) fn new(accounts: Arc<SharedCounts<u64>>) -> Self {
        Self { by_account: HashMap::new(), count: 0, accounts }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The handles of an account's connections.
    pub(super) fn of(&self, account: u64) -> &[usize] {
        self.by_account.get(&account).map_or(&[], Vec::as_slice)
    }

    /// Returns whether there was room.
    pub(super) fn add(&mut self, account: u64, handle: usize) -> bool {
        let has_room = self.accounts.add(account);
        if has_room {
            self.by_account.entry(account).or_default().push(handle);
            self.count += 1;
        }
        has_room
    }

    /// Does nothing for a connection that wants none.
    pub(super) fn remove(&mut self, account: u64, handle: usize) {
        let Some(handles) = self.by_account.get_mut(&account) else { return };
        let Some(at) = handles.iter().position(|each| *each == handle) else { return };
        handles.swap_remove(at);
        self.count -= 1;
        self.accounts.remove(account);
        if handles.is_empty() {
            self.by_account.remove(&account);
        }
    }

    /// Forgets all of them.
    pub(super) fn clear(&mut self) {
        for (account, handles) in self.by_account.drain() {
            handles.iter().for_each(|_| self.accounts.remove(account));
        }
        self.count = 0;
    }
}

impl Drop for Followers {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_found_by_account() {
        let mut followers = Followers::new(Arc::new(SharedCounts::new(16, usize::MAX)));
        assert!(followers.add(1, 5) && followers.add(1, 6) && followers.add(2, 7));
        followers.remove(1, 7);
        assert_eq!((followers.of(1), followers.count()), (&[5, 6][..], 3));
        followers.remove(1, 5);
        followers.remove(1, 6);
        assert_eq!((followers.of(1), followers.of(2), followers.count()), (&[][..], &[7][..], 1));
        assert_eq!(followers.by_account.len(), 1);
    }

    #[test]
    fn those_of_all_threads_count_until_they_are_forgotten() {
        let shared = Arc::new(SharedCounts::new(2, usize::MAX));
        let [mut one, mut other] = [shared.clone(), shared].map(Followers::new);
        assert!(one.add(1, 5) && other.add(1, 5) && !one.add(1, 6) && one.add(2, 6));
        one.clear();
        assert!(other.add(1, 6) && !one.add(1, 5));
        drop(other);
        assert_eq!((one.add(1, 5), one.count()), (true, 1));
    }
}
