//! Hot path: what a front counts, as plain numbers in memory that the main thread reads.
//!
//! One thread counts. What another reads may be a moment old, and is never half of a number. The
//! order is that of `front/figures.ts`: what a desk counts, a number for every reason to refuse, of
//! which a front by itself knows one alone, and what was relayed.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::sync::shared_memory::{AtomicSlice, Memory};

/// Numbers of a desk: `HTTP_COUNTER_NAMES` of `front/figures.ts`.
const HTTP_COUNTERS: usize = 14;
/// Reasons to refuse: as many as `REFUSALS` of `core/errors.ts` has.
const REJECTION_NUMBERS: usize = 16;
/// Which of them is `overloaded`, the one that a front gives by itself.
const OVERLOADED: usize = 11;
/// Where the numbers of what was relayed begin.
const PROXIED_AT: usize = HTTP_COUNTERS + REJECTION_NUMBERS;
/// Reasons to relay: `PROXY_REASONS` of `front/figures.ts`.
const PROXY_REASON_COUNT: usize = 5;

/// Bytes of a front's figures.
pub const FIGURES_BYTES: usize = 8 * (PROXIED_AT + PROXY_REASON_COUNT);

/// What is counted, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Figure {
    /// Connections that are open.
    Connections = 0,
    /// Connections closed at once, because there were too many.
    ConnectionsRejected,
    /// Connections closed at once, because their address held its share.
    ConnectionsCrowded,
    /// Connections closed, because a head or a body was not whole in its time.
    ConnectionsSlow,
    /// Requests that came in.
    Requests,
    /// Requests that have no answer yet.
    RequestsOpen,
    /// Transactions accepted.
    Accepted,
    /// Requests whose connection ended before the answer did.
    Aborted,
    /// Requests that a deadline ended.
    Expired,
    /// Connections closed for their framing, or for a body that is too large to be read.
    Closed,
    /// Connections closed with one too many of the answers without a body.
    EmptyBodyClosed,
    /// Answers that waited for the next turn.
    ResponsesDeferred,
    /// Answers that waited for a client to take in the ones before.
    ResponsesUnread,
    /// Requests during which something went wrong.
    HandlerErrors,
    /// Refused, because too many are relayed.
    Overloaded = HTTP_COUNTERS + OVERLOADED,
    /// Relayed, because no pass of their key is here.
    ProxiedKey = PROXIED_AT,
    /// Relayed, because their key's limit was used up.
    ProxiedLimit,
    /// Relayed, because they could not be sent from here.
    ProxiedLeaders,
    /// Relayed, because there was no room for a record.
    ProxiedRecordRing,
    /// Relayed for another reason.
    ProxiedOther,
}

/// A front's side of its figures.
pub struct Figures {
    numbers: AtomicSlice<AtomicU64>,
}

impl Figures {
    /// The figures in `memory`; None where its size is another one.
    #[must_use]
    pub fn open(memory: &Memory) -> Option<Self> {
        let is_whole = memory.size() == FIGURES_BYTES;
        Some(Self { numbers: memory.atomics(0, FIGURES_BYTES / 8).filter(|_| is_whole)? })
    }

    /// So many more; below 0, so many less. By one thread alone.
    pub fn add(&self, figure: Figure, more: f64) {
        self.set(figure, self.number(figure) + more);
    }

    /// So many now. By one thread alone.
    pub fn set(&self, figure: Figure, number: f64) {
        if let Some(cell) = self.numbers.get(figure as usize) {
            cell.store(number.to_bits(), Relaxed);
        }
    }

    /// How many there are.
    #[must_use]
    pub fn number(&self, figure: Figure) -> f64 {
        let cell = self.numbers.get(figure as usize);
        cell.map_or(0.0, |cell| f64::from_bits(cell.load(Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All, each once.
    const FIGURES: [Figure; HTTP_COUNTERS + 1 + PROXY_REASON_COUNT] = [
        Figure::Connections,
        Figure::ConnectionsRejected,
        Figure::ConnectionsCrowded,
        Figure::ConnectionsSlow,
        Figure::Requests,
        Figure::RequestsOpen,
        Figure::Accepted,
        Figure::Aborted,
        Figure::Expired,
        Figure::Closed,
        Figure::EmptyBodyClosed,
        Figure::ResponsesDeferred,
        Figure::ResponsesUnread,
        Figure::HandlerErrors,
        Figure::Overloaded,
        Figure::ProxiedKey,
        Figure::ProxiedLimit,
        Figure::ProxiedLeaders,
        Figure::ProxiedRecordRing,
        Figure::ProxiedOther,
    ];

    #[test]
    fn each_is_where_the_other_side_reads_it() {
        let memory = Memory::fresh(FIGURES_BYTES);
        let figures = Figures::open(&memory).unwrap();
        for (index, figure) in FIGURES.into_iter().enumerate() {
            figures.set(figure, 1.0 + index as f64);
        }
        let cells = memory.atomics::<AtomicU64>(0, FIGURES_BYTES / 8).unwrap();
        let read: Vec<f64> = cells.iter().map(|cell| f64::from_bits(cell.load(Relaxed))).collect();
        let desk = (1..=14).map(f64::from);
        let mut refusals = [0.0; REJECTION_NUMBERS];
        refusals[OVERLOADED] = 15.0;
        let relayed = (16..=20).map(f64::from);
        assert_eq!(read, desk.chain(refusals).chain(relayed).collect::<Vec<f64>>());
    }

    #[test]
    fn each_is_counted_by_itself() {
        let memory = Memory::fresh(FIGURES_BYTES);
        let figures = Figures::open(&memory).unwrap();
        figures.add(Figure::Connections, 2.0);
        figures.add(Figure::Connections, 1.0);
        figures.add(Figure::Connections, -1.0);
        figures.add(Figure::ProxiedOther, 1.0);
        let numbers = FIGURES.map(|figure| figures.number(figure));
        assert_eq!((numbers[0], numbers[19]), (2.0, 1.0));
        assert_eq!(numbers.iter().sum::<f64>(), 3.0);
    }

    #[test]
    fn memory_of_another_size_is_not_taken() {
        for size in [0, FIGURES_BYTES - 8, FIGURES_BYTES + 8] {
            assert!(Figures::open(&Memory::fresh(size)).is_none());
        }
    }
}
