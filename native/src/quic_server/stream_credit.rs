//! How many streams the client of a connection may open, and when that is looked at again.

use quinn_proto::{Dir, VarInt};

use super::{ClientConnection, Phase};
use crate::quic_server::admission::Admission;
use crate::quic_server::handler::{QuicNumbers, StreamCredit, StreamHandler};
use crate::quic_server::limits::{
    BIDIRECTIONAL_OPEN_MAX, BIDIRECTIONAL_OPEN_PER_ACCOUNT, CREDIT_LOOKS, CREDIT_NS_MAX,
    CREDIT_NS_MIN, STREAMS_AHEAD_MAX, STREAMS_SHARED,
};
use crate::sync::clock::NEVER_NS;

impl ClientConnection {
    /// Grants as many streams as the account's limits admit now. Divides a few of them among the
    /// account's connections.
    pub(in crate::quic_server) fn grant_streams<H: StreamHandler>(
        &mut self,
        now_ns: u64,
        admission: &Admission,
        numbers: &mut QuicNumbers,
        handler: &H,
    ) {
        let Phase::Open { key, account } = self.phase else { return };
        let client = self.client_of(key);
        let StreamCredit { streams, more_in_ns, burst } = handler.credit(&client);
        let is_few = streams < STREAMS_SHARED.min(burst.div_ceil(2));
        let sharing = if is_few { admission.of_account(account) } else { 1 };
        // Without this each connection would get all of them.
        let is_later = now_ns < self.credit_at_ns && self.credit_at_ns != NEVER_NS;
        if sharing > 1 && is_later {
            return;
        }
        let ahead = streams_ahead(streams, sharing);
        self.inner.set_max_concurrent_streams(Dir::Uni, VarInt::from_u32(ahead));
        // Without this the streams that end before the next call would be granted again at once.
        if streams < 2 * STREAMS_AHEAD_MAX {
            self.inner.set_max_concurrent_streams(Dir::Uni, VarInt::from_u32(0));
        }
        if self.is_touchdown && !self.grant_bidirectional(ahead, account, admission) {
            numbers.streams_withheld += 1;
        }
        self.credit_at_ns = match more_in_ns {
            Some(more_in_ns) if ahead < STREAMS_AHEAD_MAX => {
                let connections = admission.of_account(account);
                now_ns.saturating_add(next_look_in_ns(more_in_ns, connections))
            }
            _ => NEVER_NS,
        };
    }

    /// A stream is open until its verdict is acknowledged, so those do not count against the
    /// streams ahead; the control stream never does. Returns whether the client may open as many as
    /// its limits admit: not if it leaves too many verdicts unread.
    fn grant_bidirectional(&mut self, ahead: u32, account: u64, admission: &Admission) -> bool {
        let open = self.inner.streams().remote_open_streams(Dir::Bi);
        let unread = self.readable.iter().map(|(id, _)| id);
        let unfinished =
            self.streams.keys().chain(unread.filter(|id| !self.streams.contains_key(id)));
        let unfinished = unfinished.filter(|id| id.dir() == Dir::Bi).count() as u64;
        let open_max = match open > u64::from(STREAMS_AHEAD_MAX) {
            true => open_verdicts_max(admission.of_account(account)),
            false => BIDIRECTIONAL_OPEN_MAX,
        };
        let room = open_max.saturating_sub(open);
        let for_control = u64::from(self.control.is_none());
        let wanted = (u64::from(ahead) + for_control).saturating_sub(unfinished);
        let ahead = wanted.min(room);
        // At most `BIDIRECTIONAL_OPEN_MAX`.
        let count = VarInt::try_from(open + ahead).unwrap_or(VarInt::MAX);
        self.inner.set_max_concurrent_streams(Dir::Bi, count);
        // Streams that end are granted by the next call alone, which knows the limits.
        self.inner.set_max_concurrent_streams(Dir::Bi, VarInt::from_u32(0));
        wanted <= room
    }
}

/// How many of `streams` one of `sharing` connections may open.
fn streams_ahead(streams: u32, sharing: usize) -> u32 {
    let sharing = u32::try_from(sharing).unwrap_or(u32::MAX).max(1);
    streams.div_ceil(sharing).min(STREAMS_AHEAD_MAX)
}

/// How many verdicts a client may leave unread, of an account with so many connections.
fn open_verdicts_max(connections: usize) -> u64 {
    let each = BIDIRECTIONAL_OPEN_PER_ACCOUNT / (connections as u64).max(1);
    each.clamp(u64::from(STREAMS_AHEAD_MAX), BIDIRECTIONAL_OPEN_MAX)
}

/// When to look at the credit of a connection again. The more connections an account has, the
/// later: all of them together cost no more than a few. At most a second later, because an operator
/// may change the limits.
fn next_look_in_ns(more_in_ns: u64, connections: usize) -> u64 {
    let all_ns = CREDIT_NS_MIN.saturating_mul(connections as u64) / CREDIT_LOOKS;
    more_in_ns.clamp(CREDIT_NS_MIN, CREDIT_NS_MAX).max(all_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::clock::NS_PER_MS;

    #[test]
    fn connections_of_one_account_share_the_verdicts_that_they_may_leave_unread() {
        let counts = [0, 1, 32, 33, 1000, 100_000].map(open_verdicts_max);
        assert_eq!(counts, [2048, 2048, 2048, 1985, 65, 64]);
    }

    #[test]
    fn connections_of_one_account_share_a_few_streams() {
        let of_each = |streams| [0, 1, 4, 1000].map(|sharing| streams_ahead(streams, sharing));
        assert_eq!([0, 1, 6, 15].map(of_each), [[0; 4], [1; 4], [6, 6, 2, 1], [15, 15, 4, 1]]);
        assert_eq!([64, 65].map(of_each), [[64, 64, 16, 1], [64, 64, 17, 1]]);
    }

    #[test]
    fn connections_of_one_account_are_looked_at_as_often_as_sixteen() {
        assert_eq!(next_look_in_ns(1, 1), 10 * NS_PER_MS);
        assert_eq!(next_look_in_ns(1, 16), 10 * NS_PER_MS);
        assert_eq!(next_look_in_ns(1, 1000), 625 * NS_PER_MS);
        assert_eq!(next_look_in_ns(NS_PER_MS * 1000, 1000), 1000 * NS_PER_MS);
        assert_eq!(next_look_in_ns(NS_PER_MS * 9000, 1000), 1000 * NS_PER_MS);
    }
}
