//! How other threads wake the I/O thread, and only when they must.
//!
//! The I/O thread announces until when it will sleep. A thread that needs it immediately writes to
//! an eventfd. A thread that needs it before the announced time, for example for the timer of a
//! datagram just sent, sets a kernel timer instead: that wakes no thread, and usually the leader's
//! response arrives before the timer is due. A thread that needs it later does nothing, which is
//! nearly every send under load. The I/O thread announces its sleep and checks once more for work
//! before sleeping, so no call is missed.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering, fence};

use rustix::event::{EventfdFlags, eventfd};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::sync::clock::NS_PER_S;

/// Wakes the I/O thread now or at a given time.
pub struct IoWaker {
    event_fd: OwnedFd,
    timer: OwnedFd,
    /// When the I/O thread wakes on its own or by the timer; 0 while it is awake.
    wakes_at_ns: AtomicU64,
}

impl IoWaker {
    /// Creates the eventfd and the timer.
    pub fn new() -> io::Result<Self> {
        let event_fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self { event_fd, timer, wakes_at_ns: AtomicU64::new(0) })
    }

    /// Ensures that the I/O thread is awake at `by_ns` of CLOCK_MONOTONIC at the latest;
    /// immediately for 0.
    pub fn wake_by(&self, by_ns: u64) {
        fence(Ordering::SeqCst);
        let order = Ordering::SeqCst;
        let sooner = |at_ns| (by_ns < at_ns).then_some(by_ns);
        if self.wakes_at_ns.fetch_update(order, order, sooner).is_err() {
            return;
        }
        if by_ns == 0 {
            // The counter cannot overflow: it is at most the number of sleeps.
            let _ = rustix::io::write(&self.event_fd, &1u64.to_ne_bytes());
        } else {
            self.set_timer(by_ns);
        }
    }

    /// Wakes the I/O thread now.
    pub fn wake(&self) {
        self.wake_by(0);
    }

    /// If several threads set the timer concurrently, the last one leaves it at the soonest time.
    fn set_timer(&self, mut by_ns: u64) {
        loop {
            let whole = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
            let it_value =
                Timespec { tv_sec: whole(by_ns / NS_PER_S), tv_nsec: whole(by_ns % NS_PER_S) };
            let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
            let at = Itimerspec { it_interval, it_value };
            if timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &at).is_err() {
                self.wakes_at_ns.store(0, Ordering::SeqCst);
                let _ = rustix::io::write(&self.event_fd, &1u64.to_ne_bytes());
                return;
            }
            match self.wakes_at_ns.load(Ordering::SeqCst) {
                sooner_ns if sooner_ns != 0 && sooner_ns < by_ns => by_ns = sooner_ns,
                _ => return,
            }
        }
    }

    /// I/O thread: announces the sleep. Check for work once more after this.
    pub(crate) fn sleeping_until(&self, until_ns: u64) {
        self.wakes_at_ns.store(until_ns, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// I/O thread: announces that it is awake, and clears the call if there was one.
    pub(crate) fn awake(&self, called: bool) {
        self.wakes_at_ns.store(0, Ordering::SeqCst);
        if called {
            for fd in self.fds() {
                // Nothing to read if the other one was signalled.
                let _ = rustix::io::read(fd, &mut [0u8; 8]);
            }
        }
    }

    /// File descriptors that become readable on a call.
    pub(crate) fn fds(&self) -> [BorrowedFd<'_>; 2] {
        [self.event_fd.as_fd(), self.timer.as_fd()]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use rustix::time::timerfd_gettime;

    use super::*;
    use crate::sync::clock::{NEVER_NS, monotonic_ns};

    fn is_signaled(io_waker: &IoWaker) -> bool {
        rustix::io::read(&io_waker.event_fd, &mut [0u8; 8]).is_ok()
    }

    /// The earliest and latest time at which the timer is due; None when it is not set.
    fn due(io_waker: &IoWaker) -> Option<(u64, u64)> {
        let before_ns = monotonic_ns();
        let left = timerfd_gettime(&io_waker.timer).unwrap().it_value;
        let left_ns = left.tv_sec as u64 * NS_PER_S + left.tv_nsec as u64;
        (left_ns > 0).then(|| (before_ns + left_ns, monotonic_ns() + left_ns))
    }

    fn is_due_at(io_waker: &IoWaker, at_ns: u64) -> bool {
        due(io_waker).is_some_and(|(from_ns, to_ns)| from_ns <= at_ns && at_ns <= to_ns)
    }

    #[test]
    fn an_earlier_timer_wakes_the_io_thread_only_when_due() {
        let io_waker = IoWaker::new().unwrap();
        let at = |seconds: u64| monotonic_ns() + seconds * NS_PER_S;
        io_waker.sleeping_until(at(1000));
        io_waker.wake_by(at(2000));
        assert_eq!(due(&io_waker), None);
        let soon_ns = at(500);
        io_waker.wake_by(soon_ns);
        io_waker.wake_by(at(600));
        assert!(is_due_at(&io_waker, soon_ns) && !is_signaled(&io_waker));
        let sooner_ns = at(400);
        io_waker.wake_by(sooner_ns);
        assert!(is_due_at(&io_waker, sooner_ns) && !is_signaled(&io_waker));
    }

    #[test]
    fn an_immediate_wake_signals_once() {
        let io_waker = IoWaker::new().unwrap();
        io_waker.wake();
        assert!(!is_signaled(&io_waker), "it is awake");
        io_waker.sleeping_until(NEVER_NS);
        io_waker.wake();
        io_waker.wake_by(1);
        assert!(is_signaled(&io_waker) && due(&io_waker).is_none());
        io_waker.sleeping_until(NEVER_NS);
        io_waker.wake();
        io_waker.awake(true);
        assert!(!is_signaled(&io_waker), "the call was cleared");
    }

    #[test]
    fn concurrent_wake_requests_set_the_soonest_timer() {
        let (io_waker, barrier) = (IoWaker::new().unwrap(), Barrier::new(2));
        let origin_ns = monotonic_ns() + 10_000 * NS_PER_S;
        // The threads would wait for each other forever if one of them failed in between.
        let mut missed = 0;
        std::thread::scope(|scope| {
            let call = |seconds| {
                barrier.wait();
                io_waker.wake_by(origin_ns + seconds * NS_PER_S);
                barrier.wait();
            };
            scope.spawn(move || (0..ROUNDS).for_each(|round| call(2 + round % 2)));
            for round in 0..ROUNDS {
                io_waker.sleeping_until(NEVER_NS);
                call(3 - round % 2);
                missed += u64::from(!is_due_at(&io_waker, origin_ns + 2 * NS_PER_S));
            }
        });
        assert_eq!(missed, 0, "rounds in which the timer was left at a later time");
    }

    const ROUNDS: u64 = 5_000;
}
