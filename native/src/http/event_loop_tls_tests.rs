use std::io::Write;
use std::net::TcpStream;

use rustls::HandshakeKind;
use rustls::version::{TLS12, TLS13};

use crate::http::dispatch::REQUEST_BYTES_MAX;
use crate::http::handler::{ClientCloseReason, HandshakeResult};
use crate::http::mailbox::Command;
use crate::http::test_client::TestClient;
use crate::http::test_server::{LIMITS, Limits, TestServer, TestUpstream, get, post, put};
use crate::http::tls_client::{TlsClient, certificate, client_config, presenting, session};

/// A server that presents the certificate of seed 1.
fn server_with(limits: Limits) -> (TestServer, std::net::SocketAddr, TestUpstream) {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone_with(upstream.address, limits);
    assert!(server.handle.send(Command::Tls(presenting(1))));
    server.run_turns();
    (server, address, upstream)
}

fn server() -> (TestServer, std::net::SocketAddr, TestUpstream) {
    server_with(LIMITS)
}

fn handshakes(server: &TestServer) -> Vec<HandshakeResult> {
    server.run_turns();
    std::mem::take(&mut server.log.lock().unwrap().handshakes)
}

#[test]
fn requests_are_served_in_both_versions_and_byte_by_byte() {
    let (server, address, _upstream) = server();
    for version in [&TLS13, &TLS12] {
        for size in [1, 50, usize::MAX] {
            let config = client_config(&[version], &["h2", "http/1.1"]);
            let mut client = TlsClient::in_pieces(address, &config, size);
            assert_eq!(client.connect().unwrap(), HandshakeKind::Full);
            assert_eq!(client.session().alpn_protocol(), Some(&b"http/1.1"[..]));
            for body in ["hello", "again"] {
                client.send_text(&post("", body));
                assert_eq!(client.receive(), body);
            }
        }
    }
    assert_eq!(handshakes(&server), [HandshakeResult::Full; 6]);
    assert_eq!(server.handled(), 12);
}

#[test]
fn pipelined_requests_of_one_record_are_answered_in_order() {
    let (server, address, _upstream) = server();
    let mut client = TlsClient::to(address, &client_config(&[&TLS13], &[]));
    let bodies: Vec<String> = (0..40).map(|index| format!("body {index}")).collect();
    let text: String = bodies.iter().map(|body| post("", body)).collect();
    client.send_text(&text);
    for body in &bodies {
        assert_eq!(&client.receive(), body);
    }
    assert_eq!(server.handled(), bodies.len());
}

#[test]
fn large_bodies_pass_in_both_directions() {
    let upstream = TestUpstream::start(|mut served| {
        while let Some(received) = served.request() {
            let text = String::from_utf8(received.body).unwrap();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", text.len());
            served.send_text(&(head + &text));
        }
    });
    let (server, address) = TestServer::alone(upstream.address);
    assert!(server.handle.send(Command::Tls(presenting(1))));
    server.run_turns();
    let mut client = TlsClient::to(address, &client_config(&[&TLS13], &[]));
    // The largest that the loop holds itself, and one that the upstream server gets as it arrives.
    let head = post("known", &"x".repeat(10_000)).len() - 10_000;
    for size in [REQUEST_BYTES_MAX - head, 1_000_000] {
        let body: String = (0..size).map(|at| char::from(b'a' + (at % 23) as u8)).collect();
        let make = if size == 1_000_000 { put } else { post };
        client.send_text(&make("known", &body));
        assert!(client.receive() == body, "{size} bytes differ");
    }
    assert_eq!(server.handled(), 1);
}

#[test]
fn proxied_requests_are_answered_over_tls() {
    let (server, address, _upstream) = server();
    let mut client = TlsClient::to(address, &client_config(&[&TLS13], &[]));
    for _ in 0..3 {
        client.send_text(&get("/"));
        client.receive();
    }
    assert_eq!(server.proxied(), 3);
}

#[test]
fn client_that_says_goodbye_is_closed_and_gets_a_goodbye() {
    let (server, address, _upstream) = server();
    let mut client = TlsClient::to(address, &client_config(&[&TLS13], &[]));
    client.send_text(&post("", "hello"));
    assert_eq!(client.receive(), "hello");
    assert_eq!(server.open_count(), 1);
    client.close_notify();
    assert_eq!(client.read_to_end().unwrap(), 0);
    assert_eq!(server.open_count(), 0);
}

#[test]
fn goodbye_behind_the_last_request_closes_the_connection() {
    let (server, address, _upstream) = server();
    let mut client = TlsClient::to(address, &client_config(&[&TLS13], &[]));
    client.connect().unwrap();
    client.send_last_text(&post("", "hello"));
    assert_eq!(client.receive(), "hello");
    assert_eq!(client.read_to_end().unwrap(), 0);
    assert_eq!(server.open_count(), 0);
}

#[test]
fn every_close_of_an_established_connection_is_announced() {
    let (server, address, _upstream) = server();
    let config = client_config(&[&TLS13], &[]);
    let mut idle = TlsClient::to(address, &config);
    idle.connect().unwrap();
    let mut malformed = TlsClient::to(address, &config);
    malformed.send_text("nonsense\r\n\r\n");
    assert!(malformed.read_to_end().unwrap() > 0);
    server.advance_s(80);
    assert_eq!(idle.read_to_end().unwrap(), 0);
    let mut last = TlsClient::to(address, &config);
    last.connect().unwrap();
    assert!(server.handle.send(Command::Retire));
    server.run_turns();
    last.send_text(&post("", "hello"));
    let (head, body) = last.receive_all();
    assert!(head.to_ascii_lowercase().contains("connection: close"), "{head}");
    assert_eq!((body.as_str(), last.read_to_end().unwrap()), ("hello", 0));
}

#[test]
fn handshake_has_a_deadline_from_the_connection_on() {
    let (server, address, _upstream) = server();
    let mut silent = TestClient::to(address);
    let mut partial = TestClient::to(address);
    let mut hello = Vec::new();
    session(&client_config(&[&TLS13], &[])).write_tls(&mut hello).unwrap();
    let (first, second) = hello.split_at(20);
    partial.stream.write_all(first).unwrap();
    server.advance_s(9);
    assert_eq!(server.open_count(), 2);
    // Further bytes do not extend it.
    partial.stream.write_all(&second[..20]).unwrap();
    server.advance_s(2);
    assert_eq!((server.open_count(), silent.receive_all()), (0, Vec::new()));
    assert_eq!(partial.receive_all(), b"");
    assert_eq!(handshakes(&server), [HandshakeResult::TimedOut; 2]);
    assert_eq!(server.log.lock().unwrap().closed, [ClientCloseReason::ReadTimeout; 2]);
}

#[test]
fn handshake_that_makes_no_progress_gives_way_to_another_client() {
    let (server, address, _upstream) = server_with(Limits { connections: 2, ..LIMITS });
    let mut silent = TestClient::to(address);
    let mut partial = TestClient::to(address);
    partial.stream.write_all(&[22, 3, 1]).unwrap();
    server.advance_s(2);
    let config = client_config(&[&TLS13], &[]);
    let mut served = Vec::new();
    for waiting in [&mut silent, &mut partial] {
        let mut client = TlsClient::to(address, &config);
        client.send_text(&post("", "hello"));
        assert_eq!(client.receive(), "hello");
        assert_eq!(waiting.receive_all(), b"");
        served.push(client);
    }
    assert_eq!(server.log.lock().unwrap().closed, [ClientCloseReason::Evicted; 2]);
}

#[test]
fn client_without_tls_is_closed() {
    let (server, address, _upstream) = server();
    let mut client = TestClient::to(address);
    client.send_text(&post("", "hello"));
    // The alert of a record that is none.
    assert_eq!(client.receive_all().first(), Some(&21));
    assert_eq!((handshakes(&server), server.open_count()), (vec![HandshakeResult::NotTls], 0));
    assert_eq!(server.handled(), 0);
}

#[test]
fn client_that_leaves_or_disagrees_is_counted() {
    let (server, address, _upstream) = server();
    drop(TcpStream::connect(address).unwrap());
    assert_eq!((server.open_count(), handshakes(&server)), (0, vec![HandshakeResult::Aborted]));
    let mut client = TlsClient::to(address, &client_config(&[&TLS13], &["h2"]));
    assert!(client.connect().is_err());
    assert_eq!((server.open_count(), handshakes(&server)), (0, vec![HandshakeResult::Failed]));
}

#[test]
fn another_certificate_is_for_new_connections() {
    let (server, address, _upstream) = server();
    let config = client_config(&[&TLS13], &[]);
    let mut first = TlsClient::to(address, &config);
    first.connect().unwrap();
    assert!(server.handle.send(Command::Tls(presenting(2))));
    server.run_turns();
    let mut second = TlsClient::to(address, &client_config(&[&TLS13], &[]));
    second.connect().unwrap();
    for (client, seed) in [(&mut first, 1), (&mut second, 2)] {
        client.send_text(&post("", "hello"));
        assert_eq!(client.receive(), "hello");
        assert_eq!(client.session().peer_certificates(), Some(&[certificate(seed)][..]));
    }
}

#[test]
fn many_handshakes_at_once_all_complete() {
    let (server, address, _upstream) = server();
    let config = client_config(&[&TLS13], &[]);
    let mut clients: Vec<_> = (0..30).map(|_| TlsClient::to(address, &config)).collect();
    // All of them have said hello before any is answered.
    for client in &mut clients {
        client.send_text("");
    }
    std::thread::scope(|scope| {
        for client in &mut clients {
            scope.spawn(move || {
                client.send_text(&post("", "hello"));
                assert_eq!(client.receive(), "hello");
            });
        }
    });
    assert_eq!(handshakes(&server).len(), 30);
}
