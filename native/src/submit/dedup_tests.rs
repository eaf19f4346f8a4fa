//! Which transactions the cache matches and for how long.

use std::thread;

use super::*;

const MS: u64 = 1_000_000;

/// A transaction whose signature starts at 1 and holds `n`.
fn tx(n: u32, size: usize) -> Vec<u8> {
    let mut bytes = vec![7; size];
    bytes[1..5].copy_from_slice(&n.to_be_bytes());
    bytes
}

fn dedup() -> DedupCache {
    DedupCache::new(Sizes { entries_max: 64, bytes_max: 64 * 1024, ..Sizes::default() })
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
fn a_copy_renews_the_entry_also_where_a_double_is_too_coarse_for_the_time() {
    let dedup = dedup();
    // 104 days after the start of the host's clock; JavaScript has the time as a double.
    let inserted_ns = (1 << 53) + 1;
    let known_ns = inserted_ns as f64 as u64;
    assert!(known_ns < inserted_ns);
    accept(&dedup, &tx(1, 100), inserted_ns);
    assert!(dedup.renew(&tx(1, 100), 1, known_ns, inserted_ns + 500 * MS));
    assert!(!dedup.renew(&tx(1, 100), 1, known_ns, inserted_ns + 600 * MS));
}

#[test]
fn a_forgotten_transaction_is_new_unless_a_newer_copy_left() {
    let dedup = dedup();
    let inserted_ns = (1 << 53) + 1;
    accept(&dedup, &tx(1, 100), inserted_ns);
    accept(&dedup, &tx(2, 100), inserted_ns);
    // Its first entry has not expired yet.
    let renewed_ns = inserted_ns + MS;
    assert!(dedup.renew(&tx(1, 100), 1, inserted_ns, renewed_ns));
    dedup.forget(&tx(1, 100), 1, renewed_ns - MS / 2);
    assert_eq!(known(&dedup, &[1, 2], renewed_ns), [1, 2]);
    dedup.forget(&tx(1, 100), 1, renewed_ns as f64 as u64);
    assert_eq!(known(&dedup, &[1, 2], renewed_ns), [2]);
    // Another thread decides on it.
    assert_eq!(dedup.reserve(&tx(1, 100), 1, renewed_ns), Reservation::New);
    dedup.forget(&tx(1, 100), 1, renewed_ns + MS);
    dedup.commit(&tx(1, 100), 1);
    assert_eq!(known(&dedup, &[1, 2], renewed_ns), [1, 2]);
    for bytes in [tx(3, 100), vec![1]] {
        dedup.forget(&bytes, 1, renewed_ns);
    }
}

#[test]
fn rolled_back_reservations_are_not_searched() {
    let dedup = dedup();
    accept(&dedup, &tx(1, 100), 0);
    for at in 1..20 {
        assert_eq!(dedup.reserve(&tx(2, 100), 1, at), Reservation::New);
        dedup.rollback(&tx(2, 100), 1);
    }
    let chain_max = {
        let recent = dedup.recent.lock();
        recent.newest.values().map(|number| chain(&recent, *number)).max()
    };
    assert_eq!((chain_max, known(&dedup, &[1, 2], MS)), (Some(1), vec![1]));
    accept(&dedup, &tx(2, 100), MS);
    assert_eq!(known(&dedup, &[1, 2], MS), [1, 2]);
    for n in 3..200 {
        accept(&dedup, &tx(n, 100), MS);
    }
    let recent = dedup.recent.lock();
    assert_eq!((recent.newest.len(), recent.entries.len()), (64, 64));
}

/// The entries that a search from this one visits.
fn chain(recent: &Recent, number: u64) -> usize {
    let index = number.checked_sub(recent.oldest).map(|index| index as usize);
    let entry = index.and_then(|index| recent.entries.get(index));
    entry.map_or(0, |entry| 1 + entry.older.map_or(0, |older| chain(recent, older)))
}

#[test]
fn transactions_evicted_early_are_counted() {
    let dedup = DedupCache::new(Sizes { entries_max: 4, bytes_max: 400, ..Sizes::default() });
    for n in 0..6 {
        accept(&dedup, &tx(n, 90), 0);
    }
    assert_eq!(dedup.evicted(), 2);
}

#[test]
fn reservation_is_exclusive_and_matches_only_after_commit() {
    let dedup = dedup();
    assert_eq!(dedup.reserve(&tx(1, 100), 1, 0), Reservation::New);
    assert!(!dedup.query(&tx(1, 100), 1, 0));
    assert_eq!(dedup.reserve(&tx(1, 100), 1, 0), Reservation::Pending);
    dedup.commit(&tx(1, 100), 1);
    assert!(dedup.query(&tx(1, 100), 1, 0));
    assert_eq!(dedup.reserve(&tx(1, 100), 1, 0), Reservation::Duplicate);
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
    let dedup = DedupCache::new(Sizes { entries_max: 3, bytes_max: 350, ..Sizes::default() });
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
    let dedup = DedupCache::new(Sizes { entries_max: 3, bytes_max: 50, ..Sizes::default() });
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
    let dedup = DedupCache::new(sizes);
    const COUNT: u32 = if cfg!(miri) { 20 } else { 2_000 };
    let all: Vec<Vec<u8>> = (0..COUNT).map(|n| tx(n, 100 + n as usize % 900)).collect();
    let got: Vec<Vec<bool>> = thread::scope(|scope| {
        let claims =
            || all.iter().map(|bytes| dedup.reserve(bytes, 1, 0) == Reservation::New).collect();
        let threads = [(); 3].map(|()| scope.spawn(claims));
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for n in 0..all.len() {
        assert_eq!(got.iter().filter(|each| each[n]).count(), 1);
    }
}

#[test]
fn cache_is_bypassed_when_the_lock_is_not_free_in_time() {
    let dedup = DedupCache::new(Sizes { lock_ms: 0, ..Sizes::default() });
    accept(&dedup, &tx(1, 100), 0);
    let held = dedup.recent.lock();
    assert!(!dedup.query(&tx(1, 100), 1, 0));
    assert_eq!(dedup.reserve(&tx(1, 100), 1, 0), Reservation::New);
    assert!(dedup.renew(&tx(1, 100), 1, 0, 0));
    dedup.rollback(&tx(1, 100), 1);
    drop(held);
    assert!(dedup.query(&tx(1, 100), 1, 0));
}

#[test]
fn a_transaction_that_another_thread_accepted_stays_when_one_without_the_lock_rolls_back() {
    let dedup = DedupCache::new(Sizes { lock_ms: 0, ..Sizes::default() });
    let held = dedup.recent.lock();
    assert_eq!(dedup.reserve(&tx(1, 100), 1, 0), Reservation::New);
    drop(held);
    accept(&dedup, &tx(1, 100), 0);
    dedup.rollback(&tx(1, 100), 1);
    assert!(dedup.query(&tx(1, 100), 1, 0));
}

#[test]
fn equal_hashes_of_other_bytes_do_not_match() {
    let dedup = dedup();
    // Of the same signature.
    let all: Vec<Vec<u8>> = (0..4).map(|last| [tx(1, 99), vec![last]].concat()).collect();
    for bytes in &all {
        assert_eq!(dedup.reserve(bytes, 1, 0), Reservation::New);
    }
    for index in [0, 1, 3] {
        dedup.commit(&all[index], 1);
    }
    dedup.rollback(&all[2], 1);
    let known: Vec<bool> = all.iter().map(|bytes| dedup.query(bytes, 1, 0)).collect();
    assert_eq!(known, [true, true, false, true]);
}

#[test]
fn as_much_is_kept_as_entries_and_bytes_are_allowed() {
    for (sizes, kept) in [
        (Sizes { entries_max: 5, ..Sizes::default() }, 5),
        (Sizes { bytes_max: 399, ..Sizes::default() }, 3),
        (Sizes { bytes_max: 400, ..Sizes::default() }, 4),
        (Sizes { entries_max: 1, ..Sizes::default() }, 1),
    ] {
        let dedup = DedupCache::new(sizes);
        let all: Vec<u32> = (0..50).collect();
        for n in &all {
            accept(&dedup, &tx(*n, 100), 0);
        }
        assert_eq!(known(&dedup, &all, 0), all[50 - kept..]);
        assert_eq!(dedup.evicted() as usize, 50 - kept);
        let recent = dedup.recent.lock();
        assert_eq!(
            (recent.entries.len(), recent.newest.len(), recent.bytes),
            (kept, kept, 100 * kept)
        );
    }
}

#[test]
fn an_insertion_after_a_pause_removes_few_of_the_expired_entries() {
    let dedup = DedupCache::new(Sizes::default());
    for n in 0..100 {
        accept(&dedup, &tx(n, 100), 0);
    }
    let left = |n: u32, now_ns: u64| {
        accept(&dedup, &tx(n, 100), now_ns);
        dedup.recent.lock().entries.len()
    };
    let after = 3_000 * MS;
    assert_eq!([left(100, after), left(101, after), left(102, after)], [97, 94, 91]);
    assert_eq!(known(&dedup, &(0..103).collect::<Vec<u32>>(), after), [100, 101, 102]);
    for n in 103..140 {
        left(n, after);
    }
    assert_eq!(dedup.recent.lock().entries.len(), 40);
}

#[test]
fn expired_entries_make_room_without_counting_as_evicted_early() {
    let dedup = DedupCache::new(Sizes { entries_max: 10, ..Sizes::default() });
    for n in 0..10 {
        accept(&dedup, &tx(n, 100), 0);
    }
    // Larger than what four expired entries leave.
    let sizes = Sizes { bytes_max: 1_000, ..Sizes::default() };
    let small = DedupCache::new(sizes);
    for n in 0..10 {
        accept(&small, &tx(n, 100), 0);
    }
    accept(&dedup, &tx(10, 100), 3_000 * MS);
    accept(&small, &tx(10, 900), 3_000 * MS);
    assert!(small.query(&tx(10, 900), 1, 3_000 * MS));
    assert_eq!((dedup.evicted(), small.evicted()), (0, 0));
}

#[test]
fn no_table_grows_before_it_has_the_first_entries() {
    const COUNT: usize = if cfg!(miri) { 64 } else { ENTRIES_FIRST };
    let dedup = DedupCache::new(Sizes::default());
    let capacities = || {
        let recent = dedup.recent.lock();
        (recent.entries.capacity(), recent.newest.capacity())
    };
    let before = capacities();
    for n in 0..COUNT as u32 {
        accept(&dedup, &tx(n, 300), 0);
    }
    assert_eq!(capacities(), before);
    let recent = dedup.recent.lock();
    assert!(recent.segments.iter().all(|segment| segment.capacity() == SEGMENT_BYTES));
}

#[test]
fn segments_hold_entries_of_any_size_and_are_reused() {
    let dedup = DedupCache::new(Sizes::default());
    let large = SEGMENT_BYTES + 1;
    for (n, size) in [100, large, 100, SEGMENT_BYTES, 200].into_iter().enumerate() {
        accept(&dedup, &tx(n as u32, size), 0);
        assert!(dedup.query(&tx(n as u32, size), 1, 0));
        assert!(!dedup.query(&tx(n as u32, size - 1), 1, 0));
    }
    let used: Vec<usize> = dedup.recent.lock().segments.iter().map(Vec::len).collect();
    assert_eq!(used, [100, large, 100, SEGMENT_BYTES, 200]);
    for n in 5..8 {
        accept(&dedup, &tx(n, 100), 3_000 * MS);
    }
    let recent = dedup.recent.lock();
    let used: Vec<usize> = recent.segments.iter().map(Vec::len).collect();
    assert_eq!((used, recent.bytes), (vec![500], 300));
    assert!(recent.spare.as_ref().is_some_and(|spare| spare.is_empty()));
}

/// The cache without its index: what `find` must find.
#[derive(Default)]
struct Model(Vec<(Vec<u8>, u64, State)>);

impl Model {
    fn find(&mut self, bytes: &[u8], oldest_ns: u64) -> Option<&mut (Vec<u8>, u64, State)> {
        let is_it =
            |entry: &&mut (Vec<u8>, u64, State)| entry.0 == bytes && entry.2 != State::RolledBack;
        self.0.iter_mut().rev().find(is_it).filter(|entry| entry.1 >= oldest_ns)
    }

    fn add(&mut self, bytes: &[u8], now_ns: u64, state: State, sizes: Sizes) {
        let keep_ns = u64::from(sizes.keep_ms) * MS;
        while self.0.first().is_some_and(|entry| entry.1 < now_ns.saturating_sub(keep_ns)) {
            self.0.remove(0);
        }
        let size = |all: &[(Vec<u8>, u64, State)]| all.iter().map(|it| it.0.len()).sum::<usize>();
        while self.0.len() >= sizes.entries_max || size(&self.0) + bytes.len() > sizes.bytes_max {
            self.0.remove(0);
        }
        self.0.push((bytes.to_vec(), now_ns, state));
    }
}

#[test]
fn random_operations_answer_as_a_list_that_is_searched_does() {
    const STEPS: u32 = if cfg!(miri) { 200 } else { 50_000 };
    for (entries_max, bytes_max, keep_ms) in [(5, 300, 10), (200, 20_000, 1_000), (64, 2_000, 300)]
    {
        let sizes = Sizes { entries_max, bytes_max, keep_ms, lock_ms: 50 };
        let (dedup, mut model) = (DedupCache::new(sizes), Model::default());
        let (mut seed, mut now_ns) = (1_u32, 1_000 * MS);
        let mut random = |below: u32| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) % below
        };
        for step in 0..STEPS {
            let (what, n) = (random(10), random(300));
            let bytes = tx(n, 8 + n as usize * 37 % 113);
            now_ns += u64::from(random(16)) * MS / 8;
            let oldest_ns = now_ns.saturating_sub(u64::from(keep_ms) * MS);
            let found = model.find(&bytes, oldest_ns).map(|entry| (entry.1, entry.2));
            let state = found.map(|(_, state)| state);
            match what {
                0..3 => assert_eq!(
                    dedup.query(&bytes, 1, now_ns),
                    state == Some(State::Accepted),
                    "{step}"
                ),
                3..6 => {
                    let reserved = match state {
                        Some(State::Accepted) => Reservation::Duplicate,
                        Some(_) => Reservation::Pending,
                        None => {
                            model.add(&bytes, now_ns, State::Reserved, sizes);
                            Reservation::New
                        }
                    };
                    assert_eq!(dedup.reserve(&bytes, 1, now_ns), reserved, "{step}");
                }
                6 => {
                    let since_ns = now_ns - 20 * MS;
                    let may_renew = found.is_none_or(|(inserted_ns, _)| inserted_ns <= since_ns);
                    if may_renew {
                        model.add(&bytes, now_ns, State::Accepted, sizes);
                    }
                    assert_eq!(dedup.renew(&bytes, 1, since_ns, now_ns), may_renew, "{step}");
                }
                _ => {
                    let state = if what < 9 { State::Accepted } else { State::RolledBack };
                    let may_change = |entry: &&mut (Vec<u8>, u64, State)| {
                        state == State::Accepted || entry.2 == State::Reserved
                    };
                    if let Some(entry) = model.find(&bytes, 0).filter(may_change) {
                        entry.2 = state;
                    }
                    match state {
                        State::Accepted => dedup.commit(&bytes, 1),
                        _ => dedup.rollback(&bytes, 1),
                    }
                }
            }
        }
        let oldest_ns = now_ns.saturating_sub(u64::from(keep_ms) * MS);
        let valid = |inserted_ns: &u64| *inserted_ns >= oldest_ns;
        let recent = dedup.recent.lock();
        let kept = recent.entries.iter().map(|entry| entry.inserted_ns).filter(valid).count();
        assert_eq!(kept, model.0.iter().map(|entry| entry.1).filter(valid).count());
    }
}
