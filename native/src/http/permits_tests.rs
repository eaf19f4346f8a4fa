use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::Ordering;

use super::*;
use crate::http::test_server::{
    LIMITS, Limits, TestClient, TestServer, TestUpstream, UPSTREAM_CONNECTIONS_MAX, get, post,
};

const ONE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));

#[test]
fn dropped_permit_can_be_acquired_again() {
    let permits = Permits::new(2, 2);
    let first = permits.try_acquire(ONE).unwrap();
    let second = permits.try_acquire(ONE).unwrap();
    assert!(permits.try_acquire(OTHER).is_none());
    drop(first);
    let third = permits.try_acquire(OTHER).unwrap();
    assert!(permits.try_acquire(ONE).is_none());
    drop((second, third));
    assert!(permits.try_acquire(ONE).is_some() && Permits::new(0, 0).try_acquire(ONE).is_none());
}

#[test]
fn permits_per_address_are_limited() {
    let permits = Permits::new(3, 2);
    let own = [permits.try_acquire(ONE), permits.try_acquire(ONE)];
    assert!(own.iter().all(Option::is_some) && permits.try_acquire(ONE).is_none());
    let other = permits.try_acquire(OTHER);
    assert!(other.is_some());
    drop((own, other));
    assert!(permits.0.lock().each.is_empty());
    let of_each = Permits::new(usize::MAX, 0);
    assert!(of_each.try_acquire(ONE).is_none());
}

#[test]
fn permit_may_be_dropped_on_another_thread() {
    let permits = Permits::new(usize::MAX, 1);
    let permit = permits.try_acquire(ONE).unwrap();
    assert!(permits.clone().try_acquire(ONE).is_none());
    std::thread::spawn(move || drop(permit)).join().unwrap();
    assert!(permits.try_acquire(ONE).is_some());
}

#[test]
fn has_spare_while_more_than_half_are_free() {
    let permits = Permits::new(4, 4);
    let one = permits.try_acquire(ONE);
    assert!(permits.has_spare(OTHER));
    let other = permits.try_acquire(ONE);
    assert!(!permits.has_spare(OTHER));
    drop((one, other));
    assert!(permits.has_spare(OTHER) && !Permits::new(0, 0).has_spare(OTHER));
    let shares = Permits::new(8, 2);
    let own = shares.try_acquire(ONE);
    assert!(!shares.has_spare(ONE) && shares.has_spare(OTHER));
    drop(own);
}

#[test]
fn proxied_requests_per_address_are_limited() {
    let upstream = TestUpstream::start(|mut served| {
        while let Some(received) = served.request() {
            if received.head.starts_with("GET /now") {
                served.send_text("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            }
            served.report(received);
        }
    });
    let limits = Limits { upstream_connections_per_address: 3, ..LIMITS };
    let (server, address) = TestServer::alone_with(upstream.address, limits);
    let mut holders: Vec<_> = (0..3).map(|_| TestClient::to(address)).collect();
    for holder in &mut holders {
        holder.send_text(&get("/late"));
        upstream.next();
    }
    let mut one = TestClient::to(address);
    one.send_text(&get("/now"));
    assert!(one.receive().contains(r#""reason":"overloaded""#));
    assert_eq!(server.log.lock().unwrap().overloaded, 1);
    let mut other = TestClient::from(Ipv4Addr::new(127, 0, 0, 2), address);
    other.send_text(&get("/now"));
    assert_eq!(other.receive(), "ok");
}

#[test]
fn incomplete_requests_leave_permits_to_others() {
    let upstream = TestUpstream::start(|mut served| {
        let mut bytes = [0; 1024];
        while let Ok(1..) = served.read(&mut bytes) {
            if bytes.starts_with(b"GET /now") {
                served.send_text("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            }
        }
    });
    let (server, address) = TestServer::alone(upstream.address);
    let small = post("", "").replace("Length: 0", "Length: 9000").replace("POST", "PUT");
    let large = small.replace("9000", "20000");
    // Small requests need no permit until they are complete.
    let mut slow: Vec<_> =
        (0..2 * UPSTREAM_CONNECTIONS_MAX).map(|_| TestClient::to(address)).collect();
    for client in &mut slow {
        client.send_text(&small);
    }
    server.run_turns();
    assert_eq!(upstream.connections.load(Ordering::SeqCst), 0);
    drop(slow);
    // Large uploads get a quarter of the permits.
    let mut slow: Vec<_> = (0..UPSTREAM_CONNECTIONS_MAX).map(|_| TestClient::to(address)).collect();
    for client in &mut slow {
        client.send_text(&large);
        server.run_turns();
    }
    assert_eq!(server.log.lock().unwrap().overloaded, UPSTREAM_CONNECTIONS_MAX * 3 / 4);
    let mut next = TestClient::to(address);
    next.send_text(&get("/now"));
    assert_eq!(next.receive(), "ok");
    // The upstream server accepts in order, so it has accepted all once it answers the last.
    assert_eq!(upstream.connections.load(Ordering::SeqCst), UPSTREAM_CONNECTIONS_MAX / 4 + 1);
}

/// A server whose only upstream connection is in use, and the client that uses it.
fn busy_server() -> (TestUpstream, TestServer, SocketAddr, TestClient) {
    let upstream = TestUpstream::start(|mut served| {
        while let Some(received) = served.request() {
            served.report(received);
        }
    });
    let limits = Limits { upstream_connections: 1, ..LIMITS };
    let (server, address) = TestServer::alone_with(upstream.address, limits);
    let mut holder = TestClient::to(address);
    holder.send_text(&get("/late"));
    upstream.next();
    (upstream, server, address, holder)
}

fn response_to(address: SocketAddr, request: &str) -> String {
    let mut client = TestClient::to(address);
    client.send_text(request);
    String::from_utf8(client.receive_all()).unwrap()
}

#[test]
fn rejected_call_gets_a_json_rpc_error() {
    let (_upstream, _server, address, _holder) = busy_server();
    // Two of the same length are a form that the upstream server answers.
    let call = post("", "").replace("sendRawTransaction", "sendTransaction");
    let response = response_to(address, &call.replace("Host", "Content-Length: 0\r\nHost"));
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 503 ") && head.contains("retry-after: 1\r\n"));
    assert!(head.ends_with(&format!("Content-Length: {}", body.len())));
    assert!(body.starts_with(r#"{"jsonrpc":"2.0","error":{"code":-32603,"message":""#), "{body}");
    assert!(body.contains(r#""data":{"reason":"overloaded","retryable":true,"#), "{body}");
    assert!(body.ends_with(r#""id":null}"#), "{body}");
}

#[test]
fn rejected_head_request_gets_no_body() {
    let (_upstream, _server, address, _holder) = busy_server();
    let response = response_to(address, &get("/now").replace("GET", "HEAD"));
    assert!(response.starts_with("HTTP/1.1 503 ") && response.ends_with("\r\n\r\n"), "{response}");
    let text = get("/now").replace("GET", "HEAD");
    let ambiguous = text.replace("Host", "Transfer-Encoding: x\r\nHost");
    let response = response_to(address, &ambiguous);
    assert!(response.starts_with("HTTP/1.1 503 ") && response.ends_with("\r\n\r\n"), "{response}");
}

#[test]
fn preflight_is_answered_without_an_upstream_connection() {
    let (_upstream, server, address, _holder) = busy_server();
    let response = response_to(address, &get("/now").replace("GET", "OPTIONS"));
    assert!(response.starts_with("HTTP/1.1 204 No Content\r\n"), "{response}");
    assert!(response.contains("\r\naccess-control-allow-origin: *\r\n"), "{response}");
    assert!(response.ends_with("\r\n\r\n"), "{response}");
    assert_eq!(server.log.lock().unwrap().overloaded, 0);
}
