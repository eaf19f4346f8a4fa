//! Hot path: a lock in memory that threads share, for work of a microsecond.
//!
//! The same one as JavaScript's (`core/memory-lock.ts`): a word that is 0 while nobody has it. Who
//! finds it held looks again for a moment, and then sleeps in between: its holder was interrupted,
//! or it would be done. After a while it gives up, because a thread that never comes back must not
//! hold up the others for ever. Nobody is woken: who sleeps looks again by himself.

use std::hint::spin_loop;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread::sleep;
use std::time::Duration;

use crate::sync::shared_memory::{AtomicSlice, Memory};

/// Looks before the first sleep: `LOOKS` of `memory-lock.ts`.
const LOOKS: u32 = 1_000;
/// A sleep between two looks after that: `SLEEP_MS` of `memory-lock.ts`, here in microseconds.
const SLEEP_US: u32 = 200;

const FREE: u32 = 0;
const TAKEN: u32 = 1;

/// A lock whose word lies in shared memory.
pub(crate) struct SharedLock {
    /// One.
    words: AtomicSlice<AtomicU32>,
    sleeps: u32,
}

impl SharedLock {
    /// The lock whose word lies at byte `at`; None where there is none. `wait_ms`: when `acquire`
    /// gives up.
    #[must_use]
    pub(crate) fn open(memory: &Memory, at: usize, wait_ms: u32) -> Option<Self> {
        let sleeps = wait_ms.saturating_mul(1_000).div_ceil(SLEEP_US);
        Some(Self { words: memory.atomics(at, 1)?, sleeps })
    }

    /// The lock, to be had for as long as the answer is kept; None where it was not free in time.
    #[must_use]
    pub(crate) fn acquire(&self) -> Option<Locked<'_>> {
        self.acquire_with(|| sleep(Duration::from_micros(u64::from(SLEEP_US))))
    }

    fn acquire_with(&self, mut pause: impl FnMut()) -> Option<Locked<'_>> {
        let word = self.words.first()?;
        for _ in 0..LOOKS {
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

/// A lock that this thread has; given back when it is dropped.
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
    fn it_is_had_by_one_at_a_time() {
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
    fn nobody_is_between_two_steps_of_another() {
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
    fn one_that_comes_free_in_time_is_had_and_else_it_is_given_up() {
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
    fn there_is_none_outside_of_the_memory() {
        let memory = Memory::fresh(8);
        assert!(SharedLock::open(&memory, 8, 1).is_none());
        assert!(SharedLock::open(&memory, 2, 1).is_none());
    }
}
