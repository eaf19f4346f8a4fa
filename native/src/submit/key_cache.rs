//! Hot path: whom a front lets in by itself, and what that costs them.
//!
//! The main thread gives a front a pass of each key that it knows to be good (`pass.ts` of
//! `src/ingress/`), and takes it back when what it says is no longer so. Who has one is let in and
//! charged as `pass-gate.ts` does it, where the main thread and the other fronts charge it, too.
//! Everybody else, and whoever has used up a limit, is the main thread's to tell and to count; of
//! them nothing is charged here.
//!
//! Each front has a table of its own. Its keys are the clients' choice, so they are hashed with a
//! secret.

use std::collections::HashMap;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::submit::rate_limit::{CACHED_KEYS_MAX, Cost, Rate, SharedLimitStates};

/// A key that is good, what narrows it, and where its limits are.
#[derive(Clone, Debug)]
pub struct KeyGrant {
    /// Of the account.
    pub rate_per_second: f64,
    /// Of the account.
    pub burst: f64,
    /// Whether the account's limit holds over all edges, and so lies among the shared cells.
    pub is_shared: bool,
    /// From when on the key is no longer good, in milliseconds since the Unix epoch.
    pub expires_unix_ms: Option<f64>,
    /// Networks that it may be used from; None for everywhere.
    pub networks: Option<Vec<IpNet>>,
    /// A limit below the account's.
    pub own_limit: Option<Rate>,
    /// Of the account's limit.
    pub account_limit_slot: u32,
    /// Of the limit below the account's.
    pub key_limit_slot: Option<u32>,
    /// Its place among all passes, and its mark's.
    pub key_slot: u32,
}

/// Why a request is not let in here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAdmitted {
    /// Of its key there is no pass, or it is not good now or from there.
    Key,
    /// A limit is used up.
    Limit,
}

/// A pass as it is looked at.
struct CachedKey {
    expires_unix_ms: Option<f64>,
    networks: Option<Box<[IpNet]>>,
    /// The cell and the cost of the key's own limit.
    own: Option<(u32, Cost)>,
    cost: Cost,
    is_shared: bool,
    account_limit_slot: u32,
    key_slot: u32,
}

/// The passes of one front, by their key.
pub struct KeyCache {
    limit_states: SharedLimitStates,
    keys: HashMap<Box<[u8]>, CachedKey>,
}

impl KeyCache {
    /// Without any as yet.
    #[must_use]
    pub fn new(limit_states: SharedLimitStates) -> Self {
        Self { limit_states, keys: HashMap::new() }
    }

    /// Instead of what there was of the key. Whether it is kept: not where it cannot be charged or
    /// has no place, and not when there are as many as may be.
    pub fn put(&mut self, token: &[u8], grant: KeyGrant) -> bool {
        self.keys.remove(token);
        let Some(key) = CachedKey::of(grant) else { return false };
        let has_room = self.keys.len() < CACHED_KEYS_MAX;
        if has_room {
            self.keys.insert(token.into(), key);
        }
        has_room
    }

    /// Forgets the pass of the key if it is the one of that place.
    pub fn revoke(&mut self, token: &[u8], key_slot: u32) {
        if self.keys.get(token).is_some_and(|key| key.key_slot == key_slot) {
            self.keys.remove(token);
        }
    }

    /// Whether there is a pass of the key, good or not.
    #[must_use]
    pub fn knows(&self, token: &[u8]) -> bool {
        self.keys.contains_key(token)
    }

    /// Lets one request in and charges it: the place of its pass, or why not, and then nothing is
    /// charged. The time of day is asked only where a key ends at one.
    ///
    /// # Errors
    /// Where there is no pass that is good, and where a limit is used up.
    pub fn admit(
        &self,
        token: &[u8],
        from: IpAddr,
        now_ns: u64,
        unix_ms: impl FnOnce() -> f64,
    ) -> Result<u32, NotAdmitted> {
        let key = self.keys.get(token).ok_or(NotAdmitted::Key)?;
        if !key.is_good(from, unix_ms) {
            return Err(NotAdmitted::Key);
        }
        self.limit_states.mark(key.key_slot);
        if self.is_charged(key, now_ns as f64) { Ok(key.key_slot) } else { Err(NotAdmitted::Limit) }
    }

    /// Passes that there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The key's own limit first, which is given back where the account's is used up.
    fn is_charged(&self, key: &CachedKey, now_ns: f64) -> bool {
        let limit_states = &self.limit_states;
        let CachedKey { cost, account_limit_slot, .. } = *key;
        if key
            .own
            .is_some_and(|(limit_slot, own)| limit_states.charge(limit_slot, now_ns, own) > 0.0)
        {
            return false;
        }
        let wait_ns = if key.is_shared {
            limit_states.charge_shared(account_limit_slot, now_ns, cost)
        } else {
            limit_states.charge(account_limit_slot, now_ns, cost)
        };
        if wait_ns > 0.0
            && let Some((limit_slot, own)) = key.own
        {
            limit_states.give_back(limit_slot, own);
        }
        wait_ns <= 0.0
    }
}

impl CachedKey {
    /// None where it has no place or no rate, or a limit of its own without a cell.
    fn of(grant: KeyGrant) -> Option<Self> {
        let KeyGrant { rate_per_second, burst, is_shared, account_limit_slot, key_slot, .. } =
            grant;
        let own = match grant.own_limit {
            Some(limit) => Some((grant.key_limit_slot?, Cost::of(limit)?)),
            None => None,
        };
        if usize::try_from(key_slot).ok()? >= CACHED_KEYS_MAX {
            return None;
        }
        Some(Self {
            expires_unix_ms: grant.expires_unix_ms,
            networks: grant.networks.map(Vec::into_boxed_slice),
            own,
            cost: Cost::of(Rate { rate_per_second, burst })?,
            is_shared,
            account_limit_slot,
            key_slot,
        })
    }

    fn is_good(&self, from: IpAddr, unix_ms: impl FnOnce() -> f64) -> bool {
        let is_over = self.expires_unix_ms.is_some_and(|end| unix_ms() >= end);
        !is_over && self.networks.as_ref().is_none_or(|networks| is_within(networks, from))
    }
}

/// Whether an address lies in one of these networks. One of IPv4 is the same in the form in which
/// a socket of both families tells it, `::ffff:203.0.113.7`, for networks of either family.
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

/// A network like 203.0.113.0/24 or 2001:db8::/32; an address alone stands for itself. Takes what
/// `networksOf` of `restriction.ts` takes.
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

/// Without the zone that one of IPv6 may end with, which says nothing about where it is from.
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
