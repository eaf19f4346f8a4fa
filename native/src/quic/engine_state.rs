//! The state that all connections of an engine share: clock, events, the shares that rank
//! deliveries, and the queue of endpoint events for the I/O thread, its only consumer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use quinn_proto::{ConnectionHandle, EndpointEvent};

use crate::quic::event::Reason;
use crate::quic::event_ring::EventRing;
use crate::quic::io_wakeup::IoWaker;
use crate::quic::landed_shares::LandedShares;
use crate::sync::clock::Clock;
use crate::sync::mutex_queue::MutexQueue;

/// The state that all connections of an engine share.
pub struct EngineState {
    /// The engine's clock.
    pub clock: Clock,
    /// Receives what the main thread reads.
    pub events: Arc<EventRing>,
    /// Wakes the I/O thread.
    pub io_waker: IoWaker,
    /// Events from connections to their endpoint.
    pub(crate) endpoint_events: MutexQueue<(usize, ConnectionHandle, EndpointEvent)>,
    /// Set by `stop`: connections end with `ShuttingDown`.
    pub(crate) stopping: AtomicBool,
    /// Set when the I/O thread has ended.
    pub(crate) stopped: AtomicBool,
    /// Caught panics.
    pub(crate) panics: AtomicU64,
    /// Deliveries that were not sent in the turn in which they arrived, and those evicted from a
    /// full queue.
    pub(crate) deliveries_queued: AtomicU64,
    pub(crate) deliveries_evicted: AtomicU64,
    /// Ranks deliveries.
    pub landed_shares: LandedShares,
    /// Datagrams dropped because a connection's inbox was full, or larger than announced.
    pub(crate) inbox_drops: AtomicU64,
}

impl EngineState {
    /// Why a delivery has no connection to go on.
    pub(crate) fn closed_reason(&self) -> Reason {
        match self.stopping.load(Ordering::Relaxed) {
            true => Reason::ShuttingDown,
            false => Reason::NotConnected,
        }
    }
}
