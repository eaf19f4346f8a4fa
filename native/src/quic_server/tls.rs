//! TLS and transport settings of the listener.
//!
//! A client proves that it holds the key of its certificate by TLS's own signature; nothing else in
//! the certificate counts, as in Agave's `streamer` and `tls-utils` (4.2, 2026-11). A client
//! without a certificate is let in by TLS, so that the listener can close its connection with a
//! code.
//!
//! `touchdown/1` clients verify the server: the listener presents the operator's certificate, where
//! it has one. To others it presents a self-signed one.
//!
//! No session is resumed, so no client can send early data: an attacker could replay it.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::{IdleTimeout, ServerConfig, TransportConfig, VarInt};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::ring as provider;
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, NoServerSessionStorage, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

use crate::quic::tls::{ALPN_TPU, no_tls12, self_signed};
use crate::quic_server::limits::{
    ARRIVAL_BYTES_MAX, ARRIVALS_BYTES_MAX, IDLE_TIMEOUT, KEEP_ALIVE, SEND_WINDOW_BYTES,
    STREAM_BYTES_MAX, STREAMS_AHEAD_MAX,
};

/// The protocol with answers (RFC 7301).
pub(super) const ALPN_TOUCHDOWN: &[u8] = b"touchdown/1";

/// The operator's certificate, which may change while clients connect.
#[derive(Clone, Default)]
pub(super) struct PresentedCertificate(Arc<ArcSwapOption<rustls::ServerConfig>>);

impl PresentedCertificate {
    /// Presents the certificate of these settings to clients that connect from now on.
    pub(super) fn present(&self, config: Arc<rustls::ServerConfig>) {
        self.0.store(Some(config));
    }
}

impl Debug for PresentedCertificate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("PresentedCertificate").finish_non_exhaustive()
    }
}

/// Chooses the certificate by the client's protocol.
#[derive(Debug)]
struct ByProtocol {
    own: Arc<CertifiedKey>,
    presented: PresentedCertificate,
}

impl ResolvesServerCert for ByProtocol {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let mut protocols = hello.alpn().into_iter().flatten();
        let is_touchdown = protocols.any(|protocol| protocol == ALPN_TOUCHDOWN);
        match self.presented.0.load_full().filter(|_| is_touchdown) {
            Some(config) => config.cert_resolver.resolve(hello),
            None => Some(self.own.clone()),
        }
    }
}

/// The settings of a listener whose own certificate has this seed.
pub(super) fn server_config(
    seed: &[u8; 32],
    presented: &PresentedCertificate,
) -> Result<ServerConfig, Error> {
    let provider = Arc::new(provider::default_provider());
    let (certificate, key) = self_signed(seed)?;
    let key = provider.key_provider.load_private_key(key)?;
    let own = Arc::new(CertifiedKey::new(vec![certificate], key));
    let resolver = Arc::new(ByProtocol { own, presented: presented.clone() });
    let mut tls = rustls::ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(Arc::new(AnyClient(provider)))
        .with_cert_resolver(resolver);
    // A client that offers both gets answers.
    tls.alpn_protocols = vec![ALPN_TOUCHDOWN.to_vec(), ALPN_TPU.to_vec()];
    tls.session_storage = Arc::new(NoServerSessionStorage {});
    tls.send_tls13_tickets = 0;
    tls.max_early_data_size = 0;
    let crypto = QuicServerConfig::try_from(tls).map_err(|_| {
        Error::General("the provider has no cipher suite for QUIC initial packets".into())
    })?;
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config
        .incoming_buffer_size(ARRIVAL_BYTES_MAX)
        .incoming_buffer_size_total(ARRIVALS_BYTES_MAX)
        .transport_config(Arc::new(transport_config()));
    Ok(config)
}

fn transport_config() -> TransportConfig {
    let mut config = TransportConfig::default();
    let streams_bytes = STREAM_WINDOW_BYTES.saturating_mul(STREAMS_AHEAD_MAX);
    config
        .max_idle_timeout(IdleTimeout::try_from(IDLE_TIMEOUT).ok())
        .keep_alive_interval(Some(KEEP_ALIVE))
        // A client may open streams once its key is known.
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW_BYTES))
        .receive_window(VarInt::from_u32(streams_bytes))
        .send_window(SEND_WINDOW_BYTES)
        // The listener sends little: larger datagrams would gain nothing.
        .mtu_discovery_config(None)
        .datagram_receive_buffer_size(None);
    config
}

/// A little more than a transaction, so that a larger stream is seen to be one.
const STREAM_WINDOW_BYTES: u32 = STREAM_BYTES_MAX as u32 + 512;

/// The Ed25519 public key of a certificate.
pub(super) fn public_key_of(certificate: &CertificateDer<'_>) -> Option<[u8; 32]> {
    let parsed = ParsedCertificate::try_from(certificate).ok()?;
    let info = parsed.subject_public_key_info();
    info.as_ref().strip_prefix(ED25519_INFO)?.try_into().ok()
}

/// What precedes the 32 bytes of an Ed25519 key in its SubjectPublicKeyInfo (RFC 8410 section 4).
const ED25519_INFO: &[u8] = &[0x30, 0x2a, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 3, 0x21, 0];

/// Checks that the client holds the key that it presents, and accepts any key.
#[derive(Debug)]
struct AnyClient(Arc<CryptoProvider>);

impl ClientCertVerifier for AnyClient {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        no_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quic::tls::public_key;

    #[test]
    fn key_of_a_solana_certificate_is_found() {
        let seed = [7; 32];
        let (certificate, _) = self_signed(&seed).unwrap();
        assert_eq!(public_key_of(&certificate), Some(public_key(&seed).unwrap()));
        assert_eq!(public_key_of(&CertificateDer::from(vec![1, 2, 3])), None);
        assert!(server_config(&seed, &PresentedCertificate::default()).is_ok());
    }
}
