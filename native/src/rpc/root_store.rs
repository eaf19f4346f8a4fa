//! Whom the certificates of nodes are held against: the authorities of browsers, and those that an
//! operator names beside them.
//!
//! The latter are of the whole process, as they are for Node, which reads them from a file of its
//! own. What is trusted counts for what is connected afterwards.

use std::sync::Arc;

use parking_lot::RwLock;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, TrustAnchor};
use rustls::{ClientConfig, RootCertStore};

/// The operator's.
static OWN: RwLock<Vec<TrustAnchor<'static>>> = RwLock::new(Vec::new());

/// Trusts the authorities of a PEM file beside those of browsers, in the place of what was given
/// before. What is no certificate is passed over. Answers how many there are.
pub fn set_extra_roots(pem: &[u8]) -> usize {
    let mut store = RootCertStore::empty();
    let certificates = CertificateDer::pem_slice_iter(pem).filter_map(Result::ok);
    let (count, _) = store.add_parsable_certificates(certificates);
    *OWN.write() = store.roots;
    count
}

/// The settings of TLS towards a node; None where the library has none.
pub fn node_config() -> Option<Arc<ClientConfig>> {
    let roots = webpki_roots::TLS_SERVER_ROOTS.iter().chain(&*OWN.read()).cloned().collect();
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions().ok()?;
    let builder = builder.with_root_certificates(RootCertStore { roots });
    Some(Arc::new(builder.with_no_client_auth()))
}
