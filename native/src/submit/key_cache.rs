//! Hot path: the key cache of an ingress thread: which API keys it admits, and their rate limits.
//!
//! The main thread grants each valid key to the ingress threads (`src/limits/key-cache-sync.ts`),
//! and revokes the grant when it is outdated. A request with a cached key is admitted and charged
//! as on the main thread (`src/limits/access-control.ts`), in the same shared states as on the main
//! thread and the other ingress threads. One that exceeds a limit is rejected here, and nothing is
//! charged. Every other request is proxied, so that the main thread rejects and counts it.
//!
//! Each ingress thread has its own table. Clients choose the looked-up keys, so the hash has a
//! secret seed.

use std::collections::HashMap;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::http::rejection::UsedUp;
use crate::submit::rate_limit::{CACHED_KEYS_MAX, Limit, Rate, ThreadLimitStates};

/// A valid key, its restrictions, and where its limits are.
#[derive(Clone, Debug)]
pub struct KeyGrant {
    /// Name of the account's plan.
    pub plan: Box<str>,
    /// Of the account.
    pub rate_per_second: f64,
    /// Of the account.
    pub burst: f64,
    /// Whether all edges share the account's limit, so that its state is among the global ones.
    pub is_global: bool,
    /// When the key expires, in milliseconds since the Unix epoch.
    pub expires_unix_ms: Option<f64>,
    /// Networks that it may be used from; None for any.
    pub networks: Option<Vec<IpNet>>,
    /// The key's own limit, below the account's.
    pub own_limit: Option<Rate>,
    /// Slot of the account's limit.
    pub account_limit_slot: u32,
    /// Slot of the key's own limit.
    pub key_limit_slot: Option<u32>,
    /// Its slot in the key cache, which is also that of its mark.
    pub key_slot: u32,
}

/// Why a request is not admitted here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NotAdmitted<'a> {
    /// Its key is not cached, has expired, or may not be used from its network.
    Key,
    /// A rate limit is exceeded.
    Limit {
        /// Slot of the key.
        key_slot: u32,
        /// The limit with the longest wait.
        used_up: UsedUp<'a>,
    },
}

/// Which limit is exceeded, and for how long.
struct Exceeded {
    is_own: bool,
    wait_ns: f64,
}

/// A cached key, prepared for checks.
struct CachedKey {
    plan: Box<str>,
    rate: Rate,
    own_rate: Option<Rate>,
    expires_unix_ms: Option<f64>,
    networks: Option<Box<[IpNet]>>,
    /// Slot and cost of the key's own limit.
    own: Option<(u32, Limit)>,
    limit: Limit,
    is_global: bool,
    account_limit_slot: u32,
    key_slot: u32,
}

/// The cached keys of one ingress thread.
pub struct KeyCache {
    limit_states: ThreadLimitStates,
    keys: HashMap<Box<[u8]>, CachedKey>,
}

impl KeyCache {
    /// Without any as yet.
    #[must_use]
    pub fn new(limit_states: ThreadLimitStates) -> Self {
        Self { limit_states, keys: HashMap::new() }
    }

    /// Adds or replaces a key. Returns whether it is cached: not if it cannot be charged, has no
    /// valid slot, or the cache is full.
    pub fn put(&mut self, token: &[u8], grant: KeyGrant) -> bool {
        self.keys.remove(token);
        let Some(key) = CachedKey::of(grant) else { return false };
        let has_room = self.keys.len() < CACHED_KEYS_MAX;
        if has_room {
            self.keys.insert(token.into(), key);
        }
        has_room
    }

    /// Removes the key if it has this slot.
    pub fn revoke(&mut self, token: &[u8], key_slot: u32) {
        if self.keys.get(token).is_some_and(|key| key.key_slot == key_slot) {
            self.keys.remove(token);
        }
    }

    /// Whether the key is cached, valid or not.
    #[must_use]
    pub fn has_key(&self, token: &[u8]) -> bool {
        self.keys.contains_key(token)
    }

    /// Admits and charges one request; returns the key's slot. On an error nothing is charged.
    /// Reads the time of day only for a key that expires.
    ///
    /// # Errors
    /// If no valid key is cached, or a limit is exceeded.
    pub fn admit(
        &self,
        token: &[u8],
        from: IpAddr,
        now_ns: u64,
        unix_ms: impl FnOnce() -> f64,
    ) -> Result<u32, NotAdmitted<'_>> {
        let key = self.keys.get(token).ok_or(NotAdmitted::Key)?;
        if !key.is_good(from, unix_ms) {
            return Err(NotAdmitted::Key);
        }
        self.limit_states.mark(key.key_slot);
        match self.try_charge(key, now_ns as f64) {
            Ok(()) => Ok(key.key_slot),
            Err(exceeded) => Err(key.limited(&exceeded)),
        }
    }

    /// Undoes the charge of one request. Does nothing for a key that is no longer cached.
    pub fn refund(&self, token: &[u8]) {
        let Some(key) = self.keys.get(token) else { return };
        if let Some((limit_slot, own)) = key.own {
            self.limit_states.refund(limit_slot, own);
        }
        if key.is_global {
            self.limit_states.refund_global(key.account_limit_slot, key.limit);
        } else {
            self.limit_states.refund(key.account_limit_slot, key.limit);
        }
    }

    /// Number of cached keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Charges the key's own limit first, and refunds it if the account's is exceeded. As
    /// `chargeDelegated` of `src/limits/access-control.ts`.
    fn try_charge(&self, key: &CachedKey, now_ns: f64) -> Result<(), Exceeded> {
        let limit_states = &self.limit_states;
        let &CachedKey { limit, account_limit_slot, .. } = key;
        let own_wait_ns = key
            .own
            .map_or(0.0, |(limit_slot, own)| limit_states.try_charge(limit_slot, now_ns, own));
        if own_wait_ns > 0.0 {
            let wait_ns = if key.is_global {
                limit_states.global_wait_ns(account_limit_slot, now_ns, limit)
            } else {
                limit_states.wait_ns(account_limit_slot, now_ns, limit)
            };
            return Err(Exceeded {
                is_own: own_wait_ns > wait_ns,
                wait_ns: own_wait_ns.max(wait_ns),
            });
        }
        let wait_ns = if key.is_global {
            limit_states.try_charge_global(account_limit_slot, now_ns, limit)
        } else {
            limit_states.try_charge(account_limit_slot, now_ns, limit)
        };
        if wait_ns > 0.0
            && let Some((limit_slot, own)) = key.own
        {
            limit_states.refund(limit_slot, own);
        }
        if wait_ns > 0.0 { Err(Exceeded { is_own: false, wait_ns }) } else { Ok(()) }
    }
}

impl CachedKey {
    /// None if the slot or a rate is invalid, or if an own limit has no slot.
    fn of(grant: KeyGrant) -> Option<Self> {
        let KeyGrant { rate_per_second, burst, is_global, account_limit_slot, key_slot, .. } =
            grant;
        let rate = Rate { rate_per_second, burst };
        let own = match grant.own_limit {
            Some(limit) => Some((grant.key_limit_slot?, Limit::of(limit)?)),
            None => None,
        };
        if usize::try_from(key_slot).ok()? >= CACHED_KEYS_MAX {
            return None;
        }
        Some(Self {
            plan: grant.plan,
            rate,
            own_rate: grant.own_limit,
            expires_unix_ms: grant.expires_unix_ms,
            networks: grant.networks.map(Vec::into_boxed_slice),
            own,
            limit: Limit::of(rate)?,
            is_global,
            account_limit_slot,
            key_slot,
        })
    }

    /// As `limitOf` of `src/limits/access-control.ts`.
    fn limited(&self, &Exceeded { is_own, wait_ns }: &Exceeded) -> NotAdmitted<'_> {
        let rate = self.own_rate.filter(|_| is_own).unwrap_or(self.rate);
        let Rate { rate_per_second, burst } = rate;
        let used_up = UsedUp { plan: &self.plan, is_own, rate_per_second, burst, wait_ns };
        NotAdmitted::Limit { key_slot: self.key_slot, used_up }
    }

    fn is_good(&self, from: IpAddr, unix_ms: impl FnOnce() -> f64) -> bool {
        let is_over = self.expires_unix_ms.is_some_and(|end| unix_ms() >= end);
        !is_over && self.networks.as_ref().is_none_or(|networks| is_within(networks, from))
    }
}

/// Whether an address lies in one of these networks. An IPv4 address matches networks of either
/// family, also in its IPv4-mapped form `::ffff:203.0.113.7`, which a dual-stack socket reports.
#[must_use]
pub fn is_within(networks: &[IpNet], from: IpAddr) -> bool {
    let (v4, v6) = match from {
        IpAddr::V4(address) => (Some(address), address.to_ipv6_mapped()),
        IpAddr::V6(address) => (address.to_ipv4_mapped(), address),
    };
    networks.iter().any(|network| match network {
        IpNet::V4(network) => v4.is_some_and(|address| network.contains(&address)),
        IpNet::V6(network) => network.contains(&v6),
    })
}

/// A network such as 203.0.113.0/24 or 2001:db8::/32; a plain address stands for itself. Accepts
/// what `networksOf` of `src/accounts/keys/policy.ts` accepts.
#[must_use]
pub fn network_of(text: &str) -> Option<IpNet> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address_of(address)?, bits_of(bits)?),
        None => {
            let address = address_of(text)?;
            (address, if address.is_ipv4() { 32 } else { 128 })
        }
    };
    IpNet::new(address, bits).ok()
}

/// Without the zone of an IPv6 address, which does not identify its origin.
fn address_of(text: &str) -> Option<IpAddr> {
    let Some((address, zone)) = text.split_once('%') else { return text.parse().ok() };
    let is_zone = |byte: u8| byte.is_ascii_alphanumeric() || b"-.:".contains(&byte);
    let is_zoned = !zone.is_empty() && zone.bytes().all(is_zone);
    if is_zoned { address.parse().ok().map(IpAddr::V6) } else { None }
}

/// At most three digits, and no sign.
fn bits_of(text: &str) -> Option<u8> {
    let is_number = text.len() <= 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

#[cfg(test)]
#[path = "key_cache_tests.rs"]
mod tests;
