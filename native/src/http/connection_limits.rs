//! How many connections each address holds, over all fronts. The listener takes a seat for each
//! connection that it accepts, and the seat is free again when the connection is dropped, on
//! whichever thread that is.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::Mutex;

/// The seats of all addresses. It has an entry for each address with a connection, and no others.
#[derive(Debug)]
pub(super) struct Addresses {
    each_max: usize,
    taken: Mutex<HashMap<IpAddr, usize>>,
}

/// One connection of an address.
#[derive(Debug)]
pub(super) struct Seat {
    addresses: Arc<Addresses>,
    source: IpAddr,
}

impl Addresses {
    /// Every address may hold `each_max` connections.
    pub(super) fn new(each_max: usize) -> Arc<Self> {
        Arc::new(Self { each_max, taken: Mutex::default() })
    }

    /// A seat for a connection from there; None where that address has all that it may hold.
    pub(super) fn take(self: &Arc<Self>, from: IpAddr) -> Option<Seat> {
        let source = source_of(from);
        let mut all = self.taken.lock();
        let taken = all.get(&source).copied().unwrap_or(0);
        if taken >= self.each_max {
            return None;
        }
        all.insert(source, taken + 1);
        Some(Seat { addresses: self.clone(), source })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut all = self.addresses.taken.lock();
        match all.get_mut(&self.source) {
            Some(taken) if *taken > 1 => *taken -= 1,
            _ => drop(all.remove(&self.source)),
        }
    }
}

/// What counts as one address: an IPv4 address, also where it is mapped into IPv6, and the /64 of
/// an IPv6 address, because a host has all of a /64 (RFC 4291, 2.5.1) and may connect from each.
#[must_use]
pub(super) fn source_of(from: IpAddr) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_holds_so_many_connections_and_others_are_not_counted_with_it() {
        let addresses = Addresses::new(2);
        let first = addresses.take(address("192.0.2.1"));
        let second = addresses.take(address("192.0.2.1"));
        assert!(first.is_some() && second.is_some());
        assert!(addresses.take(address("192.0.2.1")).is_none());
        assert!(addresses.take(address("192.0.2.2")).is_some());
        drop(first);
        assert!(addresses.take(address("192.0.2.1")).is_some());
        drop(second);
        assert!(addresses.taken.lock().is_empty());
        assert!(Addresses::new(0).take(address("192.0.2.1")).is_none());
    }

    #[test]
    fn one_address_has_many_forms() {
        for (one, other, is_same) in [
            ("192.0.2.1", "::ffff:192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
            ("::ffff:192.0.2.1", "::ffff:192.0.2.2", false),
            ("2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
        ] {
            let is_one = source_of(address(one)) == source_of(address(other));
            assert_eq!(is_one, is_same, "{one} {other}");
        }
    }
}
