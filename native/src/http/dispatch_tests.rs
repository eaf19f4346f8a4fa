use std::sync::atomic::Ordering;

use super::*;
use crate::http::mailbox::Command;
use crate::http::test_server::{TestClient, TestServer, TestUpstream, get, post};

#[test]
fn small_request_is_proxied_only_when_complete() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone(upstream.address);
    let mut clients = Vec::new();
    for text in [
        post("known", "proxy"),
        post("other", "proxy"),
        post("known", "proxy").replace("POST", "PUT"),
        post("known", "proxy").replace("/api/v1/sendRawTransaction", "/"),
    ] {
        let before = upstream.connections.load(Ordering::SeqCst);
        let mut client = TestClient::to(address);
        let (start, end) = text.split_at(text.len() - 2);
        client.send_text(start);
        server.run_turns();
        assert_eq!(upstream.connections.load(Ordering::SeqCst), before);
        client.send_text(end);
        assert!(client.receive().ends_with(" +5"));
        assert_eq!(upstream.next().body, b"proxy");
        // Keep each connection open until the end.
        clients.push(client);
    }
}

#[test]
fn expect_100_continue_is_answered_by_the_upstream_server() {
    let upstream = TestUpstream::start(|mut served| {
        let mut bytes = [0; 1024];
        let count = served.read(&mut bytes).unwrap();
        assert!(bytes[..count].ends_with(b"\r\n\r\n"));
        served.send_text("HTTP/1.1 100 Continue\r\n\r\n");
        let count = served.read(&mut bytes).unwrap();
        assert_eq!(&bytes[..count], b"proxy");
        served.send_text("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        served.serve_echo();
    });
    let (_server, address) = TestServer::alone(upstream.address);
    let mut client = TestClient::to(address);
    let text = post("known", "proxy").replace("Host", "Expect: 100-continue\r\nHost");
    let (head, body) = text.split_at(text.len() - 5);
    client.send_text(head);
    assert_eq!(client.receive(), "");
    client.send_text(body);
    assert_eq!(client.receive(), "ok");
}

#[test]
fn health_checks_are_answered_locally_until_draining() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone(upstream.address);
    let mut client = TestClient::to(address);
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"getHealth"}"#;
    let open = |body: &str| post("", body).replace("/api/v1/sendRawTransaction", "/");
    let rpc = |token: &str, body: &str| post(token, body).replace("RawT", "T");
    for text in [get("/ping"), get("/ping").replace("GET", "HEAD")] {
        client.send_text(&text);
        let is_head_only = text.starts_with("HEAD");
        assert_eq!(client.receive(), format!("{:?}", Health::Ping { is_head_only }));
    }
    for text in [open(call), rpc("", call), rpc("", &format!("{call:256}"))] {
        client.send_text(&text);
        assert_eq!(client.receive(), format!("{:?}", Health::Rpc { id: b"7" }));
    }
    assert_eq!((server.handled(), server.proxied()), (0, vec![]));
    // Calls of other methods, with a key or with a longer body go to the handler, which accepts
    // everything in this fixture.
    client.send_text(&open("{}"));
    assert_eq!(client.receive(), "{}");
    for text in [rpc("some", call), rpc("", &format!("{call:257}"))] {
        client.send_text(&text);
        assert!(client.receive().starts_with(call));
    }
    assert_eq!((server.handled(), server.proxied()), (3, vec![]));
    server.handle.send(Command::AnnounceDrain);
    client.send_text(&get("/ping"));
    assert_eq!(client.receive(), format!("{:?}", Health::Ping { is_head_only: false }));
    for text in [open(call), rpc("", call)] {
        client.send_text(&text);
        assert!(client.receive().contains("HTTP/1.1 +"));
    }
    client.send_text(&rpc("some", call));
    assert!(client.receive().starts_with(call));
    assert_eq!((server.handled(), server.proxied()), (1, vec![UnhandledReason::Draining; 2]));
    assert_eq!(server.log.lock().unwrap().leaving, 1);
    server.handle.send(Command::Drain);
    for text in [get("/ping"), open(call), rpc("", call)] {
        client.send_text(&text);
        assert!(client.receive().contains("HTTP/1.1 +"));
    }
    assert_eq!(server.proxied(), [UnhandledReason::Draining; 3]);
}
