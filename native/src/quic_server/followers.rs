//! Which connections want receipts, by account.

use std::collections::HashMap;

#[derive(Debug, Default)]
pub(super) struct Followers {
    by_account: HashMap<u64, Vec<usize>>,
    count: usize,
}

impl Followers {
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The handles of an account's connections.
    pub(super) fn of(&self, account: u64) -> &[usize] {
        self.by_account.get(&account).map_or(&[], Vec::as_slice)
    }

    pub(super) fn add(&mut self, account: u64, handle: usize) {
        self.by_account.entry(account).or_default().push(handle);
        self.count += 1;
    }

    /// Does nothing for a connection that wants none.
    pub(super) fn remove(&mut self, account: u64, handle: usize) {
        let Some(handles) = self.by_account.get_mut(&account) else { return };
        let count = handles.len();
        handles.retain(|each| *each != handle);
        self.count -= count - handles.len();
        if handles.is_empty() {
            self.by_account.remove(&account);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_found_by_account() {
        let mut followers = Followers::default();
        followers.add(1, 5);
        followers.add(1, 6);
        followers.add(2, 7);
        followers.remove(1, 7);
        assert_eq!((followers.of(1), followers.count()), (&[5, 6][..], 3));
        followers.remove(1, 5);
        followers.remove(1, 6);
        assert_eq!((followers.of(1), followers.of(2), followers.count()), (&[][..], &[7][..], 1));
        assert_eq!(followers.by_account.len(), 1);
    }
}
