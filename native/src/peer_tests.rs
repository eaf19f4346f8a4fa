//! What a bug costs that panics while a connection is worked on, and for which timers the I/O thread
//! is roused.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use crossbeam_queue::SegQueue;
use quinn_udp::UdpSocketState;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Peer, PeerState, Taken, TxCopy};
use crate::clock::{Clock, NEVER_NS, NS_PER_S, monotonic_ns};
use crate::outbox::Socket;
use crate::outcomes::{EndCause, Kind, Outcomes, RECORD_FIELDS, Reason};
use crate::shared::Shared;
use crate::signal::Signal;

fn shared() -> Arc<Shared> {
    Arc::new(Shared {
        clock: Clock::new(),
        outcomes: Outcomes::new(64, Box::new(|| {})),
        signal: Signal::new().unwrap(),
        rearmed: SegQueue::new(),
        handed: SegQueue::new(),
        endpoint_events: SegQueue::new(),
        stopping: AtomicBool::new(false),
        stopped: AtomicBool::new(false),
        panics: AtomicU64::new(0),
        inbox_drops: AtomicU64::new(0),
    })
}

fn peer(id: u32, shared: &Arc<Shared>) -> Arc<Peer> {
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = udp.local_addr().unwrap();
    let state = UdpSocketState::new((&udp).into()).unwrap();
    let socket = Arc::new(Socket { index: 0, udp, state, send_errors: AtomicU64::new(0) });
    Peer::new(id, address, socket, shared.clone(), 16, 16)
}

fn copy(tx: u64) -> TxCopy {
    TxCopy { bytes: Bytes::from_static(b"a transaction"), tx, tag: 0, until_ns: NEVER_NS }
}

/// Kind, transaction, connection and reason of each record.
fn told(shared: &Shared) -> Vec<[u32; 4]> {
    let mut out = [0.0; 16 * RECORD_FIELDS];
    let count = shared.outcomes.drain(&mut out);
    let records = out.chunks_exact(RECORD_FIELDS).take(count);
    records.map(|one| [0, 1, 2, 4].map(|field| one[field] as u32)).collect()
}

#[test]
fn a_bug_ends_its_own_connection_and_its_copies_are_told_of() {
    let shared = shared();
    let (broken, sound) = (peer(1, &shared), peer(2, &shared));
    for peer in [&broken, &sound] {
        assert_eq!(peer.send(copy(7)), Taken::Waiting);
    }
    broken.link.lock().is_broken = true;
    broken.send(copy(8));
    assert_eq!(shared.panics.load(Ordering::Relaxed), 1);
    assert_eq!((broken.state(), broken.queued()), (PeerState::Closed, 0));
    assert_eq!((sound.state(), sound.queued()), (PeerState::Connecting, 1));
    let gone = [Kind::Dropped as u32, Reason::NotConnected as u32];
    let dropped = |tx| [gone[0], tx, 1, gone[1]];
    let closed = [Kind::Closed as u32, 0, 1, EndCause::Internal as u32];
    assert_eq!(told(&shared), [closed, dropped(7), dropped(8)]);
    // It takes nothing more, and the others go on.
    assert_eq!((broken.send(copy(9)), sound.send(copy(9))), (Taken::No, Taken::Waiting));
    assert_eq!(told(&shared), [dropped(9)]);
    assert_eq!((shared.panics.load(Ordering::Relaxed), sound.queued()), (1, 2));
}

/// The second thread does not put the connection on its way again, and is not to be forgotten.
#[test]
fn a_timer_that_moves_closer_again_while_the_io_thread_sleeps_is_waited_for() {
    let shared = shared();
    let peer = peer(1, &shared);
    let at = |seconds| monotonic_ns() + seconds * NS_PER_S;
    shared.signal.sleeping_until(NEVER_NS);
    for timer_ns in [at(1000), monotonic_ns() + 1] {
        peer.set_timer(timer_ns);
        peer.arm();
    }
    let mut fds = shared.signal.fds().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    let long = Timespec { tv_sec: 10, tv_nsec: 0 };
    assert_eq!(poll(&mut fds, Some(&long)).unwrap(), 1, "nobody is roused");
    assert_eq!(shared.rearmed.len(), 1);
}
