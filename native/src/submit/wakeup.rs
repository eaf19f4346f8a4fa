//! Has the main thread look at what a front has: at once where a record is urgent, when many wait,
//! or when one has for long. One of what is on the wire needs nobody to count the time: the engine
//! has news of it, and wakes the main thread for them in time. A timer for those would wake the front
//! ten times a second.
//!
//! At once is when this turn of the front's loop is through, so that one wake, which costs a front
//! microseconds, is for all that came in together, and no answer waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::SeqCst};
use std::time::Duration;

use parking_lot::Mutex;

use crate::limits::OUTCOMES_DELAY_NS_MAX;
use crate::quic::event_ring::Waker;

/// From so many unread records on the main thread is woken.
const RECORDS_WAKE: usize = 128;
/// So long after a record it is at the latest, as after what the engine tells of.
const RECORDS_WAKE_NS: u64 = OUTCOMES_DELAY_NS_MAX;

/// What a front's thread does, as the main thread is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ThreadState {
    /// It takes requests.
    Running = 1,
    /// It was told to end and did.
    Exited = 2,
    /// It ended by a panic, and its clients with it.
    Panicked = 3,
    /// It was told to stop, and has nothing in hand.
    Idle = 4,
}

/// What a front and the main thread tell each other beside records.
pub struct ThreadStatus {
    wake: Waker,
    /// Whether the main thread was woken and has not looked since.
    is_woken: AtomicBool,
    /// Places of passes that the front uses no more.
    released_slots: Mutex<Vec<u32>>,
    state: AtomicU8,
}

impl ThreadStatus {
    /// Of a front that runs.
    #[must_use]
    pub fn new(wake: Waker) -> Self {
        let state = AtomicU8::new(ThreadState::Running as u8);
        Self { wake, is_woken: AtomicBool::new(false), released_slots: Mutex::default(), state }
    }

    /// Wakes the main thread, unless it was and has not looked since.
    pub fn wake(&self) {
        if !self.is_woken.swap(true, SeqCst) {
            (self.wake)();
        }
    }

    /// The front uses the pass of that place no more.
    pub fn release_key_slot(&self, key_slot: u32) {
        self.released_slots.lock().push(key_slot);
        self.wake();
    }

    /// Places given back, as many as `count_max`. Whatever comes from now on wakes again.
    pub fn take_released_slots(&self, count_max: usize) -> Vec<u32> {
        self.is_woken.store(false, SeqCst);
        let mut released_slots = self.released_slots.lock();
        let count = released_slots.len().min(count_max);
        released_slots.drain(..count).collect()
    }

    /// The thread has come to this.
    pub fn enter(&self, state: ThreadState) {
        self.state.store(state as u8, SeqCst);
        self.wake();
    }

    /// `State` as a number.
    #[must_use]
    pub fn state(&self) -> u8 {
        self.state.load(SeqCst)
    }
}

/// Decides for one front when the main thread is woken for its records.
pub struct WakePolicy {
    status: Arc<ThreadStatus>,
    is_due: bool,
    /// When it is woken for those that nobody is sure to come for; None: there are none.
    late_ns: Option<u64>,
}

impl WakePolicy {
    /// Nothing is to be told as yet.
    #[must_use]
    pub fn new(status: Arc<ThreadStatus>) -> Self {
        Self { status, is_due: false, late_ns: None }
    }

    /// A record was written, and now `depth` are unread. `is_urgent`: the main thread is to read it
    /// at once; `is_awaited`: it will before long, whether it is woken or not.
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

    /// The sender is to look at once.
    pub fn wake_now(&mut self) {
        self.is_due = true;
    }

    /// This turn of the loop is through; `depth` records are unread.
    pub fn end_turn(&mut self, depth: usize, now_ns: impl FnOnce() -> u64) {
        let is_late = self.late_ns.is_some_and(|late_ns| now_ns() >= late_ns);
        if is_late {
            self.late_ns = None;
        }
        if (std::mem::take(&mut self.is_due) || is_late) && depth > 0 {
            self.status.wake();
        }
    }

    /// How long the front may sleep; None: for ever.
    #[must_use]
    pub fn wake_in(&self, now_ns: u64) -> Option<Duration> {
        self.late_ns.map(|late_ns| Duration::from_nanos(late_ns.saturating_sub(now_ns)))
    }

    /// What else is told.
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

    /// A teller, and how often the main thread was woken; it looks each time.
    fn wake_policy() -> (WakePolicy, Arc<ThreadStatus>, Arc<AtomicUsize>) {
        let wakes = Arc::new(AtomicUsize::new(0));
        let counted = wakes.clone();
        let status = Arc::new(ThreadStatus::new(Box::new(move || {
            counted.fetch_add(1, SeqCst);
        })));
        (WakePolicy::new(status.clone()), status, wakes)
    }

    #[test]
    fn an_urgent_record_wakes_once_its_turn_is_through() {
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
    fn many_wake_at_once_and_only_until_somebody_looked() {
        let (mut wake_policy, status, wakes) = wake_policy();
        wake_policy.record_written(RECORDS_WAKE - 1, false, true, 0);
        assert_eq!(wakes.load(SeqCst), 0);
        wake_policy.record_written(RECORDS_WAKE, false, true, 0);
        wake_policy.record_written(RECORDS_WAKE + 1, false, true, 0);
        assert_eq!(wakes.load(SeqCst), 1);
        assert!(status.take_released_slots(8).is_empty());
        wake_policy.record_written(RECORDS_WAKE, false, true, 0);
        assert_eq!(wakes.load(SeqCst), 2);
    }

    #[test]
    fn one_that_nobody_comes_for_wakes_late_and_from_the_first_on() {
        let (mut wake_policy, _status, wakes) = wake_policy();
        assert_eq!(wake_policy.wake_in(5), None);
        wake_policy.record_written(1, false, false, 5);
        wake_policy.record_written(2, false, false, 50);
        assert_eq!(wake_policy.wake_in(6), Some(Duration::from_nanos(LATE_NS - 1)));
        wake_policy.end_turn(2, || LATE_NS + 4);
        assert_eq!(wakes.load(SeqCst), 0);
        wake_policy.end_turn(2, || LATE_NS + 5);
        assert_eq!((wakes.load(SeqCst), wake_policy.wake_in(0)), (1, None));
    }

    #[test]
    fn one_that_is_awaited_wakes_nobody() {
        let (mut wake_policy, _status, wakes) = wake_policy();
        wake_policy.record_written(1, false, true, 0);
        wake_policy.end_turn(1, || u64::MAX);
        assert_eq!((wakes.load(SeqCst), wake_policy.wake_in(0)), (0, None));
    }

    #[test]
    fn nobody_is_woken_for_what_was_read_meanwhile() {
        let (mut wake_policy, _status, wakes) = wake_policy();
        wake_policy.record_written(1, false, false, 0);
        wake_policy.wake_now();
        wake_policy.end_turn(0, || LATE_NS);
        assert_eq!((wakes.load(SeqCst), wake_policy.wake_in(0)), (0, None));
    }

    #[test]
    fn places_come_back_in_their_order_and_as_many_as_there_is_room_for() {
        let (_wake_policy, status, wakes) = wake_policy();
        for key_slot in [3, 1, 2] {
            status.release_key_slot(key_slot);
        }
        assert_eq!(wakes.load(SeqCst), 1);
        assert_eq!(status.take_released_slots(2), [3, 1]);
        assert_eq!(status.take_released_slots(2), [2]);
        assert!(status.take_released_slots(2).is_empty());
    }

    #[test]
    fn an_end_is_told() {
        let (_wake_policy, status, wakes) = wake_policy();
        assert_eq!(status.state(), ThreadState::Running as u8);
        status.enter(ThreadState::Panicked);
        assert_eq!((status.state(), wakes.load(SeqCst)), (3, 1));
    }
}
