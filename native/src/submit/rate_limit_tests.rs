//! What limits admit, on one thread and on several, and the memory layout.

use std::sync::Barrier;
use std::thread::scope;

use super::*;

/// Ten days of uptime.
const NOW_NS: f64 = 864_000_000_123_457.0;
const INTERVAL_NS: f64 = 1e8;

fn rate(rate_per_second: f64, burst: f64) -> Limit {
    Limit::of(Rate { rate_per_second, burst }).unwrap()
}

fn fixture() -> (Memory, ThreadLimitStates) {
    let memory = Memory::fresh(LIMIT_MEMORY_BYTES);
    let limit_states = ThreadLimitStates::new(&memory).unwrap();
    (memory, limit_states)
}

fn shared_fixture(edge_count: i32) -> ThreadLimitStates {
    let (_, limit_states) = fixture();
    set_edge_count(&limit_states, edge_count);
    limit_states
}

fn set_edge_count(limit_states: &ThreadLimitStates, edge_count: i32) {
    limit_states.edge_count[0].store(edge_count.cast_unsigned(), SeqCst);
}

fn held_ns(limit_states: &ThreadLimitStates, limit_slot: usize) -> f64 {
    full_ns(&limit_states.local[limit_slot])
}

/// How many requests are admitted immediately.
fn passed(mut charge: impl FnMut() -> f64) -> u32 {
    (0..1_000).take_while(|_| charge() == 0.0).count().try_into().unwrap()
}

#[test]
fn charge_equals_javascripts_result() {
    // Rate, burst, now; then admitted requests, state and wait, as computed by the TypeScript.
    let golden = [
        (50.0, 1.0, NOW_NS, 1, 864_000_020_123_457.0, 2e7),
        (3.0, 5.0, NOW_NS, 5, 864_001_666_790_127.0, 333_333_334.0),
        (0.3, 2.0, 1_790_000_000_123_456.0, 2, 1_790_006_666_790_124.0, 3_333_333_334.0),
        (0.001, 3.0, 123.0, 3, 3_000_000_000_123.0, 1e12),
        (999.0, 2.0, 123.0, 2, 2_002_127.0, 1_001_002.0),
        (1e6, 9.0, NOW_NS, 9, 864_000_000_132_457.0, 1e3),
        // Above 2^53 nanoseconds.
        (7.0, 20.0, 9_007_199_254_740_994.0, 19, 9_007_201_969_026_728.0, 17.0),
        (1e-7, 2.0, NOW_NS, 2, 20_864_000_000_123_456.0, 1e16),
        (1e-9, 2.0, NOW_NS, 2, 2_000_864_000_000_123_400.0, 1e18),
    ];
    for (rate_per_second, burst, now_ns, through, then_ns, wait_ns) in golden {
        let (_, limit_states) = fixture();
        let limit = rate(rate_per_second, burst);
        assert_eq!(passed(|| limit_states.try_charge(7, now_ns, limit)), through);
        assert_eq!(limit_states.try_charge(7, now_ns, limit), wait_ns);
        assert_eq!(limit_states.wait_ns(7, now_ns, limit), wait_ns);
        assert_eq!(held_ns(&limit_states, 7), then_ns);
        assert_eq!([held_ns(&limit_states, 6), held_ns(&limit_states, 8)], [0.0, 0.0]);
    }
}

#[test]
fn exactly_the_burst_is_admitted_immediately() {
    for rate_per_second in [0.001, 0.3, 1.0, 3.0, 7.0, 50.0, 999.0, 1e6] {
        for burst in [1, 2, 3, 100, 999] {
            let (_, limit_states) = fixture();
            let limit = rate(rate_per_second, f64::from(burst));
            assert_eq!(passed(|| limit_states.try_charge(0, NOW_NS, limit)), burst);
        }
    }
}

#[test]
fn next_request_is_admitted_after_the_wait() {
    let (_, limit_states) = fixture();
    let limit = rate(3.0, 5.0);
    passed(|| limit_states.try_charge(0, NOW_NS, limit));
    let wait_ns = limit_states.try_charge(0, NOW_NS, limit);
    assert_eq!(limit_states.try_charge(0, NOW_NS + wait_ns - 1.0, limit), 1.0);
    assert_eq!(limit_states.try_charge(0, NOW_NS + wait_ns, limit), 0.0);
    assert!(limit_states.try_charge(0, NOW_NS + wait_ns, limit) > 0.0);
}

#[test]
fn refund_restores_one_request() {
    let (_, limit_states) = fixture();
    let limit = rate(10.0, 3.0);
    assert_eq!(passed(|| limit_states.try_charge(1, NOW_NS, limit)), 3);
    limit_states.refund(1, limit);
    assert_eq!(held_ns(&limit_states, 1), NOW_NS + 2.0 * INTERVAL_NS);
    assert_eq!(passed(|| limit_states.try_charge(1, NOW_NS, limit)), 1);
    limit_states.refund(2, limit);
    assert_eq!(held_ns(&limit_states, 2), 0.0);
}

#[test]
fn memory_of_another_size_is_rejected() {
    assert_eq!(LIMIT_MEMORY_BYTES, 475_140);
    for size in [0, LIMIT_MEMORY_BYTES - 1, LIMIT_MEMORY_BYTES + 1] {
        assert!(ThreadLimitStates::new(&Memory::fresh(size)).is_none());
    }
}

#[test]
fn layout_equals_javascripts() {
    let (memory, limit_states) = fixture();
    let doubles = memory.atomics::<AtomicU64>(0, 49_152).unwrap();
    let words = memory.atomics::<AtomicU32>(393_216, 16_385).unwrap();
    let marks = memory.atomics::<AtomicU8>(458_756, 16_384).unwrap();
    words[16_384].store(1, SeqCst);
    let limit = rate(10.0, 5.0);
    let states = || -> Vec<usize> {
        (0..49_152).filter(|&index| doubles[index].load(SeqCst) != 0).collect()
    };
    for limit_slot in [0, 32_767] {
        assert_eq!(limit_states.try_charge(limit_slot, NOW_NS, limit), 0.0);
    }
    assert_eq!(states(), [0, 32_767]);
    for limit_slot in [0, 16_383] {
        assert_eq!(limit_states.try_charge_global(limit_slot, NOW_NS, limit), 0.0);
    }
    assert_eq!(states(), [0, 32_767, 32_768, 49_151]);
    assert_eq!(f64::from_bits(doubles[49_151].load(SeqCst)), NOW_NS + INTERVAL_NS);
    assert_eq!([0, 1, 16_382, 16_383].map(|word| words[word].load(SeqCst)), [1, 0, 0, 1]);
    for place in [3, 16_383] {
        limit_states.mark(place);
    }
    let marked = (0..16_384).filter(|&place| marks[place].load(SeqCst) == 1);
    assert_eq!(marked.collect::<Vec<_>>(), [3, 16_383]);
}

#[test]
fn slot_outside_of_the_memory_admits_nothing() {
    let (memory, limit_states) = fixture();
    set_edge_count(&limit_states, 1);
    let limit = rate(10.0, 5.0);
    let before = bytes_of(&memory);
    for limit_slot in [DELEGATED_LIMITS_MAX, DELEGATED_LIMITS_MAX + 1, u32::MAX as usize] {
        let limit_slot = u32::try_from(limit_slot).unwrap();
        assert_eq!(limit_states.try_charge(limit_slot, NOW_NS, limit), f64::INFINITY);
        assert_eq!(limit_states.wait_ns(limit_slot, NOW_NS, limit), f64::INFINITY);
        limit_states.refund(limit_slot, limit);
    }
    for limit_slot in [GLOBAL_LIMITS_MAX, DELEGATED_LIMITS_MAX, u32::MAX as usize] {
        let limit_slot = u32::try_from(limit_slot).unwrap();
        assert_eq!(limit_states.try_charge_global(limit_slot, NOW_NS, limit), f64::INFINITY);
        assert_eq!(limit_states.global_wait_ns(limit_slot, NOW_NS, limit), f64::INFINITY);
        limit_states.mark(limit_slot);
    }
    assert_eq!(bytes_of(&memory), before);
}

fn bytes_of(memory: &Memory) -> Vec<u8> {
    let bytes = memory.atomics::<AtomicU8>(0, LIMIT_MEMORY_BYTES).unwrap();
    bytes.iter().map(|byte| byte.load(SeqCst)).collect()
}

#[test]
fn invalid_rate_has_no_cost_and_invalid_state_admits_nothing() {
    for rate_per_second in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300] {
        assert_eq!(Limit::of(Rate { rate_per_second, burst: 2.0 }), None);
    }
    assert_eq!(Limit::of(Rate { rate_per_second: 1.0, burst: f64::NAN }), None);
    let (_, limit_states) = fixture();
    limit_states.local[0].store(f64::NAN.to_bits(), SeqCst);
    assert_eq!(limit_states.try_charge(0, NOW_NS, rate(10.0, 5.0)), f64::INFINITY);
}

/// Runs `act` on three threads that start together.
fn by_three<T: Send>(act: impl Fn() -> T + Sync) -> [T; 3] {
    let start = Barrier::new(3);
    scope(|threads| {
        let three = [1, 2, 3].map(|_| {
            threads.spawn(|| {
                start.wait();
                act()
            })
        });
        three.map(|thread| thread.join().unwrap())
    })
}

#[test]
fn three_threads_together_admit_exactly_the_burst() {
    const EACH: u32 = if cfg!(miri) { 6 } else { 150_000 };
    const BURST: u32 = EACH / 3 * 4;
    let (_, limit_states) = fixture();
    let limit = rate(1e6, f64::from(BURST));
    let through =
        by_three(|| (0..EACH).filter(|_| limit_states.try_charge(5, NOW_NS, limit) == 0.0).count());
    assert_eq!(through.iter().sum::<usize>(), BURST as usize);
    assert_eq!(held_ns(&limit_states, 5), NOW_NS + f64::from(BURST) * 1e3);
}

#[test]
fn concurrent_refunds_leave_only_unrefunded_charges() {
    const EACH: u32 = if cfg!(miri) { 10 } else { 1_000_000 };
    let (_, limit_states) = fixture();
    let limit = rate(1e6, 1e6);
    by_three(|| {
        for attempt in 0..EACH {
            assert_eq!(limit_states.try_charge(5, NOW_NS, limit), 0.0);
            if attempt % 10 > 0 {
                limit_states.refund(5, limit);
            }
        }
    });
    assert_eq!(held_ns(&limit_states, 5), NOW_NS + f64::from(EACH / 10 * 3) * 1e3);
}

#[test]
fn shared_limit_counts_only_admitted_requests() {
    let limit_states = shared_fixture(1);
    let limit = rate(10.0, 20.0);
    assert_eq!(passed(|| limit_states.try_charge_global(4, NOW_NS, limit)), 20);
    assert_eq!(limit_states.try_charge_global(4, NOW_NS, limit), INTERVAL_NS);
    assert_eq!(limit_states.global_wait_ns(4, NOW_NS, limit), INTERVAL_NS);
    assert_eq!(
        [3, 4, 5].map(|limit_slot| limit_states.counts[limit_slot].load(SeqCst)),
        [0, 20, 0]
    );
    assert_eq!(full_ns(&limit_states.global[4]), NOW_NS + 20.0 * INTERVAL_NS);
    // The slot of the same number among the limits of this edge alone is unaffected.
    assert_eq!(held_ns(&limit_states, 4), 0.0);
}

#[test]
fn count_rises_before_the_charge_and_falls_on_rejection() {
    for (wait_ns, then) in [(0.0, 1), (INTERVAL_NS, 0)] {
        let count = AtomicU32::new(0);
        let charge = || {
            assert_eq!(count.load(SeqCst), 1);
            wait_ns
        };
        assert_eq!(counted(&count, 0.0, charge), wait_ns);
        assert_eq!(count.load(SeqCst), then);
    }
}

#[test]
fn request_that_must_wait_is_never_counted() {
    let count = AtomicU32::new(0);
    assert_eq!(counted(&count, INTERVAL_NS, || panic!("it is charged")), INTERVAL_NS);
    assert_eq!(count.load(SeqCst), 0);
}

#[test]
fn shared_limit_is_divided_by_the_edge_count() {
    // Rate, burst, edges; then admitted requests, state and wait, as computed by the TypeScript.
    let golden = [
        (10.0, 20.0, 7, 2, 864_001_400_123_457.0, 7e8),
        (3.0, 20.0, 3, 6, 864_006_000_123_469.0, 1_000_000_002.0),
        // At least one is admitted, whatever the share.
        (0.3, 2.0, 5, 1, 864_016_666_790_127.0, 16_666_666_670.0),
        (999.0, 100.0, 64, 1, 864_000_064_187_585.0, 64_064_128.0),
    ];
    for (rate_per_second, burst, edge_count, through, then_ns, wait_ns) in golden {
        let limit_states = shared_fixture(edge_count);
        let limit = rate(rate_per_second, burst);
        assert_eq!(passed(|| limit_states.try_charge_global(0, NOW_NS, limit)), through);
        assert_eq!(limit_states.global_wait_ns(0, NOW_NS, limit), wait_ns);
        assert_eq!(full_ns(&limit_states.global[0]), then_ns);
    }
}

#[test]
fn edge_count_change_applies_to_the_next_charge() {
    let limit_states = shared_fixture(7);
    let limit = rate(10.0, 20.0);
    assert_eq!(passed(|| limit_states.try_charge_global(0, NOW_NS, limit)), 2);
    set_edge_count(&limit_states, 1);
    assert_eq!(passed(|| limit_states.try_charge_global(0, NOW_NS, limit)), 6);
}

#[test]
fn unknown_edge_count_admits_nothing() {
    for edge_count in [0, -1] {
        let limit_states = shared_fixture(edge_count);
        let limit = rate(10.0, 20.0);
        assert_eq!(limit_states.try_charge_global(0, NOW_NS, limit), f64::INFINITY);
        assert_eq!(limit_states.global_wait_ns(0, NOW_NS, limit), f64::INFINITY);
        assert_eq!(limit_states.counts[0].load(SeqCst), 0);
    }
}

#[test]
fn three_threads_admit_and_count_exactly_the_shared_burst() {
    const EACH: u32 = if cfg!(miri) { 6 } else { 1_000_000 };
    const BURST: u32 = EACH / 2 * 3;
    let limit_states = shared_fixture(1);
    let limit = rate(1e6, f64::from(BURST));
    let through = by_three(|| {
        (0..EACH).filter(|_| limit_states.try_charge_global(9, NOW_NS, limit) == 0.0).count()
    });
    assert_eq!(through.iter().sum::<usize>(), BURST as usize);
    assert_eq!(limit_states.counts[9].load(SeqCst), BURST);
    assert_eq!(full_ns(&limit_states.global[9]), NOW_NS + f64::from(BURST) * 1e3);
}
