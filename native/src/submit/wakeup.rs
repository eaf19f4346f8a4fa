//! Decides when to wake the main thread for an ingress thread's records: immediately for an urgent
//! record, at 128 unread records, or after 210 ms. A record whose deliveries are on the wire needs
//! no timer, because the engine has events of them and wakes the main thread in time; a timer for
//! those would wake the ingress thread five times a second.
//!
//! Immediately means at the end of the loop's turn, so that one wake, which costs microseconds,
//! serves all requests that arrived together, and delays no response.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::SeqCst};
use std::time::Duration;

use crate::quic::event_ring::Waker;
use crate::quic::limits::OUTCOMES_DELAY_NS_MAX;

/// Number of unread records at which the main thread is woken.
const RECORDS_WAKE: usize = 128;
/// Longest time after a record until the main thread is woken; the same as for engine events.
const RECORDS_WAKE_NS: u64 = OUTCOMES_DELAY_NS_MAX;

/// State of an ingress thread, as the main thread reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ThreadState {
    /// It accepts requests.
    Running = 1,
    /// It ended on command.
    Exited = 2,
    /// It ended by a panic or an error; its connections are closed.
    Panicked = 3,
    /// It is stopping, and nothing is pending.
    Idle = 4,
}

/// What an ingress thread and the main thread exchange besides records.
pub struct ThreadStatus {
    wake: Waker,
    /// Whether the main thread was woken and has not read since.
    is_woken: AtomicBool,
    state: AtomicU8,
}

impl ThreadStatus {
    /// Status of a running thread.
    #[must_use]
    pub fn new(wake: Waker) -> Self {
        let state = AtomicU8::new(ThreadState::Running as u8);
        Self { wake, is_woken: AtomicBool::new(false), state }
    }

    /// Wakes the main thread, unless it was woken and has not read since.
    pub fn wake(&self) {
        if !self.is_woken.swap(true, SeqCst) {
            (self.wake)();
        }
    }

    /// The thread enters this state.
    pub fn enter(&self, state: ThreadState) {
        self.state.store(state as u8, SeqCst);
        self.wake();
    }

    /// The `ThreadState` as a number, without an effect on wakes.
    #[must_use]
    pub fn state(&self) -> u8 {
        self.state.load(SeqCst)
    }

    /// The `ThreadState` as a number. Whatever happens after this call wakes again.
    #[must_use]
    pub fn read_state(&self) -> u8 {
        self.is_woken.store(false, SeqCst);
        self.state.load(SeqCst)
    }
}

/// Decides for one ingress thread when to wake the main thread.
pub struct WakePolicy {
    status: Arc<ThreadStatus>,
    is_due: bool,
    /// When to wake it for records without a pending wake; None: there are none.
    late_ns: Option<u64>,
}

impl WakePolicy {
    /// A policy without records so far.
    #[must_use]
    pub fn new(status: Arc<ThreadStatus>) -> Self {
        Self { status, is_due: false, late_ns: None }
    }

    /// A record was written, and `depth` are unread now. `needs_immediate_wake`: the main thread
    /// must read it immediately; `is_wake_pending`: it will be woken soon anyway.
    pub fn record_written(
        &mut self,
        depth: usize,
        needs_immediate_wake: bool,
        is_wake_pending: bool,
        now_ns: u64,
    ) {
        if depth >= RECORDS_WAKE {
            self.status.wake();
        } else if needs_immediate_wake {
            self.is_due = true;
        } else if !is_wake_pending && self.late_ns.is_none() {
            self.late_ns = Some(now_ns.saturating_add(RECORDS_WAKE_NS));
        }
    }

    /// End of a loop turn with `depth` unread records.
    pub fn end_turn(&mut self, depth: usize, now_ns: impl FnOnce() -> u64) {
        let is_late = self.late_ns.is_some_and(|late_ns| now_ns() >= late_ns);
        if is_late {
            self.late_ns = None;
        }
        if (std::mem::take(&mut self.is_due) || is_late) && depth > 0 {
            self.status.wake();
        }
    }

    /// How long the thread may sleep; None: forever.
    #[must_use]
    pub fn max_sleep(&self, now_ns: u64) -> Option<Duration> {
        self.late_ns.map(|late_ns| Duration::from_nanos(late_ns.saturating_sub(now_ns)))
    }

    /// The thread's status.
    #[must_use]
    pub fn status(&self) -> &ThreadStatus {
        &self.status
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    const LATE_NS: u64 = RECORDS_WAKE_NS;

    /// A policy, its status, and the number of wakes.
    fn wake_policy() -> (WakePolicy, Arc<ThreadStatus>, Arc<AtomicUsize>) {
        let wakes = Arc::new(AtomicUsize::new(0));
        let counted = wakes.clone();
        let status = Arc::new(ThreadStatus::new(Box::new(move || {
            counted.fetch_add(1, SeqCst);
        })));
        (WakePolicy::new(status.clone()), status, wakes)
    }

    #[test]
    fn urgent_record_wakes_once_at_the_end_of_the_turn() {
        let (mut wake_policy, _status, wakes) = wake_policy();
        wake_policy.record_written(1, true, false, 0);
        wake_policy.record_written(2, true, false, 0);
        assert_eq!(wakes.load(SeqCst), 0);
        wake_policy.end_turn(2, || 0);
        assert_eq!(wakes.load(SeqCst), 1);
        wake_policy.end_turn(2, || 0);
        assert_eq!(wakes.load(SeqCst), 1);
    }

    #[test]
    fn many_records_wake_immediately_and_once_until_read() {
        let (mut wake_policy, status, wakes) = wake_policy();
        wake_policy.record_written(RECORDS_WAKE - 1, false, true, 0);
        assert_eq!(wakes.load(SeqCst), 0);
        wake_policy.record_written(RECORDS_WAKE, false, true, 0);
        wake_policy.record_written(RECORDS_WAKE + 1, false, true, 0);
        assert_eq!(wakes.load(SeqCst), 1);
        assert_eq!(status.read_state(), ThreadState::Running as u8);
        wake_policy.record_written(RECORDS_WAKE, false, true, 0);
        assert_eq!(wakes.load(SeqCst), 2);
    }

    #[test]
    fn record_without_a_pending_wake_wakes_after_the_delay() {
        let (mut wake_policy, _status, wakes) = wake_policy();
        assert_eq!(wake_policy.max_sleep(5), None);
        wake_policy.record_written(1, false, false, 5);
        wake_policy.record_written(2, false, false, 50);
        assert_eq!(wake_policy.max_sleep(6), Some(Duration::from_nanos(LATE_NS - 1)));
        wake_policy.end_turn(2, || LATE_NS + 4);
        assert_eq!(wakes.load(SeqCst), 0);
        wake_policy.end_turn(2, || LATE_NS + 5);
        assert_eq!((wakes.load(SeqCst), wake_policy.max_sleep(0)), (1, None));
    }

    #[test]
    fn record_with_a_pending_wake_needs_no_wake() {
        let (mut wake_policy, _status, wakes) = wake_policy();
        wake_policy.record_written(1, false, true, 0);
        wake_policy.end_turn(1, || u64::MAX);
        assert_eq!((wakes.load(SeqCst), wake_policy.max_sleep(0)), (0, None));
    }

    #[test]
    fn records_read_meanwhile_need_no_wake() {
        let (mut wake_policy, _status, wakes) = wake_policy();
        wake_policy.record_written(1, false, false, 0);
        wake_policy.record_written(2, true, false, 0);
        wake_policy.end_turn(0, || LATE_NS);
        assert_eq!((wakes.load(SeqCst), wake_policy.max_sleep(0)), (0, None));
    }

    #[test]
    fn final_state_is_reported() {
        let (_wake_policy, status, wakes) = wake_policy();
        assert_eq!(status.state(), ThreadState::Running as u8);
        status.enter(ThreadState::Panicked);
        assert_eq!((status.state(), wakes.load(SeqCst)), (3, 1));
    }
}
