//! Hot path: counters of an ingress thread, as plain numbers in memory that the main thread reads.
//!
//! One thread writes. Another thread may read a slightly old value, never half of one. The order is
//! that of `src/native-ingress/thread-counters.ts`: the HTTP counters, one number per rejection
//! reason, the proxied requests, the records of rejections that were not written, the TLS
//! handshakes, and those of QUIC clients.

use std::sync::atomic::Ordering::Relaxed;

use crate::http::rejection_table::Reason;
use crate::sync::shared_memory::{AtomicSlice, Memory};

/// `HTTP_COUNTER_NAMES` of `src/native-ingress/thread-counters.ts`.
const HTTP_COUNTERS: usize = 15;
/// Number of rejection reasons: entries of `REJECTIONS` in `src/core/errors.ts`.
const REJECTION_NUMBERS: usize = 16;
/// Where the other counters of requests start.
const REQUESTS_AT: usize = HTTP_COUNTERS + REJECTION_NUMBERS;
/// `REQUEST_COUNTERS` of `src/native-ingress/thread-counters.ts`.
const REQUEST_COUNTERS: usize = 2;

/// Where the counters of TLS handshakes start.
const HANDSHAKES_AT: usize = REQUESTS_AT + REQUEST_COUNTERS;
/// `HANDSHAKE_RESULTS` of `src/native-ingress/thread-counters.ts`.
const HANDSHAKE_RESULT_COUNT: usize = 6;

/// Where the counters of QUIC clients start.
const QUIC_AT: usize = HANDSHAKES_AT + HANDSHAKE_RESULT_COUNT;
/// `QUIC_COUNTERS` of `src/native-ingress/thread-counters.ts`.
const QUIC_COUNTERS: usize = 16;

/// Bytes of an ingress thread's counters.
pub const COUNTERS_BYTES: usize = 8 * (QUIC_AT + QUIC_COUNTERS);

/// The counters, in memory order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Counter {
    /// Open connections.
    Connections = 0,
    /// Connections closed at accept, because too many were open.
    ConnectionsRejected,
    /// Connections closed while idle, for another client.
    ConnectionsEvicted,
    /// Connections closed at accept, because their address was at its limit.
    ConnectionsOverAddressLimit,
    /// Connections closed, because a head or a body was not complete in time.
    ConnectionsReadTimeout,
    /// Requests received.
    Requests,
    /// Requests with an incomplete body; the main thread counts the proxied ones.
    RequestsOpen,
    /// Transactions accepted.
    Accepted,
    /// Requests whose connection ended before their response.
    Aborted,
    // `Expired` to `ResponsesUnread` are those of the main thread's HTTP server: only `Closed` is
    // counted here.
    /// Requests ended by a deadline.
    Expired,
    /// Connections closed for their framing, or for a body above the limit.
    Closed,
    /// Connections closed after too many responses without a body.
    EmptyBodyClosed,
    /// Responses deferred to the next turn.
    ResponsesDeferred,
    /// Responses deferred until the client reads the ones before.
    ResponsesUnread,
    /// Requests whose handler failed.
    HandlerErrors,
    /// Requests proxied to the main thread.
    Proxied = REQUESTS_AT,
    /// Rejections without a record, because too many records were unread.
    RejectionRecordsDropped,
    /// TLS handshakes of new sessions.
    HandshakesFull = HANDSHAKES_AT,
    /// TLS handshakes of resumed sessions.
    HandshakesResumed,
    /// TLS handshakes that failed.
    HandshakesFailed,
    /// Connections on which the client did not speak TLS.
    HandshakesNotTls,
    /// TLS handshakes that were not complete in time.
    HandshakesTimedOut,
    /// TLS handshakes during which the client left.
    HandshakesAborted,
    /// Open QUIC connections of clients with a valid key.
    QuicConnections = QUIC_AT,
    /// QUIC handshakes in progress.
    QuicHandshakes,
    /// QUIC clients that want receipts, and transactions whose verdict waits for their end.
    QuicFollowers,
    /// QUIC connections accepted.
    QuicConnected,
    /// QUIC handshakes refused because of a limit, or while draining.
    QuicHandshakesRefused,
    /// First packets of QUIC clients that were ignored, because too many came in a second.
    QuicHandshakesDelayed,
    /// QUIC clients that had to prove their address.
    QuicRetries,
    /// QUIC streams that ended before their last byte arrived.
    QuicStreamsAborted,
    /// QUIC datagrams that the kernel's buffer had no room for.
    QuicDatagramsDropped,
    /// Datagrams of QUIC clients that were too large, or answered with a refusal.
    QuicDatagramsRefused,
    /// Datagrams of QUIC clients that another thread received, and passed on.
    QuicDatagramsForwarded,
    /// Those that their thread did not take in time.
    QuicForwardsDropped,
    /// Receipts that QUIC clients were too slow to read.
    QuicReceiptsDropped,
    /// Looks at which a QUIC client got fewer streams, because it left too many verdicts unread.
    QuicStreamsWithheld,
    /// Verdicts that could not wait for their transaction's end.
    QuicLandingsUnawaited,
    /// Panics while QUIC clients were served.
    QuicPanics,
}

/// An ingress thread's view of its counters.
pub struct Counters {
    numbers: AtomicSlice,
}

impl Counters {
    /// The counters in `memory`; None if its size differs.
    #[must_use]
    pub fn open(memory: &Memory) -> Option<Self> {
        let is_whole = memory.size() == COUNTERS_BYTES;
        Some(Self { numbers: memory.atomics(COUNTERS_BYTES / 8).filter(|_| is_whole)? })
    }

    /// Adds `more`, which may be negative. Only one thread may call it.
    pub fn add(&self, counter: Counter, more: f64) {
        self.add_at(counter as usize, more);
    }

    /// Counts a rejection. Only one thread may call it.
    pub fn reject(&self, reason: Reason) {
        self.add_at(HTTP_COUNTERS + reason as usize, 1.0);
    }

    /// Rejections for this reason.
    #[must_use]
    pub fn rejections(&self, reason: Reason) -> f64 {
        self.number_at(HTTP_COUNTERS + reason as usize)
    }

    /// Sets the value. Only one thread may call it.
    pub fn set(&self, counter: Counter, number: f64) {
        if let Some(cell) = self.numbers.get(counter as usize) {
            cell.store(number.to_bits(), Relaxed);
        }
    }

    /// The current value.
    #[must_use]
    pub fn number(&self, counter: Counter) -> f64 {
        self.number_at(counter as usize)
    }

    fn add_at(&self, at: usize, more: f64) {
        if let Some(cell) = self.numbers.get(at) {
            cell.store((f64::from_bits(cell.load(Relaxed)) + more).to_bits(), Relaxed);
        }
    }

    fn number_at(&self, at: usize) -> f64 {
        self.numbers.get(at).map_or(0.0, |cell| f64::from_bits(cell.load(Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::rejection_table::REASONS;

    /// Each counter once.
    const ALL: [Counter;
        HTTP_COUNTERS + REQUEST_COUNTERS + HANDSHAKE_RESULT_COUNT + QUIC_COUNTERS] = [
        Counter::Connections,
        Counter::ConnectionsRejected,
        Counter::ConnectionsEvicted,
        Counter::ConnectionsOverAddressLimit,
        Counter::ConnectionsReadTimeout,
        Counter::Requests,
        Counter::RequestsOpen,
        Counter::Accepted,
        Counter::Aborted,
        Counter::Expired,
        Counter::Closed,
        Counter::EmptyBodyClosed,
        Counter::ResponsesDeferred,
        Counter::ResponsesUnread,
        Counter::HandlerErrors,
        Counter::Proxied,
        Counter::RejectionRecordsDropped,
        Counter::HandshakesFull,
        Counter::HandshakesResumed,
        Counter::HandshakesFailed,
        Counter::HandshakesNotTls,
        Counter::HandshakesTimedOut,
        Counter::HandshakesAborted,
        Counter::QuicConnections,
        Counter::QuicHandshakes,
        Counter::QuicFollowers,
        Counter::QuicConnected,
        Counter::QuicHandshakesRefused,
        Counter::QuicHandshakesDelayed,
        Counter::QuicRetries,
        Counter::QuicStreamsAborted,
        Counter::QuicDatagramsDropped,
        Counter::QuicDatagramsRefused,
        Counter::QuicDatagramsForwarded,
        Counter::QuicForwardsDropped,
        Counter::QuicReceiptsDropped,
        Counter::QuicStreamsWithheld,
        Counter::QuicLandingsUnawaited,
        Counter::QuicPanics,
    ];

    #[test]
    fn counters_have_the_layout_that_the_main_thread_reads() {
        let memory = Memory::fresh(COUNTERS_BYTES);
        let counters = Counters::open(&memory).unwrap();
        for (index, counter) in ALL.into_iter().enumerate() {
            counters.set(counter, 1.0 + index as f64);
        }
        let cells = memory.atomics(COUNTERS_BYTES / 8).unwrap();
        let read: Vec<f64> = cells.iter().map(|cell| f64::from_bits(cell.load(Relaxed))).collect();
        let http = (1..=15).map(f64::from);
        let others = (16..=39).map(f64::from);
        let rejections = [0.0; REJECTION_NUMBERS];
        assert_eq!(read, http.chain(rejections).chain(others).collect::<Vec<f64>>());
    }

    #[test]
    fn rejections_are_counted_by_reason_behind_the_http_counters() {
        assert_eq!(REASONS.len(), REJECTION_NUMBERS);
        let memory = Memory::fresh(COUNTERS_BYTES);
        let counters = Counters::open(&memory).unwrap();
        counters.reject(Reason::Unauthorized);
        counters.reject(Reason::MethodNotAllowed);
        counters.reject(Reason::MethodNotAllowed);
        let cells = memory.atomics(COUNTERS_BYTES / 8).unwrap();
        let read = |at: usize| f64::from_bits(cells.get(at).unwrap().load(Relaxed));
        assert_eq!((read(HTTP_COUNTERS), read(REQUESTS_AT - 1)), (1.0, 2.0));
        assert_eq!(counters.rejections(Reason::MethodNotAllowed), 2.0);
        assert_eq!(ALL.map(|counter| counters.number(counter)), [0.0; ALL.len()]);
    }

    #[test]
    fn counters_are_independent() {
        let memory = Memory::fresh(COUNTERS_BYTES);
        let counters = Counters::open(&memory).unwrap();
        counters.add(Counter::Connections, 2.0);
        counters.add(Counter::Connections, 1.0);
        counters.add(Counter::Connections, -1.0);
        counters.add(Counter::Proxied, 1.0);
        let numbers = ALL.map(|counter| counters.number(counter));
        assert_eq!((numbers[0], numbers[15]), (2.0, 1.0));
        assert_eq!(numbers.iter().sum::<f64>(), 3.0);
    }

    #[test]
    fn memory_of_another_size_is_rejected() {
        for size in [0, COUNTERS_BYTES - 8, COUNTERS_BYTES + 8] {
            assert!(Counters::open(&Memory::fresh(size)).is_none());
        }
    }
}
