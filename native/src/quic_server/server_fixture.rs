//! A listener on loopback for tests, the handler that it calls, and clients made of quinn.

use std::collections::{HashMap, HashSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token, Waker};
use quinn::{ClientConfig, Connection, ConnectionError, Endpoint};
use rustls::crypto::ring::default_provider;

use crate::quic::tls::{AnyKey, Transport, client_config, public_key, self_signed};
use crate::quic_server::first_byte::Flags;
use crate::quic_server::handler::{
    ClientLimits, Decision, QuicClient, QuicNumbers, QuicRefusal, StreamCredit, StreamHandler,
    Submission, Tips,
};
use crate::quic_server::options::Options;
use crate::quic_server::server::QuicServer;
use crate::sync::clock::NS_PER_S;

pub(super) const SEED: [u8; 32] = [1; 32];
pub(super) const ACCOUNT: u64 = 5;
pub(super) const GUARD: Duration = Duration::from_secs(20);

/// The key of an API key.
pub(super) fn token_key(token: &[u8]) -> [u8; 32] {
    let mut key = [0xff; 32];
    key.iter_mut().zip(token).for_each(|(to, from)| *to = *from);
    key
}

/// The code of each refusal.
pub(super) fn code_of(refusal: QuicRefusal) -> u32 {
    0x10 + refusal as u32
}

/// What the handler allows, and what it was called with.
#[derive(Default)]
pub(super) struct State {
    pub(super) accounts: HashMap<[u8; 32], u64>,
    pub(super) credit: u32,
    /// Whether a transaction costs one of it.
    pub(super) costs_credit: bool,
    /// A key that is known, and not valid from here.
    pub(super) elsewhere: Option<[u8; 32]>,
    pub(super) is_reading_keys: bool,
    /// Whether the next question for credit is a bug.
    pub(super) panics_over_receipts: bool,
    panics_at_credit: bool,
    pub(super) burst: u32,
    /// How long a submission takes.
    pub(super) takes: Duration,
    /// Whether every transaction was accepted before.
    pub(super) is_repeated: bool,
    pub(super) submitted: Vec<(QuicClient, Vec<u8>)>,
    pub(super) flags: Vec<Flags>,
    pub(super) refused: Vec<(bool, QuicRefusal, usize)>,
    /// Of all threads together.
    pub(super) numbers: QuicNumbers,
    /// By thread.
    pub(super) numbers_of: Vec<QuicNumbers>,
    /// The thread of each submission.
    pub(super) threads: Vec<usize>,
    /// To the threads: receipts, an announcement; drain, retire, close all, exit.
    pub(super) receipts: Vec<u8>,
    /// The threads that took the receipts.
    received: HashSet<usize>,
    pub(super) announce_drain: bool,
    pub(super) drain: bool,
    pub(super) retire: bool,
    pub(super) close_all: bool,
    pub(super) exit: bool,
}

/// Of the thread of this number.
#[derive(Clone, Default)]
pub(super) struct Handler(pub(super) Arc<Mutex<State>>, usize);

impl StreamHandler for Handler {
    fn key_of_certificate(&self, public_key: &[u8; 32]) -> [u8; 32] {
        *public_key
    }

    fn key_of_token(&self, token: &[u8]) -> Option<[u8; 32]> {
        token.is_ascii().then(|| token_key(token))
    }

    fn has_read_keys(&self) -> bool {
        !self.0.lock().unwrap().is_reading_keys
    }

    fn knows(&self, client: &QuicClient) -> bool {
        let state = self.0.lock().unwrap();
        state.accounts.contains_key(&client.key) || state.elsewhere == Some(client.key)
    }

    fn account_of(&self, client: &QuicClient) -> Option<u64> {
        self.0.lock().unwrap().accounts.get(&client.key).copied()
    }

    fn limits(&self, _client: &QuicClient) -> Option<ClientLimits> {
        Some(ClientLimits { rate_per_second: 50.0, burst: self.0.lock().unwrap().burst })
    }

    fn tips(&self) -> Tips {
        Tips { lamports_min: 1_000_000, accounts: Box::new([[7; 32]]) }
    }

    fn credit(&self, _client: &QuicClient) -> StreamCredit {
        let mut state = self.0.lock().unwrap();
        let streams = state.credit;
        if std::mem::take(&mut state.panics_at_credit) {
            drop(state);
            panic!("a bug in the handler");
        }
        StreamCredit { streams, more_in_ns: Some(1), burst: state.burst }
    }

    fn submit(&mut self, client: &QuicClient, submission: &Submission<'_>) -> Decision {
        let &Submission { bytes, flags } = submission;
        let mut state = self.0.lock().unwrap();
        if bytes == PANIC {
            drop(state);
            panic!("a bug in the handler");
        }
        std::thread::sleep(state.takes);
        state.credit -= u32::from(state.costs_credit);
        state.submitted.push((*client, bytes.to_vec()));
        state.flags.push(flags);
        state.threads.push(self.1);
        let signature = bytes.get(1..65).map(|bytes| bytes.try_into().unwrap());
        let code = if bytes.starts_with(INVALID) { INVALID_CODE } else { 0 };
        Decision { code, signature, is_repeated: state.is_repeated }
    }

    fn refused(&mut self, client: Option<&QuicClient>, refusal: QuicRefusal, bytes: usize) -> u32 {
        self.0.lock().unwrap().refused.push((client.is_some(), refusal, bytes));
        code_of(refusal)
    }

    fn code(&self, refusal: QuicRefusal) -> u32 {
        code_of(refusal)
    }

    fn publish(&mut self, numbers: &QuicNumbers) {
        let mut state = self.0.lock().unwrap();
        if state.numbers_of.len() <= self.1 {
            state.numbers_of.resize(self.1 + 1, QuicNumbers::default());
        }
        state.numbers_of[self.1] = *numbers;
        state.numbers = state.numbers_of.iter().copied().reduce(sum_of).unwrap();
    }
}

fn sum_of(one: QuicNumbers, other: QuicNumbers) -> QuicNumbers {
    QuicNumbers {
        connections: one.connections + other.connections,
        handshakes: one.handshakes + other.handshakes,
        followers: one.followers + other.followers,
        connected: one.connected + other.connected,
        handshakes_refused: one.handshakes_refused + other.handshakes_refused,
        handshakes_delayed: one.handshakes_delayed + other.handshakes_delayed,
        retries: one.retries + other.retries,
        streams_aborted: one.streams_aborted + other.streams_aborted,
        datagrams_dropped: one.datagrams_dropped + other.datagrams_dropped,
        datagrams_refused: one.datagrams_refused + other.datagrams_refused,
        datagrams_forwarded: one.datagrams_forwarded + other.datagrams_forwarded,
        forwards_dropped: one.forwards_dropped + other.forwards_dropped,
        receipts_dropped: one.receipts_dropped + other.receipts_dropped,
        streams_withheld: one.streams_withheld + other.streams_withheld,
        landings_unawaited: one.landings_unawaited + other.landings_unawaited,
        panics: one.panics + other.panics,
    }
}

/// Of a listener on any free port that bounds no test.
pub(super) fn options() -> Options {
    Options {
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        predecessor_places: Box::default(),
        process_number: 0,
        seed: [2; 32],
        connections_max: 100,
        connections_per_address: 100,
        connections_per_account: 100,
        stream_timeout_ns: 60 * NS_PER_S,
        drain_to: "other.example.com:8009".into(),
    }
}

/// A listener on threads of its own.
pub(super) struct Listener {
    pub(super) address: SocketAddr,
    pub(super) handler: Handler,
    pub(super) threads: Vec<JoinHandle<()>>,
}

impl Listener {
    pub(super) fn new(change: impl FnOnce(&mut Options)) -> Self {
        Self::on(1, change)
    }

    /// With so many threads.
    pub(super) fn on(count: usize, change: impl FnOnce(&mut Options)) -> Self {
        let mut options = options();
        change(&mut options);
        Self::of(QuicServer::listen(&options, count).unwrap())
    }

    pub(super) fn of(servers: Vec<QuicServer>) -> Self {
        let address = servers[0].local_addr().unwrap();
        let state = State { credit: 64, burst: 64, ..State::default() };
        let handler = Handler(Arc::new(Mutex::new(state)), 0);
        handler.0.lock().unwrap().accounts.insert(public_key(&SEED).unwrap(), ACCOUNT);
        let count = servers.len();
        let threads = servers.into_iter().enumerate();
        let threads = threads.map(|(thread, server)| {
            let served = Handler(handler.0.clone(), thread);
            spawn(move || serve(server, served, count))
        });
        Self { address, threads: threads.collect(), handler }
    }

    pub(super) fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.handler.0.lock().unwrap())
    }

    pub(super) async fn until(&self, is_so: impl Fn(&State) -> bool) {
        let end = Instant::now() + GUARD;
        while !self.with(|state| is_so(state)) {
            let state = self.with(|state| format!("{:?} {:?}", state.refused, state.numbers));
            assert!(Instant::now() < end, "{state}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    pub(super) async fn connect(
        &self,
        config: ClientConfig,
    ) -> Result<(Endpoint, Connection), ConnectionError> {
        let mut endpoint = Endpoint::client(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        endpoint.set_default_client_config(config);
        let connection = endpoint.connect(self.address, "localhost").unwrap().await?;
        Ok((endpoint, connection))
    }

    pub(super) async fn client(&self) -> (Endpoint, Connection) {
        self.connect(solana_client(&SEED)).await.unwrap()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.with(|state| state.exit = true);
        for thread in std::mem::take(&mut self.threads) {
            let result = thread.join();
            assert!(result.is_ok() || std::thread::panicking());
        }
    }
}

/// Serves on this thread, one of so many.
fn serve(mut server: QuicServer, mut served: Handler, count: usize) {
    let mut poll = Poll::new().unwrap();
    let waker = Arc::new(Waker::new(poll.registry(), Token(1)).unwrap());
    server.register(poll.registry(), Token(0), waker).unwrap();
    let mut events = Events::with_capacity(8);
    loop {
        let sleep = server.due_in().unwrap_or(TICK).min(TICK);
        poll.poll(&mut events, Some(sleep)).unwrap();
        if !events.is_empty() {
            server.on_readable();
        }
        let (receipts, announce_drain, drain, retire, close_all, exit) = {
            let mut state = served.0.lock().unwrap();
            let is_new = !state.receipts.is_empty() && state.received.insert(served.1);
            let receipts = if is_new { state.receipts.clone() } else { Vec::new() };
            if state.received.len() == count {
                state.receipts.clear();
                state.received.clear();
            }
            if is_new {
                // The next use of the handler is the one that passes them on.
                state.panics_at_credit = std::mem::take(&mut state.panics_over_receipts);
            }
            let State { announce_drain, drain, retire, close_all, exit, .. } = *state;
            (receipts, announce_drain, drain, retire, close_all, exit)
        };
        server.take_receipts(&receipts, &served);
        if announce_drain {
            server.announce_drain();
        }
        if drain {
            server.drain();
        }
        if retire {
            server.retire();
        }
        if close_all {
            server.close_all();
        }
        server.turn(&mut served);
        if exit {
            return;
        }
    }
}

pub(super) const PANIC: &[u8] = b"panic";
/// How a transaction begins that the handler refuses, and its code.
pub(super) const INVALID: &[u8] = b"\x01invalid";
pub(super) const INVALID_CODE: u32 = 0x109;
pub(super) const TICK: Duration = Duration::from_millis(5);

pub(super) fn solana_client(seed: &[u8; 32]) -> ClientConfig {
    client_config(seed, &Transport::default()).unwrap()
}

/// A client of this protocol that trusts any server; it presents a certificate of the seed's key.
pub(super) fn client_of(alpn: &[u8], seed: Option<&[u8; 32]>) -> ClientConfig {
    let crypto = quinn::crypto::rustls::QuicClientConfig::try_from(tls_of(alpn, seed)).unwrap();
    ClientConfig::new(Arc::new(crypto))
}

pub(super) fn tls_of(alpn: &[u8], seed: Option<&[u8; 32]>) -> rustls::ClientConfig {
    let provider = Arc::new(default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyKey(provider)));
    let mut tls = match seed {
        None => builder.with_no_client_auth(),
        Some(seed) => {
            let (certificate, key) = self_signed(seed).unwrap();
            builder.with_client_auth_cert(vec![certificate], key).unwrap()
        }
    };
    tls.alpn_protocols = vec![alpn.to_vec()];
    tls
}

pub(super) async fn send(connection: &Connection, bytes: &[u8]) {
    let mut stream = connection.open_uni().await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream.finish().unwrap();
}

/// The application code that the server closed the connection with.
pub(super) async fn close_code(connection: &Connection) -> u64 {
    match tokio::time::timeout(GUARD, connection.closed()).await.unwrap() {
        ConnectionError::ApplicationClosed(close) => close.error_code.into_inner(),
        other => panic!("closed otherwise: {other}"),
    }
}

pub(super) fn code(refusal: QuicRefusal) -> u64 {
    u64::from(code_of(refusal))
}
