//! The certificate that identifies this sender to a leader.
//!
//! Leaders read the sender's public key from the certificate and check only TLS's own signature, so
//! Solana nodes present one fixed form in which only the key differs: 249 bytes of DER, the key at
//! offset 100, a signature of all ones (Agave `tls-utils`, 2026-11). It is built here from its
//! structure, byte for byte the same, because some parsers find the key by its offset.

/// The certificate's DER for an Ed25519 public key.
#[must_use]
pub fn certificate_der(public_key: &[u8; 32]) -> Vec<u8> {
    let to_be_signed = tlv(
        SEQUENCE,
        &[
            &tlv(EXPLICIT_0, &[&tlv(INTEGER, &[&[2]])]),
            &tlv(INTEGER, &[&[1; 8]]),
            &ed25519_algorithm(),
            &issuer(),
            &validity(),
            &tlv(SEQUENCE, &[]),
            &public_key_info(public_key),
            &tlv(EXPLICIT_3, &[&extensions()]),
        ],
    );
    let signature = tlv(BIT_STRING, &[&[0], &[0xff; 64]]);
    tlv(SEQUENCE, &[&to_be_signed, &ed25519_algorithm(), &signature])
}

/// The private key's PKCS #8 DER for an Ed25519 seed (RFC 8410 section 7).
#[must_use]
pub fn private_key_der(seed: &[u8; 32]) -> Vec<u8> {
    let inner = tlv(OCTET_STRING, &[seed]);
    let version = tlv(INTEGER, &[&[0]]);
    let key = tlv(OCTET_STRING, &[&inner]);
    tlv(SEQUENCE, &[&version, &ed25519_algorithm(), &key])
}

fn ed25519_algorithm() -> Vec<u8> {
    tlv(SEQUENCE, &[&tlv(OBJECT_ID, &[&OID_ED25519])])
}

fn issuer() -> Vec<u8> {
    let name = tlv(UTF8_STRING, &[b"Solana node"]);
    let attribute = tlv(SEQUENCE, &[&tlv(OBJECT_ID, &[&OID_COMMON_NAME]), &name]);
    tlv(SEQUENCE, &[&tlv(SET, &[&attribute])])
}

fn validity() -> Vec<u8> {
    let from = tlv(UTC_TIME, &[b"700101000000Z"]);
    let until = tlv(GENERALIZED_TIME, &[b"40960101000000Z"]);
    tlv(SEQUENCE, &[&from, &until])
}

fn public_key_info(public_key: &[u8; 32]) -> Vec<u8> {
    let key = tlv(BIT_STRING, &[&[0], public_key]);
    tlv(SEQUENCE, &[&ed25519_algorithm(), &key])
}

fn extensions() -> Vec<u8> {
    let names = tlv(SEQUENCE, &[&tlv(DNS_NAME, &[b"localhost"])]);
    let no_authority = tlv(SEQUENCE, &[]);
    tlv(
        SEQUENCE,
        &[
            &critical_extension(&OID_SUBJECT_ALT_NAME, &names),
            &critical_extension(&OID_BASIC_CONSTRAINTS, &no_authority),
        ],
    )
}

fn critical_extension(id: &[u8], value: &[u8]) -> Vec<u8> {
    let id = tlv(OBJECT_ID, &[id]);
    let critical = tlv(BOOLEAN, &[&[0xff]]);
    tlv(SEQUENCE, &[&id, &critical, &tlv(OCTET_STRING, &[value])])
}

/// Tag, length and value; the value is the concatenated parts, at most 255 bytes.
fn tlv(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let size: usize = parts.iter().map(|part| part.len()).sum();
    let mut out = Vec::with_capacity(size + 3);
    out.push(tag);
    if size > 127 {
        out.push(0x81);
    }
    // No element in this file reaches 256 bytes, so the low byte is the size.
    debug_assert!(size < 256);
    out.push((size & 0xff) as u8);
    for part in parts {
        out.extend_from_slice(part);
    }
    out
}

const BOOLEAN: u8 = 0x01;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OBJECT_ID: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const DNS_NAME: u8 = 0x82;
const EXPLICIT_0: u8 = 0xa0;
const EXPLICIT_3: u8 = 0xa3;

const OID_ED25519: [u8; 3] = [0x2b, 0x65, 0x70];
const OID_COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
const OID_SUBJECT_ALT_NAME: [u8; 3] = [0x55, 0x1d, 0x11];
const OID_BASIC_CONSTRAINTS: [u8; 3] = [0x55, 0x1d, 0x13];

#[cfg(test)]
mod tests {
    use super::{certificate_der, private_key_der};

    #[test]
    fn certificate_has_the_networks_fixed_form() {
        let der = certificate_der(&[0xab; 32]);
        assert_eq!(der.len(), 249);
        assert_eq!(der.get(..6), Some(&[0x30, 0x81, 0xf6, 0x30, 0x81, 0xa9][..]));
        assert_eq!(der.get(100..132), Some(&[0xab; 32][..]));
        assert_eq!(der.get(185..), Some(&[0xff; 64][..]));
    }

    #[test]
    fn private_key_is_the_seed_behind_a_fixed_prefix() {
        let der = private_key_der(&[7; 32]);
        assert_eq!(der.len(), 48);
        assert_eq!(der.get(..4), Some(&[0x30, 0x2e, 0x02, 0x01][..]));
        assert_eq!(der.get(16..), Some(&[7; 32][..]));
    }
}
