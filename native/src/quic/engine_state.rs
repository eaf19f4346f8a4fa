//! What all connections of an engine share: its clock, its outcomes, and what they put down for
//! the I/O thread, which alone takes it up again.

use std::sync::atomic::{AtomicBool, AtomicU64};

use quinn_proto::{ConnectionHandle, EndpointEvent};

use crate::quic::event_ring::Outcomes;
use crate::quic::io_wakeup::Signal;
use crate::sync::clock::Clock;
use crate::sync::mutex_queue::Tray;

/// What all connections of an engine share.
pub struct Shared {
    /// The engine's clock.
    pub clock: Clock,
    /// Where outcomes go.
    pub outcomes: Outcomes,
    /// Rouses the I/O thread.
    pub signal: Signal,
    /// What connections tell their endpoint.
    pub(crate) endpoint_events: Tray<(usize, ConnectionHandle, EndpointEvent)>,
    /// Set once: connections end with `ShuttingDown`.
    pub(crate) stopping: AtomicBool,
    /// Set once: the I/O thread has ended.
    pub(crate) stopped: AtomicBool,
    /// Bugs that were caught.
    pub(crate) panics: AtomicU64,
    /// Datagrams dropped because a connection's inbox was full, or they were larger than announced.
    pub(crate) inbox_drops: AtomicU64,
}
