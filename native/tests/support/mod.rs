//! A leader based on quinn, and an engine whose outcomes are collected.

#![allow(dead_code, clippy::unwrap_used, clippy::indexing_slicing)]

pub mod client_frames;
pub mod malicious_leader;
pub mod packets;
pub mod path;
pub mod rng;
mod tls;
pub mod transport_params;

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Connection, Endpoint, EndpointConfig, Incoming, ServerConfig, TokioRuntime, VarInt};
use rustls::pki_types::CertificateDer;
use tokio::runtime::Runtime;

pub use tls::server_tls;
use transport_params::{Params, WithParams};

use touchdown_native::quic::engine::{COUNTERS, Engine, Options};
use touchdown_native::quic::event::RECORD_FIELDS;

/// How a leader treats its clients.
#[derive(Clone, Copy)]
pub struct LeaderOptions {
    /// Streams granted once the handshake is complete; none before.
    pub grant: u32,
    /// Validates addresses with a Retry packet first.
    pub retry: bool,
    /// Closes each connection with this code once it is up.
    pub close_code: Option<u32>,
    /// Stops each stream with STOP_SENDING.
    pub stop_streams: bool,
    /// Size of a stream's window.
    pub stream_window: u32,
    /// Size of a connection's window.
    pub window: u32,
    /// Transport parameters to announce instead.
    pub params: Params,
}

impl Default for LeaderOptions {
    fn default() -> Self {
        let (grant, retry, close_code, stop_streams) = (128, false, None, false);
        Self {
            grant,
            retry,
            close_code,
            stop_streams,
            stream_window: 4096,
            window: 1 << 20,
            params: &[],
        }
    }
}

pub struct Leader {
    pub address: SocketAddr,
    pub received: Arc<Mutex<Vec<Vec<u8>>>>,
    pub clients: Arc<Mutex<Vec<[u8; 32]>>>,
    pub connections: Arc<Mutex<Vec<Connection>>>,
    pub grant: Arc<AtomicU32>,
    endpoint: Endpoint,
    runtime: Option<Runtime>,
}

impl Leader {
    pub fn start(leader_options: LeaderOptions) -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap(), leader_options)
    }

    pub fn start_at(address: SocketAddr, leader_options: LeaderOptions) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.unwrap();
        let socket = bound(address);
        let address = socket.local_addr().unwrap();
        let endpoint = {
            let _entered = runtime.enter();
            let config = Some(server_config(leader_options));
            let tokio = Arc::new(TokioRuntime);
            Endpoint::new(EndpointConfig::default(), config, socket, tokio).unwrap()
        };
        let mut leader = Self {
            address,
            received: Arc::default(),
            clients: Arc::default(),
            connections: Arc::default(),
            grant: Arc::new(AtomicU32::new(leader_options.grant)),
            endpoint: endpoint.clone(),
            runtime: None,
        };
        let parts = (
            leader.received.clone(),
            leader.clients.clone(),
            leader.connections.clone(),
            leader.grant.clone(),
        );
        runtime.spawn(async move {
            while let Some(incoming) = endpoint.accept().await {
                let parts = parts.clone();
                tokio::spawn(async move {
                    let _ = serve(incoming, leader_options, parts).await;
                });
            }
        });
        leader.runtime = Some(runtime);
        leader
    }

    /// Disappears silently, like a crash.
    pub fn crash(mut self) -> SocketAddr {
        if let Some(runtime) = self.runtime.take() {
            // Its socket is free once the thread has ended, which a busy machine may delay.
            runtime.shutdown_timeout(PATIENCE);
        }
        self.address
    }

    pub fn received_count(&self) -> usize {
        self.received.lock().len()
    }

    /// Waits until it has read `count` transactions, and checks that there are no more: an
    /// acknowledgement means that the leader's QUIC stack has the data, which the leader reads
    /// later.
    pub fn assert_received(&self, count: usize) {
        let deadline = Instant::now() + PATIENCE;
        while self.received_count() < count && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(self.received_count(), count);
    }
}

/// One of the engine's `COUNTERS`.
pub fn counter(engine: &Engine, name: &str) -> u64 {
    engine.counters()[COUNTERS.iter().position(|other| *other == name).unwrap()]
}

/// Another test may briefly have the address of a crashed leader.
fn bound(address: SocketAddr) -> UdpSocket {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match UdpSocket::bind(address) {
            Ok(socket) => return socket,
            Err(error) => assert!(Instant::now() < deadline, "{address}: {error}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            self.endpoint.close(VarInt::from_u32(1), b"dropped");
            runtime.shutdown_background();
        }
    }
}

type Parts = (
    Arc<Mutex<Vec<Vec<u8>>>>,
    Arc<Mutex<Vec<[u8; 32]>>>,
    Arc<Mutex<Vec<Connection>>>,
    Arc<AtomicU32>,
);

async fn serve(incoming: Incoming, leader_options: LeaderOptions, parts: Parts) -> Option<()> {
    let (received, clients, connections, grant) = parts;
    if leader_options.retry && !incoming.remote_address_validated() {
        incoming.retry().ok()?;
        return Some(());
    }
    let connection = incoming.await.ok()?;
    let chain = connection.peer_identity()?.downcast::<Vec<CertificateDer<'static>>>().ok()?;
    clients.lock().push(*chain.first()?.get(100..)?.first_chunk()?);
    connection.set_max_concurrent_uni_streams(VarInt::from_u32(grant.load(Ordering::Relaxed)));
    connections.lock().push(connection.clone());
    if let Some(code) = leader_options.close_code {
        connection.close(VarInt::from_u32(code), b"because");
        return Some(());
    }
    loop {
        let mut stream = connection.accept_uni().await.ok()?;
        if leader_options.stop_streams {
            let _ = stream.stop(VarInt::from_u32(7));
            continue;
        }
        if let Ok(bytes) = stream.read_to_end(4096).await {
            received.lock().push(bytes);
        }
    }
}

fn server_config(leader_options: LeaderOptions) -> ServerConfig {
    let mut config = ServerConfig::with_crypto(Arc::new(WithParams {
        inner: Arc::new(QuicServerConfig::try_from(server_tls()).unwrap()),
        params: leader_options.params,
    }));
    let transport = Arc::get_mut(&mut config.transport).unwrap();
    transport
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .stream_receive_window(VarInt::from_u32(leader_options.stream_window))
        .receive_window(VarInt::from_u32(leader_options.window));
    config
}

/// One outcome or event, as JavaScript reads it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    pub kind: u8,
    pub tx: u64,
    pub peer: u32,
    pub tag: u32,
    pub reason: u8,
    pub detail: u64,
}

pub struct Sender {
    pub engine: Arc<Engine>,
    pub events: Vec<Event>,
    pub wakes: Arc<AtomicUsize>,
    woken: Arc<AtomicBool>,
}

impl Sender {
    pub fn start(options: Options) -> Self {
        let (wakes, woken) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (counted, flag) = (wakes.clone(), woken.clone());
        let waker = Box::new(move || {
            counted.fetch_add(1, Ordering::SeqCst);
            flag.store(true, Ordering::SeqCst);
        });
        let engine = Engine::start(options, waker).unwrap();
        Self { engine, events: Vec::new(), wakes, woken }
    }

    /// Drains, but only when woken: a lost wake-up shows as a test that times out.
    pub fn drain(&mut self) {
        if !self.woken.swap(false, Ordering::SeqCst) {
            return;
        }
        self.drain_now();
    }

    pub fn drain_now(&mut self) {
        let mut buffer = [0.0; 64 * RECORD_FIELDS];
        loop {
            let count = self.engine.events().drain(&mut buffer);
            for fields in buffer.chunks_exact(RECORD_FIELDS).take(count) {
                self.events.push(Event {
                    kind: fields[0] as u8,
                    tx: fields[1] as u64,
                    peer: fields[2] as u32,
                    tag: fields[3] as u32,
                    reason: fields[4] as u8,
                    detail: fields[7] as u64,
                });
            }
            if count < 64 {
                return;
            }
        }
    }

    /// Drains until `is_so`; only a failing test reaches the deadline.
    pub fn until(&mut self, what: &str, mut is_so: impl FnMut(&[Event]) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.drain();
            if is_so(&self.events) {
                return;
            }
            let last = &self.events[self.events.len().saturating_sub(8)..];
            assert!(Instant::now() < deadline, "not {what}: {last:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub fn open(&mut self, address: SocketAddr) -> u32 {
        self.engine.peer_open(address).unwrap()
    }

    pub fn open_admitted(&mut self, address: SocketAddr) -> u32 {
        let peer = self.open(address);
        self.until("admitted", |events| {
            events.iter().any(|one| one.kind == ADMITTED && one.peer == peer)
        });
        peer
    }

    pub fn count(&self, kind: u8) -> usize {
        self.events.iter().filter(|one| one.kind == kind).count()
    }

    pub fn closed(&mut self, peer: u32) -> Event {
        let is_end = |one: &&Event| one.kind == CLOSED && one.peer == peer;
        self.until("closed", |events| events.iter().any(|one| is_end(&one)));
        *self.events.iter().find(is_end).unwrap()
    }

    /// Every delivery ends exactly once, after at most one `sent`, which an ack or failure
    /// requires.
    pub fn assert_conserved(&self, txs: impl IntoIterator<Item = u64>) {
        for tx in txs {
            let of =
                |kind| self.events.iter().filter(|one| one.tx == tx && one.kind == kind).count();
            let (sent, acked, failed, dropped) = (of(SENT), of(ACKED), of(FAILED), of(DROPPED));
            let counts = (tx, sent, acked, failed, dropped);
            assert_eq!(acked + failed + dropped, 1, "tx, sent, acked, failed, dropped: {counts:?}");
            assert_eq!(sent, acked + failed, "tx, sent, acked, failed, dropped: {counts:?}");
        }
    }
}

/// Options with timeouts long enough that a stalled machine closes no connection.
pub fn options() -> Options {
    let mut patient = Options { seed: [5; 32], admission_timeout: PATIENCE, ..Options::default() };
    patient.binds = vec!["127.0.0.1:0".parse().unwrap()];
    patient.transport.idle_timeout = PATIENCE;
    patient
}

pub fn ended(events: &[Event]) -> usize {
    events.iter().filter(|one| [ACKED, FAILED, DROPPED].contains(&one.kind)).count()
}

/// Timeout for events that are certain to happen.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Lifetime in milliseconds of a delivery that is certain to end.
pub const LONG_MS: u32 = 60_000;

pub const SENT: u8 = 5;
pub const ACKED: u8 = 6;
pub const FAILED: u8 = 7;
pub const DROPPED: u8 = 8;
pub const CONNECTED: u8 = 9;
pub const ADMITTED: u8 = 10;
pub const CLOSED: u8 = 11;
