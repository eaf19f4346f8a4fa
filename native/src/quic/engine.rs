//! The engine: sockets, connections and the I/O thread behind one handle.
//!
//! One engine serves all threads of a process. `send` runs on the calling thread from the bytes to
//! the system call; all other work is enqueued for the I/O thread. After `stop` every call still
//! returns, with an error or an empty result.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use quinn_proto::ClientConfig;
use quinn_udp::UdpSocketState;
use socket2::{Domain, Protocol, Type};

use crate::decode::limits::TRANSACTION_BYTES_MAX;
use crate::quic::delivery::{Delivery, PeerState};
use crate::quic::engine_state::EngineState;
use crate::quic::event::{Kind, Record};
use crate::quic::event_ring::{EventRing, Waker};
use crate::quic::gso_batch::Socket;
use crate::quic::io_thread::{Command, IoThread};
use crate::quic::io_wakeup::IoWaker;
use crate::quic::landed_shares::{LandedShares, Offer};
use crate::quic::limits::{
    BUSY_POLL_MAX, DELIVERIES_MAX, QUEUE_MAX, SOCKET_BUFFER_BYTES, SOCKETS_MAX,
    STOP_CLOSE_TIMEOUT_MAX, TIMEOUT_MIN, UNITS_PER_WAKE,
};
use crate::quic::peer::{IoQueues, Peer};
use crate::quic::peer_table::PeerTable;
use crate::quic::send_result::{SendResult, SendStatus};
use crate::quic::targets::{TargetTable, Targets};
use crate::quic::tls::{Transport, client_config};
use crate::sync::clock::{Clock, NS_PER_MS, duration_ns};
use crate::sync::mutex_queue::MutexQueue;

/// Options of an engine.
#[derive(Clone, Debug)]
pub struct Options {
    /// Local addresses to send from, one socket each; connections use them round-robin.
    pub binds: Vec<SocketAddr>,
    /// The identity's Ed25519 seed.
    pub seed: [u8; 32],
    /// Maximum deliveries queued for one leader.
    pub queue_max: usize,
    /// Maximum deliveries to one leader that await its acknowledgement.
    pub in_flight_max: usize,
    /// Time from opening a connection until the leader must grant the first stream.
    pub admission_timeout: Duration,
    /// How long the I/O thread polls for datagrams before it sleeps.
    pub busy_poll: Duration,
    /// Connection settings.
    pub transport: Transport,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            binds: vec![SocketAddr::from(([0, 0, 0, 0], 0))],
            seed: [0; 32],
            queue_max: 1024,
            in_flight_max: 4096,
            admission_timeout: Duration::from_secs(4),
            busy_poll: Duration::ZERO,
            transport: Transport::default(),
        }
    }
}

impl Options {
    fn are_in_bounds(&self) -> bool {
        let transport = &self.transport;
        (1..=SOCKETS_MAX).contains(&self.binds.len())
            && (1..=QUEUE_MAX).contains(&self.queue_max)
            && (1..=QUEUE_MAX).contains(&self.in_flight_max)
            && self.admission_timeout >= TIMEOUT_MIN
            && transport.idle_timeout >= TIMEOUT_MIN
            && transport.keep_alive >= TIMEOUT_MIN
            && self.busy_poll <= BUSY_POLL_MAX
    }
}

/// Why the engine could not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartError {
    /// An option is out of bounds.
    Options,
    /// A socket could not be bound; the system's error number, 0 for none.
    Socket(i32),
    /// No TLS key can be made from the identity.
    Identity,
    /// The I/O thread could not be started.
    Thread,
}

impl StartError {
    fn socket(error: io::Error) -> Self {
        Self::Socket(error.raw_os_error().unwrap_or(0))
    }
}

/// Why a connection was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// Not a valid leader address.
    Address,
    /// No socket has the address's family.
    Family,
    /// The maximum number of connections is open.
    Full,
    /// The engine is stopping.
    Stopping,
}

/// Sockets, connections and the I/O thread.
pub struct Engine {
    engine_state: Arc<EngineState>,
    queues: Arc<IoQueues>,
    peer_table: Arc<PeerTable>,
    commands: Arc<MutexQueue<Command>>,
    /// Empty after `stop`.
    sockets: RwLock<Vec<Arc<Socket>>>,
    next_socket: AtomicUsize,
    client: RwLock<ClientConfig>,
    options: Options,
    targets: Arc<TargetTable>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Engine {
    /// Binds the sockets and starts the I/O thread. `waker` is called, from any thread, when
    /// outcomes are ready to be drained.
    pub fn start(options: Options, waker: Waker) -> Result<Arc<Self>, StartError> {
        if !options.are_in_bounds() {
            return Err(StartError::Options);
        }
        let client =
            client_config(&options.seed, &options.transport).map_err(|_| StartError::Identity)?;
        let sockets: Vec<Arc<Socket>> = options
            .binds
            .iter()
            .enumerate()
            .map(|(index, address)| bind(index, *address, options.busy_poll).map(Arc::new))
            .collect::<io::Result<_>>()
            .map_err(StartError::socket)?;
        let engine_state = Arc::new(EngineState {
            clock: Clock::new(),
            events: Arc::new(EventRing::new(waker)),
            io_waker: IoWaker::new().map_err(StartError::socket)?,
            endpoint_events: MutexQueue::default(),
            stopping: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            panics: AtomicU64::new(0),
            inbox_drops: AtomicU64::new(0),
            deliveries_queued: AtomicU64::new(0),
            deliveries_evicted: AtomicU64::new(0),
            landed_shares: LandedShares::default(),
        });
        let queues = Arc::new(IoQueues::default());
        let peer_table = Arc::new(PeerTable::default());
        let commands = Arc::new(MutexQueue::default());
        let io = IoThread::new(
            engine_state.clone(),
            queues.clone(),
            peer_table.clone(),
            commands.clone(),
            &sockets,
            options.busy_poll,
        );
        let thread = std::thread::Builder::new()
            .name("td-io".into())
            .spawn(move || io.run())
            .map_err(|_| StartError::Thread)?;
        Ok(Arc::new(Self {
            engine_state,
            queues,
            peer_table,
            commands,
            sockets: RwLock::new(sockets),
            next_socket: AtomicUsize::new(0),
            client: RwLock::new(client),
            options,
            targets: Arc::default(),
            thread: Mutex::new(Some(thread)),
        }))
    }

    /// Connects to a leader; returns the handle of the new connection.
    pub fn peer_open(&self, address: SocketAddr) -> Result<u32, OpenError> {
        if self.engine_state.stopping.load(Ordering::Acquire) {
            return Err(OpenError::Stopping);
        }
        if !is_host(address) {
            return Err(OpenError::Address);
        }
        let socket = self.socket_for(address).ok_or(OpenError::Family)?;
        let make = |id| {
            let (queue_max, in_flight_max) = (self.options.queue_max, self.options.in_flight_max);
            let (engine_state, queues) = (self.engine_state.clone(), self.queues.clone());
            Peer::new(id, address, socket, engine_state, queues, queue_max, in_flight_max)
        };
        let peer = self.peer_table.insert(make).ok_or(OpenError::Full)?;
        let timeout_ns = duration_ns(self.options.admission_timeout);
        let admission_deadline_ns = self.engine_state.clock.now_ns().saturating_add(timeout_ns);
        let (id, config) = (peer.id, self.client.read().clone());
        self.commands.push(Command::Connect { peer: peer.clone(), config, admission_deadline_ns });
        self.engine_state.io_waker.wake();
        if self.engine_state.stopped.load(Ordering::SeqCst) {
            // The I/O thread has ended, perhaps before it processed this connection.
            peer.fail_start();
            self.peer_table.remove(id);
            return Err(OpenError::Stopping);
        }
        Ok(id)
    }

    /// Closes a connection once its deliveries are acknowledged, after `close_timeout` at the
    /// latest. False when there is no such connection.
    pub fn peer_close(&self, id: u32, close_timeout: Duration) -> bool {
        let Some(peer) = self.peer_table.find(id) else {
            return false;
        };
        peer.close(self.engine_state.clock.now_ns().saturating_add(duration_ns(close_timeout)));
        true
    }

    /// The connection of a handle.
    #[must_use]
    pub fn peer(&self, id: u32) -> Option<Arc<Peer>> {
        self.peer_table.find(id)
    }

    /// The state of a connection; `Closed` when there is none.
    #[must_use]
    pub fn peer_state(&self, id: u32) -> PeerState {
        self.peer_table.find(id).map_or(PeerState::Closed, |peer| peer.state())
    }

    /// Sends a transaction to leaders on this thread. `deliveries` holds a handle and a tag for
    /// each; `offer` decides which of those that wait goes first. Every delivery ends in an
    /// outcome, rejected ones too, but not those to leaders that are saturated. An empty or
    /// oversized transaction, and deliveries beyond `DELIVERIES_MAX`, are rejected without an
    /// outcome.
    pub fn send(
        &self,
        deliveries: &[u32],
        bytes: &[u8],
        tx: u64,
        ttl_ms: u32,
        offer: Offer,
    ) -> SendStatus {
        self.fan_out(deliveries, bytes, tx, ttl_ms, offer, Peer::send)
    }

    /// As `send`, but this thread keeps the deliveries until `peer::uncork`.
    pub fn cork(
        &self,
        deliveries: &[u32],
        bytes: &[u8],
        tx: u64,
        ttl_ms: u32,
        offer: Offer,
    ) -> SendStatus {
        self.fan_out(deliveries, bytes, tx, ttl_ms, offer, Peer::cork)
    }

    /// A thread wrote a submission to the events. Their reader is woken now if much is unread, at
    /// `wake_if_urgent` if it is urgent, or else with the events.
    pub fn note_record(&self, is_urgent: bool, now_ns: u64) {
        let EngineState { events, io_waker, .. } = &*self.engine_state;
        events.note(now_ns, is_urgent);
        if events.unread() >= UNITS_PER_WAKE {
            events.wake();
        } else {
            io_waker.wake_by(events.due_ns());
        }
    }

    /// Wakes the reader of the events if something urgent waits.
    pub fn wake_if_urgent(&self) {
        self.engine_state.events.wake_here();
    }

    /// The shares that rank what waits.
    #[must_use]
    pub fn landed_shares(&self) -> &LandedShares {
        &self.engine_state.landed_shares
    }

    fn fan_out(
        &self,
        deliveries: &[u32],
        bytes: &[u8],
        tx: u64,
        ttl_ms: u32,
        offer: Offer,
        to: fn(&Arc<Peer>, Delivery) -> SendResult,
    ) -> SendStatus {
        let mut status = SendStatus::default();
        if bytes.is_empty() || bytes.len() > TRANSACTION_BYTES_MAX {
            return status;
        }
        let shared_bytes = Bytes::copy_from_slice(bytes);
        let lifetime_ns = u64::from(ttl_ms).saturating_mul(NS_PER_MS);
        let until_ns = self.engine_state.clock.now_ns().saturating_add(lifetime_ns);
        for (index, pair) in deliveries.chunks_exact(2).take(DELIVERIES_MAX).enumerate() {
            let &[id, tag] = pair else { continue };
            let delivery = Delivery { bytes: shared_bytes.clone(), tx, tag, until_ns, offer };
            let result = match self.peer_table.find(id) {
                Some(peer) => to(&peer, delivery),
                None => self.reject(id, tx, tag),
            };
            status.record(index, result);
        }
        status
    }

    /// Where its threads write what the main thread reads.
    #[must_use]
    pub fn events(&self) -> &Arc<EventRing> {
        &self.engine_state.events
    }

    /// Sets the identity of connections opened from now on. To rotate without loss, open new
    /// connections, wait until they are admitted, then close the old ones.
    pub fn identity_set(&self, seed: &[u8; 32]) -> bool {
        let Ok(config) = client_config(seed, &self.options.transport) else {
            return false;
        };
        *self.client.write() = config;
        true
    }

    /// Where the threads of this engine send; nowhere before they are set, and after `stop`.
    #[must_use]
    pub fn targets(&self) -> &Arc<TargetTable> {
        &self.targets
    }

    /// The engine's counters in the order of `COUNTERS`.
    #[must_use]
    pub fn counters(&self) -> [u64; COUNTERS.len()] {
        let sockets = self.sockets.read();
        let send_errors = sockets.iter().map(|socket| &socket.send_errors);
        [
            self.peer_table.len() as u64,
            self.engine_state.events.lost(),
            self.engine_state.inbox_drops.load(Ordering::Relaxed),
            send_errors.map(|count| count.load(Ordering::Relaxed)).sum(),
            self.engine_state.panics.load(Ordering::Relaxed),
            self.engine_state.deliveries_queued.load(Ordering::Relaxed),
            self.engine_state.deliveries_evicted.load(Ordering::Relaxed),
        ]
    }

    /// The local addresses of the sockets.
    #[must_use]
    pub fn local_addresses(&self) -> Vec<SocketAddr> {
        let sockets = self.sockets.read();
        sockets.iter().filter_map(|socket| socket.udp.local_addr().ok()).collect()
    }

    /// Closes all connections, each once its deliveries are acknowledged, after `close_timeout` at
    /// the latest, and ends the I/O thread. Blocks meanwhile, for at most `STOP_CLOSE_TIMEOUT_MAX`
    /// plus `CLOSE_NS_MAX`. A second call does nothing.
    pub fn stop(&self, close_timeout: Duration) {
        if self.engine_state.stopping.swap(true, Ordering::AcqRel) {
            return;
        }
        self.targets.set(Targets::default());
        let close_timeout_ns = duration_ns(close_timeout.min(STOP_CLOSE_TIMEOUT_MAX));
        let by_ns = self.engine_state.clock.now_ns().saturating_add(close_timeout_ns);
        for peer in self.peer_table.all() {
            peer.close(by_ns);
        }
        let any_open =
            || self.peer_table.all().iter().any(|peer| peer.state() != PeerState::Closed);
        while any_open() && self.engine_state.clock.now_ns() < by_ns {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.commands.push(Command::Stop);
        self.engine_state.io_waker.wake();
        if let Some(thread) = self.thread.lock().take() {
            // The thread catches its panics, so its result carries no information.
            let _ = thread.join();
        }
        // A stopped engine may stay referenced to drain the remaining events; its ports are free.
        self.sockets.write().clear();
    }

    /// Whether `stop` was called.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.engine_state.stopping.load(Ordering::Acquire)
    }

    fn reject(&self, peer: u32, tx: u64, tag: u32) -> SendResult {
        let reason = self.engine_state.closed_reason() as u8;
        let at_ns = self.engine_state.clock.now_ns();
        let kind = Kind::Dropped;
        let record = Record { kind, tx, peer, tag, reason, at_ns, rtt_us: 0, detail: 0 };
        self.engine_state.events.push(record);
        self.engine_state.events.wake();
        SendResult::Rejected
    }

    /// The next socket, round-robin, of the address's family.
    fn socket_for(&self, address: SocketAddr) -> Option<Arc<Socket>> {
        let turn = self.next_socket.fetch_add(1, Ordering::Relaxed);
        let reaches = |socket: &&Arc<Socket>| {
            socket.udp.local_addr().is_ok_and(|local| local.is_ipv4() == address.is_ipv4())
        };
        let sockets = self.sockets.read();
        let fitting: Vec<&Arc<Socket>> = sockets.iter().filter(reaches).collect();
        let index = turn.checked_rem(fitting.len())?;
        fitting.get(index).map(|socket| (*socket).clone())
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop(Duration::ZERO);
    }
}

fn bind(index: usize, address: SocketAddr, busy_poll: Duration) -> io::Result<Socket> {
    let socket =
        socket2::Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    // The kernel caps the size at its own limit.
    let _ = socket.set_recv_buffer_size(SOCKET_BUFFER_BYTES);
    let _ = socket.set_send_buffer_size(SOCKET_BUFFER_BYTES);
    #[cfg(target_os = "linux")]
    if !busy_poll.is_zero() {
        // Polls the driver too, where it supports it and the process has the permission.
        let _ = socket.set_busy_poll(u32::try_from(busy_poll.as_micros()).unwrap_or(u32::MAX));
    }
    socket.bind(&address.into())?;
    let udp = UdpSocket::from(socket);
    let state = UdpSocketState::new((&udp).into())?;
    Ok(Socket { index, udp, state, send_errors: AtomicU64::new(0) })
}

/// Whether this can be the address of one host; `src/core/address.ts` has the same rule. A
/// link-local IPv6 address needs an interface, which a leader's address does not name. The kernel
/// may refuse other addresses with EINVAL, and after one EINVAL quinn-udp 0.5 stops using
/// segmentation and ECN marks on this socket, for all leaders.
fn is_host(address: SocketAddr) -> bool {
    address.port() != 0
        && match address.ip().to_canonical() {
            IpAddr::V4(ip) => ip.octets()[0] != 0 && !ip.is_multicast() && !ip.is_broadcast(),
            IpAddr::V6(ip) => {
                !ip.is_unspecified() && !ip.is_multicast() && !ip.is_unicast_link_local()
            }
        }
}

/// Names of the counters, in order.
pub const COUNTERS: [&str; 7] = [
    "peers",
    "events_lost",
    "inbox_drops",
    "send_errors",
    "panics",
    "deliveries_queued",
    "deliveries_evicted",
];
