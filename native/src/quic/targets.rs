//! Hot path: the connections to the current leaders, to which every thread that accepts
//! transactions sends them. The sender's thread sets them; each thread copies them for each
//! transaction, under a lock that is held for the copy of some 130 bytes.

use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::RwLock;

use crate::quic::limits::DELIVERIES_MAX;

/// Leaders that these threads send to: `TARGETS_MAX` of `src/core/limits.ts`, the same as
/// the deliveries of one engine call.
pub const TARGETS_MAX: usize = DELIVERIES_MAX;

/// Where a transaction goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Targets {
    /// Number of targets, at most `TARGETS_MAX`.
    pub count: usize,
    /// Lifetime of a delivery.
    pub ttl_ms: u32,
    /// For each of `count` targets the engine's handle of the connection.
    pub peers: [u32; TARGETS_MAX],
    /// For each of them the largest transaction that it accepts.
    pub bytes_max: [u32; TARGETS_MAX],
}

impl Targets {
    /// The connections with these handles, each with the largest transaction that it accepts. None
    /// if the lists have different lengths, or more than `TARGETS_MAX`.
    #[must_use]
    pub fn of(peers: &[u32], bytes_max: &[u32], ttl_ms: u32) -> Option<Self> {
        let count = peers.len();
        if bytes_max.len() != count {
            return None;
        }
        let mut targets = Self { count, ttl_ms, ..Self::default() };
        targets.peers.get_mut(..count)?.copy_from_slice(peers);
        targets.bytes_max.get_mut(..count)?.copy_from_slice(bytes_max);
        Some(targets)
    }

    /// The handles of those that accept a transaction of this size, and how many.
    #[must_use]
    pub fn accepting(&self, size: usize) -> (usize, [u32; TARGETS_MAX]) {
        let mut peers = [0; TARGETS_MAX];
        let all = self.peers.iter().zip(&self.bytes_max).take(self.count);
        let accepting = all.filter(|(_, bytes_max)| size <= **bytes_max as usize);
        let mut count = 0;
        for (slot, (peer, _)) in peers.iter_mut().zip(accepting) {
            *slot = *peer;
            count += 1;
        }
        (count, peers)
    }
}

/// The targets of one engine, and the threads that send to them.
#[derive(Default)]
pub struct TargetTable {
    latest: RwLock<Targets>,
    threads: AtomicU32,
}

impl TargetTable {
    /// Replaces the targets.
    pub fn set(&self, targets: Targets) {
        *self.latest.write() = targets;
    }

    /// The targets that were set last; none before the first time.
    #[must_use]
    pub fn latest(&self) -> Targets {
        *self.latest.read()
    }

    /// Counts one more thread that sends; returns its number, from 1.
    #[must_use]
    pub fn register_thread(&self) -> u32 {
        self.threads.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }
}

#[cfg(test)]
#[path = "targets_tests.rs"]
pub(crate) mod tests;
