//! Which keys get a table, and which tables stay.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use ed25519_dalek::SigningKey;
use touchdown_native::ed25519::table_cache::{KEYS_MAX, TableCache};

fn key(seed: u32) -> [u8; 32] {
    let mut secret = [0; 32];
    secret.first_chunk_mut().map(|first| *first = seed.to_le_bytes()).unwrap();
    SigningKey::from_bytes(&secret).verifying_key().to_bytes()
}

/// Waits until `holds` returns true.
fn eventually(mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !holds() {
        assert!(Instant::now() < deadline, "timed out");
        std::thread::yield_now();
    }
}

#[test]
fn a_table_is_built_after_the_second_verification() {
    let table_cache = TableCache::new(8);
    table_cache.record_verified(&key(1));
    assert!(table_cache.find(&key(1)).is_none());
    table_cache.record_verified(&key(1));
    eventually(|| table_cache.find(&key(1)).is_some());
    assert_eq!(table_cache.counters().made, 1);
}

#[test]
fn the_builder_wakes_after_sleeping() {
    // Large enough that no set ever fills with recently used tables, whatever the secret seed.
    let table_cache = TableCache::new(KEYS_MAX);
    for seed in 0..20 {
        table_cache.record_verified(&key(seed));
        table_cache.record_verified(&key(seed));
        eventually(|| table_cache.find(&key(seed)).is_some());
    }
}

#[test]
fn keys_seen_once_get_no_table() {
    let table_cache = TableCache::new(8);
    for seed in 0..2000 {
        table_cache.record_verified(&key(seed));
    }
    assert_eq!(table_cache.counters().made, 0);
    assert_eq!(table_cache.counters().declined, 0);
}

#[test]
fn a_key_in_use_outlasts_a_flood_of_others() {
    let table_cache = TableCache::new(4);
    assert!(table_cache.make(&key(0)));
    for seed in 1..500 {
        assert!(table_cache.find(&key(0)).is_some(), "gone after {seed}");
        table_cache.make(&key(seed));
    }
    assert!(table_cache.counters().evicted > 0 && table_cache.counters().declined > 0);
}

#[test]
fn unused_keys_are_replaced() {
    let table_cache = TableCache::new(4);
    for seed in 0..4 {
        assert!(table_cache.make(&key(seed)));
        for _ in 0..50 {
            assert!(table_cache.find(&key(seed)).is_some());
        }
    }
    let tries = (0..100).take_while(|_| !table_cache.make(&key(9))).count();
    assert!((1..100).contains(&tries), "{tries} tries");
    assert!(table_cache.find(&key(9)).is_some());
}

#[test]
fn a_cache_without_capacity_builds_no_table() {
    let table_cache = TableCache::new(0);
    table_cache.record_verified(&key(1));
    table_cache.record_verified(&key(1));
    assert!(!table_cache.make(&key(1)));
    assert!(table_cache.find(&key(1)).is_none());
}

#[test]
fn invalid_points_get_no_table() {
    let table_cache = TableCache::new(4);
    let mut made = 0;
    for first in 0..64 {
        let mut bytes = [3; 32];
        bytes.first_chunk_mut::<1>().map(|chunk| *chunk = [first]).unwrap();
        let is_point = ed25519_dalek::VerifyingKey::from_bytes(&bytes).is_ok();
        let fresh = TableCache::new(1);
        assert_eq!(fresh.make(&bytes), is_point);
        made += usize::from(is_point);
    }
    assert!((1..64).contains(&made));
    assert_eq!(table_cache.counters().made, 0);
}
