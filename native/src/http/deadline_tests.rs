use std::io::Write;

use super::*;
use crate::http::dispatch::REQUEST_BYTES_MAX;
use crate::http::handler::ClientCloseReason;
use crate::http::test_server::{TestClient, TestServer, TestUpstream, post, put};

#[test]
fn deadline_starts_with_the_first_byte_and_is_not_extended() {
    let mut clock = ReadClock::default();
    assert!(!clock.is_late(u64::MAX, 10));
    clock.set(Part::Head, 100);
    clock.set(Part::Head, 105);
    assert!(!clock.is_late(110, 10) && clock.is_late(111, 10));
    clock.set(Part::BodyStart, 111);
    clock.set(Part::Body, 115);
    clock.set(Part::Body, 120);
    assert!(!clock.is_late(125, 10) && clock.is_late(126, 10));
    clock.set(Part::None, 126);
    assert!(!clock.is_late(1_000, 10));
    clock.set(Part::Body, 1_000);
    assert!(!clock.is_late(1_010, 10));
}

/// Sends one byte every two seconds for `seconds`; returns the number of open connections.
fn drip(server: &TestServer, clients: &mut [TestClient], text: &str, seconds: u64) -> usize {
    for byte in text.chars().take(seconds as usize / 2) {
        for client in &mut *clients {
            // Fails once the connection is closed.
            let _ = client.stream.write_all(byte.to_string().as_bytes());
        }
        server.advance_s(2);
    }
    server.open_count()
}

#[test]
fn slow_head_is_closed_although_bytes_keep_arriving() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone(upstream.address);
    let mut clients = [TestClient::to(address), TestClient::to(address)];
    // Idle time before the first byte does not count.
    server.advance_s(8);
    clients[0].send_text("GET /ping HTTP/1.1\r\nHost: a\r\nx: ");
    clients[1].send_text(&format!("{}GET /pi", post("", "hello")));
    assert_eq!(clients[1].receive(), "hello");
    assert_eq!(drip(&server, &mut clients, "aaaa", 8), 2);
    assert_eq!(drip(&server, &mut clients, "aa", 4), 0);
    assert_eq!(server.log.lock().unwrap().closed, [ClientCloseReason::ReadTimeout; 2]);
}

#[test]
fn slow_body_is_closed_with_a_deadline_separate_from_the_head() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone(upstream.address);
    let large = "x".repeat(2 * REQUEST_BYTES_MAX);
    for text in [
        post("known", "hello, you"),
        post("", "hello, you"),
        put("known", &large),
        post("known", &large).replace("RawT", "T"),
    ] {
        let (head, _) = text.split_at(text.find("\r\n\r\n").unwrap() + 4);
        let (start, end) = head.split_at(head.len() - 3);
        let mut clients = [TestClient::to(address)];
        clients[0].send_text(start);
        assert_eq!(drip(&server, &mut clients, end, 6), 1);
        // The complete head has arrived, and no byte of the body.
        server.advance_s(8);
        assert_eq!(drip(&server, &mut clients, "aaaa", 8), 1);
        assert_eq!(drip(&server, &mut clients, "aa", 4), 0);
        assert_eq!(clients[0].receive_all(), b"");
        assert_eq!(
            std::mem::take(&mut server.log.lock().unwrap().closed),
            [ClientCloseReason::ReadTimeout]
        );
    }
}

#[test]
fn each_request_gets_a_fresh_deadline() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone(upstream.address);
    let mut clients = [TestClient::to(address)];
    for _ in 0..4 {
        let text = post("known", "ab");
        clients[0].send_text(&text[..text.len() - 4]);
        assert_eq!(drip(&server, &mut clients, "\r\nab", 8), 1);
        assert_eq!(clients[0].receive(), "ab");
    }
    assert!(server.log.lock().unwrap().closed.is_empty());
}
