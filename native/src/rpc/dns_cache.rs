//! The addresses that a node's name stands for.
//!
//! ureq looks a name up before each request, on a thread that it starts for that, also where a
//! connection to the host is open already: with several questions a second that is as many threads
//! and as many questions to the name server. Here what was found holds for a while. After trouble
//! it is looked up again at once, because the node may have moved; and where that fails, what was
//! found before is better than nothing, since an open connection needs no name: then a lookup may
//! take a moment only, and the next one waits a while.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

use crate::limits::{DNS_CACHE_TTL, DNS_REFRESH_TIMEOUT, DNS_RETRY_DELAY};

/// Remembers the addresses of one host. Clones share what they know.
#[derive(Debug)]
pub struct DnsCache<R = DefaultResolver> {
    known: Arc<Mutex<Known>>,
    resolver: Arc<R>,
}

#[derive(Debug, Default)]
struct Known {
    found: Option<ResolvedSocketAddrs>,
    /// Until when it need not be looked up; None: it has to be.
    until: Option<Instant>,
}

impl DnsCache {
    /// Nothing is known yet.
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

    /// What is known may be wrong by now.
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
        // Nobody waits for the lock meanwhile: each that comes now looks it up for itself.
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

    /// Answers with the number of the question as the port, or not at all from `until` on.
    #[derive(Debug)]
    struct Server {
        lookups: AtomicU16,
        until: u16,
        /// How long it was last given.
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
    fn a_name_is_looked_up_once_and_again_when_its_time_is_over() {
        let dns_cache = dns_cache(u16::MAX);
        let start = Instant::now();
        let last = start + DNS_CACHE_TTL - Duration::from_millis(1);
        assert_eq!(port(&dns_cache, start).unwrap(), 1);
        assert_eq!(port(&dns_cache.clone(), last).unwrap(), 1);
        assert_eq!(port(&dns_cache, start + DNS_CACHE_TTL).unwrap(), 2);
        assert_eq!(port(&dns_cache, start + DNS_CACHE_TTL).unwrap(), 2);
    }

    #[test]
    fn after_trouble_it_is_looked_up_at_once() {
        let dns_cache = dns_cache(u16::MAX);
        let now = Instant::now();
        assert_eq!(port(&dns_cache, now).unwrap(), 1);
        dns_cache.clone().invalidate();
        assert_eq!(port(&dns_cache, now).unwrap(), 2);
        assert_eq!(port(&dns_cache, now).unwrap(), 2);
    }

    #[test]
    fn what_was_found_serves_while_nothing_is() {
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
