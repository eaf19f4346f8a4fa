//! A cache of the addresses of a node's host name.
//!
//! ureq resolves the name before each request, on a thread that it starts for it, even if a
//! connection to the host is open: several requests per second cost as many threads and name server
//! queries. This cache keeps a result for a while. After a failed request it resolves the name
//! again immediately, because the node may have moved; if that fails, the earlier result is used,
//! since an open connection needs no name: such a lookup has a short timeout, and the next one
//! waits a while.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

use crate::rpc::limits::{DNS_CACHE_TTL, DNS_REFRESH_TIMEOUT, DNS_RETRY_DELAY};

/// Caches the addresses of one host. Clones share the cache.
#[derive(Debug)]
pub struct DnsCache<R = DefaultResolver> {
    known: Arc<Mutex<Known>>,
    resolver: Arc<R>,
}

#[derive(Debug, Default)]
struct Known {
    found: Option<ResolvedSocketAddrs>,
    /// Expiry of the cached result; None: the name must be resolved.
    until: Option<Instant>,
}

impl DnsCache {
    /// An empty cache.
    #[must_use]
    pub fn new() -> Self {
        Self::with(DefaultResolver::default())
    }
}

impl<R> Clone for DnsCache<R> {
    fn clone(&self) -> Self {
        Self { known: Arc::clone(&self.known), resolver: Arc::clone(&self.resolver) }
    }
}

impl Default for DnsCache {
    fn default() -> Self {
        Self::new()
    }
}

impl<R: Resolver> DnsCache<R> {
    fn with(resolver: R) -> Self {
        Self { known: Arc::default(), resolver: Arc::new(resolver) }
    }

    /// Marks the cached result as possibly wrong.
    pub fn invalidate(&self) {
        self.known.lock().until = None;
    }

    fn resolve_at(
        &self,
        now: Instant,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        if let Known { found: Some(found), until: Some(until) } = &*self.known.lock()
            && now < *until
        {
            return Ok(self.copy(found));
        }
        let mut timeout = timeout;
        if self.known.lock().found.is_some() {
            timeout.after = timeout.after.min(DNS_REFRESH_TIMEOUT.into());
        }
        // The lock is not held meanwhile: concurrent callers resolve the name independently.
        let looked_up = self.resolver.resolve(uri, config, timeout);
        let mut known = self.known.lock();
        match (looked_up, &known.found) {
            (Ok(found), _) => {
                known.found = Some(self.copy(&found));
                known.until = now.checked_add(DNS_CACHE_TTL);
                Ok(found)
            }
            (Err(_), Some(old)) => {
                let old = self.copy(old);
                known.until = now.checked_add(DNS_RETRY_DELAY);
                Ok(old)
            }
            (Err(error), None) => Err(error),
        }
    }

    fn copy(&self, addresses: &ResolvedSocketAddrs) -> ResolvedSocketAddrs {
        let mut copy = self.resolver.empty();
        for address in addresses {
            copy.push(*address);
        }
        copy
    }
}

impl<R: Resolver> Resolver for DnsCache<R> {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        self.resolve_at(Instant::now(), uri, config, timeout)
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
    use std::time::Duration;

    use ureq::unversioned::transport::NextTimeout;

    use super::*;

    /// Returns the number of the query as the port, or fails from `until` on.
    #[derive(Debug)]
    struct Server {
        lookups: AtomicU16,
        until: u16,
        /// The timeout of the last query.
        timeout_ms: AtomicU64,
    }

    impl Resolver for Server {
        fn resolve(
            &self,
            _: &Uri,
            _: &Config,
            timeout: NextTimeout,
        ) -> Result<ResolvedSocketAddrs, Error> {
            self.timeout_ms.store(timeout.after.as_millis() as u64, Ordering::Relaxed);
            let lookups = self.lookups.fetch_add(1, Ordering::Relaxed) + 1;
            if lookups >= self.until {
                return Err(Error::HostNotFound);
            }
            let mut found = self.empty();
            found.push(SocketAddr::from(([127, 0, 0, 1], lookups)));
            Ok(found)
        }
    }

    fn dns_cache(until: u16) -> DnsCache<Server> {
        DnsCache::with(Server { lookups: AtomicU16::new(0), until, timeout_ms: AtomicU64::new(0) })
    }

    fn port(dns_cache: &DnsCache<Server>, now: Instant) -> Result<u16, Error> {
        let uri = "http://node.example/".parse::<Uri>().unwrap();
        let config = Config::default();
        let found = dns_cache.resolve_at(now, &uri, &config, NextTimeout::default())?;
        Ok(found.first().unwrap().port())
    }

    #[test]
    fn a_name_is_resolved_once_until_its_entry_expires() {
        let dns_cache = dns_cache(u16::MAX);
        let start = Instant::now();
        let last = start + DNS_CACHE_TTL - Duration::from_millis(1);
        assert_eq!(port(&dns_cache, start).unwrap(), 1);
        assert_eq!(port(&dns_cache.clone(), last).unwrap(), 1);
        assert_eq!(port(&dns_cache, start + DNS_CACHE_TTL).unwrap(), 2);
        assert_eq!(port(&dns_cache, start + DNS_CACHE_TTL).unwrap(), 2);
    }

    #[test]
    fn invalidation_resolves_the_name_immediately() {
        let dns_cache = dns_cache(u16::MAX);
        let now = Instant::now();
        assert_eq!(port(&dns_cache, now).unwrap(), 1);
        dns_cache.clone().invalidate();
        assert_eq!(port(&dns_cache, now).unwrap(), 2);
        assert_eq!(port(&dns_cache, now).unwrap(), 2);
    }

    #[test]
    fn a_stale_result_is_used_while_resolution_fails() {
        let dns_cache = dns_cache(2);
        let lookups = || dns_cache.resolver.lookups.load(Ordering::Relaxed);
        let now = Instant::now();
        assert_eq!(port(&dns_cache, now).unwrap(), 1);
        dns_cache.invalidate();
        assert_eq!((port(&dns_cache, now).unwrap(), lookups()), (1, 2));
        assert_eq!((port(&dns_cache, now).unwrap(), lookups()), (1, 2));
        assert_eq!((port(&dns_cache, now + DNS_RETRY_DELAY).unwrap(), lookups()), (1, 3));
        let timeout_ms = dns_cache.resolver.timeout_ms.load(Ordering::Relaxed);
        assert_eq!(u128::from(timeout_ms), DNS_REFRESH_TIMEOUT.as_millis());
        assert!(matches!(port(&self::dns_cache(1), now), Err(Error::HostNotFound)));
    }
}
