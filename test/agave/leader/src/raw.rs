//! A leader that does as it is told, for what Agave's server does only under load: it admits no
//! stream until `admit`, closes with any code, refuses or ignores. TLS and transport settings are
//! those of Agave's server (`streamer/src/quic.rs`, 4.2, 2026-11).

use {
    crate::events::Events,
    quinn::{
        Connection, Endpoint, EndpointConfig, Incoming, ServerConfig, TokioRuntime, VarInt,
        crypto::rustls::QuicServerConfig,
    },
    solana_keypair::Keypair,
    solana_pubkey::Pubkey,
    solana_tls_utils::{get_remote_pubkey, new_dummy_x509_certificate, tls_server_config_builder},
    std::{
        net::UdpSocket,
        sync::{
            Arc, Mutex,
            atomic::{AtomicBool, AtomicU32, Ordering},
        },
        time::Duration,
    },
    tokio::runtime::Runtime,
};

const STREAM_BYTES_MAX: u32 = 4096;

#[derive(Default)]
struct State {
    /// Streams granted to each connection; 0: connected, never admitted.
    streams: AtomicU32,
    refuse: AtomicBool,
    ignore: AtomicBool,
    connections: Mutex<Vec<Connection>>,
}

pub struct Leader {
    runtime: Runtime,
    endpoint: Endpoint,
    state: Arc<State>,
}

pub fn start(index: usize, socket: UdpSocket, events: &Events) -> Leader {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime starts");
    let state = Arc::new(State::default());
    let endpoint = {
        let _guard = runtime.enter();
        Endpoint::new(
            EndpointConfig::default(),
            Some(server_config()),
            socket,
            Arc::new(TokioRuntime),
        )
        .expect("an endpoint starts on a bound socket")
    };
    runtime.spawn(accept(
        endpoint.clone(),
        Arc::clone(&state),
        index,
        events.clone(),
    ));
    Leader {
        runtime,
        endpoint,
        state,
    }
}

fn server_config() -> ServerConfig {
    let (cert, key) = new_dummy_x509_certificate(&Keypair::new());
    let mut tls = tls_server_config_builder()
        .with_single_cert(vec![cert], key)
        .expect("the certificate fits its key");
    tls.alpn_protocols = vec![b"solana-tpu".to_vec()];
    let quic = QuicServerConfig::try_from(tls).expect("an initial cipher suite is present");
    let mut config = ServerConfig::with_crypto(Arc::new(quic));
    config.migration(false);
    let transport = Arc::get_mut(&mut config.transport).expect("nobody else holds it yet");
    transport.stream_receive_window(STREAM_BYTES_MAX.into());
    transport.max_concurrent_uni_streams(0u32.into());
    transport.max_concurrent_bidi_streams(0u32.into());
    transport.receive_window(VarInt::from_u32(8 * 1024 * 1024));
    transport.max_idle_timeout(Some(VarInt::from_u32(30_000).into()));
    transport.datagram_receive_buffer_size(None);
    config
}

async fn accept(endpoint: Endpoint, state: Arc<State>, index: usize, events: Events) {
    while let Some(incoming) = endpoint.accept().await {
        if state.ignore.load(Ordering::Relaxed) {
            incoming.ignore();
        } else if state.refuse.load(Ordering::Relaxed) {
            incoming.refuse();
        } else {
            tokio::spawn(serve(incoming, Arc::clone(&state), index, events.clone()));
        }
    }
}

async fn serve(incoming: Incoming, state: Arc<State>, index: usize, events: Events) {
    let Ok(connection) = incoming.await else {
        return;
    };
    let peer = get_remote_pubkey(&connection);
    connection.set_max_concurrent_uni_streams(state.streams.load(Ordering::Relaxed).into());
    if let Ok(mut connections) = state.connections.lock() {
        connections.push(connection.clone());
    }
    events.connected(index);
    while let Ok(stream) = connection.accept_uni().await {
        tokio::spawn(read(stream, index, peer, events.clone()));
    }
}

async fn read(
    mut stream: quinn::RecvStream,
    index: usize,
    peer: Option<Pubkey>,
    events: Events,
) {
    if let Ok(bytes) = stream.read_to_end(STREAM_BYTES_MAX as usize).await {
        events.transaction(index, &bytes, peer, false);
    }
}

impl Leader {
    /// Carries out one command; false when it is not one, or its words make no sense.
    pub fn obey(&self, command: &str, words: &[&str]) -> bool {
        match (command, words) {
            ("admit", [streams]) => streams.parse().is_ok_and(|streams| self.admit(streams)),
            ("close", [code, reason]) => code.parse().is_ok_and(|code| self.close(code, reason)),
            ("refuse", [flag]) => set(&self.state.refuse, flag),
            ("ignore", [flag]) => set(&self.state.ignore, flag),
            _ => false,
        }
    }

    fn admit(&self, streams: u32) -> bool {
        self.state.streams.store(streams, Ordering::Relaxed);
        let Ok(connections) = self.state.connections.lock() else {
            return false;
        };
        for connection in connections.iter() {
            connection.set_max_concurrent_uni_streams(streams.into());
        }
        true
    }

    fn close(&self, code: u32, reason: &str) -> bool {
        let Ok(mut connections) = self.state.connections.lock() else {
            return false;
        };
        for connection in connections.drain(..) {
            connection.close(code.into(), reason.as_bytes());
        }
        true
    }

    pub fn stop(self) {
        self.endpoint.close(0u32.into(), b"");
        let endpoint = self.endpoint;
        let farewell = async move {
            let _ = tokio::time::timeout(Duration::from_secs(1), endpoint.wait_idle()).await;
        };
        self.runtime.block_on(farewell);
        self.runtime.shutdown_timeout(Duration::from_secs(1));
    }
}

fn set(flag: &AtomicBool, word: &str) -> bool {
    let value = word == "on";
    flag.store(value, Ordering::Relaxed);
    value || word == "off"
}
