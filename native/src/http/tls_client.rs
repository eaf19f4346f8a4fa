//! A TLS client with a real socket for tests of the event loop, and the certificates of its server.

use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::default_provider;
use rustls::crypto::{verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, HandshakeKind, ServerConfig,
    SignatureScheme, StreamOwned, SupportedProtocolVersion,
};

use crate::http::test_client::{GUARD, length_of, read_head_text};
use crate::http::tls_config::{server_config, ticket_keys};
use crate::quic::tls::self_signed;

/// A self-signed certificate, another one for each seed.
pub(super) fn certificate_pem(seed: u8) -> Vec<u8> {
    pem("CERTIFICATE", certificate(seed).as_ref())
}

/// The key of that certificate.
pub(super) fn key_pem(seed: u8) -> Vec<u8> {
    pem("PRIVATE KEY", self_signed(&[seed; 32]).unwrap().1.secret_der())
}

pub(super) fn certificate(seed: u8) -> CertificateDer<'static> {
    self_signed(&[seed; 32]).unwrap().0
}

fn pem(label: &str, der: &[u8]) -> Vec<u8> {
    let text = STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n").into_bytes()
}

/// What a server presents.
pub(super) fn presenting(seed: u8) -> Arc<ServerConfig> {
    server_config(&certificate_pem(seed), &key_pem(seed), ticket_keys().unwrap()).unwrap()
}

/// A client that accepts any certificate and keeps session tickets.
pub(super) fn client_config(
    versions: &[&'static SupportedProtocolVersion],
    alpn: &[&str],
) -> Arc<ClientConfig> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(versions)
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate))
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    Arc::new(config)
}

pub(super) fn session(config: &Arc<ClientConfig>) -> ClientConnection {
    let name = ServerName::try_from("localhost").unwrap();
    ClientConnection::new(config.clone(), name).unwrap()
}

/// A socket that writes in pieces of this size, each at once.
pub(super) struct Pieces {
    pub(super) stream: TcpStream,
    size: usize,
}

impl Read for Pieces {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stream.read(into)
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes.get(..self.size.min(bytes.len())).unwrap())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A client of an ingress thread.
pub(super) struct TlsClient {
    reader: BufReader<StreamOwned<ClientConnection, Pieces>>,
}

impl TlsClient {
    pub(super) fn to(address: SocketAddr, config: &Arc<ClientConfig>) -> Self {
        Self::in_pieces(address, config, usize::MAX)
    }

    /// One that writes in pieces of this size.
    pub(super) fn in_pieces(address: SocketAddr, config: &Arc<ClientConfig>, size: usize) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(GUARD)).unwrap();
        stream.set_write_timeout(Some(GUARD)).unwrap();
        let owned = StreamOwned::new(session(config), Pieces { stream, size });
        Self { reader: BufReader::new(owned) }
    }

    pub(super) fn send_text(&mut self, text: &str) {
        self.reader.get_mut().write_all(text.as_bytes()).unwrap();
        self.reader.get_mut().flush().unwrap();
    }

    /// Completes the handshake.
    ///
    /// # Errors
    /// When it fails.
    pub(super) fn connect(&mut self) -> io::Result<HandshakeKind> {
        let owned = self.reader.get_mut();
        while owned.conn.is_handshaking() {
            owned.conn.complete_io(&mut owned.sock)?;
        }
        Ok(owned.conn.handshake_kind().unwrap())
    }

    /// Reads a response with a size; returns its head and its body.
    pub(super) fn receive_all(&mut self) -> (String, String) {
        let head = read_head_text(&mut self.reader).unwrap();
        let mut body = vec![0; length_of(&head)];
        self.reader.read_exact(&mut body).unwrap();
        (head, String::from_utf8(body).unwrap())
    }

    pub(super) fn receive(&mut self) -> String {
        self.receive_all().1
    }

    /// Reads to the end.
    ///
    /// # Errors
    /// When the connection ends without a `close_notify`.
    pub(super) fn read_to_end(&mut self) -> io::Result<usize> {
        self.reader.read_to_end(&mut Vec::new())
    }

    /// Sends this, and in the same write that nothing more follows; the socket stays open.
    pub(super) fn send_last_text(&mut self, text: &str) {
        let owned = self.reader.get_mut();
        owned.conn.writer().write_all(text.as_bytes()).unwrap();
        owned.conn.send_close_notify();
        let mut records = Vec::new();
        while owned.conn.wants_write() {
            owned.conn.write_tls(&mut records).unwrap();
        }
        owned.sock.write_all(&records).unwrap();
    }

    /// Says that nothing more follows; the socket stays open.
    pub(super) fn close_notify(&mut self) {
        let owned = self.reader.get_mut();
        owned.conn.send_close_notify();
        owned.flush().unwrap();
    }

    pub(super) fn session(&self) -> &ClientConnection {
        &self.reader.get_ref().conn
    }
}

#[derive(Debug)]
struct AnyCertificate;

impl ServerCertVerifier for AnyCertificate {
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
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = default_provider().signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, &algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = default_provider().signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, &algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        default_provider().signature_verification_algorithms.supported_schemes()
    }
}
