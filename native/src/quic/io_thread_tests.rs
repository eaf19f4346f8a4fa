//! What the I/O thread drops, what it reports when it ends, and how long it sleeps.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::IoThread;
use crate::quic::engine_state::EngineState;
use crate::quic::event::{CloseCause, Kind, Reason};
use crate::quic::peer::Peer;
use crate::quic::peer::tests::{delivery, drained, drive_elsewhere, engine_state, peer};
use crate::quic::peer_table::PeerTable;
use crate::quic::send_result::SendResult;
use crate::sync::clock::{NS_PER_S, monotonic_ns};

fn io_thread(engine_state: &Arc<EngineState>, peer: &Peer, table: Arc<PeerTable>) -> IoThread {
    let (queues, sockets) = (peer.queues.clone(), std::slice::from_ref(&peer.socket));
    IoThread::new(engine_state.clone(), queues, table, Arc::default(), sockets, Duration::ZERO)
}

/// One sending thread handed the connection to the I/O thread, another has enqueued a delivery
/// since.
#[test]
fn deliveries_handed_to_the_io_thread_are_reported_when_it_ends() {
    let (engine_state, peer_table) = (engine_state(), Arc::new(PeerTable::default()));
    let peer = peer_table.insert(|id| peer(id, &engine_state)).unwrap();
    let socket = peer.socket.clone();
    let io = io_thread(&engine_state, &peer, peer_table);
    drive_elsewhere(&peer);
    peer.queues.io_handoff.push(peer.clone());
    assert_eq!(peer.send(delivery(7)), SendResult::Queued);
    peer.queues.timer_updates.push(peer.clone());
    io.finish();
    let closed = [Kind::Closed as u32, 0, peer.id, CloseCause::Internal as u32];
    let dropped = [Kind::Dropped as u32, 7, peer.id, Reason::NotConnected as u32];
    assert_eq!((drained(&engine_state), peer.queued()), (vec![closed, dropped], 0));
    drop((io, peer));
    assert_eq!(Arc::strong_count(&socket), 1, "the socket is still referenced");
}

/// Another thread handled the acknowledgement, and its call found the I/O thread awake.
#[test]
fn events_recorded_while_the_io_thread_prepares_to_sleep_shorten_its_sleep() {
    let engine_state = engine_state();
    let peer = peer(1, &engine_state);
    let io = io_thread(&engine_state, &peer, Arc::default());
    let until_ns = monotonic_ns() + NS_PER_S;
    assert!(!io.has_work(until_ns));
    peer.report(Kind::Acked, 7, 0, 0, 0);
    assert!(io.has_work(until_ns));
    assert!(!io.has_work(engine_state.events.due_ns()), "it wakes in time for it");
}

#[test]
fn a_datagram_from_port_0_is_dropped_and_counted() {
    // Without the right to raw sockets no process can forge the header.
    let Ok(raw) = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::UDP)) else { return };
    let engine_state = engine_state();
    let peer = peer(1, &engine_state);
    let mut io = io_thread(&engine_state, &peer, Arc::default());
    // Of an unknown connection: the endpoint would answer it with a stateless reset.
    let packet = [0x40; 100];
    // RFC 768: ports of source and destination, length, no checksum.
    let to = peer.socket.udp.local_addr().unwrap();
    let header = [0, to.port(), 8 + packet.len() as u16, 0].map(u16::to_be_bytes).concat();
    let segments_max = peer.socket.state.max_gso_segments();
    raw.send_to(&[header, packet.to_vec()].concat(), &SockAddr::from(to)).unwrap();
    let long = Timespec { tv_sec: 10, tv_nsec: 0 };
    let mut fds = [PollFd::new(&peer.socket.udp, PollFlags::IN)];
    assert_eq!(poll(&mut fds, Some(&long)).unwrap(), 1, "it did not arrive");
    io.run_turn(true);
    assert_eq!(engine_state.inbox_drops.load(Ordering::Relaxed), 1);
    assert_eq!(peer.socket.state.max_gso_segments(), segments_max, "it was answered");
}
