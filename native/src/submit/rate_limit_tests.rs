//! What limits let through, on one thread and on several, and where it lies.

use std::sync::Barrier;
use std::thread::scope;

use super::*;

/// Ten days of uptime.
const NOW_NS: f64 = 864_000_000_123_457.0;
const INTERVAL_NS: f64 = 1e8;

fn rate(rate_per_second: f64, burst: f64) -> Cost {
    Cost::of(Rate { rate_per_second, burst }).unwrap()
}

fn scene() -> (Memory, LimitCells) {
    let memory = Memory::fresh(PASS_MEMORY_BYTES);
    let cells = LimitCells::new(&memory).unwrap();
    (memory, cells)
}

fn shared_scene(sharers: i32) -> LimitCells {
    let (_, cells) = scene();
    tell(&cells, sharers);
    cells
}

fn tell(cells: &LimitCells, sharers: i32) {
    cells.sharers[0].store(sharers.cast_unsigned(), SeqCst);
}

fn held_ns(cells: &LimitCells, cell: usize) -> f64 {
    full_ns(&cells.held[cell])
}

/// How many are let through at once.
fn passed(mut charge: impl FnMut() -> f64) -> u32 {
    (0..1_000).take_while(|_| charge() == 0.0).count().try_into().unwrap()
}

#[test]
fn a_charge_is_the_number_that_javascript_computes() {
    // Rate, burst, now; how many are let through, the state and the wait then: of the TypeScript.
    let golden = [
        (50.0, 1.0, NOW_NS, 1, 864_000_020_123_457.0, 2e7),
        (3.0, 5.0, NOW_NS, 5, 864_001_666_790_127.0, 333_333_334.0),
        (0.3, 2.0, 1_790_000_000_123_456.0, 2, 1_790_006_666_790_124.0, 3_333_333_334.0),
        (0.001, 3.0, 123.0, 3, 3_000_000_000_123.0, 1e12),
        (999.0, 2.0, 123.0, 2, 2_002_127.0, 1_001_002.0),
        (1e6, 9.0, NOW_NS, 9, 864_000_000_132_457.0, 1e3),
        // Beyond whole nanoseconds.
        (7.0, 20.0, 9_007_199_254_740_994.0, 19, 9_007_201_969_026_728.0, 17.0),
        (1e-7, 2.0, NOW_NS, 2, 20_864_000_000_123_456.0, 1e16),
        (1e-9, 2.0, NOW_NS, 2, 2_000_864_000_000_123_400.0, 1e18),
    ];
    for (rate_per_second, burst, now_ns, through, then_ns, wait_ns) in golden {
        let (_, cells) = scene();
        let cost = rate(rate_per_second, burst);
        assert_eq!(passed(|| cells.charge(7, now_ns, cost)), through);
        assert_eq!(cells.charge(7, now_ns, cost), wait_ns);
        assert_eq!(cells.wait_ns(7, now_ns, cost), wait_ns);
        assert_eq!(held_ns(&cells, 7), then_ns);
        assert_eq!([held_ns(&cells, 6), held_ns(&cells, 8)], [0.0, 0.0]);
    }
}

#[test]
fn the_burst_is_let_through_at_once_and_no_more() {
    for rate_per_second in [0.001, 0.3, 1.0, 3.0, 7.0, 50.0, 999.0, 1e6] {
        for burst in [1, 2, 3, 100, 999] {
            let (_, cells) = scene();
            let cost = rate(rate_per_second, f64::from(burst));
            assert_eq!(passed(|| cells.charge(0, NOW_NS, cost)), burst);
        }
    }
}

#[test]
fn one_more_is_let_through_after_the_wait_and_not_before() {
    let (_, cells) = scene();
    let cost = rate(3.0, 5.0);
    passed(|| cells.charge(0, NOW_NS, cost));
    let wait_ns = cells.charge(0, NOW_NS, cost);
    assert_eq!(cells.charge(0, NOW_NS + wait_ns - 1.0, cost), 1.0);
    assert_eq!(cells.charge(0, NOW_NS + wait_ns, cost), 0.0);
    assert!(cells.charge(0, NOW_NS + wait_ns, cost) > 0.0);
}

#[test]
fn what_is_given_back_can_be_had_again() {
    let (_, cells) = scene();
    let cost = rate(10.0, 3.0);
    assert_eq!(passed(|| cells.charge(1, NOW_NS, cost)), 3);
    cells.give_back(1, cost);
    assert_eq!(held_ns(&cells, 1), NOW_NS + 2.0 * INTERVAL_NS);
    assert_eq!(passed(|| cells.charge(1, NOW_NS, cost)), 1);
    cells.give_back(2, cost);
    assert_eq!(held_ns(&cells, 2), 0.0);
}

#[test]
fn memory_of_another_size_is_not_taken() {
    assert_eq!(PASS_MEMORY_BYTES, 475_140);
    for size in [0, PASS_MEMORY_BYTES - 1, PASS_MEMORY_BYTES + 1] {
        assert!(LimitCells::new(&Memory::fresh(size)).is_none());
    }
}

#[test]
fn all_lies_where_javascript_has_it() {
    let (memory, cells) = scene();
    let doubles = memory.cells::<AtomicU64>(0, 49_152).unwrap();
    let words = memory.cells::<AtomicU32>(393_216, 16_385).unwrap();
    let marks = memory.cells::<AtomicU8>(458_756, 16_384).unwrap();
    words[16_384].store(1, SeqCst);
    let cost = rate(10.0, 5.0);
    let states = || -> Vec<usize> {
        (0..49_152).filter(|&index| doubles[index].load(SeqCst) != 0).collect()
    };
    for cell in [0, 32_767] {
        assert_eq!(cells.charge(cell, NOW_NS, cost), 0.0);
    }
    assert_eq!(states(), [0, 32_767]);
    for cell in [0, 16_383] {
        assert_eq!(cells.charge_shared(cell, NOW_NS, cost), 0.0);
    }
    assert_eq!(states(), [0, 32_767, 32_768, 49_151]);
    assert_eq!(f64::from_bits(doubles[49_151].load(SeqCst)), NOW_NS + INTERVAL_NS);
    assert_eq!([0, 1, 16_382, 16_383].map(|word| words[word].load(SeqCst)), [1, 0, 0, 1]);
    for place in [3, 16_383] {
        cells.mark(place);
    }
    let marked = (0..16_384).filter(|&place| marks[place].load(SeqCst) == 1);
    assert_eq!(marked.collect::<Vec<_>>(), [3, 16_383]);
}

#[test]
fn nobody_is_let_through_by_a_cell_that_there_is_not() {
    let (memory, cells) = scene();
    tell(&cells, 1);
    let cost = rate(10.0, 5.0);
    let before = bytes_of(&memory);
    for cell in [HELD_CELLS_MAX, HELD_CELLS_MAX + 1, u32::MAX as usize] {
        let cell = u32::try_from(cell).unwrap();
        assert_eq!(cells.charge(cell, NOW_NS, cost), f64::INFINITY);
        assert_eq!(cells.wait_ns(cell, NOW_NS, cost), f64::INFINITY);
        cells.give_back(cell, cost);
    }
    for cell in [SHARED_CELLS_MAX, HELD_CELLS_MAX, u32::MAX as usize] {
        let cell = u32::try_from(cell).unwrap();
        assert_eq!(cells.charge_shared(cell, NOW_NS, cost), f64::INFINITY);
        assert_eq!(cells.shared_wait_ns(cell, NOW_NS, cost), f64::INFINITY);
        cells.mark(cell);
    }
    assert_eq!(bytes_of(&memory), before);
}

fn bytes_of(memory: &Memory) -> Vec<u8> {
    let bytes = memory.cells::<AtomicU8>(0, PASS_MEMORY_BYTES).unwrap();
    bytes.iter().map(|byte| byte.load(SeqCst)).collect()
}

#[test]
fn what_is_no_rate_has_no_cost_and_what_is_no_state_lets_nobody_through() {
    for rate_per_second in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300] {
        assert_eq!(Cost::of(Rate { rate_per_second, burst: 2.0 }), None);
    }
    assert_eq!(Cost::of(Rate { rate_per_second: 1.0, burst: f64::NAN }), None);
    let (_, cells) = scene();
    cells.held[0].store(f64::NAN.to_bits(), SeqCst);
    assert_eq!(cells.charge(0, NOW_NS, rate(10.0, 5.0)), f64::INFINITY);
}

/// What three threads did, all that began together.
fn by_three<T: Send>(act: impl Fn() -> T + Sync) -> [T; 3] {
    let begin = Barrier::new(3);
    scope(|threads| {
        let three = [1, 2, 3].map(|_| {
            threads.spawn(|| {
                begin.wait();
                act()
            })
        });
        three.map(|thread| thread.join().unwrap())
    })
}

#[test]
fn three_threads_let_through_exactly_the_burst_together() {
    const EACH: u32 = if cfg!(miri) { 6 } else { 150_000 };
    const BURST: u32 = EACH / 3 * 4;
    let (_, cells) = scene();
    let cost = rate(1e6, f64::from(BURST));
    let through = by_three(|| (0..EACH).filter(|_| cells.charge(5, NOW_NS, cost) == 0.0).count());
    assert_eq!(through.iter().sum::<usize>(), BURST as usize);
    assert_eq!(held_ns(&cells, 5), NOW_NS + f64::from(BURST) * 1e3);
}

#[test]
fn three_threads_that_give_back_leave_what_they_kept() {
    const EACH: u32 = if cfg!(miri) { 10 } else { 1_000_000 };
    let (_, cells) = scene();
    let cost = rate(1e6, 1e6);
    by_three(|| {
        for attempt in 0..EACH {
            assert_eq!(cells.charge(5, NOW_NS, cost), 0.0);
            if attempt % 10 > 0 {
                cells.give_back(5, cost);
            }
        }
    });
    assert_eq!(held_ns(&cells, 5), NOW_NS + f64::from(EACH / 10 * 3) * 1e3);
}

#[test]
fn a_shared_limit_counts_what_it_lets_through_and_nothing_that_it_refuses() {
    let cells = shared_scene(1);
    let cost = rate(10.0, 20.0);
    assert_eq!(passed(|| cells.charge_shared(4, NOW_NS, cost)), 20);
    assert_eq!(cells.charge_shared(4, NOW_NS, cost), INTERVAL_NS);
    assert_eq!(cells.shared_wait_ns(4, NOW_NS, cost), INTERVAL_NS);
    assert_eq!([3, 4, 5].map(|cell| cells.counts[cell].load(SeqCst)), [0, 20, 0]);
    assert_eq!(full_ns(&cells.shared[4]), NOW_NS + 20.0 * INTERVAL_NS);
    // What has the same number among the limits of this edge alone is another's.
    assert_eq!(held_ns(&cells, 4), 0.0);
}

#[test]
fn what_is_charged_is_counted_already_and_no_more_where_it_is_refused() {
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
fn what_has_to_wait_is_not_counted_for_a_moment_either() {
    let count = AtomicU32::new(0);
    assert_eq!(counted(&count, INTERVAL_NS, || panic!("it is charged")), INTERVAL_NS);
    assert_eq!(count.load(SeqCst), 0);
}

#[test]
fn a_shared_limit_is_divided_by_the_edges_that_share_it() {
    // Rate, burst, edges; how many are let through, the state and the wait then: of the TypeScript.
    let golden = [
        (10.0, 20.0, 7, 2, 864_001_400_123_457.0, 7e8),
        (3.0, 20.0, 3, 6, 864_006_000_123_469.0, 1_000_000_002.0),
        // One is let through whatever the share.
        (0.3, 2.0, 5, 1, 864_016_666_790_127.0, 16_666_666_670.0),
        (999.0, 100.0, 64, 1, 864_000_064_187_585.0, 64_064_128.0),
    ];
    for (rate_per_second, burst, sharers, through, then_ns, wait_ns) in golden {
        let cells = shared_scene(sharers);
        let cost = rate(rate_per_second, burst);
        assert_eq!(passed(|| cells.charge_shared(0, NOW_NS, cost)), through);
        assert_eq!(cells.shared_wait_ns(0, NOW_NS, cost), wait_ns);
        assert_eq!(full_ns(&cells.shared[0]), then_ns);
    }
}

#[test]
fn edges_that_came_or_went_count_from_the_next_charge_on() {
    let cells = shared_scene(7);
    let cost = rate(10.0, 20.0);
    assert_eq!(passed(|| cells.charge_shared(0, NOW_NS, cost)), 2);
    tell(&cells, 1);
    assert_eq!(passed(|| cells.charge_shared(0, NOW_NS, cost)), 6);
}

#[test]
fn nobody_is_let_through_before_the_edges_were_told() {
    for sharers in [0, -1] {
        let cells = shared_scene(sharers);
        let cost = rate(10.0, 20.0);
        assert_eq!(cells.charge_shared(0, NOW_NS, cost), f64::INFINITY);
        assert_eq!(cells.shared_wait_ns(0, NOW_NS, cost), f64::INFINITY);
        assert_eq!(cells.counts[0].load(SeqCst), 0);
    }
}

#[test]
fn three_threads_let_through_and_count_exactly_the_burst_that_is_shared() {
    const EACH: u32 = if cfg!(miri) { 6 } else { 1_000_000 };
    const BURST: u32 = EACH / 2 * 3;
    let cells = shared_scene(1);
    let cost = rate(1e6, f64::from(BURST));
    let through =
        by_three(|| (0..EACH).filter(|_| cells.charge_shared(9, NOW_NS, cost) == 0.0).count());
    assert_eq!(through.iter().sum::<usize>(), BURST as usize);
    assert_eq!(cells.counts[9].load(SeqCst), BURST);
    assert_eq!(full_ns(&cells.shared[9]), NOW_NS + f64::from(BURST) * 1e3);
}
