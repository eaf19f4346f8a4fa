//! Options of a listener, and what a process tells the one that replaces it.

use std::net::SocketAddr;

use crate::quic_server::routing::{Routing, THREADS_MAX};

/// Options of a listener.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address to listen on; port 0 is any free one.
    pub listen: SocketAddr,
    /// The thread of each socket on the address of the process that this one replaces, in the order
    /// in which the kernel has them (`places_alone` of that one); empty: it has none there.
    pub predecessor_places: Box<[usize]>,
    /// How many processes it succeeds, one after the other.
    pub process_number: u32,
    /// The seed of the listener's own certificate.
    pub seed: [u8; 32],
    /// Most connections, handshakes in progress included.
    pub connections_max: usize,
    /// Most connections of one address.
    pub connections_per_address: usize,
    /// Most connections of one account.
    pub connections_per_account: usize,
    /// How long a stream may take from its first byte to its last.
    pub stream_timeout_ns: u64,
    /// Where clients are sent when this edge drains, `host:port`; empty: nowhere.
    pub drain_to: Box<str>,
}

/// The thread of each socket of a process of so many threads, in the order in which the kernel has
/// them once the process before it has closed its own, which were in this order.
#[must_use]
pub fn places_alone(before: &[usize], threads: usize) -> Vec<usize> {
    routing_of(threads.clamp(1, THREADS_MAX), 0, before).places_alone()
}

/// The rule by which datagrams find their thread.
pub(super) fn routing_of(threads: usize, number: u32, before: &[usize]) -> Routing {
    Routing::new(threads, number, before.get(..THREADS_MAX).unwrap_or(before))
}
