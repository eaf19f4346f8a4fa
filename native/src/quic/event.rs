//! An event of a delivery or a connection, as the main thread reads it from the ring. The numbers of
//! `Kind`, `Reason` and `CloseCause` are those of `src/native/contract.ts`; a test compares them.

use crate::sync::entry_ring::UNIT_WORDS;

/// Fields of one record: a unit of the ring.
pub const RECORD_FIELDS: usize = UNIT_WORDS;

/// The type of a record. Those below are submissions: `submit/records.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A delivery is on the wire; `detail` is 1 if it had to wait for more than its turn.
    Sent = 5,
    /// The leader's QUIC stack has received the complete delivery; `detail` is the time since
    /// `Sent` in ns.
    Acked = 6,
    /// A delivery was sent, but the connection ended or the leader stopped the stream first.
    Failed = 7,
    /// A delivery never went on the wire.
    Dropped = 8,
    /// The handshake with a leader is complete; `detail` is its limit of bytes per stream, `reason`
    /// 1 if it requested address validation (Retry), `tag` its idle timeout in ms, 0 for none.
    Connected = 9,
    /// The leader granted the first streams; `detail` is how many, up to `STREAMS_AHEAD_MAX`.
    Admitted = 10,
    /// The connection is closed; `reason` is a `CloseCause`, `detail` its code.
    Closed = 11,
}

/// Why a delivery failed or was dropped: one more than its index in the table `DELIVERY_REASONS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// No error.
    None = 0,
    /// The leader's queue was full.
    QueueFull = 1,
    /// The delivery waited until it expired.
    Expired = 2,
    /// It expired while the leader's stream credit, its flow control or the congestion window held
    /// it back.
    LeaderSaturated = 3,
    /// No connection to the leader was ready.
    NotConnected = 4,
    /// The connection ended before the leader acknowledged the delivery.
    ConnectionLost = 5,
    /// The leader's stack stopped the stream.
    StreamStopped = 6,
    /// The maximum number of deliveries already awaits acknowledgement.
    TooManyInFlight = 7,
    /// The engine is stopping.
    ShuttingDown = 8,
    /// Larger than the leader's limit for one stream.
    StreamTooLarge = 9,
}

/// Which side ended a connection, and how to read `detail`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CloseCause {
    /// This side closed it.
    Local = 1,
    /// The leader's application closed it; `detail` is its code.
    Application = 2,
    /// The leader's transport closed it; `detail` is its code.
    Transport = 3,
    /// The leader violated the protocol; `detail` is the transport code sent to it.
    Protocol = 4,
    /// Nothing was received for the idle timeout.
    TimedOut = 5,
    /// The leader no longer knows the connection.
    Reset = 6,
    /// The leader supports no common version of QUIC.
    Version = 7,
    /// The handshake, or the first stream credit after it, took too long.
    AdmissionTimeout = 8,
    /// The connection could not be started, or a panic ended it.
    Internal = 9,
}

/// One record, drained as numbers in the order of its fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record {
    /// The type.
    pub kind: Kind,
    /// The transaction's number as given to `send`; 0 for connection events.
    pub tx: u64,
    /// The connection's handle.
    pub peer: u32,
    /// The delivery's tag as given to `send`; for `Connected` the leader's idle timeout in ms.
    pub tag: u32,
    /// A `Reason`; for `Closed` a `CloseCause`, for `Connected` 1 after a Retry.
    pub reason: u8,
    /// When it happened, CLOCK_MONOTONIC ns.
    pub at_ns: u64,
    /// The connection's smoothed round trip in microseconds; 0 if unknown.
    pub rtt_us: u32,
    /// Depends on the kind.
    pub detail: u64,
}

impl Record {
    /// The record's layout in JavaScript's buffer; exact up to 2^53.
    #[must_use]
    pub fn fields(&self) -> [f64; RECORD_FIELDS] {
        [
            f64::from(self.kind as u8),
            self.tx as f64,
            f64::from(self.peer),
            f64::from(self.tag),
            f64::from(self.reason),
            self.at_ns as f64,
            f64::from(self.rtt_us),
            self.detail as f64,
        ]
    }
}
