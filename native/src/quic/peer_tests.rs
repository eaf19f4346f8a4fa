//! What a bug costs that panics while a connection is worked on, and for which timers the I/O thread
//! is roused.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use quinn_proto::Endpoint;
use quinn_udp::UdpSocketState;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Backlog, Peer, PeerState, Taken, TxCopy, release};
use crate::limits::HELD_MAX;
use crate::quic::endpoint::Io;
use crate::quic::engine_state::Shared;
use crate::quic::event_ring::{EndCause, Kind, Outcomes, RECORD_FIELDS, Reason};
use crate::quic::gso_batch::Socket;
use crate::quic::io_wakeup::Signal;
use crate::quic::peer_table::Table;
use crate::quic::tls::{Transport, client_config};
use crate::sync::clock::{Clock, NEVER_NS, NS_PER_S, monotonic_ns};
use crate::sync::mutex_queue::Tray;

/// Copies that wait for one leader.
const QUEUE_MAX: usize = 16;

pub(crate) fn shared() -> Arc<Shared> {
    Arc::new(Shared {
        clock: Clock::new(),
        outcomes: Outcomes::new(512, Box::new(|| {})),
        signal: Signal::new().unwrap(),
        endpoint_events: Tray::default(),
        stopping: AtomicBool::new(false),
        stopped: AtomicBool::new(false),
        panics: AtomicU64::new(0),
        inbox_drops: AtomicU64::new(0),
    })
}

pub(crate) fn peer(id: u32, shared: &Arc<Shared>) -> Arc<Peer> {
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = udp.local_addr().unwrap();
    let state = UdpSocketState::new((&udp).into()).unwrap();
    let socket = Arc::new(Socket { index: 0, udp, state, send_errors: AtomicU64::new(0) });
    Peer::new(id, address, socket, shared.clone(), Arc::default(), QUEUE_MAX, 16)
}

fn copy(tx: u64) -> TxCopy {
    TxCopy { bytes: Bytes::from_static(b"a transaction"), tx, tag: 0, until_ns: NEVER_NS }
}

/// Kind, transaction, connection and reason of each record.
pub(crate) fn told(shared: &Shared) -> Vec<[u32; 4]> {
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

/// One sending thread left the connection to the I/O thread, another has put a copy down since.
#[test]
fn what_was_left_to_the_io_thread_is_told_of_when_that_ends() {
    let (shared, table) = (shared(), Arc::new(Table::default()));
    let peer = table.insert(|id| peer(id, &shared)).unwrap();
    let socket = peer.socket.clone();
    let sockets = std::slice::from_ref(&socket);
    let io = Io::new(
        shared.clone(),
        peer.queues.clone(),
        table,
        Arc::default(),
        sockets,
        Duration::ZERO,
    );
    peer.announced.store(1, Ordering::Relaxed);
    peer.queues.handed.push(peer.clone());
    assert_eq!(peer.send(copy(7)), Taken::Waiting);
    peer.queues.rearmed.push(peer.clone());
    io.finish();
    let closed = [Kind::Closed as u32, 0, peer.id, EndCause::Internal as u32];
    let dropped = [Kind::Dropped as u32, 7, peer.id, Reason::NotConnected as u32];
    assert_eq!((told(&shared), peer.queued()), (vec![closed, dropped], 0));
    drop((io, peer));
    assert_eq!(Arc::strong_count(&socket), 1, "somebody keeps the socket");
}

/// That one will see to it, and a front would take it for a leader without credit.
#[test]
fn what_is_released_while_another_thread_is_at_work_for_the_leader_does_not_wait() {
    let shared = shared();
    let peer = peer(1, &shared);
    peer.announced.store(1, Ordering::Relaxed);
    assert_eq!(peer.hold(copy(7)), Taken::Waiting);
    assert_eq!((release(), peer.queued()), (Backlog::Moves, 1));
    peer.run(None, 1);
    peer.hold(copy(8));
    assert_eq!(release(), Backlog::Waits, "there is no connection yet");
    assert_eq!(peer.queued(), 2);
}

/// A front counts by it how often in a row copies wait.
#[test]
fn a_release_tells_of_what_waits_also_where_as_much_was_held_as_may_be() {
    let shared = shared();
    let peers: Vec<_> = (1..=16).map(|id| peer(id, &shared)).collect();
    for peer in &peers {
        for tx in 0..16 {
            assert_eq!(peer.hold(copy(tx)), Taken::Waiting);
        }
    }
    assert_eq!((peers.len() * 16, peers[0].queued()), (HELD_MAX, 0));
    assert_eq!(release(), Backlog::Full, "there are no connections yet");
    assert!(peers.iter().all(|peer| peer.queued() == 16));
}

#[test]
fn a_release_tells_once_there_could_be_no_room_for_further_ones() {
    let shared = shared();
    let peer = peer(1, &shared);
    let release_of = |count: usize| {
        for tx in 0..count {
            peer.hold(copy(tx as u64));
        }
        release()
    };
    for _ in 0..QUEUE_MAX / 2 {
        assert_eq!(release_of(1), Backlog::Waits);
    }
    assert_eq!(release_of(1), Backlog::Full);
    // And where one found none, whatever became of those before.
    assert_eq!((release_of(QUEUE_MAX), peer.queued()), (Backlog::Full, QUEUE_MAX));
    peer.queued.store(QUEUE_MAX, Ordering::Relaxed);
    assert_eq!(release_of(1), Backlog::Full);
    // Nothing is left behind by nothing.
    assert_eq!(release(), Backlog::None);
}

/// Another thread handled the acknowledgement, and its call found the I/O thread awake.
#[test]
fn news_that_came_while_the_io_thread_made_ready_to_sleep_is_not_slept_over() {
    let shared = shared();
    let peer = peer(1, &shared);
    let sockets = std::slice::from_ref(&peer.socket);
    let queues = peer.queues.clone();
    let io =
        Io::new(shared.clone(), queues, Arc::default(), Arc::default(), sockets, Duration::ZERO);
    let until_ns = monotonic_ns() + NS_PER_S;
    assert!(!io.has_work(until_ns));
    peer.report(Kind::Acked, 7, 0, 0, 0);
    assert!(io.has_work(until_ns));
    assert!(!io.has_work(shared.outcomes.due_ns()), "it wakes in time for it");
}

/// A front counts on it for the record of what it sent.
#[test]
fn what_is_noted_while_the_io_thread_sleeps_for_long_wakes_it_in_time() {
    let shared = shared();
    let peer = peer(1, &shared);
    shared.signal.sleeping_until(NEVER_NS);
    peer.report(Kind::Sent, 7, 0, 0, 0);
    let due_ns = shared.outcomes.due_ns();
    peer.announce(1);
    let mut fds = shared.signal.fds().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    let long = Timespec { tv_sec: 10, tv_nsec: 0 };
    assert_eq!(poll(&mut fds, Some(&long)).unwrap(), 1, "nobody is roused");
    assert!(monotonic_ns() >= due_ns, "it is roused too early");
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
    assert_eq!(peer.queues.rearmed.len(), 1);
}

/// A sending thread has the baton when the connection comes, or a ping is asked for.
#[test]
fn what_the_protocol_wants_sent_goes_out_beside_copies_that_wait() {
    let shared = shared();
    let peer = peer(1, &shared);
    let config = client_config(&[5; 32], &Transport::default()).unwrap();
    let mut endpoint = Endpoint::new(Arc::default(), None, true, None);
    let (handle, connection) =
        endpoint.connect(Instant::now(), config, peer.address, "leader").unwrap();
    // The peer's address is its own socket's, which does not wait.
    let heard = || peer.socket.udp.recv(&mut [0; 2048]).is_ok();
    peer.link.lock().start(handle, connection, NEVER_NS);
    for tx in 7..9 {
        assert_eq!(peer.send(copy(tx)), Taken::Waiting);
        assert!(heard() && !heard(), "{tx}");
        peer.ping_asked.store(true, Ordering::Release);
    }
}
