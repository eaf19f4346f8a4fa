//! Hot path: counters of an ingress thread, as plain numbers in memory that the main thread reads.
//!
//! One thread writes. Another thread may read a slightly old value, never half of one. The order is
//! that of `src/native-ingress/thread-counters.ts`: the HTTP counters, one number per rejection
//! reason (an ingress thread itself rejects for one of them only), and the proxied requests.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::sync::shared_memory::{AtomicSlice, Memory};

/// `HTTP_COUNTER_NAMES` of `src/native-ingress/thread-counters.ts`.
const HTTP_COUNTERS: usize = 14;
/// Number of rejection reasons: entries of `REJECTIONS` in `src/core/errors.ts`.
const REJECTION_NUMBERS: usize = 16;
/// Index of `overloaded`, the only reason for which an ingress thread itself rejects.
const OVERLOADED: usize = 12;
/// Where the counters of proxied requests start.
const PROXIED_AT: usize = HTTP_COUNTERS + REJECTION_NUMBERS;
/// `PROXY_REASONS` of `src/native-ingress/thread-counters.ts`.
const PROXY_REASON_COUNT: usize = 5;

/// Bytes of an ingress thread's counters.
pub const COUNTERS_BYTES: usize = 8 * (PROXIED_AT + PROXY_REASON_COUNT);

/// The counters, in memory order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Counter {
    /// Open connections.
    Connections = 0,
    /// Connections closed at accept, because too many were open.
    ConnectionsRejected,
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
    /// Answered 503: too many requests are proxied, or the upstream server cannot be reached or
    /// closed without a response.
    Overloaded = HTTP_COUNTERS + OVERLOADED,
    /// Proxied, because their key is not in the cache.
    ProxiedKey = PROXIED_AT,
    /// Proxied, because their key's rate limit was exceeded.
    ProxiedLimit,
    /// Proxied, because they could not be sent from here.
    ProxiedLeaders,
    /// Proxied, because the record ring was full.
    ProxiedRecordRing,
    /// Proxied for another reason.
    ProxiedOther,
}

/// An ingress thread's view of its counters.
pub struct Counters {
    numbers: AtomicSlice<AtomicU64>,
}

impl Counters {
    /// The counters in `memory`; None if its size differs.
    #[must_use]
    pub fn open(memory: &Memory) -> Option<Self> {
        let is_whole = memory.size() == COUNTERS_BYTES;
        Some(Self { numbers: memory.atomics(0, COUNTERS_BYTES / 8).filter(|_| is_whole)? })
    }

    /// Adds `more`, which may be negative. Only one thread may call it.
    pub fn add(&self, counter: Counter, more: f64) {
        self.set(counter, self.number(counter) + more);
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
        let cell = self.numbers.get(counter as usize);
        cell.map_or(0.0, |cell| f64::from_bits(cell.load(Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each counter once.
    const ALL: [Counter; HTTP_COUNTERS + 1 + PROXY_REASON_COUNT] = [
        Counter::Connections,
        Counter::ConnectionsRejected,
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
        Counter::Overloaded,
        Counter::ProxiedKey,
        Counter::ProxiedLimit,
        Counter::ProxiedLeaders,
        Counter::ProxiedRecordRing,
        Counter::ProxiedOther,
    ];

    #[test]
    fn counters_have_the_layout_that_the_main_thread_reads() {
        let memory = Memory::fresh(COUNTERS_BYTES);
        let counters = Counters::open(&memory).unwrap();
        for (index, counter) in ALL.into_iter().enumerate() {
            counters.set(counter, 1.0 + index as f64);
        }
        let cells = memory.atomics::<AtomicU64>(0, COUNTERS_BYTES / 8).unwrap();
        let read: Vec<f64> = cells.iter().map(|cell| f64::from_bits(cell.load(Relaxed))).collect();
        let http = (1..=14).map(f64::from);
        let mut rejections = [0.0; REJECTION_NUMBERS];
        rejections[OVERLOADED] = 15.0;
        let proxied = (16..=20).map(f64::from);
        assert_eq!(read, http.chain(rejections).chain(proxied).collect::<Vec<f64>>());
    }

    #[test]
    fn counters_are_independent() {
        let memory = Memory::fresh(COUNTERS_BYTES);
        let counters = Counters::open(&memory).unwrap();
        counters.add(Counter::Connections, 2.0);
        counters.add(Counter::Connections, 1.0);
        counters.add(Counter::Connections, -1.0);
        counters.add(Counter::ProxiedOther, 1.0);
        let numbers = ALL.map(|counter| counters.number(counter));
        assert_eq!((numbers[0], numbers[19]), (2.0, 1.0));
        assert_eq!(numbers.iter().sum::<f64>(), 3.0);
    }

    #[test]
    fn memory_of_another_size_is_rejected() {
        for size in [0, COUNTERS_BYTES - 8, COUNTERS_BYTES + 8] {
            assert!(Counters::open(&Memory::fresh(size)).is_none());
        }
    }
}
