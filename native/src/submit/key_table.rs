//! Hot path: every API key, by its SHA-256: which requests it admits, and whose limits they charge.
//! Keys themselves are not stored.
//!
//! ```text
//!  65,536 shards, each behind one pointer      sorted entries         shared
//!  ┌───────────┐                               ┌──────────────────┐
//!  │ ArcSwap   ├──────────────────────────────▶│ digest, Arc<Key> ├──▶ account, plan, policy
//!  └───────────┘                               └──────────────────┘
//! ```
//!
//! Any thread looks keys up without a lock. One thread, the main one, changes the table: it
//! replaces the shard of a changed key by a copy, of at most a few dozen entries. A whole new set
//! of keys is built aside, in batches between which the main thread serves requests, and then takes
//! the place of the old one shard by shard, so each key is looked up in the old set or in the new
//! one. The old shards are dropped by a thread of their own.
//!
//! A request that found its key keeps it until it is answered, also if the key is removed
//! meanwhile. Digests are compared in constant time, so that response times do not reveal how much
//! of one was guessed.
//!
//! Decision: docs/decisions/0053-keys-in-the-engine.md

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::thread::Builder;

use arc_swap::{ArcSwap, ArcSwapOption};
use ipnet::IpNet;
use parking_lot::Mutex;
use ring::digest::{SHA256, digest};

use crate::http::message_template::rendered;
use crate::http::rejection::{Rejection, UsedUp};
use crate::http::rejection_table::{
    KEY_EXPIRED, KEY_MISSING, KEY_MISTYPED, KEY_NETWORK, KEY_NETWORK_ACCOUNT, KEY_UNKNOWN,
    KEYS_UNREAD, Reason,
};
use crate::submit::key_format::looks_mistyped;
use crate::submit::limit_registry::{LimitRegistry, LimitState};
use crate::submit::networks::{is_within, networks_of};
use crate::submit::rate_limit::{Limit, Rate};
use crate::sync::clock::monotonic_ns;

/// A shard for each value of so many first bits of a digest. Miri would take minutes to make them.
const SHARD_BITS: u32 = if cfg!(miri) { 4 } else { 16 };
const SHARDS: usize = 1 << SHARD_BITS;
/// `KEYS_MAX` of `src/accounts/limits.ts`.
pub const KEYS_MAX: usize = 4_000_000;
/// `TOKEN_CHARS_MIN` and `TOKEN_CHARS_MAX` of `src/core/limits.ts`.
const TOKEN_BYTES_MIN: usize = 16;
const TOKEN_BYTES_MAX: usize = 128;
/// Bytes of a key's id.
pub const KEY_ID_BYTES: usize = 16;
/// Bytes of an account's name: `ACCOUNT_BYTES_MAX` of `src/engine/submission-record.ts`.
pub const ACCOUNT_BYTES_MAX: usize = 192;

/// The SHA-256 of a key, as four numbers.
#[derive(Clone, Copy, Debug)]
pub struct Digest([u64; 4]);

impl Digest {
    /// Of the 32 bytes of a SHA-256.
    #[must_use]
    pub fn new(bytes: &[u8; 32]) -> Self {
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
            *word = u64::from_be_bytes(*bytes);
        }
        Self(words)
    }

    /// Of a key.
    #[must_use]
    pub fn of(token: &[u8]) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, token).as_ref());
        Self::new(&bytes)
    }

    fn shard(self) -> usize {
        (self.0[0] >> (u64::BITS - SHARD_BITS)) as usize
    }

    /// Takes the same time whichever bits differ.
    fn is(self, other: Self) -> bool {
        self.0.iter().zip(other.0).fold(0, |different, (a, b)| different | (a ^ b)) == 0
    }
}

/// The terms of a plan.
#[derive(Clone, Debug)]
pub struct PlanTerms {
    /// Its name.
    pub name: Box<str>,
    /// Of each account.
    pub rate: Rate,
    /// Whether all edges share the limit of an account.
    pub is_shared: bool,
}

/// The same, prepared for charges.
struct Plan {
    number: u32,
    terms: PlanTerms,
    limit: Limit,
}

/// Restrictions of one key besides its plan.
#[derive(Clone, Debug, Default)]
pub struct PolicyTerms {
    /// When it expires, in milliseconds since the Unix epoch, and as text.
    pub expires: Option<(f64, Box<str>)>,
    /// Networks that it may be used from, in CIDR notation, separated by a comma and a blank.
    pub ranges: Option<Box<str>>,
    /// A limit below the account's.
    pub limit: Option<Rate>,
}

/// A key as it is put into the table.
#[derive(Clone, Debug)]
pub struct KeyTerms<'a> {
    /// The key's SHA-256.
    pub digest: Digest,
    /// Its id.
    pub id: [u8; KEY_ID_BYTES],
    /// Its account.
    pub account: &'a str,
    /// The account's number: `accountNumber` of `src/send/native/account-number.ts`.
    pub account_number: u64,
    /// The number of its plan.
    pub plan: u32,
    /// None where only the plan applies.
    pub policy: Option<PolicyTerms>,
}

/// A valid key.
pub struct Key {
    id: [u8; KEY_ID_BYTES],
    account: Arc<LimitState>,
    account_number: u64,
    plan: Arc<ArcSwap<Plan>>,
    policy: Option<Box<Policy>>,
}

struct Policy {
    expires: Option<(f64, Box<str>)>,
    networks: Option<Networks>,
    own: Option<OwnLimit>,
}

struct Networks {
    nets: Box<[IpNet]>,
    ranges: Box<str>,
}

struct OwnLimit {
    rate: Rate,
    limit: Limit,
    state: Arc<LimitState>,
}

impl Key {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> &[u8; KEY_ID_BYTES] {
        &self.id
    }

    /// Its account.
    #[must_use]
    pub fn account(&self) -> &str {
        self.account.name()
    }

    /// The number of its account's plan.
    #[must_use]
    pub fn plan_number(&self) -> u32 {
        self.plan.load().number
    }

    /// Why it is not valid here and now, disregarding its limits.
    #[must_use]
    pub fn violation(&self, from: IpAddr, unix_ms: impl FnOnce() -> f64) -> Option<Violation> {
        self.policy.as_ref()?.violation(from, unix_ms)
    }

    /// The rate and burst of its own limit, or else of its account's plan.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.own().map_or_else(|| self.plan.load().terms.rate, |own| own.rate)
    }

    /// The account's number, by which a transaction is ranked: `Offer`.
    #[must_use]
    pub fn account_number(&self) -> u64 {
        self.account_number
    }
}

/// A key that is not valid here and now: `PolicyViolation` of `src/limits/access-control.ts`.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// For the sender of the key, who may have stolen it.
    pub for_client: String,
    /// For the key's account.
    pub for_account: String,
}

/// Why a request is not admitted.
pub enum NotAdmitted {
    /// It has no valid key.
    Unknown(KeyRejection),
    /// Its key has expired, or may not be used from its network.
    OutOfPolicy(Arc<Key>, Violation),
    /// A rate limit is used up.
    Limited(Arc<Key>, Rejection),
}

/// Why a request has no valid key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyRejection {
    /// There is none.
    Missing,
    /// It is not in the table.
    Unknown,
    /// The same, and its checksum is wrong.
    Mistyped,
    /// Keys were not read yet.
    Unread,
}

impl KeyRejection {
    /// The rejection for the client.
    #[must_use]
    pub fn rejection(self) -> Rejection {
        match self {
            Self::Missing => Rejection::new(Reason::Unauthorized, KEY_MISSING.into()),
            Self::Unknown => Rejection::new(Reason::Unauthorized, KEY_UNKNOWN.into()),
            Self::Mistyped => Rejection::new(Reason::Unauthorized, KEY_MISTYPED.into()),
            Self::Unread => Rejection::new(Reason::Overloaded, KEYS_UNREAD.into()),
        }
    }
}

/// A used-up limit of a key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exceeded {
    /// Whether it is the key's own limit.
    pub is_own: bool,
    /// How long the next request must wait.
    pub wait_ns: f64,
}

/// All keys, and the limits that they charge.
pub struct KeyTable {
    shards: Box<[ArcSwapOption<Shard>]>,
    limits: LimitRegistry,
    writer: Mutex<Writer>,
    count: AtomicUsize,
    /// Whether any set of keys was complete; until then every key may be valid.
    is_read: AtomicBool,
}

type Shard = Vec<Entry>;

/// A shard is sorted by the first number of the digest.
#[derive(Clone)]
struct Entry {
    digest: Digest,
    key: Arc<Key>,
}

#[derive(Default)]
struct Writer {
    plans: Vec<Arc<ArcSwap<Plan>>>,
    /// The set of keys that is built aside.
    next: Option<NextKeys>,
}

struct NextKeys {
    shards: Vec<Shard>,
    count: usize,
}

impl Default for KeyTable {
    fn default() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| ArcSwapOption::empty()).collect(),
            limits: LimitRegistry::default(),
            writer: Mutex::default(),
            count: AtomicUsize::new(0),
            is_read: AtomicBool::new(false),
        }
    }
}

impl KeyTable {
    /// The key with this digest.
    #[must_use]
    pub fn find(&self, digest: Digest) -> Option<Arc<Key>> {
        let shard = self.shards.get(digest.shard())?.load();
        position(shard.as_ref()?, digest)
            .ok()
            .and_then(|at| Some(shard.as_ref()?.get(at)?.key.clone()))
    }

    /// Whether this key is valid, disregarding its policy.
    #[must_use]
    pub fn has(&self, token: &[u8]) -> bool {
        is_possible(token) && self.find(Digest::of(token)).is_some()
    }

    /// Admits and charges one request. On an error nothing is charged. Reads the time of day only
    /// for a key that expires.
    ///
    /// # Errors
    /// See `NotAdmitted`.
    pub fn admit(
        &self,
        token: &[u8],
        from: IpAddr,
        now_ns: u64,
        unix_ms: impl FnOnce() -> f64,
    ) -> Result<Arc<Key>, NotAdmitted> {
        let key = is_possible(token).then(|| self.find(Digest::of(token))).flatten();
        let Some(key) = key else { return Err(self.not_found(token)) };
        self.admit_key(key, from, now_ns, unix_ms)
    }

    /// Why a request is not admitted whose key was not found.
    #[must_use]
    pub fn not_found(&self, token: &[u8]) -> NotAdmitted {
        NotAdmitted::Unknown(self.rejection_of(token))
    }

    /// The same for a key that was found by its digest.
    ///
    /// # Errors
    /// See `NotAdmitted`.
    pub fn admit_key(
        &self,
        key: Arc<Key>,
        from: IpAddr,
        now_ns: u64,
        unix_ms: impl FnOnce() -> f64,
    ) -> Result<Arc<Key>, NotAdmitted> {
        if let Some(violation) = key.violation(from, unix_ms) {
            return Err(NotAdmitted::OutOfPolicy(key, violation));
        }
        match self.charge(&key, now_ns as f64) {
            Ok(()) => Ok(key),
            Err(exceeded) => {
                let rejection = limited(&key, exceeded);
                Err(NotAdmitted::Limited(key, rejection))
            }
        }
    }

    /// How many requests of a key would be admitted now, and after how many nanoseconds it may be
    /// more; infinite if it cannot be. Changes nothing.
    #[must_use]
    pub fn available(&self, key: &Key, now_ns: f64) -> (u32, f64) {
        let plan = key.plan.load();
        let limits = &self.limits;
        let (count, more_in_ns) =
            limits.available(&key.account, plan.terms.is_shared, now_ns, plan.limit);
        let Some(own) = key.own() else { return (count, more_in_ns) };
        let (own_count, own_more_in_ns) = limits.available(&own.state, false, now_ns, own.limit);
        (count.min(own_count), more_in_ns.min(own_more_in_ns))
    }

    /// Charges one more request of a key; the rejection where a limit is used up.
    #[must_use]
    pub fn charge_again(&self, key: &Key, now_ns: u64) -> Option<Rejection> {
        let exceeded = self.charge(key, now_ns as f64).err()?;
        Some(limited(key, exceeded))
    }

    /// Charges the key's own limit first, and refunds it if the account's is used up. As `charge` of
    /// `src/limits/access-control.ts`.
    ///
    /// # Errors
    /// If a limit is used up.
    pub fn charge(&self, key: &Key, now_ns: f64) -> Result<(), Exceeded> {
        let limits = &self.limits;
        let plan = key.plan.load();
        let (account, is_shared, limit) = (&key.account, plan.terms.is_shared, plan.limit);
        let own = key.own();
        let own_wait_ns =
            own.map_or(0.0, |own| limits.try_charge(&own.state, false, now_ns, own.limit));
        if own_wait_ns > 0.0 {
            let wait_ns = limits.wait_ns(account, is_shared, now_ns, limit);
            let is_own = own_wait_ns > wait_ns;
            return Err(Exceeded { is_own, wait_ns: own_wait_ns.max(wait_ns) });
        }
        let wait_ns = limits.try_charge(account, is_shared, now_ns, limit);
        if wait_ns == 0.0 {
            return Ok(());
        }
        if let Some(own) = own {
            own.state.refund(own.limit);
        }
        Err(Exceeded { is_own: false, wait_ns })
    }

    /// Sets the terms of the plan of this number, for all its keys. Plans are numbered from 0 on.
    /// False for a number that leaves one out.
    pub fn set_plan(&self, number: u32, terms: PlanTerms) -> bool {
        let plan = Arc::new(Plan { number, limit: Limit::of(terms.rate), terms });
        let Writer { plans, .. } = &mut *self.writer.lock();
        let number = number as usize;
        match plans.get(number) {
            Some(known) => known.store(plan),
            None if number == plans.len() => plans.push(Arc::new(ArcSwap::new(plan))),
            None => return false,
        }
        true
    }

    /// Adds or replaces a key. False without its plan, with an account's name that is too long, or if
    /// the table is full.
    pub fn put(&self, terms: KeyTerms<'_>) -> bool {
        let writer = self.writer.lock();
        let digest = terms.digest;
        let Some(key) = self.key_of(&writer.plans, terms) else { return false };
        let Some(shard) = self.shards.get(digest.shard()) else { return false };
        let mut entries = shard.load().as_deref().cloned().unwrap_or_default();
        if put_entry(&mut entries, Entry { digest, key }) {
            if self.count.load(Relaxed) >= KEYS_MAX {
                return false;
            }
            self.count.fetch_add(1, Relaxed);
        }
        shard.store(Some(Arc::new(entries)));
        true
    }

    /// Removes a key; false if it was missing. A request that found it before is still answered.
    pub fn remove(&self, digest: Digest) -> bool {
        let _writer = self.writer.lock();
        let Some(shard) = self.shards.get(digest.shard()) else { return false };
        let mut entries = shard.load().as_deref().cloned().unwrap_or_default();
        let Ok(at) = position(&entries, digest) else { return false };
        entries.remove(at);
        shard.store(if entries.is_empty() { None } else { Some(Arc::new(entries)) });
        self.count.fetch_sub(1, Relaxed);
        true
    }

    /// Starts to build a set of keys aside. One that was started before is dropped.
    pub fn start_next(&self) {
        let next = NextKeys { shards: vec![Shard::new(); SHARDS], count: 0 };
        if let Some(before) = self.writer.lock().next.replace(next) {
            drop_aside(before.shards);
        }
    }

    /// Adds or replaces a key of that set. False as with `put`, and if none was started.
    pub fn put_next(&self, terms: KeyTerms<'_>) -> bool {
        let Writer { plans, next } = &mut *self.writer.lock();
        let Some(next) = next else { return false };
        let digest = terms.digest;
        let Some(key) = self.key_of(plans, terms) else { return false };
        let Some(entries) = next.shards.get_mut(digest.shard()) else { return false };
        if position(entries, digest).is_err() && next.count >= KEYS_MAX {
            return false;
        }
        next.count += usize::from(put_entry(entries, Entry { digest, key }));
        true
    }

    /// Replaces all keys by that set. False if none was started.
    pub fn finish_next(&self) -> bool {
        let mut writer = self.writer.lock();
        let Some(NextKeys { shards, count }) = writer.next.take() else { return false };
        let replaced: Vec<_> = self
            .shards
            .iter()
            .zip(shards)
            .filter_map(|(shard, entries)| {
                shard.swap(if entries.is_empty() { None } else { Some(Arc::new(entries)) })
            })
            .collect();
        self.count.store(count, Relaxed);
        self.is_read.store(true, Release);
        drop_aside(replaced);
        true
    }

    /// Number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count.load(Relaxed)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether all keys were read once: one that is not there is unknown.
    #[must_use]
    pub fn is_read(&self) -> bool {
        self.is_read.load(Acquire)
    }

    /// The limits that its keys charge.
    #[must_use]
    pub fn limits(&self) -> &LimitRegistry {
        &self.limits
    }

    fn rejection_of(&self, token: &[u8]) -> KeyRejection {
        if token.is_empty() {
            KeyRejection::Missing
        } else if looks_mistyped(token) {
            KeyRejection::Mistyped
        } else if self.is_read() {
            KeyRejection::Unknown
        } else {
            KeyRejection::Unread
        }
    }

    fn key_of(&self, plans: &[Arc<ArcSwap<Plan>>], terms: KeyTerms<'_>) -> Option<Arc<Key>> {
        let plan = plans.get(terms.plan as usize)?.clone();
        let KeyTerms { id, account, account_number, policy, .. } = terms;
        let now_ns = monotonic_ns() as f64;
        if account.len() > ACCOUNT_BYTES_MAX {
            return None;
        }
        let account = self.limits.state(account, now_ns);
        let policy = policy.map(|policy| Box::new(self.policy_of(policy, &id, now_ns)));
        Some(Arc::new(Key { id, account, account_number, plan, policy }))
    }

    fn policy_of(&self, terms: PolicyTerms, id: &[u8; KEY_ID_BYTES], now_ns: f64) -> Policy {
        let PolicyTerms { expires, ranges, limit } = terms;
        let networks = ranges.map(|ranges| Networks { nets: networks_of(&ranges), ranges });
        let own = limit.map(|rate| OwnLimit {
            rate,
            limit: Limit::of(rate),
            // No account has this name.
            state: self.limits.state(&format!("key {:032x}", u128::from_be_bytes(*id)), now_ns),
        });
        Policy { expires, networks, own }
    }
}

impl Key {
    fn own(&self) -> Option<&OwnLimit> {
        self.policy.as_ref()?.own.as_ref()
    }
}

impl Policy {
    /// As `policyViolation` of `src/limits/access-control.ts`.
    fn violation(&self, from: IpAddr, unix_ms: impl FnOnce() -> f64) -> Option<Violation> {
        if let Some((end, text)) = &self.expires
            && unix_ms() >= *end
        {
            let message = rendered(KEY_EXPIRED, &[text]);
            return Some(Violation { for_client: message.clone(), for_account: message });
        }
        let Networks { nets, ranges } = self.networks.as_ref()?;
        if is_within(nets, from) {
            return None;
        }
        let for_account = rendered(KEY_NETWORK_ACCOUNT, &[ranges, &from.to_string()]);
        Some(Violation { for_client: KEY_NETWORK.into(), for_account })
    }
}

/// As `limitRejection` of `src/limits/access-control.ts`.
fn limited(key: &Key, Exceeded { is_own, wait_ns }: Exceeded) -> Rejection {
    let plan = key.plan.load();
    let PlanTerms { name, rate, .. } = &plan.terms;
    let own = key.own().filter(|_| is_own);
    let Rate { rate_per_second, burst } = own.map_or(*rate, |own| own.rate);
    Rejection::rate_limited(&UsedUp { plan: name, is_own, rate_per_second, burst, wait_ns })
}

/// Whether an API key can be this: printable ASCII of a size. So it lacks the zero byte that what is
/// hashed of a public key has: whoever knows that key would have its account.
pub fn is_possible(token: &[u8]) -> bool {
    let is_size = (TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&token.len());
    is_size && token.iter().all(|byte| matches!(byte, b' '..=b'~'))
}

/// Where the digest is, or where it belongs.
fn position(entries: &[Entry], digest: Digest) -> Result<usize, usize> {
    let first = entries.partition_point(|entry| entry.digest.0[0] < digest.0[0]);
    let equal = entries.get(first..).unwrap_or_default();
    let equal = equal.iter().take_while(|entry| entry.digest.0[0] == digest.0[0]);
    let found = equal.enumerate().find(|(_, entry)| entry.digest.is(digest));
    found.map(|(at, _)| first + at).ok_or(first)
}

/// Returns whether it is a new entry.
fn put_entry(entries: &mut Shard, entry: Entry) -> bool {
    match position(entries, entry.digest) {
        Ok(at) => {
            if let Some(known) = entries.get_mut(at) {
                *known = entry;
            }
            false
        }
        Err(at) => {
            // One at a time: most shards do not grow any more.
            entries.reserve_exact(1);
            entries.insert(at, entry);
            true
        }
    }
}

/// Drops on a thread of its own what may be millions of keys.
fn drop_aside<T: Send + 'static>(what: T) {
    // Without a thread it is dropped here, by the closure that is not run.
    let _ = Builder::new().name("td-drop".into()).spawn(move || drop(what));
}

#[cfg(test)]
#[path = "key_table_tests.rs"]
pub(crate) mod tests;
