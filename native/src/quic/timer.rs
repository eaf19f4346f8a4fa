//! When a connection next needs the I/O thread.
//!
//! The holder of the drive token sets the timer; the I/O thread waits for the soonest timer it
//! knows. Only a timer that moved closer is passed to it; it discovers that a timer moved away when
//! the old one is due. The usual send moves its timer away, and so passes nothing.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::sync::clock::NEVER_NS;

/// A connection's next timer, and the one that the I/O thread has armed.
pub(crate) struct ConnectionTimer {
    timer_ns: AtomicU64,
    armed_ns: AtomicU64,
    /// An update is on its way to the I/O thread.
    is_pending: AtomicBool,
}

/// What to do about an armed timer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Nothing: another timer is armed.
    Stale,
    /// Wait on: the timer moved away meanwhile.
    Later(u64),
    /// Do the connection's work.
    Now,
}

impl Default for ConnectionTimer {
    fn default() -> Self {
        Self {
            timer_ns: AtomicU64::new(NEVER_NS),
            armed_ns: AtomicU64::new(NEVER_NS),
            is_pending: AtomicBool::new(false),
        }
    }
}

impl ConnectionTimer {
    pub(crate) fn set(&self, timer_ns: u64) {
        self.timer_ns.store(timer_ns, Ordering::Release);
    }

    /// The timer, when it is sooner than the armed one.
    pub(crate) fn sooner(&self) -> Option<u64> {
        let timer_ns = self.timer_ns.load(Ordering::Acquire);
        (timer_ns < self.armed_ns.load(Ordering::Acquire)).then_some(timer_ns)
    }

    /// Marks an update as pending; false if it already was.
    pub(crate) fn mark_pending(&self) -> bool {
        !self.is_pending.swap(true, Ordering::AcqRel)
    }

    /// I/O thread: the timer to wait for, when it is sooner than the armed one.
    pub(crate) fn take_timer_update(&self) -> Option<u64> {
        // A swap, not a store, which a processor may delay past the load that follows: a timer that
        // moves meanwhile is then found here, or passed as a new update.
        self.is_pending.swap(false, Ordering::AcqRel);
        let timer_ns = self.sooner()?;
        self.armed_ns.store(timer_ns, Ordering::Release);
        Some(timer_ns)
    }

    /// I/O thread: `armed_ns` has passed.
    pub(crate) fn take_due(&self, armed_ns: u64, now_ns: u64) -> Due {
        let due = self.moved_beyond(armed_ns, now_ns);
        if due == Due::Now {
            self.armed_ns.store(NEVER_NS, Ordering::Release);
        }
        due
    }

    /// I/O thread: whether the timer still stands at `armed_ns`, which is in the future; `Now` if
    /// so.
    pub(crate) fn moved(&self, armed_ns: u64) -> Due {
        self.moved_beyond(armed_ns, armed_ns)
    }

    fn moved_beyond(&self, armed_ns: u64, at_ns: u64) -> Due {
        if armed_ns != self.armed_ns.load(Ordering::Acquire) {
            return Due::Stale;
        }
        let mut timer_ns = self.timer_ns.load(Ordering::Acquire);
        if timer_ns <= at_ns {
            return Due::Now;
        }
        // As in `take_timer_update`: a timer that moves closer meanwhile is found by the second
        // load, or passed on by the thread that moves it.
        self.armed_ns.swap(timer_ns, Ordering::AcqRel);
        let latest_ns = self.timer_ns.load(Ordering::Acquire);
        if latest_ns < timer_ns {
            timer_ns = latest_ns;
            self.armed_ns.store(timer_ns, Ordering::Release);
        }
        if timer_ns == NEVER_NS { Due::Stale } else { Due::Later(timer_ns) }
    }
}

#[cfg(test)]
mod tests {
    use super::{ConnectionTimer, Due};
    use crate::sync::clock::NEVER_NS;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn passes_a_timer_once_and_only_when_it_moved_closer() {
        let timer = ConnectionTimer::default();
        assert_eq!(timer.sooner(), None);
        timer.set(50);
        assert_eq!(timer.sooner(), Some(50));
        assert!(timer.mark_pending() && !timer.mark_pending());
        assert_eq!((timer.take_timer_update(), timer.take_timer_update()), (Some(50), None));
        timer.set(80);
        assert_eq!(timer.sooner(), None);
        timer.set(20);
        assert_eq!(timer.sooner(), Some(20));
        assert_eq!((timer.mark_pending(), timer.take_timer_update()), (true, Some(20)));
    }

    #[test]
    fn discovers_when_due_that_the_timer_moved_away() {
        let timer = ConnectionTimer::default();
        timer.set(50);
        assert_eq!(timer.take_timer_update(), Some(50));
        timer.set(80);
        assert_eq!(timer.take_due(40, 60), Due::Stale);
        assert_eq!(timer.take_due(50, 60), Due::Later(80));
        assert_eq!(timer.take_due(80, 80), Due::Now);
        timer.set(90);
        assert_eq!((timer.sooner(), timer.take_timer_update()), (Some(90), Some(90)));
        timer.set(NEVER_NS);
        assert_eq!(timer.take_due(90, 95), Due::Stale);
    }

    /// Both threads run their step of a round as simultaneously as possible.
    #[test]
    fn a_timer_that_moves_during_the_update_scan_is_not_missed() {
        let (timer, round, done) =
            (ConnectionTimer::default(), AtomicU64::new(0), AtomicU64::new(0));
        let reach = |counter: &AtomicU64, value| {
            let mut looks = 0;
            while counter.load(Ordering::Acquire) < value {
                looks += 1;
                if looks % 1000 == 0 { std::thread::yield_now() } else { std::hint::spin_loop() }
            }
        };
        let mut missed = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for next in 1..=ROUNDS {
                    reach(&round, next);
                    let _ = timer.take_timer_update();
                    done.store(next, Ordering::Release);
                }
            });
            for next in 1..=ROUNDS {
                // Passed once, and not processed yet.
                let timer_ns = 2 * (ROUNDS - next);
                timer.set(timer_ns + 1);
                let _ = timer.sooner().is_some() && timer.mark_pending();
                round.store(next, Ordering::Release);
                (0..next % 64).for_each(|_| std::hint::spin_loop());
                timer.set(timer_ns);
                let is_reported = timer.sooner().is_some() && timer.mark_pending();
                reach(&done, next);
                let known = timer.armed_ns.load(Ordering::Acquire) == timer_ns;
                missed += u64::from(!known && !is_reported);
                let _ = timer.take_timer_update();
            }
        });
        assert_eq!(missed, 0, "timers missed by both threads");
    }

    const ROUNDS: u64 = 50_000;
}
