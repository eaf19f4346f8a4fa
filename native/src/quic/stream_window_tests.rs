use super::*;

const RTT_US: u32 = 1_000;

fn at(ms: u64) -> u64 {
    ms * NS_PER_MS
}

/// A leader that grants 128 streams, and a sender that always has more to send.
struct Leader {
    window: StreamWindow,
    unread: f64,
    opened: usize,
}

impl Leader {
    fn new() -> Self {
        let mut window = StreamWindow::default();
        window.set_credit(128);
        Self { window, unread: 0.0, opened: 0 }
    }

    /// It reads that many per interval; returns the most that are unread in the last second.
    fn read(&mut self, per_interval: f64, from_ms: u64, to_ms: u64, rtt_us: u32) -> f64 {
        let mut most = 0.0_f64;
        for ms in (from_ms..to_ms).step_by(10) {
            self.unread = (self.unread - per_interval / 10.0).max(0.0);
            let left = |unread: f64| (128.0 - unread) as usize;
            while self.window.room(left(self.unread)) > 0 {
                self.window.opened();
                self.opened += 1;
                self.unread += 1.0;
            }
            self.window.record_blocked(at(ms), rtt_us, left(self.unread));
            if ms + 1_000 >= to_ms {
                most = most.max(self.unread);
            }
        }
        most
    }
}

fn blocked(window: &mut StreamWindow, ms: impl IntoIterator<Item = u64>, streams_left: usize) {
    for ms in ms {
        window.record_blocked(at(ms), RTT_US, streams_left);
    }
}

#[test]
fn it_is_the_grant_until_deliveries_waited_for_a_while() {
    let mut window = StreamWindow::default();
    window.set_credit(128);
    blocked(&mut window, [0, SLOW_MS - 1], 0);
    assert_eq!((window.room(1), window.due_ns(at(100))), (1, at(SLOW_MS)));
    blocked(&mut window, [SLOW_MS], 0);
    assert_eq!(window.room(1), 0);
}

#[test]
fn it_keeps_a_slow_leader_busy_and_follows_it() {
    let mut leader = Leader::new();
    assert!(leader.read(40.0, 0, 3_000, RTT_US) > 50.0);
    assert!(leader.read(10.0, 3_000, 6_000, RTT_US) <= 35.0);
    leader.opened = 0;
    leader.read(40.0, 6_000, 9_000, RTT_US);
    assert!(leader.opened as f64 > 0.97 * 1_200.0);
}

#[test]
fn it_is_wider_on_a_long_path() {
    let limit = |rtt_us| {
        let mut leader = Leader::new();
        leader.read(20.0, 0, 2_000, rtt_us);
        leader.window.limit.unwrap()
    };
    assert!(limit(300_000) > 3 * (limit(1_000) - 16));
}

#[test]
fn it_ends_when_nothing_waited_for_ten_seconds() {
    let mut leader = Leader::new();
    leader.read(20.0, 0, 1_000, RTT_US);
    leader.window.drained(at(9_000));
    assert!(leader.window.limit.is_some());
    leader.window.drained(at(11_000));
    assert_eq!((leader.window.room(100), leader.window.due_ns(0)), (100, NEVER_NS));
}

#[test]
fn it_opens_again_when_the_leader_grants_less_on_the_same_connection() {
    let mut window = StreamWindow::default();
    window.set_credit(800);
    blocked(&mut window, [0, 100, 200], 0);
    assert_eq!(window.room(128), 0);
    blocked(&mut window, (300..=1_100).step_by(100), 128);
    assert_eq!((window.room(128), window.due_ns(at(1_100))), (0, at(200 + STUCK_MS)));
    blocked(&mut window, [200 + STUCK_MS], 128);
    assert!(window.room(128) > 0);
}

#[test]
fn a_leader_that_read_nothing_and_has_no_stream_left_stays_limited() {
    let mut window = StreamWindow::default();
    window.set_credit(128);
    blocked(&mut window, (0..=5_000).step_by(100), 0);
    assert_eq!(window.room(1), 0);
}

#[test]
fn a_grant_larger_than_the_engine_counts_is_never_limited() {
    for (streams, is_limited) in [(STREAMS_AHEAD_MAX - 1, true), (STREAMS_AHEAD_MAX, false)] {
        let mut window = StreamWindow::default();
        window.set_credit(streams);
        blocked(&mut window, (0..=1_000).step_by(50), 0);
        assert_eq!(window.room(1) == 0, is_limited, "{streams}");
    }
}
