//! One state for each name, shared limits that are counted and watched, and what is removed.

use std::thread::scope;

use super::*;
use crate::submit::rate_limit::Rate;

const NOW_NS: f64 = 864_000_000_123_457.0;
const INTERVAL_NS: f64 = 1e8;

fn limit(burst: f64) -> Limit {
    Limit::of(Rate { rate_per_second: 10.0, burst })
}

fn shared(edge_count: u32) -> (LimitRegistry, Arc<LimitState>) {
    let limits = LimitRegistry::default();
    limits.set_edge_count(edge_count);
    let state = limits.state("acme", NOW_NS);
    (limits, state)
}

fn passed(limits: &LimitRegistry, state: &Arc<LimitState>, is_shared: bool) -> usize {
    let charge = |_: &i32| limits.try_charge(state, is_shared, NOW_NS, limit(4.0)) == 0.0;
    (0..1000).take_while(charge).count()
}

fn names(limits: &LimitRegistry, count_max: usize) -> Vec<(u32, String)> {
    let watched = std::iter::from_fn(|| limits.watch_next()).take(count_max);
    watched.map(|(slot, state)| (slot, state.name().to_string())).collect()
}

#[test]
fn a_raised_limit_keeps_no_state_that_it_cannot_have_left() {
    let (limits, state) = shared(0);
    let low = Limit::of(Rate { rate_per_second: 0.1, burst: 100.0 });
    for _ in 0..100 {
        assert_eq!(limits.try_charge(&state, false, NOW_NS, low), 0.0);
    }
    let raised = limit(5.0);
    // Of the lower one: 10 s for each of 100.
    let wait_ns = limits.wait_ns(&state, false, NOW_NS, raised);
    assert_eq!(wait_ns, 1e9 + INTERVAL_NS);
    assert_eq!(limits.available(&state, false, NOW_NS + wait_ns, raised).0, 1);
    assert_eq!(limits.try_charge(&state, false, NOW_NS + wait_ns, raised), 0.0);
    // One that is shared keeps it.
    limits.set_edge_count(1);
    state.global.replace(0.0, NOW_NS + 100e9);
    assert_eq!(limits.try_charge(&state, true, NOW_NS, raised), 100e9 - 4.0 * INTERVAL_NS);
}

#[test]
fn a_name_has_one_state() {
    let (limits, state) = shared(0);
    assert!(Arc::ptr_eq(&state, &limits.state("acme", NOW_NS)));
    assert!(!Arc::ptr_eq(&state, &limits.state("other", NOW_NS)));
    assert_eq!((limits.len(), limits.is_empty(), state.name()), (2, false, "acme"));
}

#[test]
fn states_without_a_key_are_removed_once_their_bucket_is_full() {
    let limits = LimitRegistry::default();
    let held = limits.state("held", NOW_NS);
    let charged = limits.state("charged", NOW_NS);
    assert_eq!(limits.try_charge(&charged, false, NOW_NS, limit(1.0)), 0.0);
    drop(charged);
    let count = 40 * PARTS;
    for number in 0..count {
        drop(limits.state(&number.to_string(), NOW_NS));
    }
    // At most about one for each look that is not done yet.
    assert!(limits.len() < 6 * PARTS, "{}", limits.len());
    let returned = limits.state("charged", NOW_NS);
    assert!(limits.try_charge(&returned, false, NOW_NS, limit(1.0)) > 0.0);
    drop(returned);
    for number in 0..count {
        drop(limits.state(&number.to_string(), NOW_NS + INTERVAL_NS));
    }
    let returned = limits.state("charged", NOW_NS + INTERVAL_NS);
    assert_eq!(returned.local.full_ns(), 0.0);
    assert!(Arc::ptr_eq(&held, &limits.state("held", NOW_NS)));
}

#[test]
fn shared_limit_is_of_this_edge_alone_until_edges_are_known() {
    let (limits, state) = shared(0);
    assert_eq!(passed(&limits, &state, true), 4);
    assert_eq!((names(&limits, 9), state.count.load(SeqCst)), (vec![], 0));
    limits.set_edge_count(2);
    assert_eq!(passed(&limits, &state, true), 2);
    assert_eq!(limits.wait_ns(&state, true, NOW_NS, limit(4.0)), 2.0 * INTERVAL_NS);
    assert_eq!(limits.wait_ns(&state, false, NOW_NS, limit(4.0)), INTERVAL_NS);
}

#[test]
fn shared_limit_counts_admitted_requests_and_is_watched_once() {
    let (limits, state) = shared(1);
    assert_eq!(passed(&limits, &state, true), 4);
    assert_eq!(names(&limits, 0), []);
    assert_eq!(names(&limits, 9), [(0, "acme".to_string())]);
    assert_eq!(names(&limits, 9), []);
    let full_ns = NOW_NS + 4.0 * INTERVAL_NS;
    let found = Watched { full_ns, count: 4, interval_ns: INTERVAL_NS };
    assert_eq!(limits.watched(0), Some(found));
    assert!(limits.replace(0, full_ns, 7.0) && !limits.replace(0, 8.0, 9.0));
    assert_eq!(state.global.full_ns(), 7.0);
    assert!(limits.watched(1).is_none() && !limits.replace(1, 0.0, 1.0));
}

#[test]
fn the_next_charge_after_a_watch_lists_a_limit_again() {
    let (limits, state) = shared(1);
    let charge = || assert_eq!(limits.try_charge(&state, true, NOW_NS, limit(9.0)), 0.0);
    charge();
    assert_eq!(names(&limits, 9).len(), 1);
    limits.unwatch(0, 1);
    assert_eq!((limits.watched(0), names(&limits, 9)), (None, vec![]));
    charge();
    assert_eq!(names(&limits, 9), [(0, "acme".to_string())]);
    // Charged since the count was read: the watch cannot end without a new one.
    charge();
    limits.unwatch(0, 1);
    assert_eq!(names(&limits, 9), [(0, "acme".to_string())]);
    assert_eq!(limits.watched(0).map(|found| found.count), Some(1));
    limits.unwatch(5, 0);
}

#[test]
fn three_threads_charge_and_count_exactly_the_shared_burst() {
    let count: u32 = if cfg!(miri) { 30 } else { 30_000 };
    let (limits, state) = shared(1);
    let limit = limit(f64::from(count));
    let admitted: usize = scope(|threads| {
        let charge =
            || (0..count).filter(|_| limits.try_charge(&state, true, NOW_NS, limit) == 0.0).count();
        [1, 2, 3].map(|_| threads.spawn(charge)).map(|thread| thread.join().unwrap()).iter().sum()
    });
    assert_eq!((admitted, state.count.load(SeqCst)), (count as usize, count));
    assert_eq!(names(&limits, 9).len(), 1);
}
