//! The state of an ingress thread, as the main thread reads it.

use std::sync::atomic::{AtomicU8, Ordering::SeqCst};

use crate::quic::event_ring::Waker;

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

/// The state, and how the main thread is woken for a change.
pub struct ThreadStatus {
    wake: Waker,
    state: AtomicU8,
}

impl ThreadStatus {
    /// Status of a running thread.
    #[must_use]
    pub fn new(wake: Waker) -> Self {
        Self { wake, state: AtomicU8::new(ThreadState::Running as u8) }
    }

    /// The thread enters this state, and the main thread is woken.
    pub fn enter(&self, state: ThreadState) {
        self.state.store(state as u8, SeqCst);
        (self.wake)();
    }

    /// The `ThreadState` as a number.
    #[must_use]
    pub fn state(&self) -> u8 {
        self.state.load(SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn each_state_wakes_and_can_be_read() {
        let wakes = Arc::new(AtomicUsize::new(0));
        let counted = wakes.clone();
        let status = ThreadStatus::new(Box::new(move || {
            counted.fetch_add(1, SeqCst);
        }));
        assert_eq!((status.state(), wakes.load(SeqCst)), (ThreadState::Running as u8, 0));
        for (count, state) in [(1, ThreadState::Idle), (2, ThreadState::Panicked)] {
            status.enter(state);
            assert_eq!((status.state(), wakes.load(SeqCst)), (state as u8, count));
        }
    }
}
