//! The congestion window: CUBIC with a lower bound.
//!
//! Without a bound CUBIC shrinks to two datagrams per round trip on a path that loses 1 packet in
//! 20, whatever the cause: to a leader 250 ms away that is 8 transactions per second, and the
//! others wait until they expire. The leader bounds the load with the streams that it grants, so
//! sending on at the rate that other stacks start with risks little.
//!
//! The controller also reveals why quinn-proto makes no further datagram. quinn-proto reads the
//! window before each ack-eliciting datagram, but not when nothing is left to send: if it read the
//! window and made no datagram, the window or the pacer stopped it.
//!
//! Decision: docs/decisions/0028-congestion-window-floor.md

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, CubicConfig};
use std::any::Any;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Instant;

/// CUBIC's initial window. Agave `tpu-client-next`, 128 packets of 1232 bytes, 2026-11.
const INITIAL_WINDOW_BYTES: u64 = 128 * 1232;
/// The lower bound: a quarter of that. Chromium's QUIC starts with as many packets
/// (`kInitialCongestionWindow`), 2026-11.
const LEAST_WINDOW_BYTES: u64 = INITIAL_WINDOW_BYTES / 4;

thread_local! {
    static ASKED: Cell<bool> = const { Cell::new(false) };
}

/// The result of `poll`, and whether quinn-proto read the window meanwhile. It does not expose a
/// connection's controller, and reads it on the thread that polls.
pub(crate) fn poll_noting_window<T>(poll: impl FnOnce() -> T) -> (T, bool) {
    ASKED.set(false);
    (poll(), ASKED.get())
}

/// Creates the controller of each connection.
#[derive(Debug)]
pub(crate) struct Congestion {
    cubic: Arc<CubicConfig>,
}

impl Congestion {
    pub(crate) fn new() -> Self {
        let mut cubic = CubicConfig::default();
        cubic.initial_window(INITIAL_WINDOW_BYTES);
        Self { cubic: Arc::new(cubic) }
    }
}

impl ControllerFactory for Congestion {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(Bounded { cubic: self.cubic.clone().build(now, current_mtu) })
    }
}

struct Bounded {
    cubic: Box<dyn Controller>,
}

impl Controller for Bounded {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.cubic.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.cubic.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        self.cubic.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        self.cubic.on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.cubic.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        ASKED.set(true);
        self.cubic.window().max(LEAST_WINDOW_BYTES)
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self { cubic: self.cubic.clone_box() })
    }

    fn initial_window(&self) -> u64 {
        self.cubic.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::{Congestion, INITIAL_WINDOW_BYTES, LEAST_WINDOW_BYTES};

    use quinn_proto::congestion::ControllerFactory;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    #[test]
    fn losses_shrink_the_window_to_a_quarter_at_least() {
        let began = Instant::now();
        let mut controller = Arc::new(Congestion::new()).build(began, 1200);
        assert_eq!(controller.window(), INITIAL_WINDOW_BYTES);
        let windows: Vec<u64> = (1..=20)
            .map(|second| {
                let now = began + Duration::from_secs(second);
                controller.on_congestion_event(now, now, second == 20, 1200);
                controller.window()
            })
            .collect();
        assert!(windows.is_sorted_by(|before, after| before >= after), "{windows:?}");
        assert!(windows.first().is_some_and(|first| *first < INITIAL_WINDOW_BYTES));
        assert_eq!(windows.last(), Some(&LEAST_WINDOW_BYTES));
        assert_eq!(controller.clone_box().window(), LEAST_WINDOW_BYTES);
    }
}
