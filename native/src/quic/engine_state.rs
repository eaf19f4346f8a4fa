//! What all connections of an engine share: its clock, its outcomes, and what they put down for
//! the I/O thread, which alone takes it up again.

use std::sync::atomic::{AtomicBool, AtomicU64};

use quinn_proto::{ConnectionHandle, EndpointEvent};

use crate::quic::event_ring::EventRing;
use crate::quic::io_wakeup::IoWaker;
use crate::sync::clock::Clock;
use crate::sync::mutex_queue::MutexQueue;

/// What all connections of an engine share.
pub struct EngineState {
    /// The engine's clock.
    pub clock: Clock,
    /// Where outcomes go.
    pub events: EventRing,
    /// Rouses the I/O thread.
    pub io_waker: IoWaker,
    /// What connections tell their endpoint.
    pub(crate) endpoint_events: MutexQueue<(usize, ConnectionHandle, EndpointEvent)>,
    /// Set once: connections end with `ShuttingDown`.
    pub(crate) stopping: AtomicBool,
    /// Set once: the I/O thread has ended.
    pub(crate) stopped: AtomicBool,
    /// Bugs that were caught.
    pub(crate) panics: AtomicU64,
    /// Datagrams dropped because a connection's inbox was full, or they were larger than announced.
    pub(crate) inbox_drops: AtomicU64,
}
