use std::io::Write;
use std::net::Shutdown;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::*;
use crate::http::dispatch::REQUEST_BYTES_MAX;
use crate::http::large_request::LARGE_REQUESTS_MAX;
use crate::http::test_server::{
    GROWN, IDLE_TIMEOUT_S, LIMITS, Limits, TestClient, TestServer, TestUpstream,
    UPSTREAM_CONNECTIONS_MAX, get, post, put,
};

/// One address may have a quarter of what is bounded.
const QUARTER: Limits =
    Limits { upstream_connections_per_address: UPSTREAM_CONNECTIONS_MAX / 4, ..LIMITS };

#[test]
fn submissions_are_answered_locally_and_other_requests_are_proxied() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone(upstream.address);
    let mut client = TestClient::to(address);
    client.send_text(&post("known", "hello"));
    assert_eq!(client.receive(), "hello");
    client.send_text(&post("known", "hello").replace("Raw", ""));
    assert_eq!(client.receive(), "hello");
    assert_eq!((server.handled(), server.proxied()), (2, 0));
    client.send_text(&get("/pages"));
    assert_eq!(client.receive(), "GET /pages HTTP/1.1 +0");
    client.send_text(&put("known", "proxy this"));
    assert_eq!(client.receive(), "PUT /api/v1/sendRawTransaction HTTP/1.1 +10");
    assert_eq!((server.handled(), server.proxied()), (0, 2));
    let first = upstream.next();
    assert_eq!(first.head, "GET /pages HTTP/1.1\r\nx-secret-name: 127.0.0.1\r\nHost: a\r\n\r\n");
    let second = upstream.next();
    assert!(second.head.contains("HTTP/1.1\r\nx-secret-name: 127.0.0.1\r\nHost: a\r\n"));
    assert_eq!(second.body, b"proxy this");
    // Over the same upstream connection.
    assert_eq!((first.connection, second.connection), (0, 0));
}

#[test]
fn pipelined_responses_keep_request_order() {
    let upstream = TestUpstream::echo();
    let (_server, address) = TestServer::alone(upstream.address);
    let mut client = TestClient::to(address);
    let mut text = String::new();
    let mut responses = Vec::new();
    for number in 0..50 {
        if number % 3 == 0 {
            text += &get(&format!("/{number}"));
            responses.push(format!("GET /{number} HTTP/1.1 +0"));
        } else if number % 3 == 1 {
            text += &post("known", &format!("body {number}"));
            responses.push(format!("body {number}"));
        } else {
            let body = format!("proxy {number}");
            text += &put("", &body);
            responses.push(format!("PUT /api/v1/sendRawTransaction HTTP/1.1 +{}", body.len()));
        }
    }
    client.send_text(&text);
    for response in responses {
        assert_eq!(client.receive(), response);
    }
}

#[test]
fn pipelined_requests_beyond_one_turn_are_all_answered() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone(upstream.address);
    let mut client = TestClient::to(address);
    let count = 5 * REQUESTS_PER_TURN + 1;
    client.send_text(&(0..count).map(|number| post("", &number.to_string())).collect::<String>());
    for number in 0..count {
        assert_eq!(client.receive(), number.to_string());
    }
    assert_eq!(server.handled(), count);
}

#[test]
fn request_split_at_any_byte_is_answered() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone(upstream.address);
    let mut client = TestClient::to(address);
    for (text, response) in [
        (post("known", "hello"), "hello"),
        (post("unknown", "hello"), "hello"),
        (get("/a"), "GET /a HTTP/1.1 +0"),
        (put("", "hello"), "PUT /api/v1/sendRawTransaction HTTP/1.1 +5"),
    ] {
        for at in 1..text.len() {
            let (start, end) = text.split_at(at);
            client.send_text(start);
            server.run_turns();
            client.send_text(end);
            assert_eq!(client.receive(), response, "{text:?} at {at}");
        }
    }
}

#[test]
fn submissions_with_a_known_key_are_answered_up_to_the_largest_body() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone(upstream.address);
    let mut client = TestClient::to(address);
    let size = REQUEST_BYTES_MAX - post("known", "").len() - "16000".len() + 1;
    let most = post("known", &"x".repeat(size));
    assert_eq!(most.len(), REQUEST_BYTES_MAX);
    client.send_text(&most);
    assert_eq!(client.receive().len(), size);
    assert_eq!(server.proxied(), 0);
    let call = |token: &str, size| post(token, &"x".repeat(size)).replace("RawT", "T");
    for text in [
        post("known", &"x".repeat(size + 1)),
        post("known", &"x".repeat(16 * 1024)),
        call("known", 128 * 1024),
    ] {
        client.send_text(&text);
        let (_, body) = text.split_once("\r\n\r\n").unwrap();
        assert_eq!(client.receive(), body);
    }
    assert_eq!((server.handled(), server.proxied()), (4, 0));
}

#[test]
fn large_submission_arrives_in_pieces_and_what_follows_it_is_served_next() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone(upstream.address);
    let mut client = TestClient::to(address);
    let body: String = (0..30_000).map(|number| char::from(b'a' + (number % 23) as u8)).collect();
    let text = format!("{}{}", post("known", &body).replace("RawT", "T"), post("known", "next"));
    let head = text.len() - body.len() - post("known", "next").len();
    for at in [head, head + 1, 16 * 1024, 16 * 1024 + 1, 20_000, text.len() - 30] {
        let (start, end) = text.split_at(at);
        client.send_text(start);
        server.run_turns();
        assert_eq!(server.log.lock().unwrap().bodies_pending, usize::from(at < text.len() - 200));
        client.send_text(end);
        assert_eq!((client.receive(), client.receive()), (body.clone(), "next".into()));
    }
    assert_eq!(server.proxied(), 0);
}

#[test]
fn large_submissions_are_bounded_and_refused_at_the_bound() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone_with(upstream.address, QUARTER);
    let text = post("known", &"x".repeat(20_000)).replace("RawT", "T");
    let (start, end) = text.split_at(18_000);
    let mut clients: Vec<_> =
        (0..LARGE_REQUESTS_MAX / 4).map(|_| TestClient::to(address)).collect();
    for client in &mut clients {
        client.send_text(start);
    }
    server.run_turns();
    let mut further = TestClient::to(address);
    further.send_text(&format!("{text}{}", post("known", "hello")));
    assert_eq!((further.receive(), further.receive()), ("NoRoom".into(), "hello".into()));
    // A client that withholds the body is not asked for it.
    let expecting = text.replace("Host", "Expect: 100-continue\r\nHost");
    further.send_text(&expecting[..expecting.find("\r\n\r\n").unwrap() + 4]);
    let refused = String::from_utf8(further.receive_all()).unwrap();
    assert!(refused.starts_with("HTTP/1.1 200 OK\r\nConnection: close\r\n"), "{refused}");
    assert!(refused.ends_with("NoRoom"), "{refused}");
    let mut other = TestClient::from(std::net::Ipv4Addr::new(127, 0, 0, 2), address);
    other.send_text(&text);
    assert_eq!(other.receive().len(), 20_000);
    for client in &mut clients {
        client.send_text(end);
        assert_eq!(client.receive().len(), 20_000);
    }
    let mut next = TestClient::to(address);
    next.send_text(&text);
    assert_eq!(next.receive().len(), 20_000);
    assert_eq!(server.proxied(), 0);
}

#[test]
fn large_submission_keeps_its_place_until_its_response_is_read() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone_with(upstream.address, QUARTER);
    let text = post("known", &"x".repeat(100_000)).replace("RawT", "T");
    let mut slow = TestClient::to(address);
    slow.stream.set_nonblocking(true).unwrap();
    let (mut sent, mut idle) = (0, 0);
    while idle < 20 {
        match slow.stream.write(&text.as_bytes()[sent % text.len()..]) {
            Ok(count) => (sent, idle) = (sent + count, 0),
            Err(_) => idle += 1,
        }
        server.run_turns();
    }
    let others: Vec<_> = (1..LARGE_REQUESTS_MAX / 4)
        .map(|_| {
            let mut client = TestClient::to(address);
            client.send_text(&text[..18_000]);
            client
        })
        .collect();
    server.run_turns();
    let mut further = TestClient::to(address);
    further.send_text(&text);
    assert_eq!(further.receive(), "NoRoom");
    drop(slow);
    server.run_turns();
    further.send_text(&text);
    assert_eq!(further.receive().len(), 100_000);
    drop(others);
}

#[test]
fn client_that_does_not_read_large_responses_is_closed_where_others_have_all_the_room() {
    let upstream = TestUpstream::echo();
    // One address has room for one.
    let limits =
        Limits { upstream_connections: 256, upstream_connections_per_address: 1, ..LIMITS };
    let (server, address) = TestServer::alone_with(upstream.address, limits);
    let fill = || {
        let mut client = TestClient::to(address);
        // More than the kernel's buffers hold.
        client.send_text(&post("known", "grow").repeat(400));
        let mut handled = 1;
        while handled > 0 {
            handled = server.handled();
        }
        client
    };
    let mut slow = fill();
    assert_eq!(server.log.lock().unwrap().closed, []);
    let second = fill();
    assert_eq!(server.log.lock().unwrap().closed, [ClientCloseReason::Evicted]);
    for _ in 0..400 {
        assert_eq!(slow.receive().len(), GROWN);
    }
    drop(second);
    let third = fill();
    assert_eq!(server.log.lock().unwrap().closed.len(), 1);
    drop(third);
}

#[test]
fn client_that_does_not_read_gets_backpressure() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone(upstream.address);
    let mut client = TestClient::to(address);
    let body = "x".repeat(15_000);
    let text = post("known", &body);
    client.stream.set_nonblocking(true).unwrap();
    let (mut sent, mut idle) = (0, 0);
    // Write until the server stops reading and the socket buffers are full.
    while idle < 20 {
        let part = &text.as_bytes()[sent % text.len()..];
        match client.stream.write(part) {
            Ok(count) => (sent, idle) = (sent + count, 0),
            Err(_) => idle += 1,
        }
        server.run_turns();
    }
    let handled = server.handled();
    assert!(handled < sent / text.len() + 1);
    client.stream.set_nonblocking(false).unwrap();
    let whole = sent / text.len();
    for _ in 0..whole {
        assert_eq!(client.receive(), body);
    }
    // The server accepts the rest once there is room for responses.
    assert!(handled < whole);
    assert_eq!(handled + server.handled(), whole);
}

#[test]
fn half_closed_client_is_answered_and_then_closed() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone(upstream.address);
    let mut client = TestClient::to(address);
    client.send_text(&post("", "hello"));
    client.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.receive(), "hello");
    assert_eq!(client.receive_all(), b"");
    assert_eq!(server.open_count(), 0);
}

#[test]
fn idle_client_is_closed_after_the_timeout() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone(upstream.address);
    let mut idle = TestClient::to(address);
    let mut partial = TestClient::to(address);
    partial.send_text("POST /");
    let mut bodiless = TestClient::to(address);
    bodiless.send_text(post("known", "hello").strip_suffix('o').unwrap());
    server.advance_s(8);
    assert_eq!(server.open_count(), 3);
    let mut awake = TestClient::to(address);
    server.advance_s(2);
    awake.send_text(&post("", "hello"));
    awake.receive();
    server.advance_s(2);
    // Those with a part of a request have `read_timeout`, the others `idle_timeout`.
    assert_eq!(server.open_count(), 2);
    for client in [&mut partial, &mut bodiless] {
        assert_eq!(client.receive_all(), b"");
    }
    server.advance_s(IDLE_TIMEOUT_S - 12);
    assert_eq!(server.open_count(), 2);
    server.advance_s(2);
    assert_eq!(server.open_count(), 1);
    assert_eq!(idle.receive_all(), b"");
    server.advance_s(7);
    assert_eq!(server.open_count(), 1);
    server.advance_s(3);
    assert_eq!(server.open_count(), 0);
}

#[test]
fn client_is_answered_after_minutes_of_pauses_below_the_timeout() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone(upstream.address);
    let mut client = TestClient::to(address);
    for seconds in [14, 60, IDLE_TIMEOUT_S, 1, IDLE_TIMEOUT_S] {
        client.send_text(&post("", "hello"));
        assert_eq!(client.receive(), "hello");
        client.send_text(&get("/x"));
        assert!(client.receive().starts_with("GET /x"));
        server.advance_s(seconds);
        assert_eq!(server.open_count(), 1);
    }
}

#[test]
fn client_that_does_not_read_is_closed_after_the_timeout() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone(upstream.address);
    let mut client = TestClient::to(address);
    let text = post("known", &"x".repeat(15_000));
    client.stream.set_nonblocking(true).unwrap();
    let mut idle = 0;
    while idle < 20 {
        idle = if client.stream.write(text.as_bytes()).is_ok() { 0 } else { idle + 1 };
        server.run_turns();
    }
    server.advance_s(9);
    assert_eq!(server.open_count(), 1);
    server.advance_s(3);
    assert_eq!(server.open_count(), 0);
    client.stream.set_nonblocking(false).unwrap();
    client.receive_all();
}

#[test]
fn ambiguous_request_is_proxied_without_what_follows_and_closes() {
    let usual = post("known", "hello");
    for text in [
        usual.replace("Content-Length", "transfer-encoding: chunked\r\nContent-Length"),
        usual.replace("Host", "Content-Length: 6\r\nHost"),
        usual.replace("Host", "X-Secret-Name: 1.2.3.4\r\nHost"),
        usual.replace("POST", "CONNECT"),
    ] {
        let upstream = TestUpstream::start(|mut served| {
            let mut bytes = vec![0; 64 * 1024];
            let count = served.read(&mut bytes).unwrap();
            served.report_text(std::str::from_utf8(&bytes[..count]).unwrap());
            served.send_text("HTTP/1.1 411 Length Required\r\nContent-Length: 2\r\n\r\nno");
            let count = served.read(&mut bytes).unwrap_or(0);
            served.report_text(std::str::from_utf8(&bytes[..count]).unwrap());
        });
        let (server, address) = TestServer::alone(upstream.address);
        let mut client = TestClient::to(address);
        let later = post("known", "later");
        client.send_text(&format!("{later}{text}{later}"));
        assert_eq!(client.receive(), "later");
        assert_eq!(client.receive(), "no");
        assert_eq!(client.receive_all(), b"");
        let (head, _) = text.split_once("hello").unwrap();
        let mut expected = head.to_string();
        let line = "x-secret-name: 127.0.0.1\r\n";
        expected.insert_str(expected.find('\n').unwrap() + 1, line);
        assert_eq!((upstream.next().head, upstream.next().head), (expected, String::new()));
        assert_eq!((server.proxied(), server.handled()), (1, 1), "{text:?}");
    }
}

#[test]
fn malformed_head_is_refused_here_and_closes() {
    let usual = post("known", "hello");
    let large = |size: usize| usual.replace("Host", &format!("x: {}\r\nHost", "y".repeat(size)));
    for (text, status) in [
        ("\u{16}\u{3}\u{1}\0\0".to_string(), "505 HTTP Version Not Supported"),
        (format!("GET / HTTP/3.7\r\n\r\n{usual}"), "505 HTTP Version Not Supported"),
        (usual.replace("HTTP/1.1", "HTTP/1.0"), "505 HTTP Version Not Supported"),
        (usual.replace("\r\nHost", "\r\nx: y\nHost"), "400 Bad Request"),
        (large(5000), "431 Request Header Fields Too Large"),
    ] {
        let upstream = TestUpstream::echo();
        let (server, address) = TestServer::alone(upstream.address);
        let mut client = TestClient::to(address);
        let later = post("known", "later");
        client.send_text(&format!("{later}{text}{later}"));
        assert_eq!(client.receive(), "later");
        let refused = String::from_utf8(client.receive_all()).unwrap();
        let start = format!("HTTP/1.1 {status}\r\nConnection: close\r\n\r\n<h1>");
        assert!(refused.starts_with(&start), "{refused}");
        assert_eq!((server.proxied(), server.handled()), (0, 1), "{text:?}");
        assert_eq!(server.log.lock().unwrap().closed, vec![ClientCloseReason::Framing]);
        assert_eq!(upstream.connections.load(Ordering::SeqCst), 0);
    }
}

#[test]
fn client_that_still_sends_a_refused_request_gets_the_response() {
    let large = "x".repeat(2_000_000);
    let head = post("known", "").replace("\r\nHost", &format!("\r\nx: {large}\r\nHost"));
    for (text, status) in [(post("known", &large), "200"), (head, "431")] {
        let (server, address) = TestServer::alone(TestUpstream::echo().address);
        let mut client = TestClient::to(address);
        let (start, rest) = text.split_at(10_000);
        client.send_text(start);
        let mut sent = 0;
        // The client reads only after it has sent all.
        for part in rest.as_bytes().chunks(10_000).take(100) {
            server.run_turns();
            client.stream.write_all(part).unwrap();
            sent += part.len();
        }
        assert_eq!((sent, server.open_count()), (1_000_000, 1));
        assert!(client.receive_head().starts_with(&format!("HTTP/1.1 {status} ")));
        assert_eq!(server.open_count(), 1);
        drop(client);
        assert_eq!(server.open_count(), 0);
    }
}

#[test]
fn client_that_does_not_close_after_a_refused_request_is_closed() {
    let (server, address) = TestServer::alone(TestUpstream::echo().address);
    let mut client = TestClient::to(address);
    client.send_text(post("known", &"x".repeat(100_000)).get(..1_000).unwrap());
    assert!(client.receive().starts_with("TooLarge"));
    assert_eq!(server.open_count(), 1);
    server.advance_s(2);
    assert_eq!(server.open_count(), 0);
    assert_eq!(server.log.lock().unwrap().closed, vec![]);
}

#[test]
fn large_head_makes_room_for_the_forwarded_header() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone(upstream.address);
    let mut client = TestClient::to(address);
    let text = put("known", "proxy").replace("Host", &format!("x: {}\r\nHost", "y".repeat(3900)));
    client.send_text(&format!("{text}{}", post("known", "later")));
    assert!(client.receive().ends_with(" +5"));
    assert_eq!(client.receive(), "later");
    let received = upstream.next();
    assert!(received.head.lines().nth(1).unwrap() == "x-secret-name: 127.0.0.1");
    assert!(!received.head.contains("x: y"));
    assert!(received.head.contains("api-x-token: known\r\n"), "{}", received.head);
    assert_eq!(received.body, b"proxy");
    assert_eq!(server.handled(), 1);
}

#[test]
fn empty_lines_and_a_preamble_before_a_request_are_skipped() {
    let (server, address) = TestServer::alone(TestUpstream::echo().address);
    let mut client = TestClient::to(address);
    let preamble = "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x02ab";
    let text = post("known", "hello");
    let all = format!("{text}\r\n{text}{preamble}{text}");
    for at in [text.len() + 1, text.len() + 2, all.len() - text.len() - 3, all.len()] {
        let (start, end) = all.split_at(at);
        client.send_text(start);
        server.run_turns();
        client.send_text(end);
        for _ in 0..3 {
            assert_eq!(client.receive(), "hello");
        }
    }
    assert_eq!((server.handled(), server.proxied()), (12, 0));
}

#[test]
fn body_of_a_proxied_request_is_not_parsed_as_a_request() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone(upstream.address);
    let mut client = TestClient::to(address);
    let inner = get("/inner").replace("Host", "x-secret-name: 9.9.9.9\r\nHost");
    client.send_text(&post("", &inner).replace("POST", "PUT"));
    assert!(client.receive().ends_with(&format!("+{}", inner.len())));
    assert_eq!(upstream.next().body, inner.as_bytes());
    assert_eq!(server.proxied(), 1);
    assert_eq!(upstream.connections.load(Ordering::SeqCst), 1);
    assert!(upstream.received.recv_timeout(Duration::ZERO).is_err());
}

#[test]
fn half_closed_client_still_receives_its_proxied_response() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone(upstream.address);
    let mut client = TestClient::to(address);
    client.send_text(&format!("{}{}", get("/a"), post("", "hello")));
    client.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.receive(), "GET /a HTTP/1.1 +0");
    assert_eq!(client.receive(), "hello");
    assert_eq!((client.receive_all(), server.open_count()), (Vec::new(), 0));
    // An incomplete request gets no response.
    let mut client = TestClient::to(address);
    client.send_text(&post("", "hello").replace("POST", "PUT")[..80]);
    client.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!((client.receive_all(), server.open_count()), (Vec::new(), 0));
}
