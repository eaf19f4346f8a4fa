//! TLS and transport settings of a client.

use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, IdleTimeout, TransportConfig, VarInt};
use rustls::RootCertStore;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};

use crate::config::{Config, Protocol, Trust};
use crate::credential::Kind;
use crate::error::ConnectError;

/// As the edge's.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// The settings of all connections of a client.
pub(crate) fn client_config(config: &Config) -> Result<ClientConfig, ConnectError> {
    let is_key = matches!(config.credential.0, Kind::ApiKey(_));
    if is_key && config.protocol == Protocol::SolanaTpu {
        return Err(invalid("solana-tpu needs a keypair: an API key cannot be sent over it"));
    }
    if is_key && matches!(config.trust, Trust::Any) {
        return Err(invalid("an API key is sent only to an edge whose certificate is verified"));
    }
    let provider = Arc::new(ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(invalid)?;
    let roots = match (&config.trust, config.protocol) {
        (Trust::Any, _) | (_, Protocol::SolanaTpu) => None,
        (Trust::Authorities(authorities), _) => Some(roots_of(authorities)?),
        (Trust::System, _) => Some(system_roots()?),
    };
    let builder = match roots {
        Some(roots) => builder.with_root_certificates(roots),
        None => builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyServer(provider))),
    };
    let mut tls = match config.credential.certificate().map_err(invalid)? {
        Some((certificate, key)) => builder
            .with_client_auth_cert(vec![certificate.into()], PrivatePkcs8KeyDer::from(key).into())
            .map_err(invalid)?,
        None => builder.with_no_client_auth(),
    };
    tls.alpn_protocols = vec![match config.protocol {
        Protocol::Touchdown1 => b"touchdown/1".to_vec(),
        Protocol::SolanaTpu => b"solana-tpu".to_vec(),
    }];
    // Without a ticket no early data can be sent, which an attacker could replay.
    tls.resumption = Resumption::disabled();
    let mut client = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).map_err(invalid)?));
    client.transport_config(Arc::new(transport_config(config)));
    Ok(client)
}

fn transport_config(config: &Config) -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .max_idle_timeout(IdleTimeout::try_from(IDLE_TIMEOUT).ok())
        .keep_alive_interval(ping_interval(config.keep_alive))
        // One transaction after the other: parts of several in one packet are lost together.
        .send_fairness(false)
        // An edge opens no stream.
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .datagram_receive_buffer_size(None);
    transport
}

/// None for no pings: with an interval of 0 quinn sends one after the other, and one of the idle
/// timeout or more comes after the connection's end.
fn ping_interval(keep_alive: Duration) -> Option<Duration> {
    (!keep_alive.is_zero() && keep_alive < IDLE_TIMEOUT).then_some(keep_alive)
}

fn roots_of(authorities: &[Vec<u8>]) -> Result<RootCertStore, ConnectError> {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        // A bundle may hold some that cannot be an authority's.
        let mut unusable = None;
        let before = roots.len();
        for certificate in certificates_of(authority)? {
            if let Err(cause) = roots.add(certificate) {
                unusable = Some(cause);
            }
        }
        if let Some(cause) = unusable.filter(|_| roots.len() == before) {
            return Err(no_certificate(authority, cause));
        }
    }
    Ok(roots)
}

/// Those of a text in PEM; anything else is taken as one in DER.
fn certificates_of(authority: &[u8]) -> Result<Vec<CertificateDer<'static>>, ConnectError> {
    // The parser expects a line to begin with its first dash.
    let text = authority.strip_prefix(b"\xef\xbb\xbf").unwrap_or(authority).trim_ascii_start();
    let certificates = CertificateDer::pem_slice_iter(text).collect::<Result<Vec<_>, _>>();
    match certificates.map_err(|cause| no_certificate(authority, cause))? {
        none if none.is_empty() => Ok(vec![CertificateDer::from(authority.to_vec())]),
        some => Ok(some),
    }
}

fn no_certificate(authority: &[u8], cause: impl ToString) -> ConnectError {
    let (size, cause) = (authority.len(), cause.to_string());
    invalid(format!(
        "an authority of {size} bytes is no authority's certificate in PEM or DER: {cause}"
    ))
}

fn system_roots() -> Result<RootCertStore, ConnectError> {
    let mut roots = RootCertStore::empty();
    let (added, _) =
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if added == 0 {
        return Err(invalid("the system has no certificate authorities: name them in `trust`"));
    }
    Ok(roots)
}

fn invalid(cause: impl ToString) -> ConnectError {
    ConnectError::Config(cause.to_string())
}

/// Checks that the server holds the key that it presents, and accepts any key.
#[derive(Debug)]
struct AnyServer(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyServer {
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
        Err(Error::General("QUIC has no TLS 1.2".into()))
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

    fn certificate() -> rcgen::Certificate {
        let key = rcgen::KeyPair::generate().unwrap();
        rcgen::CertificateParams::new(["authority".to_owned()]).unwrap().self_signed(&key).unwrap()
    }

    #[test]
    fn an_authority_is_read_from_der_and_from_pem_with_several() {
        let (one, other) = (certificate(), certificate());
        let both = format!("# two\n{}\n{}", one.pem(), other.pem()).into_bytes();
        assert_eq!(roots_of(&[one.der().to_vec()]).unwrap().len(), 1);
        assert_eq!(roots_of(std::slice::from_ref(&both)).unwrap().len(), 2);
        let marked = format!("\u{feff} {}{}", one.pem(), other.pem()).into_bytes();
        assert_eq!(roots_of(&[marked]).unwrap().len(), 2);
        assert_eq!(roots_of(&[both, certificate().der().to_vec()]).unwrap().len(), 3);
        let unusable = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
        let bundle = format!("{unusable}{}{unusable}", one.pem()).into_bytes();
        assert_eq!(roots_of(&[bundle]).unwrap().len(), 1);
    }

    #[test]
    fn interval_of_pings_is_none_where_pings_make_no_sense() {
        let seconds = [0, 1, 59, 60].map(Duration::from_secs);
        let expected = [None, Some(seconds[1]), Some(seconds[2]), None];
        assert_eq!(seconds.map(ping_interval), expected);
        assert_eq!(ping_interval(Duration::MAX), None);
    }

    #[test]
    fn what_is_no_certificate_is_named() {
        let cut = certificate().pem().replace("-----END", "");
        let unusable = b"-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n".to_vec();
        for wrong in [b"".to_vec(), b"authority.pem".to_vec(), cut.into_bytes(), unusable] {
            let size = wrong.len();
            let ConnectError::Config(text) = roots_of(&[wrong]).unwrap_err() else { panic!() };
            let begin = format!(
                "an authority of {size} bytes is no authority's certificate in PEM or DER: "
            );
            assert!(text.starts_with(&begin), "{text}");
        }
    }
}
