use std::io::{ErrorKind, Write};
use std::net::{Shutdown, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use crate::http::handler::ClientCloseReason;
use crate::http::test_server::{
    GUARD, ServedConnection, TestClient, TestServer, TestUpstream, get, post, put,
};

/// Sends these bytes, one at a time, for the first request, and echoes from then on.
fn answering(text: &'static str) -> TestUpstream {
    TestUpstream::start(move |mut served| {
        let Some(received) = served.request() else { return };
        served.report(received);
        served.stream.set_nodelay(true).unwrap();
        for at in 0..text.len() {
            served.send_text(&text[at..=at]);
        }
        served.serve_echo();
    })
}

const GOOD: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn responses_of_every_framing_keep_the_connection() {
    for (method, text) in [
        ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n"),
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n"),
        ("GET", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
        (
            "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
             1a\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\na: b\r\n\r\n",
        ),
    ] {
        let upstream = answering(text);
        let (_server, address) = TestServer::alone(upstream.address);
        let mut client = TestClient::to(address);
        client.send_text(&format!("{}{}", get("/a").replace("GET", method), get("/b")));
        assert_eq!(String::from_utf8(client.read_exact(text.len())).unwrap(), text);
        assert_eq!(client.receive(), "GET /b HTTP/1.1 +0");
        assert_eq!((upstream.next().connection, upstream.next().connection), (0, 0));
    }
}

#[test]
fn response_that_closes_the_upstream_connection_closes_the_client() {
    for text in [
        "HTTP/1.1 413 No\r\nconnection: close\r\nContent-Length: 2\r\n\r\nno",
        "HTTP/1.1 400 No\r\n\r\nwhatever",
        "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nhalf of it",
        "HTTP/1.1 200 OK\r\nTransfer-Enc",
    ] {
        let upstream = TestUpstream::start(move |mut served| {
            served.request();
            served.send_text(text);
        });
        let (server, address) = TestServer::alone(upstream.address);
        let mut client = TestClient::to(address);
        client.send_text(&format!("{}{}", get("/a"), post("", "hello")));
        assert_eq!(String::from_utf8(client.receive_all()).unwrap(), text);
        assert_eq!((server.handled(), server.open_count()), (0, 0));
    }
}

#[test]
fn bytes_after_a_response_close_the_connection() {
    let upstream = TestUpstream::start(|mut served| {
        served.request();
        served.send_text(&format!("{GOOD}{GOOD}"));
        served.serve_echo();
    });
    let (_server, address) = TestServer::alone(upstream.address);
    let mut client = TestClient::to(address);
    client.send_text(&get("/a"));
    assert_eq!(client.receive_all(), GOOD.as_bytes());
}

#[test]
fn connection_close_request_closes_the_connection() {
    let upstream = TestUpstream::echo();
    let (_server, address) = TestServer::alone(upstream.address);
    let mut client = TestClient::to(address);
    let request = post("", "hello").replace("Host", "connection: close\r\nHost");
    client.send_text(&format!("{request}{request}"));
    client.receive();
    assert_eq!(client.receive_all(), b"");
}

/// The upstream server reads no header behind it, and would take the body for a request.
#[test]
fn header_without_a_name_is_not_proxied() {
    let upstream = TestUpstream::echo();
    let (_server, address) = TestServer::alone(upstream.address);
    let mut client = TestClient::to(address);
    let request = put("known", "hello");
    client.send_text(&request.replace("Host", ": x\r\nHost"));
    assert!(client.receive().ends_with(" +5"));
    let received = upstream.next();
    assert!(!received.head.contains("\n:"), "{}", received.head);
    assert!(received.head.contains("\r\nContent-Length: 5\r\n"), "{}", received.head);
}

#[test]
fn unreachable_upstream_yields_503_and_close() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (server, ingress_thread) = TestServer::alone(address);
    let mut client = TestClient::to(ingress_thread);
    client.send_text(&post("", "hello"));
    assert_eq!(client.receive(), "hello");
    client.send_text(&get("/"));
    assert!(client.receive().contains(r#""reason":"overloaded""#));
    assert_eq!((client.receive_all(), server.open_count()), (Vec::new(), 0));
    let silent = TestUpstream::start(|mut served| drop(served.request()));
    let (server, ingress_thread) = TestServer::alone(silent.address);
    let mut client = TestClient::to(ingress_thread);
    client.send_text(&format!("{}{}", get("/a"), post("", "hello")));
    let response = client.receive();
    assert!(response.contains(r#""reason":"overloaded""#), "{response}");
    assert!(response.contains("the transaction may have been sent"), "{response}");
    assert_eq!((client.receive_all(), server.handled()), (Vec::new(), 0));
    assert_eq!(server.log.lock().unwrap().overloaded, 1);
}

#[test]
fn slow_body_that_the_upstream_server_timed_out_closes_without_a_response() {
    let upstream = TestUpstream::start(|mut served| {
        // Closes like a server with a timeout: when the test sends the second part.
        let (mut bytes, mut received) = ([0; 1024], Vec::new());
        while !received.ends_with(b"more") {
            let count = served.read(&mut bytes).unwrap();
            received.extend_from_slice(&bytes[..count]);
        }
    });
    let (server, address) = TestServer::alone(upstream.address);
    let mut client = TestClient::to(address);
    // The time of the part that is pending starts anew with its first byte; that of the request
    // does not.
    client.send_text(&put("known", "").replace("Length: 0", "Length: 20000"));
    server.advance_s(5);
    client.send_text("some");
    server.advance_s(4);
    client.send_text("more");
    assert_eq!(client.receive_all(), b"");
    assert_eq!(server.open_count(), 0);
    let log = server.log.lock().unwrap();
    assert_eq!((log.overloaded, &*log.closed), (0, [ClientCloseReason::ReadTimeout].as_slice()));
}

#[test]
fn idle_upstream_connection_times_out_and_is_reopened() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone(upstream.address);
    let mut client = TestClient::to(address);
    client.send_text(&get("/a"));
    client.receive();
    assert_eq!(upstream.next().connection, 0);
    server.advance_s(4);
    client.send_text(&get("/b"));
    client.receive();
    assert_eq!(upstream.next().connection, 0);
    server.advance_s(6);
    assert_eq!(upstream.next().head, "left");
    assert_eq!(server.open_count(), 1);
    client.send_text(&get("/c"));
    client.receive();
    assert_eq!(upstream.next().connection, 1);
}

#[test]
fn upstream_connection_closed_by_the_server_is_reopened() {
    let upstream = TestUpstream::start(|mut served| {
        let received = served.request().unwrap();
        served.send_text(GOOD);
        served.stream.shutdown(Shutdown::Both).unwrap();
        served.report(received);
    });
    let (server, address) = TestServer::alone(upstream.address);
    let mut client = TestClient::to(address);
    for number in 0..3 {
        client.send_text(&get("/"));
        assert_eq!(client.receive(), "ok");
        assert_eq!(upstream.next().connection, number);
        server.run_turns();
    }
}

#[test]
fn client_disconnect_closes_the_upstream_connection() {
    for leave in [
        |client: TestClient| client.stream.shutdown(Shutdown::Write).map(|()| Some(client)),
        |client: TestClient| {
            // Unread bytes make this a reset.
            drop(client);
            Ok(None)
        },
    ] {
        let upstream = TestUpstream::start(|mut served| {
            while let Some(received) = served.request() {
                served.report(received);
            }
            served.report_text("left");
        });
        let (server, address) = TestServer::alone(upstream.address);
        let mut client = TestClient::to(address);
        // A further request is not read, and does not hide that the client leaves.
        client.send_text(&format!("{}{}", get("/"), post("", "hello")));
        upstream.next();
        let _left = leave(client).unwrap();
        server.run_turns();
        // The client may only have closed its sending side.
        assert_eq!(server.open_count(), 1);
        server.advance_s(3);
        assert_eq!(upstream.next().head, "left");
        assert_eq!((server.open_count(), server.handled()), (0, 0));
    }
}

#[test]
fn client_disconnect_during_a_stream_closes_upstream_immediately() {
    let upstream = TestUpstream::start(|mut served| {
        served.request();
        served.send_text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
        served.request();
        served.report_text("left");
    });
    let (server, address) = TestServer::alone(upstream.address);
    let mut client = TestClient::to(address);
    client.send_text(&get("/"));
    server.run_turns();
    client.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(upstream.next().head, "left");
    assert_eq!(server.open_count(), 0);
}

#[test]
fn large_body_is_streamed_upstream() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone(upstream.address);
    let mut client = TestClient::to(address);
    let body: String = (0..3_000_000).map(|at| char::from(b'a' + (at % 23) as u8)).collect();
    client.send_text(&put("known", &body));
    client.send_text(&post("known", "hello"));
    assert!(client.receive().ends_with("+3000000"));
    assert_eq!(client.receive(), "hello");
    assert!(upstream.next().body == body.as_bytes());
    assert_eq!(server.proxied(), 1);
}

#[test]
fn early_response_closes_only_with_connection_close() {
    let upstream = TestUpstream::start(|mut served| {
        let mut head = [0; 20];
        served.read(&mut head).unwrap();
        served.send_text(GOOD);
        // The first bytes of the head are lost, which does not matter.
        let received = served.request().unwrap();
        served.report(received);
        served.serve_echo();
    });
    let (server, address) = TestServer::alone(upstream.address);
    let mut client = TestClient::to(address);
    let text = put("", &"x".repeat(1_000_000));
    client.send_text(&text[..100]);
    assert_eq!(client.receive(), "ok");
    client.send_text(&text[100..]);
    client.send_text(&get("/b"));
    assert!(upstream.next().head.contains("Content-Length: 1000000"));
    assert_eq!(client.receive(), "GET /b HTTP/1.1 +0");
    assert_eq!(server.proxied(), 2);
    drop(server);

    let refused = "HTTP/1.1 413 No\r\nconnection: close\r\nContent-Length: 2\r\n\r\nno";
    let upstream = TestUpstream::start(move |mut served| {
        let mut head = [0; 20];
        served.read(&mut head).unwrap();
        served.send_text(refused);
    });
    let (server, address) = TestServer::alone(upstream.address);
    let mut client = TestClient::to(address);
    client.send_text(&text[..100]);
    assert_eq!(client.receive_all(), refused.as_bytes());
    assert_eq!(server.log.lock().unwrap().left, 0);
}

#[test]
fn stalled_body_is_closed_but_a_slow_response_is_not() {
    let upstream = TestUpstream::start(|mut served| {
        let Some(received) = served.request() else { return served.report_text("left") };
        served.report(received);
        // Until the connection is closed.
        let _ = served.read(&mut [0]);
    });
    let (server, address) = TestServer::alone(upstream.address);
    let mut waiting = TestClient::to(address);
    waiting.send_text(&get("/"));
    upstream.next();
    let mut stalled = TestClient::to(address);
    let text = put("", &"x".repeat(20_000));
    stalled.send_text(&text[..text.len() - 1]);
    server.advance_s(9);
    assert_eq!(server.open_count(), 2);
    server.advance_s(3);
    assert_eq!(server.open_count(), 1);
    assert_eq!(upstream.next().head, "left");
    server.advance_s(60);
    assert_eq!(server.open_count(), 1);
}

#[test]
fn connection_survives_a_slow_response() {
    let (go, gone) = channel::<()>();
    let gone = Mutex::new(gone);
    let upstream = TestUpstream::start(move |mut served| {
        let received = served.request().unwrap();
        served.report(received);
        gone.lock().unwrap().recv_timeout(GUARD).unwrap();
        served.send_text(GOOD);
        served.serve_echo();
    });
    let (server, address) = TestServer::alone(upstream.address);
    let mut client = TestClient::to(address);
    client.send_text(&get("/"));
    upstream.next();
    server.advance_s(60);
    go.send(()).unwrap();
    assert_eq!(client.receive(), "ok");
    server.advance_s(9);
    assert_eq!(server.open_count(), 1);
}

/// Writes without end until the client leaves; counts chunks in `written`.
fn pouring(written: Arc<AtomicUsize>) -> TestUpstream {
    TestUpstream::start(move |mut served: ServedConnection| {
        served.request();
        served.send_text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        let chunk = format!("1000\r\n{}\r\n", "x".repeat(4096));
        while served.stream.write_all(chunk.as_bytes()).is_ok() {
            written.fetch_add(1, Ordering::SeqCst);
        }
        served.report_text("left");
    })
}

#[test]
fn client_that_does_not_read_stalls_upstream_and_is_closed() {
    let written = Arc::new(AtomicUsize::new(0));
    let upstream = pouring(written.clone());
    let (server, address) = TestServer::alone(upstream.address);
    let mut client = TestClient::to(address);
    client.send_text(&get("/"));
    let (mut last, mut still) = (0, 0);
    while still < 2_000 {
        server.run_turns();
        let now = written.load(Ordering::SeqCst);
        still = if now == last { still + 1 } else { 0 };
        last = now;
        // Socket buffers hold less than this.
        assert!(last < 16 * 1024, "{last} chunks");
    }
    server.advance_s(9);
    assert_eq!(server.open_count(), 1);
    server.advance_s(3);
    assert_eq!(server.open_count(), 0);
    assert_eq!(upstream.next().head, "left");
}

#[test]
fn slow_reader_gets_the_complete_response() {
    let size = 8 << 20;
    let upstream = TestUpstream::start(move |mut served| {
        if served.number > 0 {
            return served.serve_echo();
        }
        served.request();
        served.send_text(&format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n"));
        let bytes: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
        let _ = served.stream.write_all(&bytes);
        served.serve_echo();
    });
    let (server, address) = TestServer::alone(upstream.address);
    let mut client = TestClient::to(address);
    client.send_text(&get("/"));
    client.read_exact(format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n").len());
    let mut all = Vec::new();
    while all.len() < size {
        all.extend(client.read_exact((1 << 20).min(size - all.len())));
        server.advance_s(1);
    }
    assert!(all.iter().enumerate().all(|(at, byte)| *byte == (at % 251) as u8));
    client.send_text(&get("/b"));
    assert_eq!(client.receive(), "GET /b HTTP/1.1 +0");
}

#[test]
fn upstream_that_does_not_read_stalls_the_client() {
    let upstream = TestUpstream::start(|mut served| {
        let mut start = [0; 10];
        served.read(&mut start).unwrap();
        served.report_text("come");
        // Until the client is gone.
        served.stream.set_read_timeout(Some(GUARD)).unwrap();
        std::thread::park_timeout(GUARD);
    });
    let (server, address) = TestServer::alone(upstream.address);
    let mut client = TestClient::to(address);
    client.send_text(put("", "").replace("Length: 0", "Length: 99000000").as_str());
    upstream.next();
    client.stream.set_nonblocking(true).unwrap();
    let (mut sent, mut still) = (0, 0);
    let bytes = vec![b'x'; 16 * 1024];
    while still < 200 {
        match client.stream.write(&bytes) {
            Ok(count) => (sent, still) = (sent + count, 0),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                still += 1;
                server.run_turns();
            }
        }
        assert!(sent < 64 << 20);
    }
    // The client is not at fault.
    server.advance_s(30);
    assert_eq!(server.open_count(), 1);
}
