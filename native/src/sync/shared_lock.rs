//! Hot path: a lock in memory that threads share, for work of a microsecond.
//!
//! A word that is 0 while the lock is free. A thread that finds it taken spins briefly, and then
//! sleeps between attempts: the owner was preempted, or it would be done. After a while it times
//! out, because an owner that never returns must not block the others forever. Releasing wakes no
//! thread: a sleeping one retries after its sleep.

use std::hint::spin_loop;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread::sleep;
use std::time::Duration;

use crate::sync::shared_memory::{AtomicSlice, Memory};

/// Attempts before the first sleep.
const SPINS: u32 = 1_000;
/// Sleep between two attempts after that, in microseconds.
const SLEEP_US: u32 = 200;

const FREE: u32 = 0;
const TAKEN: u32 = 1;

/// A lock whose word lies in shared memory.
pub(crate) struct SharedLock {
    /// One word.
    words: AtomicSlice<AtomicU32>,
    sleeps: u32,
}

impl SharedLock {
    /// The lock whose word is at byte `at`; None if that is not in the memory. `wait_ms`: when
    /// `acquire` times out.
    #[must_use]
    pub(crate) fn open(memory: &Memory, at: usize, wait_ms: u32) -> Option<Self> {
        let sleeps = wait_ms.saturating_mul(1_000).div_ceil(SLEEP_US);
        Some(Self { words: memory.atomics(at, 1)?, sleeps })
    }

    /// Acquires the lock until the result is dropped; None if it was not free in time.
    #[must_use]
    pub(crate) fn acquire(&self) -> Option<Locked<'_>> {
        self.acquire_with(|| sleep(Duration::from_micros(u64::from(SLEEP_US))))
    }

    fn acquire_with(&self, mut pause: impl FnMut()) -> Option<Locked<'_>> {
        let word = self.words.first()?;
        for _ in 0..SPINS {
            if take(word) {
                return Some(Locked(word));
            }
            spin_loop();
        }
        for _ in 0..self.sleeps {
            pause();
            if take(word) {
                return Some(Locked(word));
            }
        }
        None
    }
}

/// An acquired lock; released on drop.
pub(crate) struct Locked<'a>(&'a AtomicU32);

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.0.store(FREE, Release);
    }
}

fn take(word: &AtomicU32) -> bool {
    word.compare_exchange(FREE, TAKEN, Acquire, Relaxed).is_ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn lock_is_exclusive() {
        let memory = Memory::fresh(8);
        let words = memory.atomics::<AtomicU32>(0, 2).unwrap();
        let lock = || SharedLock::open(&memory, 4, 0).unwrap();
        let [first, second] = [lock(), lock()];
        let held = first.acquire().unwrap();
        assert!(second.acquire().is_none());
        assert_eq!([words[0].load(Relaxed), words[1].load(Relaxed)], [0, 1]);
        drop(held);
        assert_eq!(words[1].load(Relaxed), 0);
        let held = second.acquire();
        assert!(held.is_some() && first.acquire().is_none());
    }

    #[test]
    fn critical_sections_do_not_overlap() {
        const EACH: u32 = if cfg!(miri) { 100 } else { 2_000_000 };
        let memory = Memory::fresh(16);
        let start = Barrier::new(2);
        thread::scope(|scope| {
            for _ in 0..2 {
                let lock = SharedLock::open(&memory, 0, 60_000).unwrap();
                let words = memory.atomics::<AtomicU32>(4, 1).unwrap();
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    for _ in 0..EACH {
                        let _held = lock.acquire().unwrap();
                        let count = words[0].load(Relaxed);
                        words[0].store(count + 1, Relaxed);
                    }
                });
            }
        });
        assert_eq!(memory.atomics::<AtomicU32>(4, 1).unwrap()[0].load(Relaxed), 2 * EACH);
    }

    #[test]
    fn acquire_waits_for_a_release_until_the_timeout() {
        let memory = Memory::fresh(8);
        let word = memory.atomics::<AtomicU32>(0, 1).unwrap();
        let lock = SharedLock::open(&memory, 0, 1).unwrap();
        for (free_after, pauses) in [(1, 1), (5, 5), (6, 5)] {
            word[0].store(TAKEN, Relaxed);
            let mut count = 0;
            let held = lock.acquire_with(|| {
                count += 1;
                if count == free_after {
                    word[0].store(FREE, Relaxed);
                }
            });
            assert_eq!((held.is_some(), count), (free_after < 6, pauses));
        }
    }

    #[test]
    fn lock_outside_of_the_memory_is_rejected() {
        let memory = Memory::fresh(8);
        assert!(SharedLock::open(&memory, 8, 1).is_none());
        assert!(SharedLock::open(&memory, 2, 1).is_none());
    }
}
