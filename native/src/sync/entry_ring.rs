//! Hot path: a ring of entries of different sizes, in one order, from any number of writing threads
//! to one reader.
//!
//! ```text
//!            tail (next to read)        head (next to claim)
//!             │                          │
//!     ┌───────▼──────────────┬──────┬────▼──────────────┬╌╌╌╌╌╌╌╌╌╌┐
//!     │ free  │ PENDING      │ DONE │ free              │ overhang │
//!     └───────┴──────────────┴──────┴───────────────────┴╌╌╌╌╌╌╌╌╌╌┘
//! ```
//!
//! An entry is a number of units in a row. A writer claims them by one step of `head`, which
//! decides the entry's place in the order, fills them, and completes the entry; it never waits. How
//! many units may then be in use is the writer's own limit, so that entries of one kind leave room
//! for those of another. An entry that starts in the last units runs on into the overhang, where
//! none starts.
//!
//! ```text
//!  CLAIMED ──written──▶ DONE | PENDING ──▶ DONE | VOID ──read──▶ CLAIMED
//!     └─────dropped────▶ VOID
//! ```
//!
//! The reader waits for an entry to be DONE or VOID, for 0.1 s at most (`PAUSES`): one that is
//! still PENDING is then read as it is, and one that is CLAIMED, with all behind it, is left for
//! later. The states are apart from the words, so that nothing that was written into an entry can
//! be taken for one.

use std::hint::spin_loop;
use std::mem::forget;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::thread::sleep;
use std::time::Duration;

use parking_lot::Mutex;

use crate::sync::shared_memory::AtomicSlice;

/// Words of a unit: 64 bytes.
pub const UNIT_WORDS: usize = 8;

/// A state has, from the lowest bit, 2 bits of kind, 30 of the entry's units, 32 of its cursor.
const KIND: u64 = 3;
/// 0 is CLAIMED: free, or being written.
const DONE: u64 = 1;
/// The reader skips it.
const VOID: u64 = 2;
/// Its words may still change.
const PENDING: u64 = 3;

/// How long the reader waits for a writer: a moment without a pause, as most writers are done
/// within 10 us, and then for one that was interrupted.
const SPINS: usize = 500;
const PAUSE: Duration = Duration::from_micros(50);
const PAUSES: usize = 1_000;

/// A cursor on a cache line of its own: units since the start, which wrap.
#[derive(Default)]
#[repr(align(64))]
struct Cursor(AtomicU32);

/// The ring.
pub struct EntryRing {
    /// A power of two.
    units: usize,
    head: Cursor,
    tail: Cursor,
    /// Of the entry that starts at each unit.
    states: AtomicSlice,
    words: AtomicSlice,
    reader: Mutex<()>,
}

/// A claimed entry. The reader skips one that is dropped before it is complete or published, for
/// example by a panic.
pub struct Entry<'a> {
    /// Its words; those that are not written keep old values.
    pub words: &'a [AtomicU64],
    state: &'a AtomicU64,
    /// Cursor and units.
    place: u64,
}

impl Entry<'_> {
    /// Passes it to the reader.
    pub fn complete(self) {
        self.pass(DONE);
    }

    /// Passes it to the reader, which waits for `EntryRing::complete` or `void`.
    #[must_use]
    pub fn publish(self) -> PendingEntry {
        PendingEntry(self.pass(PENDING))
    }

    fn pass(self, kind: u64) -> u64 {
        let state = self.place | kind;
        self.state.store(state, Release);
        forget(self);
        state
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.state.store(self.place | VOID, Release);
    }
}

/// The state of an entry that is pending. After the reader gave up, another entry may use the same
/// units. Its state differs, so a late `complete` or `void` changes nothing.
#[derive(Clone, Copy)]
pub struct PendingEntry(u64);

impl EntryRing {
    /// An empty ring of so many units, a power of two, of entries of at most `entry_units_max`.
    #[must_use]
    pub fn new(units: usize, entry_units_max: usize) -> Self {
        Self {
            units,
            head: Cursor::default(),
            tail: Cursor::default(),
            states: AtomicSlice::zeroed(units),
            words: AtomicSlice::zeroed(UNIT_WORDS * (units + entry_units_max)),
            reader: Mutex::new(()),
        }
    }

    /// Units that are claimed and not read.
    #[must_use]
    pub fn unread(&self) -> usize {
        let tail = self.tail.0.load(SeqCst);
        self.head.0.load(SeqCst).wrapping_sub(tail) as usize
    }

    /// The end of all that is claimed now.
    #[must_use]
    pub fn end(&self) -> u32 {
        self.head.0.load(SeqCst)
    }

    /// Whether everything before this end was read.
    #[must_use]
    pub fn is_read(&self, end: u32) -> bool {
        self.tail.0.load(SeqCst).wrapping_sub(end).cast_signed() >= 0
    }

    /// Claims an entry, if at most `used_max` units are in use with it.
    #[must_use]
    pub fn claim(&self, units: usize, used_max: usize) -> Option<Entry<'_>> {
        let size = u32::try_from(units).ok()?;
        let head = &self.head.0;
        let mut cursor = head.load(SeqCst);
        loop {
            let used = cursor.wrapping_sub(self.tail.0.load(SeqCst)) as usize;
            if used > self.units {
                // Others claimed and were read since `head` was.
                cursor = head.load(SeqCst);
            } else if used + units > used_max {
                return None;
            } else {
                // Before the claim: one that is never completed would stop the reader.
                let place = u64::from(cursor) << 32 | u64::from(size) << 2;
                let (state, words) = self.at(place)?;
                let claimed =
                    head.compare_exchange(cursor, cursor.wrapping_add(size), SeqCst, SeqCst);
                match claimed {
                    Ok(_) => return Some(Entry { words, state, place }),
                    Err(now) => cursor = now,
                }
            }
        }
    }

    /// Completes a pending entry, whose words `change` may write before.
    pub fn complete(&self, entry: PendingEntry, change: impl FnOnce(&[AtomicU64])) {
        let Some((state, words)) = self.at(entry.0) else { return };
        if state.load(SeqCst) == entry.0 {
            change(words);
            finish(state, entry, DONE);
        }
    }

    /// The reader skips a pending entry.
    pub fn void(&self, entry: PendingEntry) {
        if let Some((state, _)) = self.at(entry.0) {
            finish(state, entry, VOID);
        }
    }

    /// Moves complete entries to `out`, the oldest first, as many as fit, and returns how many
    /// units they have. Waits for the first one only.
    pub fn read(&self, out: &mut [f64]) -> usize {
        let _reader = self.reader.lock();
        let mut count = 0;
        loop {
            let cursor = self.tail.0.load(SeqCst);
            if self.head.0.load(SeqCst) == cursor {
                return count;
            }
            let Some((state, _)) = self.at(u64::from(cursor) << 32) else { return count };
            let found = if count == 0 { wait_until_written(state) } else { state.load(Acquire) };
            let kind = found & KIND;
            if kind == 0 || (kind == PENDING && count > 0) {
                return count;
            }
            let units = found as u32 >> 2;
            if kind != VOID {
                let to = out.chunks_exact_mut(UNIT_WORDS).skip(count).take(units as usize);
                if to.len() < units as usize {
                    return count;
                }
                let words = self.at(found).map_or(&[][..], |(_, words)| words);
                for (number, word) in to.flatten().zip(words) {
                    *number = f64::from_bits(word.load(Relaxed));
                }
                count += units as usize;
            }
            state.store(0, Relaxed);
            self.tail.0.store(cursor.wrapping_add(units), SeqCst);
        }
    }

    /// The state and the words of the entry at a place.
    fn at(&self, place: u64) -> Option<(&AtomicU64, &[AtomicU64])> {
        let unit = (place >> 32) as usize & (self.units - 1);
        let units = place as u32 as usize >> 2;
        let words = self.words.get(UNIT_WORDS * unit..UNIT_WORDS * (unit + units))?;
        Some((self.states.get(unit)?, words))
    }
}

/// Makes a pending entry DONE or VOID, unless the reader gave up before.
fn finish(state: &AtomicU64, PendingEntry(pending): PendingEntry, kind: u64) {
    let _ = state.compare_exchange(pending, pending & !KIND | kind, SeqCst, SeqCst);
}

/// The state once it is DONE or VOID, or after the wait.
fn wait_until_written(state: &AtomicU64) -> u64 {
    for attempt in 0..SPINS + PAUSES {
        let found = state.load(Acquire);
        if matches!(found & KIND, DONE | VOID) {
            return found;
        }
        if attempt < SPINS { spin_loop() } else { sleep(PAUSE) }
    }
    state.load(Acquire)
}

#[cfg(test)]
#[path = "entry_ring_tests.rs"]
pub mod tests;
