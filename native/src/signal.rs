//! How other threads rouse the I/O thread, and only when they must.
//!
//! The I/O thread announces until when it will sleep. A thread that needs it sooner writes to an
//! eventfd; one that can wait until then does nothing, which is nearly every send. Announcing
//! and looking once more for work come before sleeping, so that no call is missed.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering, fence};

use rustix::event::{EventfdFlags, eventfd};

/// The I/O thread's alarm clock.
pub struct Signal {
    fd: OwnedFd,
    /// When the I/O thread wakes by itself; 0 while it is awake.
    wakes_at_ns: AtomicU64,
}

impl Signal {
    /// Makes the eventfd.
    pub fn new() -> io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { fd, wakes_at_ns: AtomicU64::new(0) })
    }

    /// Sees to it that the I/O thread is awake at `by_ns` at the latest.
    pub fn wake_by(&self, by_ns: u64) {
        fence(Ordering::SeqCst);
        let wakes_at_ns = self.wakes_at_ns.load(Ordering::SeqCst);
        if by_ns >= wakes_at_ns {
            return;
        }
        // One thread writes for all that come at the same moment.
        let exchange = Ordering::SeqCst;
        if self.wakes_at_ns.compare_exchange(wakes_at_ns, 0, exchange, exchange).is_ok() {
            // The counter cannot overflow: it is at most the number of sleeps.
            let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
        }
    }

    /// Wakes the I/O thread now.
    pub fn wake(&self) {
        self.wake_by(0);
    }

    /// I/O thread: announces the sleep. Look for work once more after this.
    pub(crate) fn sleeping_until(&self, until_ns: u64) {
        self.wakes_at_ns.store(until_ns, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// I/O thread: announces that it is awake, and takes back the call if there was one.
    pub(crate) fn awake(&self, called: bool) {
        self.wakes_at_ns.store(0, Ordering::SeqCst);
        if called {
            let _ = rustix::io::read(&self.fd, &mut [0u8; 8]);
        }
    }
}

impl AsFd for Signal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
