//! Which handshakes and connections are let in: how many there are, of each address and account.
//!
//! An address that is not proved may be another's, whose clients must not be refused for it: those
//! count apart, and above a number of them a client must prove its address by a Retry.

use std::net::IpAddr;

use crate::quic_server::counts::Counts;
use crate::quic_server::handshake_rate::HandshakeRate;
use crate::quic_server::limits::{HANDSHAKES_BEFORE_RETRY, HANDSHAKES_MAX, HANDSHAKES_PER_ADDRESS};

/// Bounds of an operator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Connections, handshakes in progress included.
    pub(super) connections: usize,
    pub(super) per_address: usize,
    pub(super) per_account: usize,
}

/// What becomes of a client's first datagram.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Welcome {
    Accepted,
    /// It must prove its address first.
    Unproved,
    /// Too many came in this second: it is ignored, and its client sends it again.
    TooMany,
    Refused,
}

#[derive(Debug)]
pub(super) struct Admission {
    bounds: Bounds,
    /// Connections of each address that was proved.
    sources: Counts<IpAddr>,
    /// Handshakes in progress of each address, by whether it was proved.
    handshakes: Counts<(IpAddr, bool)>,
    accounts: Counts<u64>,
    rate: HandshakeRate,
}

impl Admission {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            sources: Counts::new(),
            handshakes: Counts::new(),
            accounts: Counts::new(),
            rate: HandshakeRate::new(),
        }
    }

    /// Decides about a first datagram from `source`, with so many handshakes in progress and
    /// connections open.
    pub(super) fn welcome(
        &mut self,
        source: IpAddr,
        is_proved: bool,
        handshakes: usize,
        open: usize,
        now_ns: u64,
    ) -> Welcome {
        let rate = self.rate.at(now_ns);
        let (is_used_up, is_too_fast) = (rate.is_used_up(), rate.is_used_up_by(source));
        let [unproved, proved] =
            [false, true].map(|is_proved| self.handshakes.of((source, is_proved)));
        let of_source = self.sources.of(source);
        let is_full = handshakes + open >= self.bounds.connections
            || handshakes >= HANDSHAKES_MAX
            || of_source >= self.bounds.per_address
            || is_proved && proved >= HANDSHAKES_PER_ADDRESS;
        let must_prove = handshakes >= HANDSHAKES_BEFORE_RETRY
            || unproved >= HANDSHAKES_PER_ADDRESS
            || of_source + unproved >= self.bounds.per_address
            || is_too_fast;
        if is_full {
            Welcome::Refused
        } else if must_prove && !is_proved {
            Welcome::Unproved
        } else if is_too_fast || is_used_up {
            Welcome::TooMany
        } else {
            Welcome::Accepted
        }
    }

    /// A handshake that began without proof of its address is complete, which proves it.
    pub(super) fn proved_by_handshake(&mut self, source: IpAddr) {
        self.rate.proved(source);
    }

    /// Whether the address may have one more connection.
    pub(super) fn has_room_for_address(&self, source: IpAddr) -> bool {
        self.sources.of(source) < self.bounds.per_address
    }

    /// Whether the account may have one more connection.
    pub(super) fn has_room_for_account(&self, account: u64) -> bool {
        self.accounts.of(account) < self.bounds.per_account
    }

    /// Open connections of an account.
    pub(super) fn of_account(&self, account: u64) -> usize {
        self.accounts.of(account)
    }

    pub(super) fn handshake_started(&mut self, source: IpAddr, is_proved: bool) {
        self.handshakes.add((source, is_proved));
        self.rate.started();
        if is_proved {
            self.rate.proved(source);
            self.sources.add(source);
        }
    }

    /// A connection was opened by a handshake that counts as started.
    pub(super) fn opened(&mut self, source: IpAddr, was_proved: bool, account: u64) {
        self.handshakes.remove((source, was_proved));
        if !was_proved {
            self.sources.add(source);
        }
        self.accounts.add(account);
    }

    /// A handshake ended without a connection.
    pub(super) fn handshake_ended(&mut self, source: IpAddr, is_proved: bool) {
        self.handshakes.remove((source, is_proved));
        if is_proved {
            self.sources.remove(source);
        }
    }

    /// An open connection ended.
    pub(super) fn closed(&mut self, source: IpAddr, account: u64) {
        self.sources.remove(source);
        self.accounts.remove(account);
    }

    /// Counts a connection that is open already.
    pub(super) fn recount(&mut self, source: IpAddr, account: u64) {
        self.sources.add(source);
        self.accounts.add(account);
    }

    /// Forgets all counts.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.bounds);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::quic_server::limits::{HANDSHAKES_PER_SECOND, HANDSHAKES_PER_SECOND_PER_ADDRESS};
    use crate::sync::clock::NS_PER_S;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn admission(per_address: usize) -> Admission {
        Admission::new(Bounds { connections: 2000, per_address, per_account: 1 })
    }

    #[test]
    fn above_a_number_of_handshakes_an_address_must_be_proved() {
        let mut admission = admission(100);
        let welcome = |admission: &mut Admission, is_proved, handshakes| {
            admission.welcome(HERE, is_proved, handshakes, 0, 0)
        };
        assert_eq!(welcome(&mut admission, false, 63), Welcome::Accepted);
        assert_eq!(welcome(&mut admission, false, 64), Welcome::Unproved);
        assert_eq!(welcome(&mut admission, true, 64), Welcome::Accepted);
        assert_eq!(welcome(&mut admission, true, HANDSHAKES_MAX), Welcome::Refused);
        assert_eq!(admission.welcome(HERE, true, 1, 1999, 0), Welcome::Refused);
        for _ in 0..HANDSHAKES_PER_ADDRESS {
            admission.handshake_started(HERE, false);
        }
        assert_eq!(welcome(&mut admission, false, 1), Welcome::Unproved);
        assert_eq!(welcome(&mut admission, true, 1), Welcome::Accepted);
        for _ in 0..HANDSHAKES_PER_ADDRESS {
            admission.handshake_started(HERE, true);
        }
        assert_eq!(welcome(&mut admission, true, 1), Welcome::Refused);
        for is_proved in [false, true] {
            admission.handshake_ended(HERE, is_proved);
        }
        assert_eq!(welcome(&mut admission, true, 1), Welcome::Accepted);
    }

    #[test]
    fn connections_of_an_address_and_an_account_are_counted_until_they_close() {
        let mut admission = admission(1);
        admission.handshake_started(HERE, false);
        assert!(admission.has_room_for_address(HERE) && admission.has_room_for_account(7));
        assert_eq!(admission.welcome(HERE, false, 1, 0, 0), Welcome::Unproved);
        admission.opened(HERE, false, 7);
        assert!(!admission.has_room_for_address(HERE) && !admission.has_room_for_account(7));
        assert_eq!(admission.welcome(HERE, true, 0, 1, 0), Welcome::Refused);
        admission.closed(HERE, 7);
        assert_eq!(admission.welcome(HERE, false, 0, 0, 0), Welcome::Accepted);
        admission.recount(HERE, 7);
        assert_eq!(admission.of_account(7), 1);
        admission.clear();
        assert_eq!(admission.of_account(7), 0);
    }

    #[test]
    fn clients_that_come_too_fast_wait_a_second() {
        let mut admission = admission(2000);
        let welcome = |admission: &mut Admission, is_proved, now_ns| {
            admission.welcome(HERE, is_proved, 0, 0, now_ns)
        };
        // Addresses that are not proved may be forged, and use up nothing.
        for _ in 0..HANDSHAKES_PER_SECOND_PER_ADDRESS {
            assert_eq!(welcome(&mut admission, false, 5), Welcome::Accepted);
            admission.handshake_started(HERE, false);
            admission.handshake_ended(HERE, false);
        }
        for _ in 0..HANDSHAKES_PER_SECOND_PER_ADDRESS {
            assert_eq!(welcome(&mut admission, false, 5), Welcome::Accepted);
            admission.proved_by_handshake(HERE);
        }
        assert_eq!(welcome(&mut admission, false, 5), Welcome::Unproved);
        assert_eq!(welcome(&mut admission, true, 5), Welcome::TooMany);
        assert_eq!(welcome(&mut admission, true, NS_PER_S), Welcome::Accepted);
        for _ in 0..HANDSHAKES_PER_SECOND {
            admission.handshake_started(HERE, false);
            admission.handshake_ended(HERE, false);
        }
        assert_eq!(welcome(&mut admission, false, NS_PER_S), Welcome::TooMany);
    }
}
