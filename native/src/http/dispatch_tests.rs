use std::sync::atomic::Ordering;

use super::*;
use crate::http::mailbox::Command;
use crate::http::test_server::{TestClient, TestServer, TestUpstream, get, post, put};

#[test]
fn small_request_is_proxied_only_when_complete() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone(upstream.address);
    let mut clients = Vec::new();
    for text in [put("known", "proxy"), put("", "proxy").replace("/api/v1/", "/pages/")] {
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

/// A request whose client may withhold the body.
fn expecting(text: &str) -> String {
    text.replace("Host", "Expect: 100-continue\r\nHost")
}

fn to_rpc(text: &str) -> String {
    text.replace("RawT", "T")
}

#[test]
fn client_that_withholds_the_body_of_a_submission_is_asked_for_it_once() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone(upstream.address);
    let mut client = TestClient::to(address);
    let large = "x".repeat(20_000);
    for text in [post("known", "hello"), to_rpc(&post("known", &large)), to_rpc(&post("", "{}"))] {
        let text = expecting(&text);
        let body_start = text.find("\r\n\r\n").unwrap() + 4;
        let (head, body) = text.split_at(body_start);
        client.send_text(head);
        assert_eq!(client.read_exact(25), b"HTTP/1.1 100 Continue\r\n\r\n");
        let (start, end) = body.split_at(1);
        client.send_text(start);
        server.run_turns();
        client.send_text(end);
        assert_eq!(client.receive(), body);
        // What has come need not be asked for.
        client.send_text(&text);
        assert_eq!(client.receive(), body);
        client.send_text(&text[..=body_start]);
        server.run_turns();
        client.send_text(&text[body_start + 1..]);
        assert_eq!(client.receive(), body);
    }
    assert_eq!(server.proxied(), 0);
    // What fills the read buffer is looked at again in the next turn.
    let text = expecting(&post("known", "hello"));
    let (head, body) = text.split_at(text.len() - 5);
    let size = REQUEST_BYTES_MAX - head.len() - post("known", "").len() - "16000".len() + 1;
    let before = post("known", &"x".repeat(size));
    assert_eq!(before.len() + head.len(), REQUEST_BYTES_MAX);
    client.send_text(&format!("{before}{head}"));
    assert_eq!(client.receive().len(), size);
    assert_eq!(client.receive(), "");
    client.send_text(body);
    assert_eq!(client.receive(), "hello");
}

#[test]
fn client_that_withholds_a_body_is_answered_without_it_where_that_is_refused() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone(upstream.address);
    for (text, answer) in [
        (post("other", "hello"), "KeyUnknown"),
        (post("known", &"x".repeat(16_385)), "TooLarge(16385, 16384)"),
    ] {
        let mut client = TestClient::to(address);
        let text = expecting(&text);
        client.send_text(&text[..text.find("\r\n\r\n").unwrap() + 4]);
        let all = String::from_utf8(client.receive_all()).unwrap();
        assert!(all.starts_with("HTTP/1.1 200 OK\r\nConnection: close\r\n"), "{all}");
        assert!(all.ends_with(answer), "{all}");
    }
    assert_eq!((server.handled(), server.proxied()), (0, 0));
}

#[test]
fn submission_that_is_refused_unread_keeps_its_connection_up_to_a_size() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone(upstream.address);
    let mut client = TestClient::to(address);
    let text = to_rpc(&post("other", &"x".repeat(128 * 1024)));
    for at in [200, 5_000, 16_384, 20_000, text.len() - 1, text.len()] {
        let (start, end) = text.split_at(at);
        client.send_text(start);
        server.run_turns();
        assert_eq!(server.log.lock().unwrap().bodies_pending, 0);
        client.send_text(&format!("{end}{}", post("known", "next")));
        assert_eq!((client.receive(), client.receive()), ("KeyUnknown".into(), "next".into()));
    }
    // Too large, and refused for another reason.
    client.send_text(&post("known", &"x".repeat(20_000)));
    assert_eq!(client.receive(), "TooLarge(20000, 16384)");
    // A request that ends with the connection anyway.
    client.send_text(&text.replace("Host", "Connection: close\r\nHost"));
    assert!(client.receive_all().ends_with(b"KeyUnknown"));
    for (text, answer) in [
        (to_rpc(&post("other", &"x".repeat(128 * 1024 + 1))), "KeyUnknown".into()),
        (post("known", &"x".repeat(16_385)), format!("TooLarge(16385, {})", 16 * 1024)),
        (to_rpc(&post("known", &"x".repeat(131_073))), format!("TooLarge(131073, {})", 128 * 1024)),
    ] {
        let mut client = TestClient::to(address);
        client.send_text(&text[..16_384]);
        let all = String::from_utf8(client.receive_all()).unwrap();
        assert!(all.contains("\r\nConnection: close\r\n") && all.ends_with(&answer), "{all}");
    }
    assert_eq!(server.proxied(), 0);
}

#[test]
fn client_that_does_not_send_the_rest_of_a_refused_body_is_closed() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone(upstream.address);
    let mut client = TestClient::to(address);
    client.send_text(&to_rpc(&post("other", &"x".repeat(20_000)))[..17_000]);
    assert_eq!(client.receive(), "KeyUnknown");
    // Single bytes do not extend its time.
    server.advance_s(6);
    client.send_text("x");
    server.advance_s(6);
    assert_eq!(client.receive_all(), b"");
}

#[test]
fn response_to_an_unread_submission_warns_of_a_key_in_the_query() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone(upstream.address);
    let text = to_rpc(&post("", &"x".repeat(131_073)))
        .replace("sendTransaction", "sendTransaction?api-key=other");
    let mut client = TestClient::to(address);
    client.send_text(&text[..16_384]);
    let all = String::from_utf8(client.receive_all()).unwrap();
    assert!(all.contains("\r\nwarning: 299 ") && all.ends_with("KeyUnknown"), "{all}");
    server.handle.send(Command::Drain);
    let mut client = TestClient::to(address);
    client.send_text(&post("", "hello").replace("Transaction ", "Transaction?api-key=other "));
    assert!(client.receive_head().contains("\r\nwarning: 299 "));
}

#[test]
fn expect_100_continue_of_other_requests_is_answered_by_the_upstream_server() {
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
    let text = expecting(&post("known", "proxy")).replace("POST", "PUT");
    let (head, body) = text.split_at(text.len() - 5);
    client.send_text(head);
    assert_eq!(client.receive(), "");
    client.send_text(body);
    assert_eq!(client.receive(), "ok");
}

#[test]
fn ping_is_answered_locally_until_the_end() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone(upstream.address);
    for command in [None, Some(Command::AnnounceDrain), Some(Command::Drain)] {
        if let Some(command) = command {
            server.handle.send(command);
        }
        for (method, answer) in [("GET", "ping"), ("HEAD", "head")] {
            let mut client = TestClient::to(address);
            client.send_text(&get("/ping").replace("GET", method));
            assert_eq!(client.receive(), answer);
        }
    }
    assert_eq!((server.handled(), server.proxied()), (0, 0));
}

#[test]
fn handler_learns_how_far_the_edge_has_gone_towards_its_stop() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone(upstream.address);
    let small = to_rpc(&post("known", &"x".repeat(256)));
    for (command, leaving) in
        [(None, 0), (Some(Command::AnnounceDrain), 1), (Some(Command::Drain), 2)]
    {
        if let Some(command) = command {
            server.handle.send(command);
        }
        let mut client = TestClient::to(address);
        client.send_text(&small);
        let head = client.receive_head();
        // Each response is its connection's last while work is refused.
        assert_eq!(head.contains("\r\nConnection: close\r\n"), leaving == 2, "{head}");
        assert_eq!(server.log.lock().unwrap().leaving, leaving);
    }
    assert_eq!((server.handled(), server.proxied()), (3, 0));
}
