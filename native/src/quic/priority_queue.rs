//! Hot path: the deliveries that wait for one leader, highest rank first: `LandedShares::rank_of`.
//! Those of equal rank leave in arrival order.
//!
//! ```text
//!   push ─▶ waiting, by rank ─ pack ─▶ next, at most one group of datagrams ─▶ wire
//!              │      ▲                  │
//!    evict_least      └── the next push ─┘
//! ```
//!
//! `next` holds deliveries that may all leave now, in the order that fills datagrams best. A
//! further arrival puts what is left of them back, so none of it is ahead of a better one.
//!
//! A single delivery, which is what a leader with credit has, is never ranked. All are ranked anew
//! when shares have changed, so at any time one share applies to all deliveries of an account.
//!
//! Decision: docs/decisions/0051-one-queue-per-leader-in-the-engine.md

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use crate::quic::delivery::Delivery;
use crate::quic::landed_shares::LandedShares;
use crate::quic::packing::sort_for_gso;
use crate::sync::clock::NEVER_NS;

#[derive(Default)]
pub(crate) struct PriorityQueue {
    next: VecDeque<Row>,
    waiting: BTreeMap<Place, Row>,
    arrivals: u64,
    /// The version of the shares that `waiting` is ordered by.
    shares_version: u64,
}

struct Row {
    delivery: Delivery,
    /// How many arrived before.
    arrival: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    rank: Reverse<i64>,
    arrival: u64,
}

impl PriorityQueue {
    pub(crate) fn len(&self) -> usize {
        self.next.len() + self.waiting.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.next.is_empty() && self.waiting.is_empty()
    }

    pub(crate) fn push(&mut self, delivery: Delivery, shares: &LandedShares) {
        let row = Row { delivery, arrival: self.arrivals };
        self.arrivals += 1;
        if self.is_empty() {
            self.next.push_back(row);
            return;
        }
        self.rank(shares);
        self.rank_next(shares);
        self.insert(row, shares);
    }

    /// Ranks all anew if shares have changed.
    pub(crate) fn rank(&mut self, shares: &LandedShares) {
        let version = shares.version();
        if self.shares_version == version {
            return;
        }
        self.shares_version = version;
        for (_, row) in std::mem::take(&mut self.waiting) {
            self.insert(row, shares);
        }
    }

    /// The one that leaves next.
    pub(crate) fn first(&self) -> Option<&Delivery> {
        self.iter().next()
    }

    /// In the order in which they leave.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Delivery> {
        self.next.iter().chain(self.waiting.values()).map(|row| &row.delivery)
    }

    /// Chooses the datagrams that leave next: the first `count` deliveries, in the order that fills
    /// datagrams with this capacity best.
    pub(crate) fn pack(&mut self, count: usize, room: usize) {
        if count < 2 || !self.next.is_empty() {
            return;
        }
        let mut rows: Vec<_> = std::iter::from_fn(|| self.waiting.pop_first())
            .take(count)
            .map(|(_, row)| Some(row))
            .collect();
        let sizes = rows.iter().flatten().map(|row| row.delivery.bytes.len());
        for position in sort_for_gso(sizes, room) {
            self.next.extend(rows.get_mut(position).and_then(Option::take));
        }
    }

    /// Removes the delivery at this index of `iter`.
    pub(crate) fn remove(&mut self, position: usize) -> Option<Delivery> {
        if position < self.next.len() {
            return self.next.remove(position).map(|row| row.delivery);
        }
        let place = *self.waiting.keys().nth(position - self.next.len())?;
        self.waiting.remove(&place).map(|row| row.delivery)
    }

    /// Removes the one of the least rank; among several, the newest.
    pub(crate) fn evict_least(&mut self, shares: &LandedShares) -> Option<Delivery> {
        if self.waiting.is_empty() {
            // These are in the order that fills datagrams.
            self.rank_next(shares);
        }
        self.waiting.pop_last().map(|(_, row)| row.delivery)
    }

    /// The least rank of those that wait behind the next group; below every rank if none does.
    pub(crate) fn least_rank(&self) -> i64 {
        self.waiting.last_key_value().map_or(i64::MIN, |(place, _)| place.rank.0)
    }

    /// Removes those that expire by `now_ns`, and returns when the next one does.
    pub(crate) fn expire(&mut self, now_ns: u64, mut expired: impl FnMut(&Delivery)) -> u64 {
        let mut next_ns = NEVER_NS;
        let mut stays = |row: &Row| {
            let until_ns = row.delivery.until_ns;
            if until_ns <= now_ns {
                expired(&row.delivery);
                return false;
            }
            next_ns = next_ns.min(until_ns);
            true
        };
        self.next.retain(&mut stays);
        self.waiting.retain(|_, row| stays(row));
        next_ns
    }

    /// Removes all, in the order in which they would leave.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = Delivery> {
        let next = std::mem::take(&mut self.next).into_iter();
        let waiting = std::mem::take(&mut self.waiting).into_values();
        next.chain(waiting).map(|row| row.delivery)
    }

    fn rank_next(&mut self, shares: &LandedShares) {
        for row in std::mem::take(&mut self.next) {
            self.insert(row, shares);
        }
    }

    fn insert(&mut self, row: Row, shares: &LandedShares) {
        let rank = Reverse(total_order_of(shares.rank_of(row.delivery.offer)));
        self.waiting.insert(Place { rank, arrival: row.arrival }, row);
    }
}

/// An integer that orders as `f64::total_cmp` does.
pub(crate) fn total_order_of(rank: f64) -> i64 {
    let bits = rank.to_bits().cast_signed();
    bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed()
}

#[cfg(test)]
#[path = "priority_queue_tests.rs"]
mod tests;
