//! Latest counters of a connection, which any thread may read without the drive token.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

/// Written by the holder of the drive token.
#[derive(Default)]
pub(crate) struct ConnectionStats {
    pub(crate) rtt_us: AtomicU32,
    pub(crate) in_flight: AtomicU32,
    pub(crate) mtu: AtomicU32,
    pub(crate) window: AtomicU64,
    pub(crate) lost_packets: AtomicU64,
    pub(crate) sent_packets: AtomicU64,
    /// Datagrams received for the connection.
    pub(crate) received: AtomicU64,
    /// Streams that may be opened now, counted up to `STREAMS_AHEAD_MAX`.
    pub(crate) streams_left: AtomicU32,
    /// Whether the leader requested address validation (Retry).
    pub(crate) retried: AtomicBool,
}
