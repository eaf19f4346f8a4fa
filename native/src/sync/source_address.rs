//! What limits of one address count as one.

use std::net::{IpAddr, Ipv6Addr};

/// What counts as one address: an IPv4 address, also mapped into IPv6, or the /64 of an IPv6
/// address, because a host owns a whole /64 (RFC 4291, 2.5.1) and may connect from any address in
/// it.
#[must_use]
pub fn source_of(from: IpAddr) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv4_mapped_and_same_64_addresses_count_as_one() {
        for (one, other, is_same) in [
            ("192.0.2.1", "::ffff:192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
            ("::ffff:192.0.2.1", "::ffff:192.0.2.2", false),
            ("2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
        ] {
            let is_one = source_of(one.parse().unwrap()) == source_of(other.parse().unwrap());
            assert_eq!(is_one, is_same, "{one} {other}");
        }
    }
}
