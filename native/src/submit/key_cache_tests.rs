//! Who is let in by a pass, from where and for how long, and what it costs.

use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};
use std::thread::scope;

use super::NotAdmitted::{Key, Limit};
use super::*;
use crate::submit::rate_limit::{DELEGATED_LIMITS_MAX, KEY_CACHE_BYTES};
use crate::sync::shared_memory::Memory;

const TOKEN: &[u8] = b"0123456789abcdef";
const SECOND_NS: u64 = 1_000_000_000;
const NOW_NS: u64 = SECOND_NS;
const PLACE: u32 = 7;
const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

/// One a second with a burst of three.
fn grant() -> KeyGrant {
    KeyGrant {
        rate_per_second: 1.0,
        burst: 3.0,
        is_shared: false,
        expires_unix_ms: None,
        networks: None,
        own_limit: None,
        account_limit_slot: 4,
        key_limit_slot: None,
        key_slot: PLACE,
    }
}

/// And one each two seconds with a burst of two by this key.
fn narrowed() -> KeyGrant {
    let own_limit = Some(Rate { rate_per_second: 0.5, burst: 2.0 });
    KeyGrant { own_limit, key_limit_slot: Some(5), ..grant() }
}

fn none() -> (Memory, KeyCache) {
    let memory = Memory::fresh(KEY_CACHE_BYTES);
    let key_cache = KeyCache::new(SharedLimitStates::new(&memory).unwrap());
    (memory, key_cache)
}

fn scene(grant: KeyGrant) -> (Memory, KeyCache) {
    let (memory, mut key_cache) = none();
    assert!(key_cache.put(TOKEN, grant));
    (memory, key_cache)
}

fn no_time() -> f64 {
    panic!("nobody needs the time of day");
}

fn admit(key_cache: &KeyCache, now_ns: u64) -> Result<u32, NotAdmitted> {
    key_cache.admit(TOKEN, HERE, now_ns, no_time)
}

fn is_marked(memory: &Memory) -> bool {
    let at = KEY_CACHE_BYTES - CACHED_KEYS_MAX + PLACE as usize;
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
fn who_has_a_pass_is_let_in_and_nobody_else() {
    let (memory, key_cache) = scene(grant());
    for stranger in [&b"0123456789abcdefx"[..], b"0123456789abcde", b""] {
        assert_eq!(key_cache.admit(stranger, HERE, NOW_NS, no_time), Err(Key));
        assert!(!key_cache.knows(stranger));
    }
    assert!(!is_marked(&memory));
    assert_eq!(full_ns(&memory, 4), 0);
    assert!(key_cache.knows(TOKEN));
    assert_eq!(admit(&key_cache, NOW_NS), Ok(PLACE));
    assert!(is_marked(&memory));
    assert_eq!(key_cache.len(), 1);
}

#[test]
fn a_key_is_not_good_from_the_moment_on_at_which_it_ends() {
    let (memory, key_cache) = scene(KeyGrant { expires_unix_ms: Some(5_000.0), ..grant() });
    assert_eq!(key_cache.admit(TOKEN, HERE, NOW_NS, || 5_000.0), Err(Key));
    assert_eq!(key_cache.admit(TOKEN, HERE, NOW_NS, || 5_001.0), Err(Key));
    // It is of no use any more.
    assert!(!is_marked(&memory));
    assert_eq!(full_ns(&memory, 4), 0);
    assert_eq!(key_cache.admit(TOKEN, HERE, NOW_NS, || 4_999.0), Ok(PLACE));
    assert!(is_marked(&memory));
}

#[test]
fn a_key_is_good_from_its_networks_alone() {
    let networks = ["10.0.0.0/8", "2001:db8::/32"].map(|text| network_of(text).unwrap());
    let (memory, key_cache) =
        scene(KeyGrant { networks: Some(networks.to_vec()), burst: 9.0, ..grant() });
    let from = |text: &str| key_cache.admit(TOKEN, text.parse().unwrap(), NOW_NS, no_time);
    for address in ["11.0.0.1", "2001:db9::1", "::10.1.1.1", "::ffff:11.0.0.1"] {
        assert_eq!(from(address), Err(Key));
    }
    assert!(!is_marked(&memory));
    assert_eq!(full_ns(&memory, 4), 0);
    for address in ["10.255.0.1", "2001:db8::7", "::ffff:10.1.1.1"] {
        assert_eq!(from(address), Ok(PLACE));
    }
    let (_, key_cache) = scene(KeyGrant { networks: Some(Vec::new()), ..grant() });
    assert_eq!(admit(&key_cache, NOW_NS), Err(Key));
}

#[test]
fn a_limit_lets_through_what_it_says() {
    let (memory, key_cache) = scene(grant());
    let four = [1, 2, 3, 4].map(|_| admit(&key_cache, NOW_NS));
    assert_eq!(four, [Ok(PLACE), Ok(PLACE), Ok(PLACE), Err(Limit)]);
    assert_eq!(full_ns(&memory, 4), NOW_NS + 3 * SECOND_NS);
    assert_eq!(admit(&key_cache, NOW_NS + SECOND_NS - 1), Err(Limit));
    assert_eq!(admit(&key_cache, NOW_NS + SECOND_NS), Ok(PLACE));
}

#[test]
fn who_is_over_a_limit_uses_the_pass_all_the_same() {
    let (memory, key_cache) = scene(grant());
    while admit(&key_cache, NOW_NS).is_ok() {}
    let at = KEY_CACHE_BYTES - CACHED_KEYS_MAX + PLACE as usize;
    memory.atomics::<AtomicU8>(at, 1).unwrap()[0].store(0, SeqCst);
    assert_eq!(admit(&key_cache, NOW_NS), Err(Limit));
    assert!(is_marked(&memory));
}

#[test]
fn a_keys_own_limit_holds_beside_the_accounts_and_neither_is_charged_by_a_refusal() {
    let (memory, mut key_cache) = scene(narrowed());
    assert!(key_cache.put(b"another of the account", KeyGrant { key_slot: 8, ..grant() }));
    let three = [1, 2, 3].map(|_| admit(&key_cache, NOW_NS));
    assert_eq!(three, [Ok(PLACE), Ok(PLACE), Err(Limit)]);
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
fn a_limit_that_all_edges_share_is_charged_where_it_is_counted() {
    let (memory, key_cache) = scene(KeyGrant { is_shared: true, ..narrowed() });
    assert_eq!(admit(&key_cache, NOW_NS), Err(Limit));
    assert_eq!(full_ns(&memory, 5), NOW_NS);
    write_edge_count(&memory, 1);
    let three = [1, 2, 3].map(|_| admit(&key_cache, NOW_NS));
    assert_eq!(three, [Ok(PLACE), Ok(PLACE), Err(Limit)]);
    let shared = DELEGATED_LIMITS_MAX + 4;
    assert_eq!((word(&memory, 4), full_ns(&memory, shared)), (2, 3 * SECOND_NS));
    assert_eq!(full_ns(&memory, 4), 0);
    // Three edges: one at once, and one each three seconds.
    write_edge_count(&memory, 3);
    assert_eq!(admit(&key_cache, 3 * SECOND_NS), Ok(PLACE));
    assert_eq!(full_ns(&memory, 5), 7 * SECOND_NS);
    assert_eq!(admit(&key_cache, 5 * SECOND_NS), Err(Limit));
    // Given back; and not told to anybody.
    assert_eq!(full_ns(&memory, 5), 7 * SECOND_NS);
    assert_eq!(word(&memory, 4), 3);
}

#[test]
fn a_pass_that_is_taken_back_lets_nobody_in() {
    let (memory, mut key_cache) = scene(grant());
    key_cache.revoke(TOKEN, PLACE);
    key_cache.revoke(b"nobody has this", PLACE);
    assert!(key_cache.is_empty() && !key_cache.knows(TOKEN));
    assert_eq!(admit(&key_cache, NOW_NS), Err(Key));
    assert_eq!(full_ns(&memory, 4), 0);
}

#[test]
fn taking_back_a_pass_leaves_the_one_that_came_since() {
    let (_, mut key_cache) = scene(grant());
    assert!(key_cache.put(TOKEN, KeyGrant { key_slot: 9, burst: 1.0, ..grant() }));
    key_cache.revoke(TOKEN, PLACE);
    assert_eq!([1, 2].map(|_| admit(&key_cache, NOW_NS)), [Ok(9), Err(Limit)]);
    assert_eq!(key_cache.len(), 1);
}

#[test]
fn a_pass_that_could_not_be_charged_is_not_kept_and_nor_is_what_it_replaced() {
    let wrong = [
        KeyGrant { key_slot: CACHED_KEYS_MAX as u32, ..grant() },
        KeyGrant { rate_per_second: 0.0, ..grant() },
        KeyGrant { key_limit_slot: None, ..narrowed() },
        KeyGrant { own_limit: Some(Rate { rate_per_second: 0.0, burst: 1.0 }), ..narrowed() },
    ];
    for wrong in wrong {
        let (_, mut key_cache) = scene(grant());
        assert!(!key_cache.put(TOKEN, wrong));
        assert_eq!(admit(&key_cache, NOW_NS), Err(Key));
    }
}

#[test]
fn nobody_is_let_in_by_a_cell_that_there_is_not() {
    let held = DELEGATED_LIMITS_MAX as u32;
    let wrong = [
        KeyGrant { account_limit_slot: held, ..grant() },
        KeyGrant { account_limit_slot: CACHED_KEYS_MAX as u32, is_shared: true, ..grant() },
        KeyGrant { key_limit_slot: Some(held), ..narrowed() },
        KeyGrant { account_limit_slot: u32::MAX, ..narrowed() },
    ];
    for wrong in wrong {
        let (memory, key_cache) = scene(wrong);
        write_edge_count(&memory, 1);
        assert_eq!(admit(&key_cache, NOW_NS), Err(Limit));
        // Full already: nothing is charged, or it was given back.
        assert!([4, 5].iter().all(|&limit_slot| full_ns(&memory, limit_slot) <= NOW_NS));
    }
}

#[test]
fn there_are_no_more_passes_than_may_be() {
    let (_, mut key_cache) = none();
    let token = |number: usize| number.to_le_bytes();
    for number in 0..CACHED_KEYS_MAX {
        assert!(key_cache.put(&token(number), KeyGrant { key_slot: number as u32, ..grant() }));
    }
    assert!(!key_cache.put(TOKEN, grant()));
    assert!(!key_cache.knows(TOKEN));
    // One that is there already is replaced.
    assert!(key_cache.put(&token(3), KeyGrant { key_slot: 3, ..narrowed() }));
    key_cache.revoke(&token(3), 3);
    assert!(key_cache.put(TOKEN, grant()));
    assert_eq!(key_cache.len(), CACHED_KEYS_MAX);
}

#[test]
fn fronts_with_a_pass_of_one_key_let_through_what_it_says_together() {
    let memory = Memory::fresh(KEY_CACHE_BYTES);
    let admitted: usize = scope(|threads| {
        let threads = [1, 2].map(|_| {
            threads.spawn(|| {
                let mut key_cache = KeyCache::new(SharedLimitStates::new(&memory).unwrap());
                key_cache.put(TOKEN, KeyGrant { burst: 100_000.0, ..grant() });
                (0..100_000).filter(|_| admit(&key_cache, NOW_NS).is_ok()).count()
            })
        });
        threads.map(|thread| thread.join().unwrap()).iter().sum()
    });
    assert_eq!(admitted, 100_000);
}

#[test]
fn a_network_is_read_as_it_is_written() {
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
fn what_is_no_network_is_none() {
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
fn an_address_lies_in_a_network_in_whichever_form_it_is_told() {
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
