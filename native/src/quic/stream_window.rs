//! Hot path: limits the concurrent streams to a leader that reads slowly, as
//! `src/send/stream-window.ts` does for the portable engine, where the reasons are. What a slow
//! leader has been given cannot be overtaken there, so it is given what it reads in a round trip
//! and one of its intervals, and the rest waits in the queue, highest rank first.
//!
//! Each connection learns anew.
//!
//! Decision: docs/decisions/0027-adapt-to-a-leader-by-evidence.md

use crate::quic::limits::STREAMS_AHEAD_MAX;
use crate::sync::clock::{NEVER_NS, NS_PER_MS};

/// The fewest streams that a leader reads from an address in an interval, and the interval.
pub const STREAMS_PER_INTERVAL_MIN: f64 = 10.0;
/// See `STREAMS_PER_INTERVAL_MIN`.
pub const INTERVAL_MS: f64 = 100.0;
/// A wait of this length is not a burst.
pub const SLOW_MS: u64 = 200;
/// A leader that reads at all has granted new streams by then.
pub const STUCK_MS: u64 = 1_000;
/// Margin above the measured rate, with which the measured rate grows with the leader's.
pub const ROOM: f64 = 1.25;
/// Leaders grant new streams when an eighth of their window was read.
pub const ANNOUNCED_SHARE: f64 = 0.125;
/// This long after the last wait the leader counts as fast again.
pub const FORGET_MS: u64 = 10_000;

/// How many streams may be unread by the leader.
#[derive(Default)]
pub(crate) struct StreamWindow {
    /// The most unread streams that the leader allows.
    streams_max: usize,
    /// Streams that may be unread at once; None: as many as are granted.
    limit: Option<usize>,
    /// Since when deliveries wait for the leader.
    blocked_since_ns: Option<u64>,
    last_ns: u64,
    opened: u64,
}

impl StreamWindow {
    /// The connection starts with this many streams.
    pub(crate) fn set_credit(&mut self, streams_left: usize) {
        self.streams_max = streams_left;
    }

    /// How many of `streams_left` granted streams may be used now.
    pub(crate) fn room(&self, streams_left: usize) -> usize {
        let Some(limit) = self.limit else { return streams_left };
        let unread = self.streams_max.saturating_sub(streams_left);
        limit.saturating_sub(unread).min(streams_left)
    }

    pub(crate) fn opened(&mut self) {
        self.opened += 1;
    }

    /// A delivery waits for a stream or for this window. Afterwards `room` may have grown.
    pub(crate) fn record_blocked(&mut self, now_ns: u64, rtt_us: u32, streams_left: usize) {
        // More than Agave grants without stake: such a leader reads streams as they arrive.
        if self.streams_max >= STREAMS_AHEAD_MAX {
            return;
        }
        self.last_ns = now_ns;
        let Some(since_ns) = self.blocked_since_ns else {
            self.restart(now_ns);
            return;
        };
        let elapsed_ns = now_ns.saturating_sub(since_ns);
        if elapsed_ns < SLOW_MS * NS_PER_MS {
            return;
        }
        // Blocked by the limit alone: it opens as soon as the leader counts as having read.
        if self.opened == 0 && streams_left > 0 && self.room(streams_left) == 0 {
            if elapsed_ns >= STUCK_MS * NS_PER_MS {
                self.streams_max = streams_left;
            }
            return;
        }
        let elapsed_ms = elapsed_ns as f64 / NS_PER_MS as f64;
        let rate = self.opened as f64 * INTERVAL_MS / elapsed_ms;
        let intervals = 1.0 + f64::from(rtt_us) / 1_000.0 / INTERVAL_MS;
        let read = (rate.max(STREAMS_PER_INTERVAL_MIN) * ROOM * intervals).ceil();
        let unannounced = (self.streams_max as f64 * ANNOUNCED_SHARE).ceil();
        self.limit = Some((read + unannounced) as usize);
        self.restart(now_ns);
    }

    /// Nothing waits; called repeatedly while that is so.
    pub(crate) fn drained(&mut self, now_ns: u64) {
        if self.blocked_since_ns.is_none() && self.limit.is_none() {
            return;
        }
        let is_forgotten = now_ns.saturating_sub(self.last_ns) >= FORGET_MS * NS_PER_MS;
        if is_forgotten {
            self.limit = None;
        }
        // If nothing was opened, the deliveries expired: the leader still blocks.
        if is_forgotten || self.opened > 0 {
            self.blocked_since_ns = None;
        }
    }

    /// When `record_blocked` may have to be called again although nothing happened.
    pub(crate) fn due_ns(&self, now_ns: u64) -> u64 {
        let Some(since_ns) = self.blocked_since_ns else { return NEVER_NS };
        let slow_ns = since_ns.saturating_add(SLOW_MS * NS_PER_MS);
        if now_ns < slow_ns { slow_ns } else { since_ns.saturating_add(STUCK_MS * NS_PER_MS) }
    }

    fn restart(&mut self, now_ns: u64) {
        self.blocked_since_ns = Some(now_ns);
        self.opened = 0;
    }
}

#[cfg(test)]
#[path = "stream_window_tests.rs"]
mod tests;
