//! A copy on its way to one leader, and where the connection to that leader is in its life.

use bytes::Bytes;

/// A transaction on its way to one leader.
pub struct Delivery {
    /// The serialized transaction, shared by all its copies.
    pub bytes: Bytes,
    /// The transaction's number.
    pub tx: u64,
    /// Comes back in the copy's outcomes.
    pub tag: u32,
    /// When it is of no more use, CLOCK_MONOTONIC ns.
    pub until_ns: u64,
}

/// Where a connection is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
#[repr(u8)]
pub enum PeerState {
    /// The handshake is under way; copies wait.
    Connecting = 1,
    /// The handshake is done, but the leader has granted no stream yet; copies wait.
    Connected = 2,
    /// Copies are sent at once.
    Admitted = 3,
    /// Finishing what is in hand; takes no more.
    Closing = 4,
    /// Over.
    Closed = 5,
}
