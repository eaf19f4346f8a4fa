//! The cost of a panic while a connection is driven, what a full queue evicts, and when the I/O
//! thread is woken.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use bytes::Bytes;
use quinn_proto::Endpoint;
use quinn_udp::UdpSocketState;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Delivery, Peer, PeerState, SendResult, uncork};
use crate::quic::engine_state::EngineState;
use crate::quic::event::{CloseCause, Kind, RECORD_FIELDS, Reason};
use crate::quic::event_ring::EventRing;
use crate::quic::gso_batch::Socket;
use crate::quic::io_wakeup::IoWaker;
use crate::quic::landed_shares::{LandedShares, Offer};
use crate::quic::limits::CORKED_DELIVERIES_MAX;
use crate::quic::tls::{Transport, client_config};
use crate::sync::clock::{Clock, NEVER_NS, NS_PER_S, monotonic_ns};
use crate::sync::mutex_queue::MutexQueue;

/// Maximum deliveries queued for one leader.
const QUEUE_MAX: usize = 16;

pub(crate) fn engine_state() -> Arc<EngineState> {
    Arc::new(EngineState {
        clock: Clock::new(),
        events: Arc::new(EventRing::new(Box::new(|| {}))),
        io_waker: IoWaker::new().unwrap(),
        endpoint_events: MutexQueue::default(),
        stopping: AtomicBool::new(false),
        stopped: AtomicBool::new(false),
        panics: AtomicU64::new(0),
        inbox_drops: AtomicU64::new(0),
        deliveries_queued: AtomicU64::new(0),
        deliveries_evicted: AtomicU64::new(0),
        landed_shares: LandedShares::default(),
    })
}

pub(crate) fn peer(id: u32, engine_state: &Arc<EngineState>) -> Arc<Peer> {
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = udp.local_addr().unwrap();
    let state = UdpSocketState::new((&udp).into()).unwrap();
    let socket = Arc::new(Socket { index: 0, udp, state, send_errors: AtomicU64::new(0) });
    Peer::new(id, address, socket, engine_state.clone(), Arc::default(), QUEUE_MAX, 16)
}

pub(crate) fn delivery(tx: u64) -> Delivery {
    let (bytes, offer) = (Bytes::from_static(b"a transaction"), Offer::default());
    Delivery { bytes, tx, tag: 0, until_ns: NEVER_NS, offer }
}

/// As if another thread drove the connection.
pub(crate) fn drive_elsewhere(peer: &Peer) {
    peer.announced.store(1, Ordering::Relaxed);
}

/// Kind, transaction, connection and reason of each record.
pub(crate) fn drained(engine_state: &EngineState) -> Vec<[u32; 4]> {
    let mut out = [0.0; 16 * RECORD_FIELDS];
    let count = engine_state.events.drain(&mut out);
    let records = out.chunks_exact(RECORD_FIELDS).take(count);
    records.map(|one| [0, 1, 2, 4].map(|field| one[field] as u32)).collect()
}

#[test]
fn a_panic_ends_only_its_connection_and_reports_its_deliveries() {
    let engine_state = engine_state();
    let (broken, sound) = (peer(1, &engine_state), peer(2, &engine_state));
    for peer in [&broken, &sound] {
        assert_eq!(peer.send(delivery(7)), SendResult::Queued);
    }
    broken.driver.lock().is_broken = true;
    broken.send(delivery(8));
    assert_eq!(engine_state.panics.load(Ordering::Relaxed), 1);
    assert_eq!((broken.state(), broken.queued()), (PeerState::Closed, 0));
    assert_eq!((sound.state(), sound.queued()), (PeerState::Connecting, 1));
    let gone = [Kind::Dropped as u32, Reason::NotConnected as u32];
    let dropped = |tx| [gone[0], tx, 1, gone[1]];
    let closed = [Kind::Closed as u32, 0, 1, CloseCause::Internal as u32];
    assert_eq!(drained(&engine_state), [dropped(7), dropped(8), closed]);
    // It accepts nothing more, and other connections continue.
    assert_eq!(
        (broken.send(delivery(9)), sound.send(delivery(9))),
        (SendResult::Rejected, SendResult::Queued)
    );
    assert_eq!(drained(&engine_state), [dropped(9)]);
    assert_eq!((engine_state.panics.load(Ordering::Relaxed), sound.queued()), (1, 2));
}

#[test]
fn uncorked_deliveries_wait_for_the_thread_that_drives_the_connection() {
    let engine_state = engine_state();
    let peer = peer(1, &engine_state);
    drive_elsewhere(&peer);
    assert_eq!(peer.cork(delivery(7)), SendResult::Queued);
    uncork();
    assert_eq!((peer.queued(), peer.driver.lock().queue.len()), (1, 0));
    peer.run(None, 1);
    peer.cork(delivery(8));
    uncork();
    assert_eq!((peer.queued(), peer.driver.lock().queue.len()), (2, 2));
}

#[test]
fn deliveries_are_kept_up_to_the_cork_limit() {
    let engine_state = engine_state();
    let peers: Vec<_> = (1..=16).map(|id| peer(id, &engine_state)).collect();
    for peer in &peers {
        for tx in 0..16 {
            assert_eq!(peer.cork(delivery(tx)), SendResult::Queued);
        }
    }
    assert_eq!((peers.len() * 16, peers[0].queued()), (CORKED_DELIVERIES_MAX, 0));
    uncork();
    assert!(peers.iter().all(|peer| peer.queued() == 16));
}

fn offering(tx: u64, lamports: f64) -> Delivery {
    Delivery { offer: Offer { account: 1, lamports }, ..delivery(tx) }
}

#[test]
fn a_full_queue_evicts_the_least_rank_and_reports_it_unless_its_sender_is_told() {
    let engine_state = engine_state();
    let peer = peer(1, &engine_state);
    for tx in 0..QUEUE_MAX as u64 {
        assert_eq!(peer.send(offering(tx, 10.0 + tx as f64)), SendResult::Queued);
    }
    assert_eq!(peer.send(offering(99, 10.0)), SendResult::Saturated);
    assert_eq!((drained(&engine_state), peer.queued()), (vec![], QUEUE_MAX));
    assert_eq!(peer.send(offering(100, 11.0)), SendResult::Queued);
    let evicted = |tx, reason| [Kind::Dropped as u32, tx, 1, reason as u32];
    assert_eq!(drained(&engine_state), [evicted(0, Reason::QueueFull)]);
    peer.advance(PeerState::Admitted);
    assert_eq!(peer.cork(offering(101, 11.0)), SendResult::Saturated);
    // `uncork` returns nothing to the sender, so a corked delivery ends in an event.
    assert_eq!(peer.cork(offering(102, 500.0)), SendResult::Queued);
    uncork();
    assert_eq!(drained(&engine_state), [evicted(100, Reason::LeaderSaturated)]);
    assert_eq!(peer.queued(), QUEUE_MAX);
    assert_eq!(engine_state.deliveries_evicted.load(Ordering::Relaxed), 4);
    assert_eq!(engine_state.deliveries_queued.load(Ordering::Relaxed), QUEUE_MAX as u64 + 2);
}

/// Otherwise its sender would be told that it is accepted, and it would be evicted.
#[test]
fn a_full_queue_refuses_what_ranks_no_higher_while_another_thread_drives_the_connection() {
    let engine_state = engine_state();
    let peer = peer(1, &engine_state);
    for tx in 0..QUEUE_MAX as u64 {
        assert_eq!(peer.send(offering(tx, 10.0)), SendResult::Queued);
    }
    drive_elsewhere(&peer);
    assert_eq!(peer.send(offering(90, 10.0)), SendResult::Saturated);
    assert_eq!(peer.send(offering(91, 9.0)), SendResult::Saturated);
    assert_eq!(peer.queued(), QUEUE_MAX);
    assert_eq!(peer.send(offering(92, 11.0)), SendResult::Queued);
    peer.run(None, 1);
    assert_eq!(drained(&engine_state).len(), 1);
    assert_eq!((peer.queued(), peer.driver.lock().queue.len()), (QUEUE_MAX, QUEUE_MAX));
    // A place is free once a delivery has left.
    peer.driver.lock().queue.evict_least(&peer.engine_state.landed_shares);
    peer.unqueue();
    drive_elsewhere(&peer);
    assert_eq!(peer.send(offering(93, 10.0)), SendResult::Queued);
}

/// As many as the queue holds may arrive while another thread drives the connection.
#[test]
fn what_arrives_while_another_thread_drives_the_connection_is_bounded() {
    let engine_state = engine_state();
    let peer = peer(1, &engine_state);
    drive_elsewhere(&peer);
    let results: Vec<_> = (0..=2 * QUEUE_MAX as u64).map(|tx| peer.send(delivery(tx))).collect();
    let accepted = results.iter().filter(|result| **result == SendResult::Queued).count();
    assert_eq!((accepted, results.last()), (2 * QUEUE_MAX, Some(&SendResult::Saturated)));
    peer.run(None, 1);
    assert_eq!((peer.queued(), peer.driver.lock().queue.len()), (QUEUE_MAX, QUEUE_MAX));
}

/// An ingress thread relies on it for the record of its send.
#[test]
fn an_event_recorded_during_a_long_sleep_wakes_the_io_thread_in_time() {
    let engine_state = engine_state();
    let peer = peer(1, &engine_state);
    engine_state.io_waker.sleeping_until(NEVER_NS);
    peer.report(Kind::Sent, 7, 0, 0, 0);
    let due_ns = engine_state.events.due_ns();
    peer.announce(1);
    let mut fds = engine_state.io_waker.fds().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    let long = Timespec { tv_sec: 10, tv_nsec: 0 };
    assert_eq!(poll(&mut fds, Some(&long)).unwrap(), 1, "the I/O thread was not woken");
    assert!(monotonic_ns() >= due_ns, "the I/O thread was woken too early");
}

/// The second thread does not enqueue the connection again, and its timer must not be lost.
#[test]
fn a_timer_that_moves_closer_twice_during_a_sleep_is_honoured() {
    let engine_state = engine_state();
    let peer = peer(1, &engine_state);
    let at = |seconds| monotonic_ns() + seconds * NS_PER_S;
    engine_state.io_waker.sleeping_until(NEVER_NS);
    for timer_ns in [at(1000), monotonic_ns() + 1] {
        peer.set_timer(timer_ns);
        peer.arm();
    }
    let mut fds = engine_state.io_waker.fds().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    let long = Timespec { tv_sec: 10, tv_nsec: 0 };
    assert_eq!(poll(&mut fds, Some(&long)).unwrap(), 1, "the I/O thread was not woken");
    assert_eq!(peer.queues.timer_updates.len(), 1);
}

/// A sending thread has the drive token when the connection starts, or a ping is requested.
#[test]
fn protocol_packets_are_sent_while_deliveries_wait() {
    let engine_state = engine_state();
    let peer = peer(1, &engine_state);
    let config = client_config(&[5; 32], &Transport::default()).unwrap();
    let mut endpoint = Endpoint::new(Arc::default(), None, true, None);
    let (handle, connection) =
        endpoint.connect(Instant::now(), config, peer.address, "leader").unwrap();
    // The peer's address is its own socket's, which is non-blocking.
    let received = || peer.socket.udp.recv(&mut [0; 2048]).is_ok();
    peer.driver.lock().start(handle, connection, NEVER_NS);
    for tx in 7..9 {
        assert_eq!(peer.send(delivery(tx)), SendResult::Queued);
        assert!(received() && !received(), "{tx}");
        peer.ping_requested.store(true, Ordering::Release);
    }
}
