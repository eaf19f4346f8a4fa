//! What limits admit, on one thread and on several.

use std::thread::scope;

use super::*;

/// Ten days of uptime.
const NOW_NS: f64 = 864_000_000_123_457.0;
const INTERVAL_NS: f64 = 1e8;

fn rate(rate_per_second: f64, burst: f64) -> Limit {
    Limit::of(Rate { rate_per_second, burst })
}

/// How many requests are admitted immediately.
fn passed(bucket: &Bucket, now_ns: f64, limit: Limit) -> u32 {
    (0..1_000).take_while(|_| bucket.try_charge(now_ns, limit) == 0.0).count().try_into().unwrap()
}

#[test]
fn available_is_what_would_be_admitted_and_says_when_it_is_more() {
    let (bucket, limit) = (Bucket::default(), rate(10.0, 5.0));
    assert_eq!(bucket.available(NOW_NS, limit), (5, f64::INFINITY));
    for left in (0..5).rev() {
        assert_eq!(bucket.try_charge(NOW_NS, limit), 0.0);
        assert_eq!(bucket.available(NOW_NS, limit), (left, INTERVAL_NS));
    }
    // Half an interval later, and when one more is there.
    assert_eq!(bucket.available(NOW_NS + INTERVAL_NS / 2.0, limit), (0, INTERVAL_NS / 2.0));
    assert_eq!(bucket.available(NOW_NS + INTERVAL_NS, limit), (1, INTERVAL_NS));
    assert_eq!(passed(&bucket, NOW_NS + INTERVAL_NS, limit), 1);
    assert_eq!(bucket.available(NOW_NS + 10.0 * INTERVAL_NS, limit), (5, f64::INFINITY));
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
        let (bucket, limit) = (Bucket::default(), rate(rate_per_second, burst));
        assert_eq!(passed(&bucket, now_ns, limit), through);
        assert_eq!(bucket.try_charge(now_ns, limit), wait_ns);
        assert_eq!(bucket.wait_ns(now_ns, limit), wait_ns);
        assert_eq!(bucket.full_ns(), then_ns);
    }
}

#[test]
fn exactly_the_burst_is_admitted_immediately() {
    for rate_per_second in [0.001, 0.3, 1.0, 3.0, 7.0, 50.0, 999.0, 1e6] {
        for burst in [1, 2, 3, 100, 999] {
            let limit = rate(rate_per_second, f64::from(burst));
            assert_eq!(passed(&Bucket::default(), NOW_NS, limit), burst);
        }
    }
}

#[test]
fn next_request_is_admitted_after_the_wait() {
    let (bucket, limit) = (Bucket::default(), rate(3.0, 5.0));
    passed(&bucket, NOW_NS, limit);
    let wait_ns = bucket.try_charge(NOW_NS, limit);
    assert_eq!(bucket.try_charge(NOW_NS + wait_ns - 1.0, limit), 1.0);
    assert_eq!(bucket.try_charge(NOW_NS + wait_ns, limit), 0.0);
    assert!(bucket.try_charge(NOW_NS + wait_ns, limit) > 0.0);
}

#[test]
fn refund_restores_one_request() {
    let (bucket, limit) = (Bucket::default(), rate(10.0, 3.0));
    assert_eq!(passed(&bucket, NOW_NS, limit), 3);
    bucket.refund(limit);
    assert_eq!(bucket.full_ns(), NOW_NS + 2.0 * INTERVAL_NS);
    assert_eq!(passed(&bucket, NOW_NS, limit), 1);
    let unused = Bucket::default();
    unused.refund(limit);
    assert_eq!(unused.full_ns(), 0.0);
}

#[test]
fn invalid_rate_admits_its_burst_and_invalid_burst_or_state_nothing() {
    for (rate_per_second, burst, admitted) in [
        (0.0, 3.0, 3),
        (-1.0, 3.0, 3),
        (1e-300, 3.0, 3),
        (f64::NAN, 3.0, 3),
        (f64::INFINITY, 3.0, 3),
        (1.0, f64::NAN, 0),
        (1.0, f64::INFINITY, 0),
    ] {
        let limit = Limit::of(Rate { rate_per_second, burst });
        assert_eq!(passed(&Bucket::default(), NOW_NS, limit), admitted, "{rate_per_second}");
    }
    let bucket = Bucket::default();
    assert!(bucket.replace(0.0, f64::NAN));
    assert_eq!(bucket.try_charge(NOW_NS, rate(10.0, 3.0)), f64::INFINITY);
}

#[test]
fn state_is_replaced_only_where_it_is_the_expected_one() {
    let bucket = Bucket::default();
    assert!(bucket.replace(0.0, 5.0) && !bucket.replace(0.0, 6.0));
    assert_eq!(bucket.full_ns(), 5.0);
}

#[test]
fn a_limit_is_divided_by_edges_and_admits_one_at_least() {
    let share = rate(10.0, 5.0).divided_by(2.0);
    assert_eq!((share.interval_ns(), share.burst), (2.0 * INTERVAL_NS, 2.0));
    assert_eq!(rate(10.0, 1.0).divided_by(3.0).burst, 1.0);
}

#[test]
fn three_threads_admit_exactly_the_burst_and_refunds_are_not_lost() {
    let count: u32 = if cfg!(miri) { 30 } else { 30_000 };
    let (bucket, limit) = (Bucket::default(), rate(10.0, f64::from(count)));
    let by_three = |act: &(dyn Fn() -> u32 + Sync)| -> u32 {
        scope(|threads| {
            [1, 2, 3].map(|_| threads.spawn(act)).map(|thread| thread.join().unwrap()).iter().sum()
        })
    };
    let all =
        || u32::try_from((0..count).filter(|_| bucket.try_charge(NOW_NS, limit) == 0.0).count());
    assert_eq!(by_three(&|| all().unwrap()), count);
    by_three(&|| {
        (0..count / 3).for_each(|_| bucket.refund(limit));
        0
    });
    assert_eq!(bucket.full_ns(), NOW_NS);
}
