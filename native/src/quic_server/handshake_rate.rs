//! Handshakes a second, in all and of each address: a full one costs some tenths of a millisecond.
//!
//! An address counts once it is proved, by a Retry or by a complete handshake: otherwise whoever
//! forges it would use up what its clients have.

use std::net::IpAddr;

use crate::quic_server::counts::Counts;
use crate::quic_server::limits::{
    HANDSHAKES_PER_SECOND, HANDSHAKES_PER_SECOND_PER_ADDRESS,
    HANDSHAKES_PER_SECOND_PER_ADDRESS_LATE,
};
use crate::sync::clock::NS_PER_S;

#[derive(Debug)]
pub(super) struct HandshakeRate {
    /// The second that is counted.
    second: u64,
    all: usize,
    /// At most as many as `all`, or a few more: handshakes that began in the second before.
    sources: Counts<IpAddr>,
}

impl HandshakeRate {
    pub(super) fn new() -> Self {
        Self { second: 0, all: 0, sources: Counts::new() }
    }

    /// Begins to count anew if another second has begun. Threads read the time at the start of a
    /// turn, so one of them may still be in the second before.
    pub(super) fn at(&mut self, now_ns: u64) -> &Self {
        let second = now_ns / NS_PER_S;
        if self.second < second {
            *self = Self { second, ..Self::new() };
        }
        self
    }

    pub(super) fn is_used_up(&self) -> bool {
        self.all >= HANDSHAKES_PER_SECOND
    }

    pub(super) fn is_used_up_by(&self, source: IpAddr) -> bool {
        let is_late = self.all >= HANDSHAKES_PER_SECOND / 2;
        let each_max = if is_late {
            HANDSHAKES_PER_SECOND_PER_ADDRESS_LATE
        } else {
            HANDSHAKES_PER_SECOND_PER_ADDRESS
        };
        self.sources.of(source) >= each_max
    }

    /// A handshake begins.
    pub(super) fn started(&mut self) {
        self.all += 1;
    }

    /// The address of a handshake is proved.
    pub(super) fn proved(&mut self, source: IpAddr) {
        self.sources.add(source);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const THERE: IpAddr = IpAddr::V4(Ipv4Addr::BROADCAST);

    #[test]
    fn each_second_has_its_handshakes() {
        let mut rate = HandshakeRate::new();
        rate.at(5 * NS_PER_S);
        for _ in 0..HANDSHAKES_PER_SECOND {
            assert!(!rate.is_used_up());
            rate.started();
        }
        assert!(rate.is_used_up() && rate.at(6 * NS_PER_S - 1).is_used_up());
        assert!(rate.at(5 * NS_PER_S - 1).is_used_up());
        assert!(!rate.at(6 * NS_PER_S).is_used_up());
    }

    #[test]
    fn few_addresses_leave_half_of_them_to_others() {
        let mut rate = HandshakeRate::new();
        rate.at(5 * NS_PER_S);
        let address = |number: u32| IpAddr::V4(Ipv4Addr::from_bits(number));
        for number in (0..4).cycle().take(10_000) {
            if !rate.is_used_up_by(address(number)) {
                rate.started();
                rate.proved(address(number));
            }
        }
        assert!(rate.all == HANDSHAKES_PER_SECOND / 2 && !rate.is_used_up());
        for _ in 0..HANDSHAKES_PER_SECOND_PER_ADDRESS_LATE {
            assert!(!rate.is_used_up_by(THERE));
            rate.proved(THERE);
        }
        assert!(rate.is_used_up_by(THERE));
    }

    #[test]
    fn each_address_has_its_own() {
        let mut rate = HandshakeRate::new();
        rate.at(5 * NS_PER_S);
        for _ in 0..HANDSHAKES_PER_SECOND_PER_ADDRESS {
            assert!(!rate.is_used_up_by(HERE));
            rate.proved(HERE);
        }
        assert!(rate.is_used_up_by(HERE) && !rate.is_used_up_by(THERE));
        assert!(!rate.at(6 * NS_PER_S).is_used_up_by(HERE));
    }
}
