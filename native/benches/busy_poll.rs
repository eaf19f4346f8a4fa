//! The benefit of polling before sleeping: the time from a send to its acknowledgement over
//! loopback, 200 sends per second, with the I/O thread sleeping immediately and polling for 1 ms.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::indexing_slicing)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use support::{ACKED, Leader, LeaderOptions, Sender, options};
use touchdown_native::quic::engine::Options;
use touchdown_native::quic::landed_shares::Offer;

const SENDS: u64 = 600;
const PAUSE: Duration = Duration::from_millis(5);

fn main() {
    let leader = Leader::start(LeaderOptions::default());
    for round in 0..3 {
        for busy_poll in [Duration::ZERO, Duration::from_millis(1), Duration::from_millis(6)] {
            let mut options = Options { busy_poll, ..options() };
            options.transport.ack_every = Some(0);
            let mut sender = Sender::start(options);
            let peer = sender.open_admitted(leader.address);
            let mut due = Instant::now();
            for tx in 0..SENDS {
                due += PAUSE;
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                sender.engine.send(&[peer, 0], &[7; 400], tx, 5_000, Offer::default());
            }
            std::thread::sleep(Duration::from_millis(100));
            sender.drain_now();
            let acked = sender.events.iter().filter(|one| one.kind == ACKED);
            let mut times: Vec<u64> = acked.map(|one| one.detail / 1000).collect();
            times.sort_unstable();
            assert_eq!(times.len() as u64, SENDS);
            let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
            println!(
                "round {round}, polls for {busy_poll:?}: p50 {} us, p99 {} us",
                at(0.5),
                at(0.99)
            );
        }
    }
}
