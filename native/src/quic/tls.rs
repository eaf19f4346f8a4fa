//! TLS and transport settings of a connection to a leader.
//!
//! X25519 alone and AES-128-GCM first, so that the ClientHello fits one datagram and Firedancer,
//! which supports nothing else, never requests a second one. The server must prove that it holds
//! the key it presents, but any key is accepted: leaders sit behind relays, and Firedancer
//! generates a key at every start. No session is resumed: a ticket would carry the old identity to
//! the leader.

use std::sync::Arc;
use std::time::Duration;

use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{
    AckFrequencyConfig, ClientConfig, IdleTimeout, NoneTokenStore, TransportConfig, VarInt,
};
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring as provider;
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{CipherSuite, DigitallySignedStruct, Error, SignatureScheme};

use crate::quic::certificate::{certificate_der, private_key_der};
use crate::quic::congestion::Congestion;

/// Transport settings that an operator may change.
#[derive(Clone, Debug)]
pub struct Transport {
    /// The connection is closed after this time without a packet.
    pub idle_timeout: Duration,
    /// Idle time after which a ping keeps the connection alive.
    pub keep_alive: Duration,
    /// Packets that a leader may leave unacknowledged; `None` leaves the leader's default.
    pub ack_every: Option<u32>,
    /// The maximum time that a leader may delay an acknowledgement.
    pub ack_delay: Duration,
}

impl Default for Transport {
    fn default() -> Self {
        Self {
            // Agave `tpu-client-next` and Firedancer's default, 2026-11.
            idle_timeout: Duration::from_secs(10),
            // Servers of 2023 timed out after 2 seconds; Agave's clients still ping each second.
            keep_alive: Duration::from_secs(1),
            ack_every: Some(10),
            // RFC 9000's default; a shorter one costs the leader a timer for each single
            // transaction.
            ack_delay: Duration::from_millis(25),
        }
    }
}

/// The settings for connections with this seed's identity.
pub fn client_config(seed: &[u8; 32], transport: &Transport) -> Result<ClientConfig, Error> {
    let provider = Arc::new(lean_provider());
    let (certificate, key) = self_signed(seed)?;
    let verifier = Arc::new(AnyKey(provider.clone()));
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_client_auth_cert(vec![certificate], key)?;
    tls.alpn_protocols = vec![ALPN_TPU.to_vec()];
    tls.resumption = Resumption::disabled();
    let crypto = QuicClientConfig::try_from(tls).map_err(|_| {
        Error::General("the provider has no cipher suite for QUIC initial packets".into())
    })?;
    let mut config = ClientConfig::new(Arc::new(crypto));
    config.transport_config(Arc::new(transport_config(transport)));
    // Agave never requests address validation, and a token of another server breaks handshakes.
    config.token_store(Arc::new(NoneTokenStore));
    Ok(config)
}

/// The certificate, signed by no authority, and the key that one side presents.
pub fn self_signed(
    seed: &[u8; 32],
) -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), Error> {
    let certificate = certificate_der(&public_key(seed)?);
    Ok((certificate.into(), PrivatePkcs8KeyDer::from(private_key_der(seed)).into()))
}

/// Rejects a TLS 1.2 signature on either side; QUIC requires TLS 1.3.
pub fn no_tls12() -> Result<HandshakeSignatureValid, Error> {
    Err(Error::General("QUIC has no TLS 1.2".into()))
}

/// The Ed25519 public key of a seed.
pub fn public_key(seed: &[u8; 32]) -> Result<[u8; 32], Error> {
    let der = PrivatePkcs8KeyDer::from(private_key_der(seed));
    let key = provider::sign::any_eddsa_type(&der)?;
    // The key info is a fixed prefix followed by the 32 bytes of the key.
    let info = key
        .public_key()
        .ok_or_else(|| Error::General("the signing key has no public key".into()))?;
    let public_key = info.as_ref().last_chunk::<32>();
    public_key
        .copied()
        .ok_or_else(|| Error::General("the public key is shorter than 32 bytes".into()))
}

/// The server name that Solana's clients send: it only distinguishes servers; no server reads it.
#[must_use]
pub fn server_name(address: std::net::SocketAddr) -> String {
    match address {
        std::net::SocketAddr::V4(v4) => format!("{}.{}.sol", v4.ip(), v4.port()),
        std::net::SocketAddr::V6(v6) => {
            // A host name has no colons, and a label may not begin with a hyphen.
            let parts: Vec<String> =
                v6.ip().segments().iter().map(|part| format!("{part:x}")).collect();
            format!("{}.{}.sol", parts.join("-"), v6.port())
        }
    }
}

fn lean_provider() -> CryptoProvider {
    let mut lean = provider::default_provider();
    lean.kx_groups = vec![provider::kx_group::X25519];
    lean.cipher_suites.retain(|suite| suite.tls13().is_some());
    lean.cipher_suites.sort_by_key(|suite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256);
    lean
}

fn transport_config(options: &Transport) -> TransportConfig {
    let mut config = TransportConfig::default();
    config
        .max_idle_timeout(IdleTimeout::try_from(options.idle_timeout).ok())
        .keep_alive_interval(Some(options.keep_alive))
        .congestion_controller_factory(Arc::new(Congestion::new()))
        // One transaction after the other: parts of several in one packet are lost together.
        .send_fairness(false)
        // Leaders never open a stream, and allowing it would cost memory on each connection.
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .datagram_receive_buffer_size(None);
    if let Some(every) = options.ack_every {
        // Leaders on quinn then acknowledge every N packets instead of every second one, which they
        // otherwise do before they read the data. Other stacks ignore it.
        let mut frequency = AckFrequencyConfig::default();
        frequency
            .ack_eliciting_threshold(VarInt::from_u32(every))
            .max_ack_delay(Some(options.ack_delay));
        config.ack_frequency_config(Some(frequency));
    }
    config
}

/// Checks that the server holds the key it presents, and accepts any key.
#[derive(Debug)]
pub(crate) struct AnyKey(pub(crate) Arc<CryptoProvider>);

impl ServerCertVerifier for AnyKey {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
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

/// Agave `streamer`, `ALPN_TPU_PROTOCOL_ID`, 2026-11.
pub const ALPN_TPU: &[u8] = b"solana-tpu";

#[cfg(test)]
mod tests {
    use super::{client_config, public_key, server_name};

    #[test]
    fn public_key_is_that_of_rfc_8032_test_1() {
        let seed = [
            0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60, 0xba, 0x84, 0x4a, 0xf4, 0x92, 0xec,
            0x2c, 0xc4, 0x44, 0x49, 0xc5, 0x69, 0x7b, 0x32, 0x69, 0x19, 0x70, 0x3b, 0xac, 0x03,
            0x1c, 0xae, 0x7f, 0x60,
        ];
        let key = public_key(&seed).expect("every seed makes a key");
        assert_eq!(key.first_chunk::<4>(), Some(&[0xd7, 0x5a, 0x98, 0x01]));
        assert!(client_config(&seed, &super::Transport::default()).is_ok());
    }

    #[test]
    fn server_names_are_host_names_for_both_families() {
        let name = |text: &str| server_name(text.parse().expect("an address"));
        assert_eq!(name("10.1.2.3:8009"), "10.1.2.3.8009.sol");
        assert_eq!(name("[::1]:8009"), "0-0-0-0-0-0-0-1.8009.sol");
    }
}
