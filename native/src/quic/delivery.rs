//! One transaction on its way to one leader, and the state of the connection to that leader.

use bytes::Bytes;

use crate::quic::landed_shares::Offer;

/// A transaction on its way to one leader.
pub struct Delivery {
    /// The serialized transaction, shared by all its deliveries.
    pub bytes: Bytes,
    /// The transaction's number.
    pub tx: u64,
    /// Identifies the delivery within its connection, and is part of its outcomes; not the QUIC
    /// stream ID, which is chosen when the stream is opened.
    pub tag: u32,
    /// Expiry time, CLOCK_MONOTONIC ns.
    pub until_ns: u64,
    /// Which waiting delivery goes first.
    pub offer: Offer,
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
#[repr(u8)]
pub enum PeerState {
    /// The handshake is in progress; deliveries wait.
    Connecting = 1,
    /// The handshake is complete, but the leader has granted no stream yet; deliveries wait.
    Connected = 2,
    /// Deliveries are sent immediately.
    Admitted = 3,
    /// Finishing pending deliveries; accepts no more.
    Closing = 4,
    /// Closed.
    Closed = 5,
}
