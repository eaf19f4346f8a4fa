use super::*;
use crate::http::tls_client::{certificate_pem, key_pem};

#[test]
fn certificate_and_its_key_are_accepted_without_early_data() {
    let config = server_config(&certificate_pem(1), &key_pem(1), ticket_keys().unwrap());
    let config = config.unwrap();
    assert_eq!(config.max_early_data_size, 0);
    assert_eq!(config.alpn_protocols, [ALPN_HTTP]);
}

#[test]
fn key_of_another_certificate_is_refused_and_so_is_what_is_no_pem() {
    let of = |certificate: &[u8], key: &[u8]| {
        server_config(certificate, key, ticket_keys().unwrap()).is_some()
    };
    assert!(!of(&certificate_pem(1), &key_pem(2)));
    assert!(!of(b"", &key_pem(1)) && !of(&certificate_pem(1), b""));
    assert!(!of(&key_pem(1), &key_pem(1)) && !of(&certificate_pem(1), &certificate_pem(1)));
    assert!(!of(b"-----BEGIN CERTIFICATE-----\n!", &key_pem(1)));
}
