//! Which requests a table admits, what it charges, and how it changes.

use std::cell::Cell;
use std::net::Ipv4Addr;
use std::sync::atomic::AtomicBool;
use std::thread::scope;

use super::*;

const TOKEN: &[u8] = b"0123456789abcdef";
const NOW_NS: u64 = 864_000_000_123_457;
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const RATE: Rate = Rate { rate_per_second: 10.0, burst: 3.0 };

/// Of every account here.
pub(crate) const ACCOUNT_NUMBER: u64 = 4_321;

/// Terms of a key of this account on the plan 0.
/// As `Digest::of`, by code that Miri can run.
pub(crate) fn digest_of(token: &[u8]) -> Digest {
    Digest::new(&<sha2::Sha256 as sha2::Digest>::digest(token).into())
}

pub(crate) fn terms<'a>(token: &[u8], account: &'a str) -> KeyTerms<'a> {
    KeyTerms {
        digest: digest_of(token),
        id: [7; 16],
        account,
        account_number: ACCOUNT_NUMBER,
        plan: 0,
        policy: None,
    }
}

/// A table with one plan and these keys.
pub(crate) fn table_of(rate: Rate, is_shared: bool, keys: &[KeyTerms<'_>]) -> KeyTable {
    let table = KeyTable::default();
    assert!(table.set_plan(0, PlanTerms { name: "Basic".into(), rate, is_shared }));
    table.start_next();
    assert!(keys.iter().all(|key| table.put_next(key.clone())));
    assert!(table.finish_next());
    table
}

fn table() -> KeyTable {
    table_of(RATE, false, &[terms(TOKEN, "acme")])
}

fn narrowed(policy: PolicyTerms) -> KeyTable {
    table_of(RATE, false, &[KeyTerms { policy: Some(policy), ..terms(TOKEN, "acme") }])
}

fn no_time() -> f64 {
    panic!("the time of day was read for a key that does not expire")
}

fn admit(table: &KeyTable, token: &[u8]) -> Result<Arc<Key>, NotAdmitted> {
    table.admit(token, HERE, NOW_NS, no_time)
}

fn passed(table: &KeyTable) -> usize {
    (0..1000).take_while(|_| admit(table, TOKEN).is_ok()).count()
}

fn unknown(table: &KeyTable, token: &[u8]) -> KeyRejection {
    match admit(table, token) {
        Err(NotAdmitted::Unknown(reason)) => reason,
        _ => panic!("it is known"),
    }
}

fn limited_message(table: &KeyTable) -> String {
    match admit(table, TOKEN) {
        Err(NotAdmitted::Limited(key, rejection)) => {
            assert_eq!(key.account(), "acme");
            rejection.message
        }
        _ => panic!("no limit is used up"),
    }
}

#[test]
fn only_keys_of_the_table_are_admitted() {
    let table = table();
    let key = admit(&table, TOKEN).ok().unwrap();
    assert_eq!((key.id(), key.account()), (&[7; 16], "acme"));
    assert_eq!(key.account_number(), ACCOUNT_NUMBER);
    assert!(table.has(TOKEN) && !table.has(b"0123456789abcdeg"));
    assert_eq!(unknown(&table, b""), KeyRejection::Missing);
    assert_eq!(unknown(&table, b"0123456789abcdeg"), KeyRejection::Unknown);
    assert_eq!(unknown(&table, b"td_live_something"), KeyRejection::Mistyped);
    for size in [TOKEN_BYTES_MIN - 1, TOKEN_BYTES_MAX + 1] {
        let token = vec![b'a'; size];
        table.put(terms(&token, "acme"));
        assert_eq!(unknown(&table, &token), KeyRejection::Unknown);
    }
    for token in ["0123456789abcdeß", "0123456789abcde\0", "0123456789abcde\x7f"] {
        table.put(terms(token.as_bytes(), "acme"));
        assert_eq!(unknown(&table, token.as_bytes()), KeyRejection::Unknown);
        assert!(!table.has(token.as_bytes()));
    }
}

#[test]
fn no_key_is_called_unknown_before_keys_were_read() {
    let table = KeyTable::default();
    assert_eq!(unknown(&table, TOKEN), KeyRejection::Unread);
    assert_eq!(unknown(&table, b"td_live_something"), KeyRejection::Mistyped);
    table.start_next();
    assert_eq!(unknown(&table, TOKEN), KeyRejection::Unread);
    assert!(table.finish_next());
    assert_eq!(unknown(&table, TOKEN), KeyRejection::Unknown);
    let reasons = [KeyRejection::Unread, KeyRejection::Unknown, KeyRejection::Missing];
    let expected = [Reason::Overloaded, Reason::Unauthorized, Reason::Unauthorized];
    assert_eq!(reasons.map(|reason| reason.rejection().reason), expected);
}

#[test]
fn key_is_rejected_from_its_expiry_on() {
    let expires = Some((5_000.0, "then".into()));
    let table = narrowed(PolicyTerms { expires, ..PolicyTerms::default() });
    assert!(table.admit(TOKEN, HERE, NOW_NS, || 4_999.0).is_ok());
    let Err(NotAdmitted::OutOfPolicy(key, violation)) =
        table.admit(TOKEN, HERE, NOW_NS, || 5_000.0)
    else {
        panic!("it is still valid")
    };
    assert_eq!(key.account(), "acme");
    assert_eq!(violation.for_client, "the API key expired at then");
    assert_eq!(violation.for_account, violation.for_client);
}

#[test]
fn key_is_admitted_only_from_its_networks_and_its_account_sees_the_address() {
    let ranges = Some("203.0.113.0/24, ::1".into());
    let table = narrowed(PolicyTerms { ranges, ..PolicyTerms::default() });
    let admit = |from: &str| table.admit(TOKEN, from.parse().unwrap(), NOW_NS, no_time);
    assert!(admit("203.0.113.9").is_ok() && admit("::1").is_ok());
    let Err(NotAdmitted::OutOfPolicy(_, violation)) = admit("203.0.114.9") else {
        panic!("it was admitted")
    };
    assert_eq!(violation.for_client, "the API key may not be used from this address");
    let expected = "the key may be used from 203.0.113.0/24, ::1 only, \
                    a request with it came from 203.0.114.9";
    assert_eq!(violation.for_account, expected);
    // Networks that cannot be read admit nothing.
    let ranges = Some("203.0.113.0/24, nonsense".into());
    let table = narrowed(PolicyTerms { ranges, ..PolicyTerms::default() });
    let result = table.admit(TOKEN, "203.0.113.9".parse().unwrap(), NOW_NS, no_time);
    assert!(matches!(result, Err(NotAdmitted::OutOfPolicy(..))));
    assert_eq!(passed(&table), 0);
}

#[test]
fn limit_admits_its_burst_and_names_the_plan() {
    let table = table();
    assert_eq!(passed(&table), 3);
    assert!(limited_message(&table).starts_with("the rate limit of plan Basic is 10 requests"));
    assert!(table.admit(TOKEN, HERE, NOW_NS + 100_000_000, no_time).is_ok());
    assert_eq!(passed(&table), 0);
}

#[test]
fn own_and_account_limits_apply_and_rejections_charge_neither() {
    let own = Rate { rate_per_second: 1.0, burst: 2.0 };
    let policy = Some(PolicyTerms { limit: Some(own), ..PolicyTerms::default() });
    let keys = [KeyTerms { policy, ..terms(TOKEN, "acme") }, terms(b"another-key-of-it", "acme")];
    let table = table_of(RATE, false, &keys);
    assert_eq!(passed(&table), 2);
    assert!(limited_message(&table).starts_with("the rate limit of this key is 1 requests"));
    // The account has one left, and that of the key is not charged for what the account's rejects.
    assert!(admit(&table, b"another-key-of-it").is_ok());
    assert!(admit(&table, b"another-key-of-it").is_err());
    assert_eq!(passed(&table), 0);
    // A second later the account's limit is full, and the key has one more.
    let key = table.find(Digest::of(TOKEN)).unwrap();
    let later_ns = NOW_NS + 1_000_000_000;
    assert!(table.charge_again(&key, later_ns).is_none());
    assert!(table.charge_again(&key, later_ns).is_some());
}

#[test]
fn key_of_an_account_whose_name_has_no_room_in_a_record_is_not_taken() {
    let table = table_of(RATE, false, &[]);
    assert!(!table.put(terms(TOKEN, &"a".repeat(ACCOUNT_BYTES_MAX + 1))));
    assert_eq!(unknown(&table, TOKEN), KeyRejection::Unknown);
    assert!(table.put(terms(TOKEN, &"a".repeat(ACCOUNT_BYTES_MAX))));
}

#[test]
fn a_plan_changes_for_all_its_keys_and_needs_a_following_number() {
    let table = table();
    let plan =
        |burst| PlanTerms { name: "Wide".into(), rate: Rate { burst, ..RATE }, is_shared: false };
    assert!(table.set_plan(0, plan(5.0)));
    assert_eq!(passed(&table), 5);
    assert!(!table.set_plan(2, plan(1.0)) && table.set_plan(1, plan(1.0)));
    assert!(!table.put(KeyTerms { plan: 2, ..terms(b"a key without plan", "b") }));
}

#[test]
fn a_removed_key_is_unknown_at_once_and_gains_nothing_by_returning() {
    let table = table();
    let held = admit(&table, TOKEN).ok().unwrap();
    assert!(table.remove(Digest::of(TOKEN)) && !table.remove(Digest::of(TOKEN)));
    assert_eq!((unknown(&table, TOKEN), table.len()), (KeyRejection::Unknown, 0));
    // Who found it before still has it.
    assert_eq!(held.account(), "acme");
    drop(held);
    assert!(table.put(terms(TOKEN, "acme")));
    assert_eq!((passed(&table), table.len()), (2, 1));
}

#[test]
fn a_new_set_replaces_all_keys_at_its_end_and_keeps_their_limits() {
    let table = table();
    assert_eq!(passed(&table), 3);
    assert!(!table.finish_next() && !table.put_next(terms(TOKEN, "acme")));
    table.start_next();
    assert!(table.put_next(terms(b"left-of-an-attempt", "b")));
    table.start_next();
    let other = b"a-key-of-the-new-set";
    assert!(table.put_next(terms(other, "acme")) && table.put_next(terms(other, "acme")));
    assert!(table.has(TOKEN) && !table.has(other));
    // A change in between concerns the old set alone.
    assert!(table.put(terms(b"only-of-the-old-set", "b")));
    assert!(table.finish_next());
    assert!(!table.has(TOKEN) && table.has(other));
    assert!(!table.has(b"left-of-an-attempt") && !table.has(b"only-of-the-old-set"));
    assert_eq!(table.len(), 1);
    assert!(admit(&table, other).is_err());
}

#[test]
fn keys_of_one_shard_are_told_apart() {
    let table = table();
    let digest = |last: u8, word: u64| {
        let mut bytes = [last; 32];
        bytes[..8].copy_from_slice(&word.to_be_bytes());
        Digest::new(&bytes)
    };
    let digests = [(1, 5), (2, 5), (3, 5), (1, 4), (1, 6), (1, 5 << 40)]
        .map(|(last, word)| digest(last, word));
    for (number, digest) in digests.iter().enumerate() {
        let account = number.to_string();
        let key = KeyTerms { digest: *digest, ..terms(TOKEN, &account) };
        assert!(table.put(key.clone()) && table.put(key));
    }
    let accounts = || {
        digests.map(|digest| table.find(digest).map_or("-".into(), |key| key.account().to_string()))
    };
    assert_eq!(accounts(), ["0", "1", "2", "3", "4", "5"]);
    assert!(table.remove(digests[1]));
    assert_eq!((accounts(), table.len()), (["0", "-", "2", "3", "4", "5"].map(String::from), 6));
    assert!(table.find(digest(9, 5)).is_none() && table.find(digest(1, 7)).is_none());
}

#[test]
fn threads_share_the_limit_of_a_key_while_keys_change() {
    let count: usize = if cfg!(miri) { 20 } else { 20_000 };
    let rate = Rate { rate_per_second: 10.0, burst: count as f64 };
    let table = table_of(rate, false, &[terms(TOKEN, "acme")]);
    let is_over = AtomicBool::new(false);
    let admitted: usize = scope(|threads| {
        threads.spawn(|| {
            while !is_over.load(Relaxed) {
                // The same shard, and then all of them.
                table.put(terms(TOKEN, "acme"));
                table.start_next();
                table.put_next(terms(TOKEN, "acme"));
                table.finish_next();
                if cfg!(miri) {
                    return;
                }
            }
        });
        let threads = [1, 2]
            .map(|_| threads.spawn(|| (0..count).filter(|_| admit(&table, TOKEN).is_ok()).count()));
        let admitted = threads.map(|thread| thread.join().unwrap()).iter().sum();
        is_over.store(true, Relaxed);
        admitted
    });
    assert_eq!(admitted, count);
}

#[test]
fn time_of_day_is_read_once_for_a_key_that_expires() {
    let reads = Cell::new(0);
    let table = narrowed(PolicyTerms { expires: Some((1.0, "".into())), ..PolicyTerms::default() });
    let time = || {
        reads.set(reads.get() + 1);
        0.0
    };
    assert!(table.admit(TOKEN, HERE, NOW_NS, time).is_ok());
    assert_eq!(reads.get(), 1);
}
