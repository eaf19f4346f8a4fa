//! What the threads of a listener share: the port, what all their clients count for, and the
//! datagrams that one of them received for another.

use std::sync::{Arc, OnceLock};

use bytes::BytesMut;
use mio::Waker;
use quinn_udp::RecvMeta;

use crate::quic_server::admission::{Admission, Bounds};
use crate::quic_server::counts::SharedCounts;
use crate::quic_server::limits::{
    FOLLOWERS_PER_ACCOUNT, FORWARDS_MAX, LANDINGS_MAX, LANDINGS_PER_ACCOUNT,
};
use crate::quic_server::routing::Routing;
use crate::quic_server::socket::PortSockets;
use crate::sync::mutex_queue::MutexQueue;

/// A received datagram.
pub(super) struct Datagram {
    pub(super) bytes: BytesMut,
    pub(super) meta: RecvMeta,
    /// When a thread received it.
    pub(super) received_ns: u64,
}

pub(super) struct Threads {
    pub(super) routing: Routing,
    pub(super) admission: Arc<Admission>,
    /// Connections that receive receipts, by account.
    pub(super) followers: Arc<SharedCounts<u64>>,
    /// Verdicts that wait for their transaction's end, by account.
    pub(super) landings: Arc<SharedCounts<u64>>,
    /// By thread.
    inboxes: Box<[Inbox]>,
    sockets: PortSockets,
}

/// Datagrams that other threads received for one.
#[derive(Default)]
struct Inbox {
    datagrams: MutexQueue<Datagram>,
    /// Ends the thread's poll; none before it polls.
    waker: OnceLock<Arc<Waker>>,
}

impl Threads {
    pub(super) fn new(
        count: usize,
        routing: Routing,
        sockets: PortSockets,
        bounds: Bounds,
    ) -> Self {
        Self {
            routing,
            admission: Admission::new(bounds),
            followers: Arc::new(SharedCounts::new(FOLLOWERS_PER_ACCOUNT, usize::MAX)),
            landings: Arc::new(SharedCounts::new(LANDINGS_PER_ACCOUNT, LANDINGS_MAX)),
            inboxes: (0..count).map(|_| Inbox::default()).collect(),
            sockets,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.inboxes.len()
    }

    /// The thread polls, and `waker` ends its poll.
    pub(super) fn polls(&self, thread: usize, waker: Arc<Waker>) {
        if let Some(inbox) = self.inboxes.get(thread) {
            // A thread polls once.
            let _ = inbox.waker.set(waker);
        }
    }

    /// Passes a datagram on to its thread. Returns false, and drops it as if it were lost on the
    /// way, if that does not keep up.
    pub(super) fn forward(&self, thread: usize, datagram: Datagram) -> bool {
        let Some(inbox) = self.inboxes.get(thread) else { return false };
        if inbox.datagrams.len() >= FORWARDS_MAX {
            return false;
        }
        inbox.datagrams.push(datagram);
        if let Some(waker) = inbox.waker.get() {
            // If it fails, the thread's next event ends the poll.
            let _ = waker.wake();
        }
        true
    }

    /// How many datagrams wait for a thread.
    pub(super) fn forwarded(&self, thread: usize) -> usize {
        self.inboxes.get(thread).map_or(0, |inbox| inbox.datagrams.len())
    }

    /// The oldest of them.
    pub(super) fn take_forwarded(&self, thread: usize) -> Option<Datagram> {
        self.inboxes.get(thread)?.datagrams.pop()
    }

    /// No other process has sockets on the port, a predecessor or a successor: datagrams are
    /// distributed to those of this one.
    pub(super) fn are_alone(&self) {
        // Where it fails, threads pass datagrams on.
        let _ = self.sockets.attach(&mut self.routing.program_alone());
    }

    #[cfg(test)]
    pub(super) fn sockets(&self) -> &PortSockets {
        &self.sockets
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn threads(count: usize) -> Threads {
        let routing = Routing::new(count, 0, &[]);
        let any_port = (Ipv4Addr::LOCALHOST, 0).into();
        let program = &mut routing.program();
        let (port, _) = PortSockets::bind(any_port, count, false, program).unwrap();
        let bounds = Bounds { connections: 1, per_address: 1, per_account: 1 };
        Threads::new(count, routing, port, bounds)
    }

    fn datagram(byte: u8) -> Datagram {
        let bytes = BytesMut::from(&[byte][..]);
        Datagram { bytes, meta: RecvMeta::default(), received_ns: 0 }
    }

    #[test]
    fn forwarded_datagrams_are_taken_in_order_by_their_thread() {
        let threads = threads(2);
        assert!(threads.forward(1, datagram(1)) && threads.forward(1, datagram(2)));
        assert_eq!((threads.forwarded(0), threads.forwarded(1)), (0, 2));
        assert!(threads.take_forwarded(0).is_none());
        let taken = [1, 1, 1].map(|thread| threads.take_forwarded(thread).map(|it| it.bytes[0]));
        assert_eq!(taken, [Some(1), Some(2), None]);
        assert!(!threads.forward(2, datagram(1)));
    }

    #[test]
    fn datagrams_of_a_thread_that_does_not_keep_up_are_dropped() {
        let threads = threads(2);
        for _ in 0..FORWARDS_MAX {
            assert!(threads.forward(1, datagram(1)));
        }
        assert!(!threads.forward(1, datagram(1)) && threads.forward(0, datagram(1)));
        assert!(threads.take_forwarded(1).is_some() && threads.forward(1, datagram(1)));
    }
}
