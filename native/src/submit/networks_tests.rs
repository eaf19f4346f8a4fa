//! Which texts are networks, and which addresses lie in them.

use super::*;

#[test]
fn networks_are_parsed() {
    for text in ["203.0.113.0/24", "2001:db8::/32", "0.0.0.0/0", "::/0", "10.1.2.3/8"] {
        assert_eq!(network_of(text).map(|network| network.to_string()).as_deref(), Some(text));
    }
    let same = [
        ("203.0.113.7", "203.0.113.7/32"),
        ("::1", "::1/128"),
        ("10.0.0.0/008", "10.0.0.0/8"),
        ("fe80::1%eth0.7/64", "fe80::1/64"),
        ("::ffff:1.2.3.4", "::ffff:1.2.3.4/128"),
    ];
    for (text, network) in same {
        assert_eq!(network_of(text), network_of(network));
        assert!(network_of(text).is_some());
    }
}

#[test]
fn invalid_networks_are_not_parsed() {
    let wrong = [
        "",
        "/",
        "10.0.0.0/33",
        "10.0.0/8",
        "::/129",
        "::/256",
        "10.0.0.0/8/8",
        "10.0.0.0/",
        "host/8",
        "1/-1",
        "1.2.3.4/+8",
        "1.2.3.4/0008",
        "1.2.3.4/ 8",
        "1.2.3.4/8 ",
        " 1.2.3.4",
        "1.2.3.4\n",
        "01.2.3.4",
        "[::1]",
        "00001::",
        "1.2.3.4%1",
        "fe80::1%",
        "fe80::1%a_b",
        "fe80::1%a%b",
        "::1/\u{663}",
    ];
    for text in wrong {
        assert_eq!(network_of(text), None, "{text:?}");
    }
}

#[test]
fn mapped_and_plain_addresses_match_networks() {
    let is_in = |network: &str, from: &str| {
        is_within(&[network_of(network).unwrap()], from.parse().unwrap())
    };
    let inside = [
        ("203.0.113.0/24", "203.0.113.0"),
        ("203.0.113.0/24", "203.0.113.255"),
        ("2001:db8::/32", "2001:db8:ffff::1"),
        ("203.0.113.7", "203.0.113.7"),
        ("203.0.113.7", "::ffff:203.0.113.7"),
        ("10.1.2.3/8", "10.9.9.9"),
        ("0.0.0.0/0", "::ffff:10.1.2.3"),
        ("::ffff:10.0.0.0/104", "10.1.2.3"),
        ("::ffff:0:0/96", "::ffff:10.1.2.3"),
        ("::/0", "10.1.2.3"),
    ];
    let outside = [
        ("203.0.113.0/24", "203.0.112.255"),
        ("203.0.113.0/24", "203.0.114.0"),
        ("203.0.113.7", "203.0.113.8"),
        ("2001:db8::/32", "2001:db7::1"),
        ("10.0.0.0/8", "::10.1.2.3"),
        ("0.0.0.0/0", "2001:db8::1"),
        ("::ffff:10.0.0.0/104", "11.1.2.3"),
        ("::/96", "10.1.2.3"),
        ("102:304::/32", "1.2.3.4"),
    ];
    for (network, from) in inside {
        assert!(is_in(network, from), "{from} in {network}");
    }
    for (network, from) in outside {
        assert!(!is_in(network, from), "{from} not in {network}");
    }
}
