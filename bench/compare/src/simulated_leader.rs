//! A leader made of quinn, which executes nothing: for loads where Agave's server is not needed.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Endpoint, IdleTimeout, ServerConfig, TransportConfig, VarInt};
use rustls::crypto::ring::default_provider;
use touchdown_native::quic::tls::{self_signed, ALPN_TPU};
use touchdown_native::sync::clock::monotonic_ns;

use crate::path::Take;

const TRANSACTION_BYTES_MAX: usize = 4096;
const STREAMS_MAX: u32 = 2048;
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);
const SEED: [u8; 32] = [5; 32];

/// Starts it on a thread of its own. `take` receives each transaction and the time of its last byte.
#[allow(dead_code, reason = "only the program touchdown-load has it as its leader")]
pub fn serve(take: Take) -> Result<SocketAddr, Box<dyn Error>> {
    let take = Arc::new(take);
    accept(transport_of(STREAMS_MAX), move |incoming| {
        drop(tokio::spawn(receive(incoming, take.clone())))
    })
}

/// The address of a server that grants each connection a single stream and reads nothing, so that its
/// clients have the work of transactions that they cannot send. It runs until the program ends.
pub fn unread() -> Result<SocketAddr, Box<dyn Error>> {
    static ADDRESS: Mutex<Option<SocketAddr>> = Mutex::new(None);
    let mut address = ADDRESS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(address) = *address {
        return Ok(address);
    }
    let mut transport = transport_of(1);
    // Its clients are silent for longer than it waits.
    transport.keep_alive_interval(Some(IDLE_TIMEOUT / 3));
    let serving = accept(transport, |incoming| {
        tokio::spawn(async move {
            if let Ok(connection) = incoming.await {
                connection.closed().await;
            }
        });
    })?;
    Ok(*address.insert(serving))
}

fn accept(
    transport: TransportConfig,
    on_incoming: impl Fn(quinn::Incoming) + Send + 'static,
) -> Result<SocketAddr, Box<dyn Error>> {
    let config = server_config(transport)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    let endpoint = runtime.block_on(async { Endpoint::server(config, any_port) })?;
    let address = endpoint.local_addr()?;
    std::thread::spawn(move || {
        runtime.block_on(async {
            while let Some(incoming) = endpoint.accept().await {
                on_incoming(incoming);
            }
        });
    });
    Ok(address)
}

async fn receive(incoming: quinn::Incoming, take: Arc<Take>) {
    let Ok(connection) = incoming.await else { return };
    while let Ok(mut stream) = connection.accept_uni().await {
        let take = take.clone();
        tokio::spawn(async move {
            if let Ok(bytes) = stream.read_to_end(TRANSACTION_BYTES_MAX).await {
                take(&bytes, monotonic_ns());
            }
        });
    }
}

fn transport_of(streams_max: u32) -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_uni_streams(VarInt::from_u32(streams_max))
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .max_idle_timeout(IdleTimeout::try_from(IDLE_TIMEOUT).ok());
    transport
}

fn server_config(transport: TransportConfig) -> Result<ServerConfig, Box<dyn Error>> {
    let (certificate, key) = self_signed(&SEED)?;
    let mut tls = rustls::ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?;
    tls.alpn_protocols = vec![ALPN_TPU.to_vec()];
    let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    config.transport_config(Arc::new(transport));
    Ok(config)
}
