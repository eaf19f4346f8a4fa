//! The authorities that nodes' certificates are verified against: those of browsers, and those that
//! an operator adds.
//!
//! The latter apply to the process, as Node's do, which reads them from a file of its own. A change
//! applies to connections opened afterwards.

use std::sync::Arc;

use parking_lot::RwLock;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, TrustAnchor};
use rustls::{ClientConfig, RootCertStore};

/// The operator's authorities.
static OWN: RwLock<Vec<TrustAnchor<'static>>> = RwLock::new(Vec::new());

/// Trusts the authorities of a PEM file in addition to those of browsers, replacing earlier ones.
/// Entries that are not certificates are skipped. Returns the number of authorities.
pub fn set_extra_roots(pem: &[u8]) -> usize {
    let mut store = RootCertStore::empty();
    let certificates = CertificateDer::pem_slice_iter(pem).filter_map(Result::ok);
    let (count, _) = store.add_parsable_certificates(certificates);
    *OWN.write() = store.roots;
    count
}

/// The TLS settings for connections to a node; None if the library provides none.
pub fn node_config() -> Option<Arc<ClientConfig>> {
    let roots = webpki_roots::TLS_SERVER_ROOTS.iter().chain(&*OWN.read()).cloned().collect();
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions().ok()?;
    let builder = builder.with_root_certificates(RootCertStore { roots });
    Some(Arc::new(builder.with_no_client_auth()))
}
