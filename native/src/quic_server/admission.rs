//! Which handshakes and connections are let in: how many there are, of each address and account.
//!
//! An address that is not proved may be another's, whose clients must not be refused for it: those
//! count apart, and above a number of them a client must prove its address by a Retry.
//!
//! The counts are those of all threads. What a handshake or connection counts for is its `Permit`,
//! and no longer counts once that is dropped, so a panic leaves nothing behind.

use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

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
#[derive(Debug)]
pub(super) enum Welcome {
    /// Its handshake begins, and counts.
    Accepted(Permit),
    /// It must prove its address first.
    Unproved,
    /// Too many came in this second: it is ignored, and its client sends it again.
    TooMany,
    Refused,
}

/// Why a connection is not opened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Full {
    Address,
    Account,
}

#[derive(Debug)]
pub(super) struct Admission {
    bounds: Bounds,
    counted: Mutex<Counted>,
}

#[derive(Debug)]
struct Counted {
    /// Connections of each address that was proved.
    sources: Counts<IpAddr>,
    /// Handshakes in progress of each address, by whether it was proved.
    handshakes: Counts<(IpAddr, bool)>,
    /// Open connections.
    accounts: Counts<u64>,
    rate: HandshakeRate,
}

impl Admission {
    pub(super) fn new(bounds: Bounds) -> Arc<Self> {
        let counted = Counted {
            sources: Counts::new(),
            handshakes: Counts::new(),
            accounts: Counts::new(),
            rate: HandshakeRate::new(),
        };
        Arc::new(Self { bounds, counted: Mutex::new(counted) })
    }

    /// Decides about a first datagram from `source`.
    pub(super) fn welcome(
        self: &Arc<Self>,
        source: IpAddr,
        is_proved: bool,
        now_ns: u64,
    ) -> Welcome {
        let Bounds { connections, per_address, .. } = self.bounds;
        let mut counted = self.counted.lock();
        let rate = counted.rate.at(now_ns);
        let (is_used_up, is_too_fast) = (rate.is_used_up(), rate.is_used_up_by(source));
        let handshakes = counted.handshakes.total();
        let [unproved, proved] =
            [false, true].map(|is_proved| counted.handshakes.of((source, is_proved)));
        let of_source = counted.sources.of(source);
        let is_full = handshakes + counted.accounts.total() >= connections
            || handshakes >= HANDSHAKES_MAX
            || of_source >= per_address
            || is_proved && proved >= HANDSHAKES_PER_ADDRESS;
        let must_prove = handshakes >= HANDSHAKES_BEFORE_RETRY
            || unproved >= HANDSHAKES_PER_ADDRESS
            || of_source + unproved >= per_address
            || is_too_fast;
        if is_full {
            Welcome::Refused
        } else if must_prove && !is_proved {
            Welcome::Unproved
        } else if is_too_fast || is_used_up {
            Welcome::TooMany
        } else {
            counted.handshake_started(source, is_proved);
            let counts = CountsFor::Handshake { is_proved };
            Welcome::Accepted(Permit { admission: self.clone(), source, counts })
        }
    }

    /// Open connections of an account.
    pub(super) fn of_account(&self, account: u64) -> usize {
        self.counted.lock().accounts.of(account)
    }
}

impl Counted {
    fn handshake_started(&mut self, source: IpAddr, is_proved: bool) {
        self.handshakes.add((source, is_proved));
        self.rate.started();
        if is_proved {
            self.rate.proved(source);
            self.sources.add(source);
        }
    }
}

/// What a handshake or connection counts for, until it is dropped.
#[derive(Debug)]
pub(super) struct Permit {
    admission: Arc<Admission>,
    source: IpAddr,
    counts: CountsFor,
}

#[derive(Clone, Copy, Debug)]
enum CountsFor {
    Handshake { is_proved: bool },
    Connection { account: u64 },
}

impl Permit {
    /// The handshake is complete, which proves the address.
    pub(super) fn completed(&self) {
        if matches!(self.counts, CountsFor::Handshake { is_proved: false }) {
            self.admission.counted.lock().rate.proved(self.source);
        }
    }

    /// The connection of the handshake is opened, if its address and account may have one more.
    pub(super) fn open(&mut self, account: u64) -> Result<(), Full> {
        let CountsFor::Handshake { is_proved } = self.counts else { return Ok(()) };
        let Bounds { per_address, per_account, .. } = self.admission.bounds;
        let mut counted = self.admission.counted.lock();
        if !is_proved && counted.sources.of(self.source) >= per_address {
            return Err(Full::Address);
        }
        if counted.accounts.of(account) >= per_account {
            return Err(Full::Account);
        }
        counted.handshakes.remove((self.source, is_proved));
        if !is_proved {
            counted.sources.add(self.source);
        }
        counted.accounts.add(account);
        self.counts = CountsFor::Connection { account };
        Ok(())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut counted = self.admission.counted.lock();
        match self.counts {
            CountsFor::Handshake { is_proved } => {
                counted.handshakes.remove((self.source, is_proved));
                if is_proved {
                    counted.sources.remove(self.source);
                }
            }
            CountsFor::Connection { account } => {
                counted.sources.remove(self.source);
                counted.accounts.remove(account);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::quic_server::limits::{HANDSHAKES_PER_SECOND, HANDSHAKES_PER_SECOND_PER_ADDRESS};
    use crate::sync::clock::NS_PER_S;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn admission(per_address: usize) -> Arc<Admission> {
        Admission::new(Bounds { connections: 2000, per_address, per_account: 1 })
    }

    fn elsewhere(number: usize) -> IpAddr {
        Ipv4Addr::from_bits(0x0a00_0000 + number as u32).into()
    }

    /// The permit of a welcome client.
    fn accepted(admission: &Arc<Admission>, source: IpAddr, is_proved: bool) -> Permit {
        match admission.welcome(source, is_proved, 0) {
            Welcome::Accepted(permit) => permit,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn above_a_number_of_handshakes_an_address_must_be_proved() {
        let admission = admission(100);
        let mut permits: Vec<_> =
            (0..63).map(|number| accepted(&admission, elsewhere(number), false)).collect();
        permits.push(accepted(&admission, HERE, false));
        assert!(matches!(admission.welcome(HERE, false, 0), Welcome::Unproved));
        drop(accepted(&admission, HERE, true));
        // Of another second, so that their rate is no bound.
        for number in 64..HANDSHAKES_MAX {
            let second = number as u64 / 500;
            match admission.welcome(elsewhere(number), true, second * NS_PER_S) {
                Welcome::Accepted(permit) => permits.push(permit),
                other => panic!("{other:?}"),
            }
        }
        assert!(matches!(admission.welcome(HERE, true, 5 * NS_PER_S), Welcome::Refused));
        permits.pop();
        assert!(matches!(admission.welcome(HERE, true, 5 * NS_PER_S), Welcome::Accepted(_)));
    }

    #[test]
    fn handshakes_and_connections_are_limited_together() {
        let bounds = Bounds { connections: 2, per_address: 9, per_account: 9 };
        let admission = Admission::new(bounds);
        let mut first = accepted(&admission, HERE, true);
        assert_eq!(first.open(1), Ok(()));
        let second = accepted(&admission, HERE, true);
        assert!(matches!(admission.welcome(HERE, true, 0), Welcome::Refused));
        drop(second);
        accepted(&admission, HERE, true);
    }

    #[test]
    fn handshakes_of_one_address_are_limited() {
        let admission = admission(100);
        let unproved: Vec<_> =
            (0..HANDSHAKES_PER_ADDRESS).map(|_| accepted(&admission, HERE, false)).collect();
        assert!(matches!(admission.welcome(HERE, false, 0), Welcome::Unproved));
        let mut proved: Vec<_> =
            (0..HANDSHAKES_PER_ADDRESS - 1).map(|_| accepted(&admission, HERE, true)).collect();
        proved.push(accepted(&admission, HERE, true));
        assert!(matches!(admission.welcome(HERE, true, 0), Welcome::Refused));
        drop(unproved);
        assert!(matches!(admission.welcome(HERE, true, 0), Welcome::Refused));
        proved.pop();
        accepted(&admission, HERE, true);
    }

    #[test]
    fn connections_of_an_address_and_an_account_are_counted_until_they_close() {
        let admission = admission(1);
        let mut first = accepted(&admission, HERE, false);
        assert!(matches!(admission.welcome(HERE, false, 0), Welcome::Unproved));
        // Both began before one was open.
        let mut other = accepted(&admission, HERE, true);
        drop(std::mem::replace(&mut other, accepted(&admission, elsewhere(1), true)));
        assert_eq!(first.open(7), Ok(()));
        assert_eq!((admission.of_account(7), other.open(7)), (1, Err(Full::Account)));
        assert!(matches!(admission.welcome(HERE, true, 0), Welcome::Refused));
        drop(first);
        assert_eq!(admission.of_account(7), 0);
        assert_eq!(other.open(7), Ok(()));
        let mut late = accepted(&admission, HERE, false);
        let mut first = accepted(&admission, HERE, true);
        assert_eq!((first.open(8), late.open(9)), (Ok(()), Err(Full::Address)));
        drop((first, late, other));
        let counted = admission.counted.lock();
        let totals =
            [counted.sources.total(), counted.handshakes.total(), counted.accounts.total()];
        assert_eq!(totals, [0; 3]);
    }

    #[test]
    fn clients_that_come_too_fast_wait_a_second() {
        let admission = admission(2000);
        // Addresses that are not proved may be forged, and use up nothing.
        for _ in 0..HANDSHAKES_PER_SECOND_PER_ADDRESS {
            accepted(&admission, HERE, false);
        }
        for _ in 0..HANDSHAKES_PER_SECOND_PER_ADDRESS {
            accepted(&admission, HERE, false).completed();
        }
        assert!(matches!(admission.welcome(HERE, false, 5), Welcome::Unproved));
        assert!(matches!(admission.welcome(HERE, true, 5), Welcome::TooMany));
        assert!(matches!(admission.welcome(HERE, true, NS_PER_S), Welcome::Accepted(_)));
        for _ in 1..HANDSHAKES_PER_SECOND {
            assert!(matches!(admission.welcome(HERE, false, NS_PER_S), Welcome::Accepted(_)));
        }
        assert!(matches!(admission.welcome(HERE, false, NS_PER_S), Welcome::TooMany));
    }
}
