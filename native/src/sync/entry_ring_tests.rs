//! Entries are read complete, in the order of their claims, whatever their writers do.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use super::*;

/// As `peek` returns them.
pub const DONE: u64 = super::DONE;
/// As above.
pub const VOID: u64 = super::VOID;
/// As above.
pub const PENDING: u64 = super::PENDING;

impl EntryRing {
    /// The kind of state and the words, as numbers, of each unread entry; they stay unread.
    pub(crate) fn peek(&self) -> Vec<(u64, Vec<f64>)> {
        let mut entries = Vec::new();
        let mut cursor = self.tail.0.load(SeqCst);
        while cursor != self.head.0.load(SeqCst) {
            let state = self.at(u64::from(cursor) << 32).unwrap().0.load(Acquire);
            let (_, words) = self.at(state).unwrap();
            let words = words.iter().map(|word| f64::from_bits(word.load(Relaxed))).collect();
            entries.push((state & KIND, words));
            cursor = cursor.wrapping_add(state as u32 >> 2);
        }
        entries
    }

    /// Sets both cursors of an empty ring.
    pub(crate) fn start_at(&self, cursor: u32) {
        for cell in [&self.head, &self.tail] {
            cell.0.store(cursor, SeqCst);
        }
    }
}

const UNITS: usize = 8;
const UNITS_EACH: usize = 3;

fn ring() -> EntryRing {
    EntryRing::new(UNITS, UNITS_EACH)
}

/// Claims an entry of so many units, each word of which is `number`.
fn claim(ring: &EntryRing, units: usize, number: f64) -> Option<Entry<'_>> {
    let entry = ring.claim(units, UNITS)?;
    assert_eq!(entry.words.len(), units * UNIT_WORDS);
    entry.words.iter().for_each(|word| word.store(number.to_bits(), Relaxed));
    Some(entry)
}

fn write(ring: &EntryRing, units: usize, number: f64) -> bool {
    claim(ring, units, number).map(Entry::complete).is_some()
}

/// The first number of each unit that is read.
fn read(ring: &EntryRing, units: usize) -> Vec<f64> {
    let mut out = vec![0.0; units * UNIT_WORDS];
    let count = ring.read(&mut out);
    let units = out.chunks(UNIT_WORDS).take(count);
    units
        .inspect(|unit| assert!(unit.iter().all(|number| *number == unit[0])))
        .map(|unit| unit[0])
        .collect()
}

#[test]
fn entries_of_any_size_are_read_in_order_until_the_ring_is_full() {
    for start in [0, 7, u32::MAX - 1, i32::MAX as u32] {
        let ring = ring();
        ring.start_at(start);
        for (units, number) in [(3, 1.0), (1, 2.0), (2, 3.0), (2, 4.0)] {
            assert!(write(&ring, units, number));
        }
        assert_eq!((ring.unread(), write(&ring, 1, 9.0)), (UNITS, false));
        assert_eq!(read(&ring, 5), [1.0, 1.0, 1.0, 2.0]);
        assert!(write(&ring, 3, 5.0));
        assert!(!write(&ring, 2, 9.0) && write(&ring, 1, 6.0));
        assert_eq!(read(&ring, UNITS), [3.0, 3.0, 4.0, 4.0, 5.0, 5.0, 5.0, 6.0]);
        assert_eq!((read(&ring, UNITS), ring.unread()), (vec![], 0));
    }
}

#[test]
fn each_writer_has_its_own_limit() {
    let ring = ring();
    assert!(ring.claim(2, 3).is_some() && ring.claim(2, 3).is_none());
    assert!(ring.claim(1, 3).is_some() && ring.claim(1, 3).is_none());
    assert!(ring.claim(1, 4).is_some());
}

#[test]
fn entry_that_does_not_fit_stays_for_the_next_call() {
    let ring = ring();
    assert!(write(&ring, 1, 1.0) && write(&ring, 2, 2.0));
    assert_eq!(read(&ring, 2), [1.0]);
    assert_eq!(read(&ring, 1), []);
    assert_eq!(read(&ring, 2), [2.0, 2.0]);
}

#[test]
fn pending_entry_keeps_those_behind_it_until_it_is_completed_or_void() {
    for is_done in [true, false] {
        let ring = ring();
        assert!(write(&ring, 1, 1.0));
        let pending = claim(&ring, 2, 2.0).unwrap().publish();
        assert!(write(&ring, 1, 3.0));
        assert_eq!(read(&ring, UNITS), [1.0]);
        assert_eq!(ring.peek()[0].0, PENDING);
        if is_done {
            ring.complete(pending, |words| {
                words.iter().for_each(|word| word.store(4_f64.to_bits(), Relaxed));
            });
        } else {
            ring.void(pending);
        }
        // Once only.
        ring.void(pending);
        let expected = if is_done { vec![4.0, 4.0, 3.0] } else { vec![3.0] };
        assert_eq!((read(&ring, UNITS), ring.unread()), (expected, 0));
    }
}

#[test]
fn entry_whose_writer_panicked_is_skipped() {
    let ring = ring();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _entry = claim(&ring, 2, 1.0);
        panic!("a writer does");
    }));
    assert!(panicked.is_err() && write(&ring, 1, 2.0));
    assert_eq!((read(&ring, UNITS), ring.unread()), (vec![2.0], 0));
}

#[test]
fn reader_waits_for_the_oldest_entry_while_its_writer_is_interrupted() {
    let ring = ring();
    let pending = claim(&ring, 1, 1.0).unwrap().publish();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            sleep(PAUSE);
            ring.complete(pending, |_| {});
        });
        assert_eq!(read(&ring, 1), [1.0]);
    });
}

#[test]
fn reader_gives_up_after_a_while_and_touches_no_entry_that_is_being_written() {
    let ring = ring();
    let (claimed, since) = (claim(&ring, 1, 1.0).unwrap(), Instant::now());
    assert!(write(&ring, 1, 2.0));
    assert_eq!((read(&ring, UNITS), ring.unread()), (vec![], 2));
    assert!(since.elapsed() >= PAUSE * PAUSES as u32);
    claimed.complete();
    assert_eq!(read(&ring, UNITS), [1.0, 2.0]);
}

#[test]
fn entry_that_the_reader_gave_up_waiting_for_is_read_as_it_is_and_touches_no_later_one() {
    for is_done in [true, false] {
        let ring = EntryRing::new(1, 1);
        let late = claim(&ring, 1, 1.0).unwrap().publish();
        assert_eq!(read(&ring, 1), [1.0]);
        // Another writer has the unit now.
        let other = claim(&ring, 1, 2.0).unwrap().publish();
        if is_done {
            ring.complete(late, |_| panic!("it is another one's"));
        } else {
            ring.void(late);
        }
        assert_eq!(ring.peek()[0].0, PENDING);
        ring.complete(other, |_| {});
        assert_eq!(read(&ring, 1), [2.0]);
    }
}

#[test]
fn entries_of_several_writers_are_all_read_whole_and_those_of_each_in_order() {
    const EACH: usize = if cfg!(miri) { 40 } else { 100_000 };
    const WRITERS: usize = 3;
    let ring = &EntryRing::new(16, UNITS_EACH);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || {
                for n in 0..EACH {
                    let units = 1 + n % UNITS_EACH;
                    let number = (n * WRITERS + writer) as f64;
                    let entry = loop {
                        match ring.claim(units, 16) {
                            Some(entry) => break entry,
                            None => std::thread::yield_now(),
                        }
                    };
                    entry.words.iter().for_each(|word| word.store(number.to_bits(), Relaxed));
                    match n % 4 {
                        0 => ring.complete(entry.publish(), |_| {}),
                        1 => ring.void(entry.publish()),
                        _ => entry.complete(),
                    }
                }
            });
        }
        let mut next = [0; WRITERS];
        while next.iter().any(|next| *next < EACH) {
            let units = read(ring, 16);
            let mut at = 0;
            while let Some(number) = units.get(at) {
                let (n, writer) = (*number as usize / WRITERS, *number as usize % WRITERS);
                let is_skipped = |n: &usize| n % 4 == 1;
                assert_eq!(n, (next[writer]..).find(|n| !is_skipped(n)).unwrap());
                let size = 1 + n % UNITS_EACH;
                assert!(units[at..at + size].iter().all(|other| other == number));
                next[writer] = (n + 1..).find(|n| !is_skipped(n)).unwrap();
                at += size;
            }
        }
    });
    assert_eq!(ring.unread(), 0);
}
