//! Verdicts that wait for their transaction's end, by signature: which streams of which connections.

use std::collections::HashMap;

use quinn_proto::StreamId;

use crate::quic_server::limits::LANDINGS_MAX;
use crate::quic_server::verdict::SIGNATURE_BYTES;

type Signature = [u8; SIGNATURE_BYTES];

/// A stream of the connection with this handle.
pub(super) type Waiter = (usize, StreamId);

#[derive(Default)]
pub(super) struct LandingWaits {
    by_signature: HashMap<Signature, Vec<Waiter>>,
    count: usize,
    /// Whether none is taken any more.
    is_closed: bool,
}

impl LandingWaits {
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Takes none from now on.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
    }

    /// Returns whether there was room.
    pub(super) fn add(&mut self, signature: Signature, waiter: Waiter) -> bool {
        if self.is_closed || self.count >= LANDINGS_MAX {
            return false;
        }
        self.by_signature.entry(signature).or_default().push(waiter);
        self.count += 1;
        true
    }

    pub(super) fn remove(&mut self, signature: &Signature, waiter: Waiter) {
        let Some(waiters) = self.by_signature.get_mut(signature) else { return };
        let count = waiters.len();
        waiters.retain(|each| *each != waiter);
        self.count -= count - waiters.len();
        if waiters.is_empty() {
            self.by_signature.remove(signature);
        }
    }

    /// Those of a transaction, which wait no longer.
    pub(super) fn take(&mut self, signature: &Signature) -> Vec<Waiter> {
        let waiters = self.by_signature.remove(signature).unwrap_or_default();
        self.count -= waiters.len();
        waiters
    }

    /// Forgets all of them.
    pub(super) fn clear(&mut self) {
        self.by_signature.clear();
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use quinn_proto::{Dir, Side};

    use super::*;

    fn waiter(handle: usize) -> Waiter {
        (handle, StreamId::new(Side::Client, Dir::Bi, 3))
    }

    #[test]
    fn waiters_are_found_by_signature_once() {
        let mut waits = LandingWaits::default();
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
        let mut waits = LandingWaits::default();
        for _ in 0..LANDINGS_MAX {
            assert!(waits.add([1; 64], waiter(1)));
        }
        assert!(!waits.add([2; 64], waiter(1)));
        waits.clear();
        assert!(waits.add([2; 64], waiter(1)));
        waits.close();
        assert!(!waits.add([2; 64], waiter(1)));
    }
}
