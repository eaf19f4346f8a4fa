//! Verdicts that wait for their transaction's end, by signature: which streams of which
//! connections. How many wait is limited for each account, so that one cannot keep the others from
//! it; those of all threads count.

use std::collections::HashMap;
use std::sync::Arc;

use quinn_proto::StreamId;

use crate::quic_server::counts::SharedCounts;
use crate::quic_server::verdict::SIGNATURE_BYTES;

type Signature = [u8; SIGNATURE_BYTES];

/// A stream of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Waiter {
    /// The connection's.
    pub(super) handle: usize,
    pub(super) stream: StreamId,
    pub(super) account: u64,
}

pub(super) struct LandingWaits {
    by_signature: HashMap<Signature, Vec<Waiter>>,
    count: usize,
    accounts: Arc<SharedCounts<u64>>,
    /// Whether none is taken any more.
    is_closed: bool,
}

impl LandingWaits {
    /// With the counts of all threads.
    pub(super) fn new(accounts: Arc<SharedCounts<u64>>) -> Self {
        Self { by_signature: HashMap::new(), count: 0, accounts, is_closed: false }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Takes none from now on.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
    }

    /// Returns whether there was room.
    pub(super) fn add(&mut self, signature: Signature, waiter: Waiter) -> bool {
        if self.is_closed || !self.accounts.add(waiter.account) {
            return false;
        }
        self.by_signature.entry(signature).or_default().push(waiter);
        self.count += 1;
        true
    }

    pub(super) fn remove(&mut self, signature: &Signature, waiter: Waiter) {
        let Some(waiters) = self.by_signature.get_mut(signature) else { return };
        let Some(at) = waiters.iter().position(|each| *each == waiter) else { return };
        waiters.swap_remove(at);
        self.count -= 1;
        self.accounts.remove(waiter.account);
        if waiters.is_empty() {
            self.by_signature.remove(signature);
        }
    }

    /// Those of a transaction, which wait no longer.
    pub(super) fn take(&mut self, signature: &Signature) -> Vec<Waiter> {
        let waiters = self.by_signature.remove(signature).unwrap_or_default();
        self.count -= waiters.len();
        waiters.iter().for_each(|waiter| self.accounts.remove(waiter.account));
        waiters
    }

    /// Forgets all of them.
    pub(super) fn clear(&mut self) {
        let waiters = self.by_signature.drain().flat_map(|(_, waiters)| waiters);
        waiters.for_each(|waiter| self.accounts.remove(waiter.account));
        self.count = 0;
    }
}

impl Drop for LandingWaits {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use quinn_proto::{Dir, Side};

    use super::*;
    use crate::quic_server::limits::{LANDINGS_MAX, LANDINGS_PER_ACCOUNT};

    fn shared() -> Arc<SharedCounts<u64>> {
        Arc::new(SharedCounts::new(LANDINGS_PER_ACCOUNT, LANDINGS_MAX))
    }

    fn waiter(handle: usize) -> Waiter {
        let stream = StreamId::new(Side::Client, Dir::Bi, 3);
        Waiter { handle, stream, account: handle as u64 }
    }

    #[test]
    fn waiters_are_found_by_signature_once() {
        let mut waits = LandingWaits::new(shared());
        assert!(waits.add([1; 64], waiter(1)) && waits.add([1; 64], waiter(2)));
        assert!(waits.add([2; 64], waiter(3)));
        waits.remove(&[2; 64], waiter(1));
        assert_eq!(waits.count(), 3);
        waits.remove(&[2; 64], waiter(3));
        assert_eq!(waits.take(&[1; 64]), [waiter(1), waiter(2)]);
        assert_eq!(waits.take(&[1; 64]), []);
        assert_eq!((waits.count(), waits.by_signature.len()), (0, 0));
    }

    #[test]
    fn none_is_taken_above_the_bound_and_after_the_end() {
        let mut waits = LandingWaits::new(shared());
        for number in 0..LANDINGS_MAX {
            assert!(waits.add([1; 64], waiter(number / LANDINGS_PER_ACCOUNT)));
        }
        assert!(!waits.add([2; 64], waiter(9)));
        waits.clear();
        assert!(waits.add([2; 64], waiter(1)));
        waits.close();
        assert!(!waits.add([2; 64], waiter(1)));
    }

    #[test]
    fn those_of_all_threads_count_until_they_are_forgotten() {
        let shared = shared();
        let [mut waits, mut others] = [shared.clone(), shared.clone()].map(LandingWaits::new);
        for _ in 0..LANDINGS_PER_ACCOUNT {
            assert!(waits.add([1; 64], waiter(1)));
        }
        assert!(!others.add([2; 64], waiter(1)) && others.add([2; 64], waiter(2)));
        drop(waits);
        assert!(others.add([2; 64], waiter(1)));
    }

    #[test]
    fn one_account_leaves_room_for_others() {
        let mut waits = LandingWaits::new(shared());
        for _ in 0..LANDINGS_PER_ACCOUNT {
            assert!(waits.add([1; 64], waiter(1)));
        }
        assert!(!waits.add([2; 64], waiter(1)) && waits.add([2; 64], waiter(2)));
        waits.remove(&[1; 64], waiter(1));
        assert!(waits.add([2; 64], waiter(1)) && !waits.add([2; 64], waiter(1)));
        let _ = waits.take(&[1; 64]);
        for _ in 0..LANDINGS_PER_ACCOUNT - 1 {
            assert!(waits.add([2; 64], waiter(1)));
        }
        assert!(!waits.add([2; 64], waiter(1)));
    }
}
