//! Who is let in by a pass, from where and for how long, and what it costs.

use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};
use std::thread::scope;

use super::NotAdmitted::{Key, Limit};
use super::*;
use crate::submit::rate_limit::{HELD_CELLS_MAX, PASS_MEMORY_BYTES};
use crate::sync::shared_memory::Memory;

const TOKEN: &[u8] = b"0123456789abcdef";
const SECOND_NS: u64 = 1_000_000_000;
const NOW_NS: u64 = SECOND_NS;
const PLACE: u32 = 7;
const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

/// One a second with a burst of three.
fn pass() -> Pass {
    Pass {
        rate_per_second: 1.0,
        burst: 3.0,
        is_shared: false,
        expires_unix_ms: None,
        networks: None,
        own_limit: None,
        account_cell: 4,
        key_cell: None,
        place: PLACE,
    }
}

/// And one each two seconds with a burst of two by this key.
fn narrowed() -> Pass {
    let own_limit = Some(Rate { rate_per_second: 0.5, burst: 2.0 });
    Pass { own_limit, key_cell: Some(5), ..pass() }
}

fn none() -> (Memory, Passes) {
    let memory = Memory::fresh(PASS_MEMORY_BYTES);
    let passes = Passes::new(LimitCells::new(&memory).unwrap());
    (memory, passes)
}

fn scene(pass: Pass) -> (Memory, Passes) {
    let (memory, mut passes) = none();
    assert!(passes.put(TOKEN, pass));
    (memory, passes)
}

fn no_time() -> f64 {
    panic!("nobody needs the time of day");
}

fn admit(passes: &Passes, now_ns: u64) -> Result<u32, NotAdmitted> {
    passes.admit(TOKEN, HERE, now_ns, no_time)
}

fn is_marked(memory: &Memory) -> bool {
    let at = PASS_MEMORY_BYTES - PASSES_MAX + PLACE as usize;
    memory.cells::<AtomicU8>(at, 1).unwrap()[0].load(SeqCst) == 1
}

/// When the bucket is full again.
fn full_ns(memory: &Memory, cell: usize) -> u64 {
    let bits = memory.cells::<AtomicU64>(8 * cell, 1).unwrap()[0].load(SeqCst);
    f64::from_bits(bits) as u64
}

fn word(memory: &Memory, number: usize) -> u32 {
    memory.cells::<AtomicU32>(8 * 3 * PASSES_MAX + 4 * number, 1).unwrap()[0].load(SeqCst)
}

fn tell_sharers(memory: &Memory, count: u32) {
    memory.cells::<AtomicU32>(8 * 3 * PASSES_MAX + 4 * PASSES_MAX, 1).unwrap()[0]
        .store(count, SeqCst);
}

#[test]
fn who_has_a_pass_is_let_in_and_nobody_else() {
    let (memory, passes) = scene(pass());
    for stranger in [&b"0123456789abcdefx"[..], b"0123456789abcde", b""] {
        assert_eq!(passes.admit(stranger, HERE, NOW_NS, no_time), Err(Key));
        assert!(!passes.knows(stranger));
    }
    assert!(!is_marked(&memory));
    assert_eq!(full_ns(&memory, 4), 0);
    assert!(passes.knows(TOKEN));
    assert_eq!(admit(&passes, NOW_NS), Ok(PLACE));
    assert!(is_marked(&memory));
    assert_eq!(passes.len(), 1);
}

#[test]
fn a_key_is_not_good_from_the_moment_on_at_which_it_ends() {
    let (memory, passes) = scene(Pass { expires_unix_ms: Some(5_000.0), ..pass() });
    assert_eq!(passes.admit(TOKEN, HERE, NOW_NS, || 5_000.0), Err(Key));
    assert_eq!(passes.admit(TOKEN, HERE, NOW_NS, || 5_001.0), Err(Key));
    // It is of no use any more.
    assert!(!is_marked(&memory));
    assert_eq!(full_ns(&memory, 4), 0);
    assert_eq!(passes.admit(TOKEN, HERE, NOW_NS, || 4_999.0), Ok(PLACE));
    assert!(is_marked(&memory));
}

#[test]
fn a_key_is_good_from_its_networks_alone() {
    let networks = ["10.0.0.0/8", "2001:db8::/32"].map(|text| network_of(text).unwrap());
    let (memory, passes) = scene(Pass { networks: Some(networks.to_vec()), burst: 9.0, ..pass() });
    let from = |text: &str| passes.admit(TOKEN, text.parse().unwrap(), NOW_NS, no_time);
    for address in ["11.0.0.1", "2001:db9::1", "::10.1.1.1", "::ffff:11.0.0.1"] {
        assert_eq!(from(address), Err(Key));
    }
    assert!(!is_marked(&memory));
    assert_eq!(full_ns(&memory, 4), 0);
    for address in ["10.255.0.1", "2001:db8::7", "::ffff:10.1.1.1"] {
        assert_eq!(from(address), Ok(PLACE));
    }
    let (_, passes) = scene(Pass { networks: Some(Vec::new()), ..pass() });
    assert_eq!(admit(&passes, NOW_NS), Err(Key));
}

#[test]
fn a_limit_lets_through_what_it_says() {
    let (memory, passes) = scene(pass());
    let four = [1, 2, 3, 4].map(|_| admit(&passes, NOW_NS));
    assert_eq!(four, [Ok(PLACE), Ok(PLACE), Ok(PLACE), Err(Limit)]);
    assert_eq!(full_ns(&memory, 4), NOW_NS + 3 * SECOND_NS);
    assert_eq!(admit(&passes, NOW_NS + SECOND_NS - 1), Err(Limit));
    assert_eq!(admit(&passes, NOW_NS + SECOND_NS), Ok(PLACE));
}

#[test]
fn who_is_over_a_limit_uses_the_pass_all_the_same() {
    let (memory, passes) = scene(pass());
    while admit(&passes, NOW_NS).is_ok() {}
    let at = PASS_MEMORY_BYTES - PASSES_MAX + PLACE as usize;
    memory.cells::<AtomicU8>(at, 1).unwrap()[0].store(0, SeqCst);
    assert_eq!(admit(&passes, NOW_NS), Err(Limit));
    assert!(is_marked(&memory));
}

#[test]
fn a_keys_own_limit_holds_beside_the_accounts_and_neither_is_charged_by_a_refusal() {
    let (memory, mut passes) = scene(narrowed());
    assert!(passes.put(b"another of the account", Pass { place: 8, ..pass() }));
    let three = [1, 2, 3].map(|_| admit(&passes, NOW_NS));
    assert_eq!(three, [Ok(PLACE), Ok(PLACE), Err(Limit)]);
    assert_eq!([4, 5].map(|cell| full_ns(&memory, cell)), [3 * SECOND_NS, 5 * SECOND_NS]);
    for _ in 0..3 {
        let other = passes.admit(b"another of the account", HERE, 3 * SECOND_NS, no_time);
        assert_eq!(other, Ok(8));
    }
    assert_eq!(admit(&passes, 3 * SECOND_NS), Err(Limit));
    assert_eq!([4, 5].map(|cell| full_ns(&memory, cell)), [6 * SECOND_NS, 5 * SECOND_NS]);
}

#[test]
fn a_limit_that_all_edges_share_is_charged_where_it_is_counted() {
    let (memory, passes) = scene(Pass { is_shared: true, ..narrowed() });
    assert_eq!(admit(&passes, NOW_NS), Err(Limit));
    assert_eq!(full_ns(&memory, 5), NOW_NS);
    tell_sharers(&memory, 1);
    let three = [1, 2, 3].map(|_| admit(&passes, NOW_NS));
    assert_eq!(three, [Ok(PLACE), Ok(PLACE), Err(Limit)]);
    let shared = HELD_CELLS_MAX + 4;
    assert_eq!((word(&memory, 4), full_ns(&memory, shared)), (2, 3 * SECOND_NS));
    assert_eq!(full_ns(&memory, 4), 0);
    // Three edges: one at once, and one each three seconds.
    tell_sharers(&memory, 3);
    assert_eq!(admit(&passes, 3 * SECOND_NS), Ok(PLACE));
    assert_eq!(full_ns(&memory, 5), 7 * SECOND_NS);
    assert_eq!(admit(&passes, 5 * SECOND_NS), Err(Limit));
    // Given back; and not told to anybody.
    assert_eq!(full_ns(&memory, 5), 7 * SECOND_NS);
    assert_eq!(word(&memory, 4), 3);
}

#[test]
fn a_pass_that_is_taken_back_lets_nobody_in() {
    let (memory, mut passes) = scene(pass());
    passes.take_back(TOKEN, PLACE);
    passes.take_back(b"nobody has this", PLACE);
    assert!(passes.is_empty() && !passes.knows(TOKEN));
    assert_eq!(admit(&passes, NOW_NS), Err(Key));
    assert_eq!(full_ns(&memory, 4), 0);
}

#[test]
fn taking_back_a_pass_leaves_the_one_that_came_since() {
    let (_, mut passes) = scene(pass());
    assert!(passes.put(TOKEN, Pass { place: 9, burst: 1.0, ..pass() }));
    passes.take_back(TOKEN, PLACE);
    assert_eq!([1, 2].map(|_| admit(&passes, NOW_NS)), [Ok(9), Err(Limit)]);
    assert_eq!(passes.len(), 1);
}

#[test]
fn a_pass_that_could_not_be_charged_is_not_kept_and_nor_is_what_it_replaced() {
    let wrong = [
        Pass { place: PASSES_MAX as u32, ..pass() },
        Pass { rate_per_second: 0.0, ..pass() },
        Pass { key_cell: None, ..narrowed() },
        Pass { own_limit: Some(Rate { rate_per_second: 0.0, burst: 1.0 }), ..narrowed() },
    ];
    for wrong in wrong {
        let (_, mut passes) = scene(pass());
        assert!(!passes.put(TOKEN, wrong));
        assert_eq!(admit(&passes, NOW_NS), Err(Key));
    }
}

#[test]
fn nobody_is_let_in_by_a_cell_that_there_is_not() {
    let held = HELD_CELLS_MAX as u32;
    let wrong = [
        Pass { account_cell: held, ..pass() },
        Pass { account_cell: PASSES_MAX as u32, is_shared: true, ..pass() },
        Pass { key_cell: Some(held), ..narrowed() },
        Pass { account_cell: u32::MAX, ..narrowed() },
    ];
    for wrong in wrong {
        let (memory, passes) = scene(wrong);
        tell_sharers(&memory, 1);
        assert_eq!(admit(&passes, NOW_NS), Err(Limit));
        // Full already: nothing is charged, or it was given back.
        assert!([4, 5].iter().all(|&cell| full_ns(&memory, cell) <= NOW_NS));
    }
}

#[test]
fn there_are_no_more_passes_than_may_be() {
    let (_, mut passes) = none();
    let token = |number: usize| number.to_le_bytes();
    for number in 0..PASSES_MAX {
        assert!(passes.put(&token(number), Pass { place: number as u32, ..pass() }));
    }
    assert!(!passes.put(TOKEN, pass()));
    assert!(!passes.knows(TOKEN));
    // One that is there already is replaced.
    assert!(passes.put(&token(3), Pass { place: 3, ..narrowed() }));
    passes.take_back(&token(3), 3);
    assert!(passes.put(TOKEN, pass()));
    assert_eq!(passes.len(), PASSES_MAX);
}

#[test]
fn fronts_with_a_pass_of_one_key_let_through_what_it_says_together() {
    let memory = Memory::fresh(PASS_MEMORY_BYTES);
    let admitted: usize = scope(|threads| {
        let fronts = [1, 2].map(|_| {
            threads.spawn(|| {
                let mut passes = Passes::new(LimitCells::new(&memory).unwrap());
                passes.put(TOKEN, Pass { burst: 100_000.0, ..pass() });
                (0..100_000).filter(|_| admit(&passes, NOW_NS).is_ok()).count()
            })
        });
        fronts.map(|front| front.join().unwrap()).iter().sum()
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
