//! Which requests a cached key admits, from where and for how long, and what they limit.

use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};
use std::thread::scope;

use super::*;
use crate::submit::rate_limit::{DELEGATED_LIMITS_MAX, LIMIT_MEMORY_BYTES};
use crate::sync::shared_memory::Memory;

const TOKEN: &[u8] = b"0123456789abcdef";
const SECOND_NS: u64 = 1_000_000_000;
const NOW_NS: u64 = SECOND_NS;
const KEY_SLOT: u32 = 7;
const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

/// One request per second with a burst of three.
fn grant() -> KeyGrant {
    KeyGrant {
        plan: "Basic".into(),
        rate_per_second: 1.0,
        burst: 3.0,
        is_global: false,
        expires_unix_ms: None,
        networks: None,
        own_limit: None,
        account_limit_slot: 4,
        key_limit_slot: None,
        key_slot: KEY_SLOT,
    }
}

/// Additionally one request per two seconds with a burst of two for this key.
fn narrowed() -> KeyGrant {
    let own_limit = Some(Rate { rate_per_second: 0.5, burst: 2.0 });
    KeyGrant { own_limit, key_limit_slot: Some(5), ..grant() }
}

fn none() -> (Memory, KeyCache) {
    let memory = Memory::fresh(LIMIT_MEMORY_BYTES);
    let key_cache = KeyCache::new(ThreadLimitStates::new(&memory).unwrap());
    (memory, key_cache)
}

fn fixture(grant: KeyGrant) -> (Memory, KeyCache) {
    let (memory, mut key_cache) = none();
    assert!(key_cache.put(TOKEN, grant));
    (memory, key_cache)
}

fn no_time() -> f64 {
    panic!("the test reads no wall clock");
}

/// Why a request is not admitted.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cause {
    Key,
    Limit,
}
use Cause::{Key, Limit};

fn cause(reason: NotAdmitted<'_>) -> Cause {
    if reason == NotAdmitted::Key { Key } else { Limit }
}

fn admit(key_cache: &KeyCache, now_ns: u64) -> Result<u32, Cause> {
    key_cache.admit(TOKEN, HERE, now_ns, no_time).map_err(cause)
}

/// Name of the plan, whether it is the key's own limit, its rate and burst, and the wait in seconds.
fn used_up(key_cache: &KeyCache, now_ns: u64) -> (String, bool, f64, f64, f64) {
    match key_cache.admit(TOKEN, HERE, now_ns, no_time) {
        Err(NotAdmitted::Limit { key_slot: KEY_SLOT, used_up }) => {
            let UsedUp { plan, is_own, rate_per_second, burst, wait_ns } = used_up;
            (plan.into(), is_own, rate_per_second, burst, wait_ns / SECOND_NS as f64)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn limit_with_the_longest_wait_is_named() {
    let basic = |is_own, rate, burst, wait| ("Basic".to_string(), is_own, rate, burst, wait);
    let (_, key_cache) = fixture(grant());
    while admit(&key_cache, NOW_NS).is_ok() {}
    assert_eq!(used_up(&key_cache, NOW_NS), basic(false, 1.0, 3.0, 1.0));
    assert_eq!(used_up(&key_cache, NOW_NS + SECOND_NS / 4), basic(false, 1.0, 3.0, 0.75));
    // The key's own limit has the longer wait.
    let (_, key_cache) = fixture(narrowed());
    while admit(&key_cache, NOW_NS).is_ok() {}
    assert_eq!(used_up(&key_cache, NOW_NS), basic(true, 0.5, 2.0, 2.0));
    // Another key of the account uses up the rest, so that the account's limit has the longer one.
    for is_global in [false, true] {
        let slow = KeyGrant { rate_per_second: 0.1, is_global, ..narrowed() };
        let (memory, mut key_cache) = fixture(slow.clone());
        write_edge_count(&memory, 1);
        while admit(&key_cache, NOW_NS).is_ok() {}
        let other = KeyGrant { own_limit: None, key_slot: 8, ..slow };
        assert!(key_cache.put(b"another of the account", other));
        assert!(key_cache.admit(b"another of the account", HERE, NOW_NS, no_time).is_ok());
        assert_eq!(used_up(&key_cache, NOW_NS), basic(false, 0.1, 3.0, 10.0));
    }
}

fn is_marked(memory: &Memory) -> bool {
    let at = LIMIT_MEMORY_BYTES - CACHED_KEYS_MAX + KEY_SLOT as usize;
    memory.atomics::<AtomicU8>(at, 1).unwrap()[0].load(SeqCst) == 1
}

/// When the bucket is full again.
fn full_ns(memory: &Memory, limit_slot: usize) -> u64 {
    let bits = memory.atomics::<AtomicU64>(8 * limit_slot, 1).unwrap()[0].load(SeqCst);
    f64::from_bits(bits) as u64
}

fn word(memory: &Memory, number: usize) -> u32 {
    memory.atomics::<AtomicU32>(8 * 3 * CACHED_KEYS_MAX + 4 * number, 1).unwrap()[0].load(SeqCst)
}

fn write_edge_count(memory: &Memory, count: u32) {
    memory.atomics::<AtomicU32>(8 * 3 * CACHED_KEYS_MAX + 4 * CACHED_KEYS_MAX, 1).unwrap()[0]
        .store(count, SeqCst);
}

#[test]
fn only_cached_keys_are_admitted() {
    let (memory, key_cache) = fixture(grant());
    for stranger in [&b"0123456789abcdefx"[..], b"0123456789abcde", b""] {
        assert_eq!(key_cache.admit(stranger, HERE, NOW_NS, no_time), Err(NotAdmitted::Key));
        assert!(!key_cache.has_key(stranger));
    }
    assert!(!is_marked(&memory));
    assert_eq!(full_ns(&memory, 4), 0);
    assert!(key_cache.has_key(TOKEN));
    assert_eq!(admit(&key_cache, NOW_NS), Ok(KEY_SLOT));
    assert!(is_marked(&memory));
    assert_eq!(key_cache.len(), 1);
}

#[test]
fn key_is_rejected_from_its_expiry_on() {
    let (memory, key_cache) = fixture(KeyGrant { expires_unix_ms: Some(5_000.0), ..grant() });
    assert_eq!(key_cache.admit(TOKEN, HERE, NOW_NS, || 5_000.0), Err(NotAdmitted::Key));
    assert_eq!(key_cache.admit(TOKEN, HERE, NOW_NS, || 5_001.0), Err(NotAdmitted::Key));
    // The key is not marked as used.
    assert!(!is_marked(&memory));
    assert_eq!(full_ns(&memory, 4), 0);
    assert_eq!(key_cache.admit(TOKEN, HERE, NOW_NS, || 4_999.0), Ok(KEY_SLOT));
    assert!(is_marked(&memory));
}

#[test]
fn key_is_admitted_only_from_its_networks() {
    let networks = ["10.0.0.0/8", "2001:db8::/32"].map(|text| network_of(text).unwrap());
    let (memory, key_cache) =
        fixture(KeyGrant { networks: Some(networks.to_vec()), burst: 9.0, ..grant() });
    let from = |text: &str| key_cache.admit(TOKEN, text.parse().unwrap(), NOW_NS, no_time);
    for address in ["11.0.0.1", "2001:db9::1", "::10.1.1.1", "::ffff:11.0.0.1"] {
        assert_eq!(from(address), Err(NotAdmitted::Key));
    }
    assert!(!is_marked(&memory));
    assert_eq!(full_ns(&memory, 4), 0);
    for address in ["10.255.0.1", "2001:db8::7", "::ffff:10.1.1.1"] {
        assert_eq!(from(address), Ok(KEY_SLOT));
    }
    let (_, key_cache) = fixture(KeyGrant { networks: Some(Vec::new()), ..grant() });
    assert_eq!(admit(&key_cache, NOW_NS), Err(Key));
}

#[test]
fn limit_admits_its_burst_and_rate() {
    let (memory, key_cache) = fixture(grant());
    let four = [1, 2, 3, 4].map(|_| admit(&key_cache, NOW_NS));
    assert_eq!(four, [Ok(KEY_SLOT), Ok(KEY_SLOT), Ok(KEY_SLOT), Err(Limit)]);
    assert_eq!(full_ns(&memory, 4), NOW_NS + 3 * SECOND_NS);
    assert_eq!(admit(&key_cache, NOW_NS + SECOND_NS - 1), Err(Limit));
    assert_eq!(admit(&key_cache, NOW_NS + SECOND_NS), Ok(KEY_SLOT));
}

#[test]
fn request_over_the_limit_still_marks_the_key_as_used() {
    let (memory, key_cache) = fixture(grant());
    while admit(&key_cache, NOW_NS).is_ok() {}
    let at = LIMIT_MEMORY_BYTES - CACHED_KEYS_MAX + KEY_SLOT as usize;
    memory.atomics::<AtomicU8>(at, 1).unwrap()[0].store(0, SeqCst);
    assert_eq!(admit(&key_cache, NOW_NS), Err(Limit));
    assert!(is_marked(&memory));
}

#[test]
fn own_and_account_limits_apply_and_rejections_charge_neither() {
    let (memory, mut key_cache) = fixture(narrowed());
    assert!(key_cache.put(b"another of the account", KeyGrant { key_slot: 8, ..grant() }));
    let three = [1, 2, 3].map(|_| admit(&key_cache, NOW_NS));
    assert_eq!(three, [Ok(KEY_SLOT), Ok(KEY_SLOT), Err(Limit)]);
    assert_eq!(
        [4, 5].map(|limit_slot| full_ns(&memory, limit_slot)),
        [3 * SECOND_NS, 5 * SECOND_NS]
    );
    for _ in 0..3 {
        let other = key_cache.admit(b"another of the account", HERE, 3 * SECOND_NS, no_time);
        assert_eq!(other, Ok(8));
    }
    assert_eq!(admit(&key_cache, 3 * SECOND_NS), Err(Limit));
    assert_eq!(
        [4, 5].map(|limit_slot| full_ns(&memory, limit_slot)),
        [6 * SECOND_NS, 5 * SECOND_NS]
    );
}

#[test]
fn refund_undoes_the_charge_of_every_limit() {
    for is_global in [false, true] {
        let (memory, key_cache) = fixture(KeyGrant { is_global, ..narrowed() });
        write_edge_count(&memory, 1);
        let mut admitted = 0;
        while admit(&key_cache, NOW_NS).is_ok() {
            admitted += 1;
        }
        assert!((1..100).contains(&admitted));
        key_cache.refund(TOKEN);
        assert!(admit(&key_cache, NOW_NS).is_ok());
        assert!(admit(&key_cache, NOW_NS).is_err());
        key_cache.refund(b"another");
        assert!(admit(&key_cache, NOW_NS).is_err());
    }
}

#[test]
fn shared_limit_is_charged_and_counted() {
    let (memory, key_cache) = fixture(KeyGrant { is_global: true, ..narrowed() });
    assert_eq!(admit(&key_cache, NOW_NS), Err(Limit));
    assert_eq!(full_ns(&memory, 5), NOW_NS);
    write_edge_count(&memory, 1);
    let three = [1, 2, 3].map(|_| admit(&key_cache, NOW_NS));
    assert_eq!(three, [Ok(KEY_SLOT), Ok(KEY_SLOT), Err(Limit)]);
    let shared = DELEGATED_LIMITS_MAX + 4;
    assert_eq!((word(&memory, 4), full_ns(&memory, shared)), (2, 3 * SECOND_NS));
    assert_eq!(full_ns(&memory, 4), 0);
    // Three edges: a burst of one, and one request per three seconds.
    write_edge_count(&memory, 3);
    assert_eq!(admit(&key_cache, 3 * SECOND_NS), Ok(KEY_SLOT));
    assert_eq!(full_ns(&memory, 5), 7 * SECOND_NS);
    assert_eq!(admit(&key_cache, 5 * SECOND_NS), Err(Limit));
    // Refunded, and not counted as shared.
    assert_eq!(full_ns(&memory, 5), 7 * SECOND_NS);
    assert_eq!(word(&memory, 4), 3);
}

#[test]
fn revoked_key_is_rejected() {
    let (memory, mut key_cache) = fixture(grant());
    key_cache.revoke(TOKEN, KEY_SLOT);
    key_cache.revoke(b"an unknown key", KEY_SLOT);
    assert!(key_cache.is_empty() && !key_cache.has_key(TOKEN));
    assert_eq!(admit(&key_cache, NOW_NS), Err(Key));
    assert_eq!(full_ns(&memory, 4), 0);
}

#[test]
fn revoking_an_old_slot_keeps_the_new_grant() {
    let (_, mut key_cache) = fixture(grant());
    assert!(key_cache.put(TOKEN, KeyGrant { key_slot: 9, burst: 1.0, ..grant() }));
    key_cache.revoke(TOKEN, KEY_SLOT);
    assert_eq!([1, 2].map(|_| admit(&key_cache, NOW_NS)), [Ok(9), Err(Limit)]);
    assert_eq!(key_cache.len(), 1);
}

#[test]
fn unchargeable_grant_is_not_cached_and_removes_the_old_one() {
    let wrong = [
        KeyGrant { key_slot: CACHED_KEYS_MAX as u32, ..grant() },
        KeyGrant { rate_per_second: 0.0, ..grant() },
        KeyGrant { key_limit_slot: None, ..narrowed() },
        KeyGrant { own_limit: Some(Rate { rate_per_second: 0.0, burst: 1.0 }), ..narrowed() },
    ];
    for wrong in wrong {
        let (_, mut key_cache) = fixture(grant());
        assert!(!key_cache.put(TOKEN, wrong));
        assert_eq!(admit(&key_cache, NOW_NS), Err(Key));
    }
}

#[test]
fn invalid_limit_slot_admits_nothing() {
    let held = DELEGATED_LIMITS_MAX as u32;
    let wrong = [
        KeyGrant { account_limit_slot: held, ..grant() },
        KeyGrant { account_limit_slot: CACHED_KEYS_MAX as u32, is_global: true, ..grant() },
        KeyGrant { key_limit_slot: Some(held), ..narrowed() },
        KeyGrant { account_limit_slot: u32::MAX, ..narrowed() },
    ];
    for wrong in wrong {
        let (memory, key_cache) = fixture(wrong);
        write_edge_count(&memory, 1);
        assert_eq!(admit(&key_cache, NOW_NS), Err(Limit));
        // The bucket is full: nothing is charged, or it was refunded.
        assert!([4, 5].iter().all(|&limit_slot| full_ns(&memory, limit_slot) <= NOW_NS));
    }
}

#[test]
fn cache_holds_at_most_the_maximum_of_keys() {
    let (_, mut key_cache) = none();
    let token = |number: usize| number.to_le_bytes();
    for number in 0..CACHED_KEYS_MAX {
        assert!(key_cache.put(&token(number), KeyGrant { key_slot: number as u32, ..grant() }));
    }
    assert!(!key_cache.put(TOKEN, grant()));
    assert!(!key_cache.has_key(TOKEN));
    // A cached key can be replaced.
    assert!(key_cache.put(&token(3), KeyGrant { key_slot: 3, ..narrowed() }));
    key_cache.revoke(&token(3), 3);
    assert!(key_cache.put(TOKEN, grant()));
    assert_eq!(key_cache.len(), CACHED_KEYS_MAX);
}

#[test]
fn threads_share_the_limit_of_a_key() {
    let memory = Memory::fresh(LIMIT_MEMORY_BYTES);
    let admitted: usize = scope(|threads| {
        let threads = [1, 2].map(|_| {
            threads.spawn(|| {
                let mut key_cache = KeyCache::new(ThreadLimitStates::new(&memory).unwrap());
                key_cache.put(TOKEN, KeyGrant { burst: 100_000.0, ..grant() });
                (0..100_000).filter(|_| admit(&key_cache, NOW_NS).is_ok()).count()
            })
        });
        threads.map(|thread| thread.join().unwrap()).iter().sum()
    });
    assert_eq!(admitted, 100_000);
}

#[test]
fn networks_are_parsed() {
    for text in ["203.0.113.0/24", "2001:db8::/32", "0.0.0.0/0", "::/0", "10.1.2.3/8"] {
        assert_eq!(network_of(text).map(|network| network.to_string()).as_deref(), Some(text));
    }
    let same = [
        ("203.0.113.7", "203.0.113.7/32"),
        ("::1", "::1/128"),
        ("10.0.0.0/008", "10.0.0.0/8"),
        ("fe80::1%eth0.7/64", "fe80::1/64"),
        ("::ffff:1.2.3.4", "::ffff:1.2.3.4/128"),
    ];
    for (text, network) in same {
        assert_eq!(network_of(text), network_of(network));
        assert!(network_of(text).is_some());
    }
}

#[test]
fn invalid_networks_are_not_parsed() {
    let wrong = [
        "",
        "/",
        "10.0.0.0/33",
        "10.0.0/8",
        "::/129",
        "::/256",
        "10.0.0.0/8/8",
        "10.0.0.0/",
        "host/8",
        "1/-1",
        "1.2.3.4/+8",
        "1.2.3.4/0008",
        "1.2.3.4/ 8",
        "1.2.3.4/8 ",
        " 1.2.3.4",
        "1.2.3.4\n",
        "01.2.3.4",
        "[::1]",
        "00001::",
        "1.2.3.4%1",
        "fe80::1%",
        "fe80::1%a_b",
        "fe80::1%a%b",
        "::1/\u{663}",
    ];
    for text in wrong {
        assert_eq!(network_of(text), None, "{text:?}");
    }
}

#[test]
fn mapped_and_plain_addresses_match_networks() {
    let is_in = |network: &str, from: &str| {
        is_within(&[network_of(network).unwrap()], from.parse().unwrap())
    };
    let inside = [
        ("203.0.113.0/24", "203.0.113.0"),
        ("203.0.113.0/24", "203.0.113.255"),
        ("2001:db8::/32", "2001:db8:ffff::1"),
        ("203.0.113.7", "203.0.113.7"),
        ("203.0.113.7", "::ffff:203.0.113.7"),
        ("10.1.2.3/8", "10.9.9.9"),
        ("0.0.0.0/0", "::ffff:10.1.2.3"),
        ("::ffff:10.0.0.0/104", "10.1.2.3"),
        ("::ffff:0:0/96", "::ffff:10.1.2.3"),
        ("::/0", "10.1.2.3"),
    ];
    let outside = [
        ("203.0.113.0/24", "203.0.112.255"),
        ("203.0.113.0/24", "203.0.114.0"),
        ("203.0.113.7", "203.0.113.8"),
        ("2001:db8::/32", "2001:db7::1"),
        ("10.0.0.0/8", "::10.1.2.3"),
        ("0.0.0.0/0", "2001:db8::1"),
        ("::ffff:10.0.0.0/104", "11.1.2.3"),
        ("::/96", "10.1.2.3"),
        ("102:304::/32", "1.2.3.4"),
    ];
    for (network, from) in inside {
        assert!(is_in(network, from), "{from} in {network}");
    }
    for (network, from) in outside {
        assert!(!is_in(network, from), "{from} not in {network}");
    }
}
