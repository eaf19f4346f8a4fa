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

use crate::limits::OUTCOMES_LINGER_NS;
use crate::quic::event_ring::Waker;

/// From so many unread records on the main thread is woken.
const RECORDS_WAKE: usize = 128;
/// So long after a record it is at the latest, as after what the engine tells of.
const RECORDS_WAKE_NS: u64 = OUTCOMES_LINGER_NS;

/// What a front's thread does, as the main thread is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// It takes requests.
    Runs = 1,
    /// It was told to end and did.
    Ended = 2,
    /// It ended by a panic, and its clients with it.
    Failed = 3,
    /// It was told to stop, and has nothing in hand.
    Idle = 4,
}

/// What a front and the main thread tell each other beside records.
pub struct Told {
    wake: Waker,
    /// Whether the main thread was woken and has not looked since.
    is_woken: AtomicBool,
    /// Places of passes that the front uses no more.
    returned: Mutex<Vec<u32>>,
    state: AtomicU8,
}

impl Told {
    /// Of a front that runs.
    #[must_use]
    pub fn new(wake: Waker) -> Self {
        let state = AtomicU8::new(State::Runs as u8);
        Self { wake, is_woken: AtomicBool::new(false), returned: Mutex::default(), state }
    }

    /// Wakes the main thread, unless it was and has not looked since.
    pub fn wake(&self) {
        if !self.is_woken.swap(true, SeqCst) {
            (self.wake)();
        }
    }

    /// The front uses the pass of that place no more.
    pub fn give_back(&self, place: u32) {
        self.returned.lock().push(place);
        self.wake();
    }

    /// Places given back, as many as `count_max`. Whatever comes from now on wakes again.
    pub fn take_returned(&self, count_max: usize) -> Vec<u32> {
        self.is_woken.store(false, SeqCst);
        let mut returned = self.returned.lock();
        let count = returned.len().min(count_max);
        returned.drain(..count).collect()
    }

    /// The thread has come to this.
    pub fn enter(&self, state: State) {
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
pub struct Teller {
    told: Arc<Told>,
    is_due: bool,
    /// When it is woken for those that nobody is sure to come for; None: there are none.
    late_ns: Option<u64>,
}

impl Teller {
    /// Nothing is to be told as yet.
    #[must_use]
    pub fn new(told: Arc<Told>) -> Self {
        Self { told, is_due: false, late_ns: None }
    }

    /// A record was written, and now `depth` are unread. `is_urgent`: the main thread is to read it
    /// at once; `is_awaited`: it will before long, whether it is woken or not.
    pub fn note(&mut self, depth: usize, is_urgent: bool, is_awaited: bool, now_ns: u64) {
        if depth >= RECORDS_WAKE {
            self.told.wake();
        } else if is_urgent {
            self.is_due = true;
        } else if !is_awaited && self.late_ns.is_none() {
            self.late_ns = Some(now_ns.saturating_add(RECORDS_WAKE_NS));
        }
    }

    /// The sender is to look at once.
    pub fn hurry(&mut self) {
        self.is_due = true;
    }

    /// This turn of the loop is through; `depth` records are unread.
    pub fn end_turn(&mut self, depth: usize, now_ns: impl FnOnce() -> u64) {
        let is_late = self.late_ns.is_some_and(|late_ns| now_ns() >= late_ns);
        if is_late {
            self.late_ns = None;
        }
        if (std::mem::take(&mut self.is_due) || is_late) && depth > 0 {
            self.told.wake();
        }
    }

    /// How long the front may sleep; None: for ever.
    #[must_use]
    pub fn wake_in(&self, now_ns: u64) -> Option<Duration> {
        self.late_ns.map(|late_ns| Duration::from_nanos(late_ns.saturating_sub(now_ns)))
    }

    /// What else is told.
    #[must_use]
    pub fn told(&self) -> &Told {
        &self.told
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    const LATE_NS: u64 = RECORDS_WAKE_NS;

    /// A teller, and how often the main thread was woken; it looks each time.
    fn teller() -> (Teller, Arc<Told>, Arc<AtomicUsize>) {
        let wakes = Arc::new(AtomicUsize::new(0));
        let counted = wakes.clone();
        let told = Arc::new(Told::new(Box::new(move || {
            counted.fetch_add(1, SeqCst);
        })));
        (Teller::new(told.clone()), told, wakes)
    }

    #[test]
    fn an_urgent_record_wakes_once_its_turn_is_through() {
        let (mut teller, _told, wakes) = teller();
        teller.note(1, true, false, 0);
        teller.note(2, true, false, 0);
        assert_eq!(wakes.load(SeqCst), 0);
        teller.end_turn(2, || 0);
        assert_eq!(wakes.load(SeqCst), 1);
        teller.end_turn(2, || 0);
        assert_eq!(wakes.load(SeqCst), 1);
    }

    #[test]
    fn many_wake_at_once_and_only_until_somebody_looked() {
        let (mut teller, told, wakes) = teller();
        teller.note(RECORDS_WAKE - 1, false, true, 0);
        assert_eq!(wakes.load(SeqCst), 0);
        teller.note(RECORDS_WAKE, false, true, 0);
        teller.note(RECORDS_WAKE + 1, false, true, 0);
        assert_eq!(wakes.load(SeqCst), 1);
        assert!(told.take_returned(8).is_empty());
        teller.note(RECORDS_WAKE, false, true, 0);
        assert_eq!(wakes.load(SeqCst), 2);
    }

    #[test]
    fn one_that_nobody_comes_for_wakes_late_and_from_the_first_on() {
        let (mut teller, _told, wakes) = teller();
        assert_eq!(teller.wake_in(5), None);
        teller.note(1, false, false, 5);
        teller.note(2, false, false, 50);
        assert_eq!(teller.wake_in(6), Some(Duration::from_nanos(LATE_NS - 1)));
        teller.end_turn(2, || LATE_NS + 4);
        assert_eq!(wakes.load(SeqCst), 0);
        teller.end_turn(2, || LATE_NS + 5);
        assert_eq!((wakes.load(SeqCst), teller.wake_in(0)), (1, None));
    }

    #[test]
    fn one_that_is_awaited_wakes_nobody() {
        let (mut teller, _told, wakes) = teller();
        teller.note(1, false, true, 0);
        teller.end_turn(1, || u64::MAX);
        assert_eq!((wakes.load(SeqCst), teller.wake_in(0)), (0, None));
    }

    #[test]
    fn nobody_is_woken_for_what_was_read_meanwhile() {
        let (mut teller, _told, wakes) = teller();
        teller.note(1, false, false, 0);
        teller.hurry();
        teller.end_turn(0, || LATE_NS);
        assert_eq!((wakes.load(SeqCst), teller.wake_in(0)), (0, None));
    }

    #[test]
    fn places_come_back_in_their_order_and_as_many_as_there_is_room_for() {
        let (_teller, told, wakes) = teller();
        for place in [3, 1, 2] {
            told.give_back(place);
        }
        assert_eq!(wakes.load(SeqCst), 1);
        assert_eq!(told.take_returned(2), [3, 1]);
        assert_eq!(told.take_returned(2), [2]);
        assert!(told.take_returned(2).is_empty());
    }

    #[test]
    fn an_end_is_told() {
        let (_teller, told, wakes) = teller();
        assert_eq!(told.state(), State::Runs as u8);
        told.enter(State::Failed);
        assert_eq!((told.state(), wakes.load(SeqCst)), (3, 1));
    }
}
