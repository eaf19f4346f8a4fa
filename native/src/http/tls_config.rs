//! What a listening socket with TLS presents and accepts: TLS 1.3 and 1.2, HTTP/1.1 by ALPN, and
//! sessions that clients resume by ticket.
//!
//! No early data (0-RTT): whoever records it can send it once more, and a submission must not be
//! repeated by others.
//!
//! Decision: docs/decisions/0054-tls-in-the-edge.md

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring::{Ticketer, default_provider};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, ProducesTickets};
use rustls::version::{TLS12, TLS13};

/// The one protocol that the server speaks (RFC 7301).
const ALPN_HTTP: &[u8] = b"http/1.1";

/// Keys of session tickets, which change every 6 hours. Certificates that replace one another share
/// them, so that sessions outlive the change. None if the system has no random numbers.
#[must_use]
pub fn ticket_keys() -> Option<Arc<dyn ProducesTickets>> {
    Ticketer::new().ok()
}

/// The settings for a certificate chain and its private key, both as PEM. None if there is no
/// certificate or no key, if the key is not that of the first certificate, or if ring does not sign
/// with a key of its kind.
#[must_use]
pub fn server_config(
    certificate_pem: &[u8],
    key_pem: &[u8],
    tickets: Arc<dyn ProducesTickets>,
) -> Option<Arc<ServerConfig>> {
    let chain: Vec<_> =
        CertificateDer::pem_slice_iter(certificate_pem).collect::<Result<_, _>>().ok()?;
    let key = PrivateKeyDer::from_pem_slice(key_pem).ok()?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&TLS13, &TLS12])
        .ok()?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .ok()?;
    config.alpn_protocols = vec![ALPN_HTTP.to_vec()];
    config.ticketer = tickets;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Some(Arc::new(config))
}

#[cfg(test)]
#[path = "tls_config_tests.rs"]
mod tests;
