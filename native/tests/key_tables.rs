//! Which keys get a table, and which stand their ground.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use ed25519_dalek::SigningKey;
use touchdown_native::ed25519::key_cache::{KEYS_MAX, KeyTables};

fn key(seed: u32) -> [u8; 32] {
    let mut secret = [0; 32];
    secret.first_chunk_mut().map(|first| *first = seed.to_le_bytes()).unwrap();
    SigningKey::from_bytes(&secret).verifying_key().to_bytes()
}

/// Waits until it holds.
fn eventually(mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !holds() {
        assert!(Instant::now() < deadline, "not in time");
        std::thread::yield_now();
    }
}

#[test]
fn a_table_is_made_at_the_second_sight() {
    let tables = KeyTables::new(8);
    tables.sighted(&key(1));
    assert!(tables.find(&key(1)).is_none());
    tables.sighted(&key(1));
    eventually(|| tables.find(&key(1)).is_some());
    assert_eq!(tables.counters().made, 1);
}

#[test]
fn the_builder_wakes_again_after_it_slept() {
    // Room for so many that no set is ever full of warm ones, whatever the secret seed is.
    let tables = KeyTables::new(KEYS_MAX);
    for seed in 0..20 {
        tables.sighted(&key(seed));
        tables.sighted(&key(seed));
        eventually(|| tables.find(&key(seed)).is_some());
    }
}

#[test]
fn ever_new_keys_make_no_table() {
    let tables = KeyTables::new(8);
    for seed in 0..2000 {
        tables.sighted(&key(seed));
    }
    assert_eq!(tables.counters().made, 0);
    assert_eq!(tables.counters().declined, 0);
}

#[test]
fn a_key_in_use_outlasts_a_flood_of_others() {
    let tables = KeyTables::new(4);
    assert!(tables.make(&key(0)));
    for seed in 1..500 {
        assert!(tables.find(&key(0)).is_some(), "gone after {seed}");
        tables.make(&key(seed));
    }
    assert!(tables.counters().evicted > 0 && tables.counters().declined > 0);
}

#[test]
fn keys_out_of_use_make_room() {
    let tables = KeyTables::new(4);
    for seed in 0..4 {
        assert!(tables.make(&key(seed)));
        for _ in 0..50 {
            assert!(tables.find(&key(seed)).is_some());
        }
    }
    let tries = (0..100).take_while(|_| !tables.make(&key(9))).count();
    assert!((1..100).contains(&tries), "{tries} tries");
    assert!(tables.find(&key(9)).is_some());
}

#[test]
fn no_room_means_no_table() {
    let tables = KeyTables::new(0);
    tables.sighted(&key(1));
    tables.sighted(&key(1));
    assert!(!tables.make(&key(1)));
    assert!(tables.find(&key(1)).is_none());
}

#[test]
fn bytes_that_are_no_point_make_no_table() {
    let tables = KeyTables::new(4);
    let mut made = 0;
    for first in 0..64 {
        let mut bytes = [3; 32];
        bytes.first_chunk_mut::<1>().map(|chunk| *chunk = [first]).unwrap();
        let is_point = ed25519_dalek::VerifyingKey::from_bytes(&bytes).is_ok();
        let fresh = KeyTables::new(1);
        assert_eq!(fresh.make(&bytes), is_point);
        made += usize::from(is_point);
    }
    assert!((1..64).contains(&made));
    assert_eq!(tables.counters().made, 0);
}
