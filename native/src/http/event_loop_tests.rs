use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Barrier};

use crate::http::handler::ClientCloseReason;
use crate::http::listener::{Listener, listen_on};
use crate::http::mailbox::{Command, mailbox};
use crate::http::test_server::{
    LIMITS, Limits, TestClient, TestServer, TestUpstream, UPSTREAM_CONNECTIONS_MAX, get, listener,
    post, put,
};

#[test]
fn connection_above_the_limit_is_closed() {
    let upstream = TestUpstream::echo();
    let limits = Limits { connections: 2, ..LIMITS };
    let (server, address) = TestServer::alone_with(upstream.address, limits);
    let mut first = TestClient::to(address);
    let second = TestClient::to(address);
    assert_eq!(server.open_count(), 2);
    let mut third = TestClient::to(address);
    assert_eq!(third.receive_all(), b"");
    assert_eq!(server.log.lock().unwrap().closed, [ClientCloseReason::TooMany]);
    first.send_text(&post("", "hello"));
    assert_eq!(first.receive(), "hello");
    drop(second);
    assert_eq!(server.open_count(), 1);
    let mut fourth = TestClient::to(address);
    fourth.send_text(&post("", "hello"));
    assert_eq!(fourth.receive(), "hello");
}

#[test]
fn connection_idle_for_longest_gives_way_above_the_limit() {
    let upstream = TestUpstream::start(|mut served| {
        while let Some(received) = served.request() {
            served.report(received);
        }
    });
    let limits = Limits { connections: 4, ..LIMITS };
    let (server, address) = TestServer::alone_with(upstream.address, limits);
    // Two with a request in progress, one that is idle since it connected, one that was answered.
    let mut proxied = TestClient::to(address);
    proxied.send_text(&get("/late"));
    upstream.next();
    let mut partial = TestClient::to(address);
    partial.send_text("POST /");
    let mut answered = TestClient::to(address);
    let mut silent = TestClient::to(address);
    server.advance_s(2);
    answered.send_text(&post("", "hello"));
    assert_eq!(answered.receive(), "hello");
    assert_eq!(server.open_count(), 4);
    let mut fifth = TestClient::to(address);
    assert_eq!(silent.receive_all(), b"");
    assert_eq!(server.open_count(), 4);
    // Nothing else is idle for more than a second.
    server.advance_s(1);
    assert_eq!(TestClient::to(address).receive_all(), b"");
    server.advance_s(1);
    fifth.send_text(&post("", "hello"));
    assert_eq!(fifth.receive(), "hello");
    let mut sixth = TestClient::to(address);
    assert_eq!(answered.receive_all(), b"");
    for client in [&mut fifth, &mut sixth] {
        client.send_text(&post("", "hello"));
        assert_eq!(client.receive(), "hello");
    }
    assert_eq!(server.open_count(), 4);
    let expected =
        [ClientCloseReason::Evicted, ClientCloseReason::TooMany, ClientCloseReason::Evicted];
    assert_eq!(server.log.lock().unwrap().closed, expected);
}

#[test]
fn connections_per_address_are_limited_over_all_ingress_threads() {
    let upstream = TestUpstream::echo();
    let limits = Limits { per_address: 3, ..LIMITS };
    let second = TestServer::open(mailbox().unwrap(), upstream.address, limits, None);
    let (listener, address) = listener(vec![second.handle.clone()], limits);
    let first = TestServer::open(mailbox().unwrap(), upstream.address, limits, Some(listener));
    let mut own: Vec<_> = (0..3).map(|_| TestClient::to(address)).collect();
    assert_eq!(first.open_count() + second.open_count(), 3);
    assert_eq!(TestClient::to(address).receive_all(), b"");
    first.run_turns();
    assert_eq!(first.log.lock().unwrap().closed, [ClientCloseReason::Address]);
    // Other addresses are still served, and so are the address's open connections.
    let mut other = TestClient::from(Ipv4Addr::new(127, 0, 0, 2), address);
    for client in own.iter_mut().chain([&mut other]) {
        client.send_text(&post("", "hello"));
        assert_eq!(client.receive(), "hello");
    }
    drop(own.pop());
    assert_eq!(first.open_count() + second.open_count(), 3);
    let mut next = TestClient::to(address);
    next.send_text(&post("", "hello"));
    assert_eq!(next.receive(), "hello");
    assert_eq!(first.log.lock().unwrap().closed.len(), 1);
}

#[test]
fn binding_a_used_port_fails() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    assert!(listen_on(taken.local_addr().unwrap()).is_err());
}

#[test]
fn connections_are_distributed_round_robin_to_live_ingress_threads() {
    let upstream = TestUpstream::echo();
    let second = TestServer::open(mailbox().unwrap(), upstream.address, LIMITS, None);
    let mut third = TestServer::open(mailbox().unwrap(), upstream.address, LIMITS, None);
    let others = vec![second.handle.clone(), third.handle.clone()];
    let (listener, address) = listener(others, LIMITS);
    let first = TestServer::open(mailbox().unwrap(), upstream.address, LIMITS, Some(listener));
    let mut clients: Vec<_> = (0..9).map(|_| TestClient::to(address)).collect();
    for server in [&first, &second, &third] {
        first.run_turns();
        assert_eq!(server.open_count(), 3);
    }
    for client in &mut clients {
        client.send_text(&post("", "hello"));
        assert_eq!(client.receive(), "hello");
    }
    for server in [&first, &second, &third] {
        assert_eq!(server.handled(), 3);
    }
    assert!(third.handle.send(Command::Exit));
    third.join();
    assert!(!third.handle.send(Command::Drain));
    let more: Vec<_> = (0..4).map(|_| TestClient::to(address)).collect();
    first.run_turns();
    assert_eq!((first.open_count(), second.open_count()), (5, 5));
    drop(more);
}

#[test]
fn draining_refuses_new_submissions_and_proxies_other_requests() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone(upstream.address);
    let mut client = TestClient::to(address);
    let text = post("known", "hello");
    client.send_text(&text);
    assert_eq!(client.receive(), "hello");
    let (start, end) = text.split_at(text.len() - 1);
    client.send_text(start);
    server.run_turns();
    assert!(server.handle.send(Command::Drain));
    server.run_turns();
    // A request with a pending body is not new work.
    client.send_text(end);
    assert_eq!(client.receive(), "hello");
    assert_eq!((server.handled(), server.proxied()), (2, 0));
    let to_rpc = |text: &str| text.replace("RawT", "T");
    let large = post("known", &"x".repeat(20_000));
    for text in [&text, &to_rpc(&post("known", &"x".repeat(257))), &to_rpc(&large), &text] {
        let mut client = TestClient::to(address);
        client.send_text(text.get(..16_384).unwrap_or(text));
        let endpoint = if text.contains("Raw") { "Raw" } else { "JsonRpc" };
        let all = String::from_utf8(client.receive_all()).unwrap();
        assert!(all.contains("\r\nConnection: close\r\n"), "{all}");
        assert!(all.ends_with(&format!("{endpoint} drains")), "{all}");
    }
    assert_eq!((server.handled(), server.proxied()), (0, 0));
    // So small a body may ask for what needs no key.
    let mut client = TestClient::to(address);
    client.send_text(&to_rpc(&post("known", &"x".repeat(256))));
    assert!(client.receive_all().ends_with(&[b'x'; 256]));
    let mut client = TestClient::to(address);
    client.send_text(&put("known", "hello"));
    assert!(client.receive().ends_with(" HTTP/1.1 +5"));
    assert_eq!((server.handled(), server.proxied()), (1, 1));
}

#[test]
fn stopping_reports_idle_when_all_requests_are_answered() {
    let may_answer = Arc::new(Barrier::new(2));
    let answers = may_answer.clone();
    let upstream = TestUpstream::start(move |mut served| {
        let received = served.request().unwrap();
        served.report(received);
        answers.wait();
        served.send_text("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        served.serve_echo();
    });
    let (mut server, address) = TestServer::alone(upstream.address);
    let mut kept = TestClient::to(address);
    kept.send_text(&post("known", "hello"));
    assert_eq!(kept.receive(), "hello");
    let mut busy = TestClient::to(address);
    busy.send_text(&get("/"));
    upstream.next();
    assert!(server.handle.send(Command::Stop));
    server.run_turns();
    assert!(std::net::TcpStream::connect(address).is_err());
    assert_eq!((server.open_count(), server.log.lock().unwrap().idle), (2, false));
    kept.send_text(&post("known", "hello"));
    assert_eq!(kept.receive(), "hello");
    may_answer.wait();
    assert_eq!(busy.receive(), "ok");
    drop(busy);
    server.run_turns();
    assert!(server.log.lock().unwrap().idle);
    assert!(server.handle.send(Command::Exit));
    server.join();
    assert_eq!(kept.receive_all(), b"");
    assert!(!server.handle.send(Command::Exit));
}

#[test]
fn stopping_waits_for_a_client_that_still_sends_a_refused_request() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone(upstream.address);
    let mut client = TestClient::to(address);
    client.send_text(post("known", &"x".repeat(100_000)).get(..1_000).unwrap());
    assert!(client.receive().starts_with("TooLarge"));
    assert!(server.handle.send(Command::Stop));
    server.run_turns();
    assert_eq!((server.open_count(), server.log.lock().unwrap().idle), (1, false));
    drop(client);
    server.run_turns();
    assert!(server.log.lock().unwrap().idle);
}

#[test]
fn without_keep_alive_each_connection_closes_with_its_response_and_new_ones_are_accepted() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone(upstream.address);
    let mut kept = TestClient::to(address);
    kept.send_text(&post("known", "hello"));
    assert_eq!(kept.receive(), "hello");
    assert!(server.handle.send(Command::DisableKeepAlive));
    server.run_turns();
    assert_eq!(server.open_count(), 1);
    for mut client in [kept, TestClient::to(address)] {
        client.send_text(&post("known", "hello"));
        let last = String::from_utf8(client.receive_all()).unwrap();
        assert_eq!(last.matches("\r\nConnection: close\r\n").count(), 1);
        assert!(last.ends_with("\r\n\r\nhello"));
    }
    assert_eq!(server.open_count(), 0);
}

#[test]
fn request_with_connection_close_is_answered_here_and_is_the_last() {
    let upstream = TestUpstream::start(|_| panic!("it is proxied"));
    let (server, address) = TestServer::alone(upstream.address);
    let closing = post("known", "hello").replace("Host", "Connection: close\r\nHost");
    for text in [closing.clone(), format!("{closing}{}", post("known", "not read"))] {
        let mut client = TestClient::to(address);
        client.send_text(&text);
        let all = String::from_utf8(client.receive_all()).unwrap();
        assert!(all.ends_with("\r\n\r\nhello"), "{all}");
        assert_eq!((all.matches("HTTP/1.1").count(), all.matches("Connection").count()), (1, 0));
    }
    assert_eq!(server.open_count(), 0);
}

#[test]
fn retiring_closes_each_connection_with_its_last_response() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone(upstream.address);
    let mut idle = TestClient::to(address);
    idle.send_text(&post("known", "hello"));
    assert_eq!(idle.receive(), "hello");
    let mut busy = TestClient::to(address);
    let text = post("known", "hello");
    let (start, end) = text.split_at(text.len() - 1);
    busy.send_text(start);
    server.run_turns();
    assert!(server.handle.send(Command::Retire));
    server.run_turns();
    // This process has the only descriptor of the socket, so the system closes it.
    assert!(std::net::TcpStream::connect(address).is_err());
    assert_eq!(server.open_count(), 2);
    busy.send_text(end);
    let last = String::from_utf8(busy.receive_all()).unwrap();
    assert_eq!(last.matches("\r\nConnection: close\r\n").count(), 1);
    assert!(last.ends_with("\r\n\r\nhello"));
    // Of two requests that arrived together, both are answered, and the last one closes.
    idle.send_text(&text.repeat(2));
    let both = String::from_utf8(idle.receive_all()).unwrap();
    assert_eq!(both.matches("hello").count(), 2);
    assert_eq!(both.matches("\r\nConnection: close\r\n").count(), 1);
    assert!(both.find("Connection: close") > both.find("hello"));
    assert_eq!(server.open_count(), 0);
}

#[test]
fn two_servers_of_one_socket_refuse_no_connection() {
    let upstream = TestUpstream::echo();
    let socket = listen_on("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    let listening = |socket| Listener::listening(socket, Vec::new(), LIMITS.per_address);
    let open =
        |listening| TestServer::open(mailbox().unwrap(), upstream.address, LIMITS, Some(listening));
    let old = open(listening(socket.try_clone().unwrap()));
    let kept = TestClient::to(address);
    assert_eq!(old.open_count(), 1);
    assert!(old.handle.send(Command::Retire));
    old.run_turns();
    // No thread has accepted it yet, and the system has not refused it.
    let mut early = TestClient::to(address);
    let new = open(listening(socket));
    early.send_text(&post("known", "hello"));
    assert_eq!(early.receive(), "hello");
    let mut next = TestClient::to(address);
    next.send_text(&post("known", "hello"));
    assert_eq!(next.receive(), "hello");
    assert_eq!((old.open_count(), new.open_count()), (1, 2));
    drop(kept);
}

#[test]
fn pending_body_is_counted_and_delays_idle() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone(upstream.address);
    let pending = |server: &TestServer| {
        server.run_turns();
        let log = server.log.lock().unwrap();
        (log.bodies_pending, log.idle)
    };
    let text = post("known", "hello");
    let (start, end) = text.split_at(text.len() - 1);
    let (mut one, mut other) = (TestClient::to(address), TestClient::to(address));
    one.send_text(start);
    other.send_text(start);
    assert_eq!(pending(&server), (2, false));
    drop(other);
    assert_eq!(pending(&server), (1, false));
    assert_eq!(server.log.lock().unwrap().left, 1);
    assert!(server.handle.send(Command::Stop));
    assert_eq!(pending(&server), (1, false));
    one.send_text(end);
    assert_eq!(one.receive(), "hello");
    assert_eq!(pending(&server), (0, true));
}

#[test]
fn proxying_above_the_limit_is_rejected_until_a_permit_is_free() {
    let upstream = TestUpstream::start(|mut served| {
        while let Some(received) = served.request() {
            if received.head.starts_with("GET /now") {
                served.send_text("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            }
            served.report(received);
        }
    });
    let (server, address) = TestServer::alone(upstream.address);
    let mut holders: Vec<_> =
        (0..UPSTREAM_CONNECTIONS_MAX).map(|_| TestClient::to(address)).collect();
    for holder in &mut holders {
        holder.send_text(&get("/late"));
        upstream.next();
    }
    let mut one = TestClient::to(address);
    one.send_text(&get("/now"));
    assert!(one.receive().contains(r#""reason":"overloaded""#));
    assert_eq!(one.receive_all(), b"");
    drop(holders.pop());
    server.advance_s(3);
    let mut next = TestClient::to(address);
    next.send_text(&get("/now"));
    assert_eq!(next.receive(), "ok");
    assert_eq!(server.log.lock().unwrap().overloaded, 1);
}

#[test]
fn idle_upstream_connections_use_at_most_half_of_the_permits() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone(upstream.address);
    let mut clients: Vec<_> =
        (0..2 * UPSTREAM_CONNECTIONS_MAX).map(|_| TestClient::to(address)).collect();
    for _ in 0..2 {
        for client in &mut clients {
            client.send_text(&get("/"));
            assert!(client.receive().ends_with("+0"));
        }
    }
    assert_eq!(server.log.lock().unwrap().overloaded, 0);
    let kept = UPSTREAM_CONNECTIONS_MAX / 2 - 1;
    assert_eq!(upstream.connections.load(Ordering::SeqCst), 4 * UPSTREAM_CONNECTIONS_MAX - kept);
}

#[test]
fn stop_without_clients_is_idle_and_end_closes_all() {
    let upstream = TestUpstream::echo();
    let (mut server, _) = TestServer::alone(upstream.address);
    assert!(server.handle.send(Command::Stop));
    server.run_turns();
    assert!(server.log.lock().unwrap().idle);
    assert!(server.handle.send(Command::Exit));
    server.join();
    let (mut server, address) = TestServer::alone(upstream.address);
    let mut client = TestClient::to(address);
    client.send_text(&get("/").replace("Host", "Transfer-Encoding: x\r\nHost"));
    upstream.next();
    assert!(server.handle.send(Command::Exit));
    server.join();
    client.receive_all();
}

/// At the end of a turn the handler sends what it has held back until then, also that of QUIC
/// clients, whose last streams the turn of the exit reads.
#[test]
fn turn_of_the_exit_ends_as_others_do() {
    let upstream = TestUpstream::echo();
    let (mut server, _) = TestServer::alone(upstream.address);
    server.run_turns();
    let before = server.turns();
    assert!(server.handle.send(Command::Exit));
    server.join();
    assert_eq!(server.turns(), before + 1);
}

#[test]
fn pipelining_client_does_not_delay_others() {
    let upstream = TestUpstream::echo();
    let (server, address) = TestServer::alone(upstream.address);
    let mut eager = TestClient::to(address);
    let text: String = (0..400).map(|number| post("", &number.to_string())).collect();
    eager.send_text(&text);
    let mut other = TestClient::to(address);
    other.send_text(&post("", "hello"));
    assert_eq!(other.receive(), "hello");
    for number in 0..400 {
        assert_eq!(eager.receive(), number.to_string());
    }
    assert_eq!(server.handled(), 401);
}

/// Random numbers from a fixed seed: xorshift64.
struct Rng(u64);

impl Rng {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

/// A request with unambiguous framing; its body does not look like a head.
fn random_request(rng: &mut Rng) -> (String, bool) {
    let size = [0, 1, 5, 300, 5000, 16_300][rng.below(6)];
    let body = "b".repeat(size);
    let token = ["known", "other", ""][rng.below(3)];
    let text = post(token, &body);
    match rng.below(7) {
        0 => (get("/x"), false),
        1 => (text.replace("POST", "PUT"), false),
        2 => (text.replace("Host", "content-length: 5\r\nHost"), size == 5),
        3 => (text.replace("Host: a\r\n", &"h: v\r\n".repeat(40)), false),
        _ => (text, true),
    }
}

#[test]
fn random_pipelined_requests_are_framed_the_same_upstream() {
    let mut rng = Rng(0x9e37_79b9_7f4a_7c15);
    for _ in 0..60 {
        let upstream = TestUpstream::echo();
        let (server, address) = TestServer::alone(upstream.address);
        let mut client = TestClient::to(address);
        let mut all = String::new();
        let mut bodies = Vec::new();
        for _ in 0..1 + rng.below(12) {
            let (text, is_usual) = random_request(&mut rng);
            if text.contains("content-length: 5\r\n") && !is_usual {
                // Two different sizes: it would be the connection's last.
                continue;
            }
            bodies.push(text.split_once("\r\n\r\n").unwrap().1.len());
            all += &text;
        }
        let mut rest = all.as_str();
        let mut pieces = Vec::new();
        while !rest.is_empty() {
            let (piece, more) = rest.split_at(1 + rng.below(rest.len().min(6000)));
            pieces.push(piece.to_string());
            rest = more;
        }
        let yields: Vec<bool> = pieces.iter().map(|_| rng.below(2) == 0).collect();
        let mut speaker = client.stream.try_clone().unwrap();
        let spoken = std::thread::spawn(move || {
            for (piece, yield_after) in pieces.into_iter().zip(yields) {
                std::io::Write::write_all(&mut speaker, piece.as_bytes()).unwrap();
                if yield_after {
                    std::thread::yield_now();
                }
            }
        });
        for size in bodies {
            let received = client.receive();
            let is_here = received == "b".repeat(size) || received == "KeyUnknown";
            assert!(is_here || received.ends_with(&format!(" +{size}")), "{size}: {received}");
        }
        spoken.join().unwrap();
        assert_eq!(server.open_count(), 1);
        while let Ok(received) = upstream.received.try_recv() {
            assert_eq!(received.head.matches("x-secret-name: 127.0.0.1\r\n").count(), 1);
            assert!(received.body.iter().all(|byte| *byte == b'b'));
        }
    }
}

#[test]
fn corrupted_request_never_becomes_two() {
    let mut rng = Rng(0x2545_f491_4f6c_dd1d);
    for _ in 0..400 {
        let upstream = TestUpstream::echo();
        let (server, address) = TestServer::alone(upstream.address);
        let mut client = TestClient::to(address);
        let mut bytes = put("known", "proxy").into_bytes();
        for _ in 0..1 + rng.below(3) {
            let at = rng.below(bytes.len());
            match rng.below(3) {
                0 => bytes[at] = b"\r\n\0 :;,0159aHC\xff"[rng.below(15)],
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, b"\r\n\0 :;,0159aHC\xff"[rng.below(15)]),
            }
        }
        std::io::Write::write_all(&mut client.stream, &bytes).unwrap();
        server.run_turns();
        client.stream.shutdown(std::net::Shutdown::Write).unwrap();
        client.receive_all();
        server.run_turns();
        let shown = server.handled();
        let proxied = server.proxied();
        assert!(shown + proxied <= 2, "{shown} {proxied} of {bytes:?}");
        // Every request has the forwarded header once, right after the request line.
        while let Ok(received) = upstream.received.try_recv() {
            if received.head == "left" {
                continue;
            }
            let second = received.head.lines().nth(1).unwrap();
            assert!(second.starts_with("x-secret-name: 127.0.0.1"), "{:?}", received.head);
            assert_eq!(received.head.matches("x-secret-name").count(), 1);
        }
    }
}
