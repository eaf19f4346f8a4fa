//! Handshakes a second, in all and of each address: a full one costs some tenths of a millisecond.
//!
//! An address counts once it is proved, by a Retry or by a complete handshake: otherwise whoever
//! forges it would use up what its clients have.

use std::net::IpAddr;

use crate::quic_server::counts::Counts;
use crate::quic_server::limits::{HANDSHAKES_PER_SECOND, HANDSHAKES_PER_SECOND_PER_ADDRESS};
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
        self.sources.of(source) >= HANDSHAKES_PER_SECOND_PER_ADDRESS
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
