//! Who a client is: a keypair whose public key is registered, or an API key.

use std::fmt;

use ring::hmac;

/// The message of which the seed is the HMAC: docs/quic.md, "Connection".
const DERIVATION_LABEL: &[u8] = b"touchdown/1 client certificate";
/// RFC 8410 section 7: what precedes the seed in the PKCS #8 form of an Ed25519 key.
const PKCS8_PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// Who sends. `Debug` prints no secret.
#[derive(Clone)]
pub struct Credential(pub(crate) Kind);

/// Both in DER; the key in PKCS #8.
pub(crate) type CertificateAndKey = (Vec<u8>, Vec<u8>);

#[derive(Clone)]
pub(crate) enum Kind {
    Seed([u8; 32]),
    ApiKey(String),
}

impl Credential {
    /// A keypair by its Ed25519 seed, the first 32 bytes of a file of `solana-keygen`. Its public
    /// key must be registered with the account.
    #[must_use]
    pub fn seed(seed: [u8; 32]) -> Self {
        Self(Kind::Seed(seed))
    }

    /// An API key, which is sent to the edge after its certificate was verified.
    #[must_use]
    pub fn api_key(key: impl Into<String>) -> Self {
        Self(Kind::ApiKey(key.into()))
    }

    /// A keypair that is derived from an API key, so that the key itself is never sent. The edge
    /// knows it for API keys that were created or rotated since it stores derived keys.
    #[must_use]
    pub fn derived(api_key: &str) -> Self {
        Self(Kind::Seed(derive_seed(api_key)))
    }

    /// The certificate and its private key; None for an API key.
    pub(crate) fn certificate(&self) -> Result<Option<CertificateAndKey>, rcgen::Error> {
        let Kind::Seed(seed) = &self.0 else { return Ok(None) };
        let private_key = [&PKCS8_PREFIX[..], seed].concat();
        let key = rcgen::KeyPair::from_pkcs8_der_and_sign_algo(
            &private_key.as_slice().into(),
            &rcgen::PKCS_ED25519,
        )?;
        // Only the key counts. No name in it may say who the client is.
        let certificate =
            rcgen::CertificateParams::new(vec!["localhost".into()])?.self_signed(&key)?;
        Ok(Some((certificate.der().to_vec(), private_key)))
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.0 {
            Kind::Seed(_) => "Credential(keypair)",
            Kind::ApiKey(_) => "Credential(API key)",
        })
    }
}

fn derive_seed(api_key: &str) -> [u8; 32] {
    let key = hmac::Key::new(hmac::HMAC_SHA256, api_key.as_bytes());
    let tag = hmac::sign(&key, DERIVATION_LABEL);
    let mut seed = [0; 32];
    seed.copy_from_slice(tag.as_ref());
    seed
}

#[cfg(test)]
mod tests {
    use super::{Credential, derive_seed};

    #[test]
    fn derived_seed_is_that_of_the_formats_page() {
        let seed = derive_seed("example-key-of-this-page");
        let text: String = seed.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(text, "9a0314913a4b819d644716c432f371874de808ecd387691f0f20253b7532e984");
    }

    #[test]
    fn certificate_has_the_public_key_and_no_secret() {
        let credential = Credential::derived("example-key-of-this-page");
        let (certificate, _) = credential.certificate().expect("a certificate").expect("a keypair");
        let public_key = [0x41, 0x13, 0x0e, 0xc2, 0xe4, 0x31, 0x5c, 0xe2];
        assert!(certificate.windows(8).any(|eight| eight == public_key));
        assert!(!certificate.windows(7).any(|seven| seven == b"example"));
        assert!(!format!("{credential:?}").contains("9a03"));
    }
}
