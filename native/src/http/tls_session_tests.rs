use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection};

use super::*;
use crate::http::tls_client::{client_config, presenting, session};

/// Passes bytes to the session in pieces of this size; returns whether it is still valid.
fn feed(server: &mut TlsSession, bytes: &[u8], size: usize) -> bool {
    bytes.chunks(size).all(|mut piece| {
        while !piece.is_empty() {
            server.read_from(&mut piece).unwrap();
        }
        server.process().is_ok()
    })
}

/// Completes a handshake, in pieces of this size; returns how it ended.
fn connect(server: &mut TlsSession, client: &mut ClientConnection, size: usize) -> HandshakeResult {
    loop {
        let mut sent = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut sent).unwrap();
        }
        let is_valid = feed(server, &sent, size);
        let records = server.take_records();
        let mut rest = records.as_slice();
        while !rest.is_empty() {
            client.read_tls(&mut rest).unwrap();
            let _ = client.process_new_packets();
        }
        if let Some(result) = server.handshake() {
            return result;
        }
        assert!(is_valid && !sent.is_empty(), "the handshake stalls");
    }
}

fn pair(config: &Arc<ClientConfig>) -> (TlsSession, ClientConnection) {
    (TlsSession::new(presenting(1)).unwrap(), session(config))
}

fn encrypted(client: &mut ClientConnection, bytes: &[u8]) -> Vec<u8> {
    client.writer().write_all(bytes).unwrap();
    let mut sent = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut sent).unwrap();
    }
    sent
}

#[test]
fn handshake_and_bytes_may_arrive_in_pieces_of_any_size() {
    for version in [&TLS13, &TLS12] {
        for size in [1, 2, 7, 100, 100_000] {
            let (mut server, mut client) = pair(&client_config(&[version], &["http/1.1"]));
            assert_eq!(server.handshake(), None);
            assert_eq!(connect(&mut server, &mut client, size), HandshakeResult::Full);
            assert_eq!(client.alpn_protocol(), Some(&b"http/1.1"[..]));
            assert_eq!(server.take(&mut [0; 8]), None);
            let sent = encrypted(&mut client, b"hello");
            assert!(feed(&mut server, &sent, size) && server.can_take());
            let mut into = [0; 3];
            assert_eq!((server.take(&mut into), &into), (Some(3), b"hel"));
            assert!(server.can_take());
            assert_eq!((server.take(&mut into), &into), (Some(2), b"lol"));
            assert!(!server.can_take());
            assert_eq!(server.take(&mut into), None);
            let mut records = &server.encrypt(b"welcome").unwrap()[..];
            client.read_tls(&mut records).unwrap();
            client.process_new_packets().unwrap();
            let mut read = [0; 7];
            client.reader().read_exact(&mut read).unwrap();
            assert_eq!(&read, b"welcome");
        }
    }
}

#[test]
fn session_is_resumed_by_ticket() {
    for version in [&TLS13, &TLS12] {
        let presented = presenting(1);
        let config = client_config(&[version], &[]);
        for expected in [HandshakeResult::Full, HandshakeResult::Resumed] {
            let mut server = TlsSession::new(presented.clone()).unwrap();
            assert_eq!(connect(&mut server, &mut session(&config), 100_000), expected);
        }
        // Another process does not know the ticket.
        let (mut server, mut client) = pair(&config);
        assert_eq!(connect(&mut server, &mut client, 100_000), HandshakeResult::Full);
    }
}

#[test]
fn goodbye_is_the_end_and_one_is_sent() {
    let (mut server, mut client) = pair(&client_config(&[&TLS13], &[]));
    assert!(server.close().is_empty());
    connect(&mut server, &mut client, 100_000);
    client.send_close_notify();
    let sent = encrypted(&mut client, b"");
    assert!(feed(&mut server, &sent, 1));
    assert!(server.can_take());
    assert_eq!(server.take(&mut [0; 8]), Some(0));
    let mut records = &server.close()[..];
    assert!(!records.is_empty());
    client.read_tls(&mut records).unwrap();
    assert!(client.process_new_packets().unwrap().peer_has_closed());
}

#[test]
fn client_of_another_protocol_fails_and_is_told_so() {
    let (mut server, mut client) = pair(&client_config(&[&TLS13], &["h2"]));
    assert_eq!(connect(&mut server, &mut client, 100_000), HandshakeResult::Failed);
    assert!(client.process_new_packets().is_err());
    assert!(server.close().is_empty());
}

#[test]
fn what_is_no_tls_is_recognized() {
    for text in ["GET / HTTP/1.1\r\nHost: a\r\n\r\n", "POST / HTTP/1.1\r\n\r\n", "\r\n\r\n\0\r\n"] {
        let mut server = TlsSession::new(presenting(1)).unwrap();
        assert!(!feed(&mut server, text.as_bytes(), 1000));
        assert_eq!(server.handshake(), Some(HandshakeResult::NotTls), "{text}");
    }
}

#[test]
fn changed_record_ends_the_session() {
    let (mut server, mut client) = pair(&client_config(&[&TLS13], &[]));
    connect(&mut server, &mut client, 100_000);
    let mut sent = encrypted(&mut client, b"hello");
    *sent.last_mut().unwrap() ^= 1;
    assert!(!feed(&mut server, &sent, 100_000));
    // The alert, and no goodbye behind it.
    assert!(!server.take_records().is_empty() && server.close().is_empty());
}
