//! The networks that a key may be used from: `src/accounts/keys/policy.ts` has the same rules.

use std::net::IpAddr;

use ipnet::IpNet;

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

/// Networks separated by a comma and a blank. None of them where one is invalid: they admit
/// nothing.
#[must_use]
pub(crate) fn networks_of(ranges: &str) -> Box<[IpNet]> {
    ranges.split(", ").map(network_of).collect::<Option<_>>().unwrap_or_default()
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
#[path = "networks_tests.rs"]
mod tests;
