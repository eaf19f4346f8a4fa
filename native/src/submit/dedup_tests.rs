//! Which transactions the cache matches and for how long, and that it survives any content of the
//! memory.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};
use std::thread;

use sha2::{Digest, Sha256};

use super::*;

const MS: u64 = 1_000_000;

/// A transaction whose signature starts at 1 and holds `n`.
fn tx(n: u32, size: usize) -> Vec<u8> {
    let mut bytes = vec![7; size];
    bytes[1..5].copy_from_slice(&n.to_be_bytes());
    bytes
}

fn cache_of(sizes: Sizes) -> DedupCache {
    DedupCache::open_with(&prepared(sizes, 0x1234_5678).unwrap(), sizes).unwrap()
}

fn dedup() -> DedupCache {
    cache_of(Sizes { entries_max: 64, bytes_max: 64 * 1024, ..Sizes::default() })
}

fn accept(dedup: &DedupCache, bytes: &[u8], now_ns: u64) {
    assert_eq!(dedup.reserve(bytes, 1, now_ns), Reservation::New);
    dedup.commit(bytes, 1);
}

fn known(dedup: &DedupCache, all: &[u32], now_ns: u64) -> Vec<u32> {
    all.iter().copied().filter(|n| dedup.query(&tx(*n, 100), 1, now_ns)).collect()
}

#[test]
fn accepted_transaction_matches_only_exact_bytes() {
    let dedup = dedup();
    accept(&dedup, &tx(1, 100), 0);
    assert!(dedup.query(&tx(1, 100), 1, MS));
    assert!(!dedup.query(&tx(2, 100), 1, MS));
    assert!(!dedup.query(&tx(1, 101), 1, MS));
    let mut other = tx(1, 100);
    other[99] = 8;
    assert!(!dedup.query(&other, 1, MS));
    assert_eq!(dedup.reserve(&tx(1, 100), 1, MS), Reservation::Duplicate);
}

#[test]
fn entry_expires_and_may_be_accepted_again() {
    let dedup = dedup();
    accept(&dedup, &tx(1, 100), 0);
    assert!(dedup.query(&tx(1, 100), 1, 2_100 * MS));
    assert!(!dedup.query(&tx(1, 100), 1, 2_100 * MS + 1));
    accept(&dedup, &tx(1, 100), 2_101 * MS);
    accept(&dedup, &tx(2, 100), 4_201 * MS);
    assert_eq!(known(&dedup, &[1, 2], 4_201 * MS), [1, 2]);
}

#[test]
fn a_copy_renews_the_entry_unless_a_newer_one_left() {
    let dedup = dedup();
    accept(&dedup, &tx(1, 100), 0);
    assert!(dedup.renew(&tx(1, 100), 1, 0, 2_000 * MS));
    assert!(dedup.query(&tx(1, 100), 1, 4_100 * MS));
    // The caller knows of the first one only.
    assert!(!dedup.renew(&tx(1, 100), 1, 0, 4_000 * MS));
    assert!(!dedup.query(&tx(1, 100), 1, 4_101 * MS));
    // One that is expired, unknown, or without a signature hinders no copy.
    for bytes in [tx(1, 100), tx(2, 100), vec![1]] {
        assert!(dedup.renew(&bytes, 1, 0, 5_000 * MS));
    }
    assert_eq!((known(&dedup, &[1, 2], 5_000 * MS), dedup.evicted()), (vec![1, 2], 0));
}

#[test]
fn transactions_evicted_early_are_counted() {
    let dedup = cache_of(Sizes { entries_max: 4, bytes_max: 400, ..Sizes::default() });
    for n in 0..6 {
        accept(&dedup, &tx(n, 90), 0);
    }
    assert_eq!(dedup.evicted(), 2);
}

#[test]
fn reservation_is_exclusive_and_matches_only_after_commit() {
    let sizes = Sizes { entries_max: 8, bytes_max: 1024, ..Sizes::default() };
    let memory = prepared(sizes, 9).unwrap();
    let open = || DedupCache::open_with(&memory, sizes).unwrap();
    let [here, there] = [open(), open()];
    assert_eq!(here.reserve(&tx(1, 100), 1, 0), Reservation::New);
    assert!(!there.query(&tx(1, 100), 1, 0));
    assert_eq!(there.reserve(&tx(1, 100), 1, 0), Reservation::Pending);
    here.commit(&tx(1, 100), 1);
    assert!(there.query(&tx(1, 100), 1, 0));
    assert_eq!(there.reserve(&tx(1, 100), 1, 0), Reservation::Duplicate);
}

#[test]
fn rolled_back_reservation_may_be_reserved_again() {
    let dedup = dedup();
    for n in [1, 2] {
        assert_eq!(dedup.reserve(&tx(n, 100), 1, 0), Reservation::New);
    }
    dedup.commit(&tx(2, 100), 1);
    dedup.rollback(&tx(1, 100), 1);
    assert_eq!(known(&dedup, &[1, 2], 0), [2]);
    accept(&dedup, &tx(1, 100), 0);
    assert_eq!(known(&dedup, &[1, 2], 0), [1, 2]);
    dedup.commit(&tx(3, 100), 1);
    dedup.rollback(&tx(3, 100), 1);
    assert_eq!(known(&dedup, &[1, 2, 3], 0), [1, 2]);
}

#[test]
fn oldest_entries_are_evicted_whatever_their_state() {
    let dedup = cache_of(Sizes { entries_max: 3, bytes_max: 350, ..Sizes::default() });
    for n in 1..=12 {
        assert_eq!(dedup.reserve(&tx(n, 100), 1, 0), Reservation::New);
        match n {
            _ if n % 2 == 0 => dedup.rollback(&tx(n, 100), 1),
            _ if n > 6 => dedup.commit(&tx(n, 100), 1),
            _ => {}
        }
    }
    assert_eq!(known(&dedup, &(1..=12).collect::<Vec<u32>>(), 0), [11]);
}

#[test]
fn transaction_without_signature_or_too_large_is_not_cached() {
    let dedup = cache_of(Sizes { entries_max: 3, bytes_max: 50, ..Sizes::default() });
    for bytes in [tx(1, 51), vec![1; 6], vec![1; 3], Vec::new()] {
        for offset in [1, usize::MAX] {
            for _ in 0..2 {
                assert_eq!(dedup.reserve(&bytes, offset, 0), Reservation::New);
                dedup.commit(&bytes, offset);
            }
            assert!(!dedup.query(&bytes, offset, 0));
            dedup.rollback(&bytes, offset);
        }
    }
    assert_eq!(dedup.reserve(&tx(1, 50), 44, 0), Reservation::New);
    assert_eq!(dedup.reserve(&tx(1, 50), 44, 0), Reservation::Pending);
    assert_eq!(dedup.reserve(&tx(1, 50), 45, 0), Reservation::New);
}

#[test]
fn one_of_several_threads_reserves_each_transaction() {
    let sizes =
        Sizes { entries_max: 4_096, bytes_max: 4 * 1024 * 1024, keep_ms: 2_000, lock_ms: 60_000 };
    let memory = prepared(sizes, 77).unwrap();
    const COUNT: u32 = if cfg!(miri) { 20 } else { 2_000 };
    let all: Vec<Vec<u8>> = (0..COUNT).map(|n| tx(n, 100 + n as usize % 900)).collect();
    let got: Vec<Vec<bool>> = thread::scope(|scope| {
        let claims = || {
            let dedup = DedupCache::open_with(&memory, sizes).unwrap();
            all.iter().map(|bytes| dedup.reserve(bytes, 1, 0) == Reservation::New).collect()
        };
        let threads = [(); 3].map(|()| scope.spawn(claims));
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for n in 0..all.len() {
        assert_eq!(got.iter().filter(|each| each[n]).count(), 1);
    }
}

#[test]
fn cache_is_bypassed_when_the_lock_is_never_released() {
    let sizes = Sizes { entries_max: 8, bytes_max: 1024, keep_ms: 2_000, lock_ms: 0 };
    let memory = prepared(sizes, 5).unwrap();
    let dedup = DedupCache::open_with(&memory, sizes).unwrap();
    let words = memory.atomics::<AtomicU32>(0, 1).unwrap();
    accept(&dedup, &tx(1, 100), 0);
    words[0].store(1, Relaxed);
    assert!(!dedup.query(&tx(1, 100), 1, 0));
    assert_eq!(dedup.reserve(&tx(1, 100), 1, 0), Reservation::New);
    dedup.rollback(&tx(1, 100), 1);
    words[0].store(0, Relaxed);
    assert!(dedup.query(&tx(1, 100), 1, 0));
    assert_eq!(words[0].load(Relaxed), 0);
}

#[test]
fn memory_of_another_size_is_rejected() {
    // The size of `dedupMemory()`.
    assert!(DedupCache::open(&Memory::fresh(35_651_648)).is_some());
    assert!(DedupCache::open(&Memory::fresh(35_651_648 - 8)).is_none());
    assert!(DedupCache::open(&Memory::fresh(35_651_648 + 8)).is_none());
    assert!(prepared(Sizes { entries_max: 0, ..Sizes::default() }, 0).is_none());
    assert!(prepared(Sizes { bytes_max: 0, ..Sizes::default() }, 0).is_none());
    assert!(prepared(Sizes { entries_max: usize::MAX, ..Sizes::default() }, 0).is_none());
}

/// Random numbers that are the same here and in JavaScript.
struct Numbers(u32);

impl Numbers {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.0 >> 8
    }
}

/// A sequence of random operations.
struct Play {
    sizes: Sizes,
    steps: u32,
    kinds: u32,
    spread: u32,
    pause_ns: u64,
}

impl Play {
    /// Runs it; returns a checksum of all results.
    fn run(&self, memory: &Memory) -> u32 {
        let dedup = DedupCache::open_with(memory, self.sizes).unwrap();
        let mut numbers = Numbers(1);
        let (mut now_ns, mut digest) = (1_000_000_000, 0_u32);
        for _ in 0..self.steps {
            let what = numbers.next() % 8;
            let n = numbers.next() % self.kinds;
            let size = 8 + n * 37 % self.spread;
            let mut bytes: Vec<u8> = (0..size).map(|i| (n * 31 + i * 7) as u8).collect();
            bytes[1..5].copy_from_slice(&n.to_be_bytes());
            now_ns += u64::from(numbers.next() % 16) * self.pause_ns;
            let mut response = 0;
            match what {
                0..2 => response = 1 + u32::from(dedup.query(&bytes, 1, now_ns)),
                2..5 => response = 3 + dedup.reserve(&bytes, 1, now_ns) as u32,
                5..7 => dedup.commit(&bytes, 1),
                _ => dedup.rollback(&bytes, 1),
            }
            digest = (digest ^ response).wrapping_mul(0x0100_0193);
        }
        digest
    }
}

fn digest_of(memory: &Memory) -> String {
    let cells = memory.atomics::<AtomicU8>(0, memory.size()).unwrap();
    let bytes: Vec<u8> = cells.iter().map(|cell| cell.load(Relaxed)).collect();
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The digests are those of the memory after the same operations through another implementation, in
/// JavaScript, on memory created with the same options and seed. The first ring wraps around some
/// hundred times; the second grows twice and ends at its maximum of entries; the third wraps around
/// without growing, because enough is free; the last grows to its maximum of bytes, no multiple of
/// eight, and wraps around there.
#[test]
#[cfg_attr(miri, ignore = "takes too many steps for Miri")]
fn memory_equals_that_of_another_implementation_to_the_byte() {
    let cases = [
        ((5, 300, 10), [2_000, 12, 113], 100_000, SMALL),
        ((2_000, 3_000_000, 2_000), [60_000, 6_000, 1_217], 30_000, CAPACITY),
        ((1_150, 3_000_000, 2_000), [30_000, 6_000, 1_217], 60_000, ROUND),
        ((4_096, 1_300_003, 2_000), [60_000, 6_000, 1_217], 30_000, BOUND),
    ];
    for ((entries_max, bytes_max, keep_ms), [steps, kinds, spread], pause_ns, golden) in cases {
        let sizes = Sizes { entries_max, bytes_max, keep_ms, lock_ms: 50 };
        let memory = prepared(sizes, 0x89ab_cdef).unwrap();
        let digest = Play { sizes, steps, kinds, spread, pause_ns }.run(&memory);
        assert_eq!((digest, digest_of(&memory).as_str()), golden);
    }
}

const SMALL: (u32, &str) =
    (829_924_816, "f7e019c59c3629097c5644402a35839c854109f7536232c4de58b970077a3245");
const CAPACITY: (u32, &str) =
    (1_284_928_452, "92a9a693da4eb715104cd5140f5f0b021a52647b879aa56f80434e7a5dada85e");
const ROUND: (u32, &str) =
    (1_860_147_995, "1a8494f2311d1e10eba30c5b30ca3b290cf2fdfa58e518cf6065f922b7ce10b9");
const BOUND: (u32, &str) =
    (1_271_200_179, "22765747857b56fd96b09de7fada5a59312d3f3fd833e8b227fe258af7cdc784");

#[test]
fn arbitrary_memory_never_causes_a_panic_or_an_endless_loop() {
    const ROUNDS: u32 = if cfg!(miri) { 4 } else { 3_000 };
    let mut numbers = Numbers(3);
    for round in 0..ROUNDS {
        let entries_max = 1 + (numbers.next() % 20) as usize;
        let bytes_max = 1 + (numbers.next() % 600) as usize;
        let sizes = Sizes { entries_max, bytes_max, keep_ms: 10, lock_ms: 0 };
        let memory = prepared(sizes, 1).unwrap();
        let words = memory.atomics::<AtomicU32>(0, memory.size() / 4).unwrap();
        // Arbitrary numbers, or ones that may pass for indices and sizes.
        let bound = if round % 2 == 0 { u32::MAX } else { 2 + entries_max as u32 };
        for (at, word) in words.iter().enumerate() {
            let number = numbers.next() << 16 ^ numbers.next();
            if !numbers.next().is_multiple_of(4) {
                word.store((number % bound).wrapping_sub(1), Relaxed);
            }
            if at == 0 {
                word.store(0, Relaxed);
            }
        }
        let play = Play { sizes, steps: 40, kinds: 12, spread: 113, pause_ns: 100_000 };
        play.run(&memory);
        assert_eq!(words[0].load(Relaxed), 0);
    }
}

#[test]
fn cache_recovers_from_inconsistent_memory() {
    let sizes = Sizes { entries_max: 4, bytes_max: 400, keep_ms: 2_000, lock_ms: 0 };
    // The oldest entry, the count, the head, the capacity, and a loop of entries.
    let damages = [(1, 4), (2, 5), (3, 408), (4, 0), (4, 401), (16 + 8 + 3, 0)];
    for (at, number) in damages {
        let memory = prepared(sizes, 1).unwrap();
        let dedup = DedupCache::open_with(&memory, sizes).unwrap();
        let words = memory.atomics::<AtomicU32>(0, memory.size() / 4).unwrap();
        for n in 0..4 {
            accept(&dedup, &tx(n, 90), 0);
        }
        words[at].store(number, Relaxed);
        for n in 4..12 {
            accept(&dedup, &tx(n, 90), 0);
        }
        let known: Vec<u32> = (0..12).filter(|n| dedup.query(&tx(*n, 90), 1, 0)).collect();
        assert_eq!(known, [8, 9, 10, 11], "{at}: {number}");
    }
}
