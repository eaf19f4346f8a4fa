//! Latest figures of a connection, which any thread may read without its baton.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

/// Written by who has the baton.
#[derive(Default)]
pub(crate) struct ConnectionStats {
    pub(crate) rtt_us: AtomicU32,
    pub(crate) in_flight: AtomicU32,
    pub(crate) mtu: AtomicU32,
    pub(crate) window: AtomicU64,
    pub(crate) lost_packets: AtomicU64,
    pub(crate) sent_packets: AtomicU64,
    /// Datagrams that came for the connection.
    pub(crate) heard: AtomicU64,
    /// Streams that may be opened now, as far as they are looked for: `STREAMS_AHEAD_MAX`.
    pub(crate) streams_left: AtomicU32,
    /// Whether the leader wanted a token first.
    pub(crate) retried: AtomicBool,
}
