//! What one admission costs among many keys, and the memory of a key.
//!
//! `cargo bench --no-default-features --features ingress --bench keys [-- KEYS]`

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::scope;
use std::time::Instant;

use touchdown_native::submit::key_table::{Digest, KeyTable, KeyTerms, PlanTerms};
use touchdown_native::submit::rate_limit::Rate;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const CALLS: usize = 1_000_000;

fn token(number: usize) -> String {
    format!("td_bench_{number:024}_{:09}", number * 7)
}

fn put(table: &KeyTable, number: usize, is_next: bool) {
    let account = format!("account-{number:08}");
    let mut id = [0; 16];
    id[..8].copy_from_slice(&(number as u64).to_be_bytes());
    let digest = Digest::of(token(number).as_bytes());
    let account_number = number as u64;
    let terms = KeyTerms { digest, id, account: &account, account_number, plan: 0, policy: None };
    assert!(if is_next { table.put_next(terms) } else { table.put(terms) });
}

fn resident_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.unwrap_or(0) * 4096
}

fn measure(name: &str, count: usize, mut act: impl FnMut(usize)) {
    let start = Instant::now();
    (0..count).for_each(&mut act);
    println!("{name}: {:.0} ns", start.elapsed().as_nanos() as f64 / count as f64);
}

fn main() {
    let keys = std::env::args().find_map(|text| text.parse().ok()).unwrap_or(1_000_000);
    let table = KeyTable::default();
    let rate = Rate { rate_per_second: 1e6, burst: 1e6 };
    table.set_plan(0, PlanTerms { name: "Wide".into(), rate, is_shared: false });
    let before = resident_bytes();
    table.start_next();
    measure("put one of many keys aside", keys, |number| put(&table, number, true));
    let start = Instant::now();
    table.finish_next();
    println!("replace all keys: {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    println!("memory of {keys} keys: {} bytes each", (resident_bytes() - before) / keys);

    let admit = |token: &[u8], now_ns: usize| {
        black_box(table.admit(token, HERE, now_ns as u64, || 0.0).is_ok())
    };
    let known = token(keys / 2);
    measure("admit the same key", CALLS, |call| assert!(admit(known.as_bytes(), call * 2_000)));
    // The texts are made before: their memory is not that of the table.
    let tokens: Vec<String> = (0..CALLS).map(|call| token(call * 7_919 % keys)).collect();
    measure("admit a random key", CALLS, |call| {
        assert!(admit(tokens[call].as_bytes(), CALLS * 3_000 + call * 2_000));
    });
    measure("refuse an unknown key", CALLS, |_| {
        assert!(!admit(b"a-key-of-no-account-in-this-table", 1));
    });
    measure("change one key", 10_000, |call| put(&table, call * 97 % keys, false));
    let is_over = AtomicBool::new(false);
    scope(|threads| {
        threads.spawn(|| {
            let mut number = 0;
            while !is_over.load(Relaxed) {
                put(&table, number % keys, false);
                number += 97;
            }
        });
        let mut slowest = 0;
        measure("admit a random key while keys change", CALLS, |call| {
            let start = Instant::now();
            assert!(admit(tokens[call].as_bytes(), CALLS * 6_000 + call * 2_000));
            slowest = slowest.max(start.elapsed().as_micros());
        });
        println!("the slowest of them: {slowest} us");
        is_over.store(true, Relaxed);
    });
}
