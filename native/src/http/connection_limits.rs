//! Limits the connections of each address, over all ingress threads. The listener acquires a permit
//! for each accepted connection; dropping the connection, on any thread, releases it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::sync::source_address::source_of;

/// Connection counts by address; only addresses with open connections have an entry.
#[derive(Debug)]
pub(super) struct AddressLimits {
    each_max: usize,
    taken: Mutex<HashMap<IpAddr, usize>>,
}

/// Counts one connection against its address; released on drop.
#[derive(Debug)]
pub(super) struct AddressPermit {
    addresses: Arc<AddressLimits>,
    source: IpAddr,
}

impl AddressLimits {
    /// Every address may hold `each_max` connections.
    pub(super) fn new(each_max: usize) -> Arc<Self> {
        Arc::new(Self { each_max, taken: Mutex::default() })
    }

    /// A permit for a connection from there; None at the address's limit.
    pub(super) fn take(self: &Arc<Self>, from: IpAddr) -> Option<AddressPermit> {
        let source = source_of(from);
        let mut all = self.taken.lock();
        let taken = all.get(&source).copied().unwrap_or(0);
        if taken >= self.each_max {
            return None;
        }
        all.insert(source, taken + 1);
        Some(AddressPermit { addresses: self.clone(), source })
    }
}

impl Drop for AddressPermit {
    fn drop(&mut self) {
        let mut all = self.addresses.taken.lock();
        match all.get_mut(&self.source) {
            Some(taken) if *taken > 1 => *taken -= 1,
            _ => drop(all.remove(&self.source)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn connections_are_limited_per_address() {
        let addresses = AddressLimits::new(2);
        let first = addresses.take(address("192.0.2.1"));
        let second = addresses.take(address("192.0.2.1"));
        assert!(first.is_some() && second.is_some());
        assert!(addresses.take(address("192.0.2.1")).is_none());
        assert!(addresses.take(address("192.0.2.2")).is_some());
        drop(first);
        assert!(addresses.take(address("192.0.2.1")).is_some());
        drop(second);
        assert!(addresses.taken.lock().is_empty());
        assert!(AddressLimits::new(0).take(address("192.0.2.1")).is_none());
    }
}
