//! A bounded number of permits, of which each address may hold a share. Dropping a permit, on any
//! thread, releases it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::sync::source_address::source_of;

/// The permits. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Permits(Arc<Mutex<PermitCounts>>);

/// One acquired permit.
#[derive(Debug)]
pub(crate) struct Permit {
    counts: Arc<Mutex<PermitCounts>>,
    source: IpAddr,
}

#[derive(Debug)]
struct PermitCounts {
    count_max: usize,
    each_max: usize,
    count: usize,
    /// Permits held by each address that has any.
    each: HashMap<IpAddr, usize>,
}

impl Permits {
    /// `count_max` permits, of which one address may hold `each_max`.
    #[must_use]
    pub(crate) fn new(count_max: usize, each_max: usize) -> Self {
        let counts = PermitCounts { count_max, each_max, count: 0, each: HashMap::new() };
        Self(Arc::new(Mutex::new(counts)))
    }

    /// Whether more than half of all are free, and more than half of this address's share.
    pub(crate) fn has_spare(&self, from: IpAddr) -> bool {
        let counts = self.0.lock();
        let own = counts.each.get(&source_of(from)).copied().unwrap_or(0);
        2 * counts.count < counts.count_max && 2 * own < counts.each_max
    }

    /// Acquires one; None while all are held, or the address's share is.
    #[must_use]
    pub(crate) fn try_acquire(&self, from: IpAddr) -> Option<Permit> {
        let source = source_of(from);
        let mut counts = self.0.lock();
        let own = counts.each.get(&source).copied().unwrap_or(0);
        if counts.count >= counts.count_max || own >= counts.each_max {
            return None;
        }
        counts.count += 1;
        counts.each.insert(source, own + 1);
        Some(Permit { counts: self.0.clone(), source })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut counts = self.counts.lock();
        counts.count -= 1;
        match counts.each.get_mut(&self.source) {
            Some(own) if *own > 1 => *own -= 1,
            _ => drop(counts.each.remove(&self.source)),
        }
    }
}

#[cfg(test)]
#[path = "permits_tests.rs"]
mod tests;
