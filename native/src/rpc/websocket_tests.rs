//! Connections to a node in cases that the JavaScript tests do not cover: over TLS, and while the
//! network does not respond.

use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustls::crypto::ring::default_provider;
use rustls::{ClientConfig, ServerConfig, ServerConnection, StreamOwned};
use socket2::{Domain, Socket, Type};
use tungstenite::{Error, Message};

use crate::quic::tls::{AnyKey, self_signed};
use crate::rpc::websocket::{Address, Interrupt, connect_to_first, open, open_with};

fn interrupt() -> Arc<Interrupt> {
    Arc::new(Interrupt::new().unwrap())
}

fn in_a_minute() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

/// A node behind TLS that accepts one connection and echoes messages; it ends with the connection.
fn tls_node() -> (u16, thread::JoinHandle<Option<String>>) {
    let (certificate, key) = self_signed(&[7; 32]).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let node = thread::spawn(move || {
        let socket = listener.accept().unwrap().0;
        let session = ServerConnection::new(Arc::new(config)).unwrap();
        let mut socket = tungstenite::accept(StreamOwned::new(session, socket)).ok()?;
        let received = socket.read().ok()?;
        // 1000 together, so that several share one TLS record.
        for _ in 0..1000 {
            socket.write(received.clone()).ok()?;
        }
        socket.flush().ok()?;
        // Until the other side ends.
        let _ = socket.read();
        received.into_text().ok().map(|text| text.to_string())
    });
    (port, node)
}

fn any_key() -> Option<Arc<ClientConfig>> {
    let provider = Arc::new(default_provider());
    let verifier = Arc::new(AnyKey(provider.clone()));
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().ok()?.dangerous();
    Some(Arc::new(builder.with_custom_certificate_verifier(verifier).with_no_client_auth()))
}

#[test]
fn messages_pass_through_tls_without_blocking() {
    let (port, node) = tls_node();
    let interrupt = interrupt();
    let address = Address::new(&format!("wss://127.0.0.1:{port}/x"), "").unwrap();
    let mut socket = open_with(any_key, address, &interrupt, in_a_minute()).unwrap();
    socket.send(Message::text("question")).unwrap();
    let mut received = 0;
    while received < 1000 {
        match socket.read() {
            Ok(message) => {
                assert_eq!(message.to_text().unwrap(), "question");
                received += 1;
            }
            Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => {
                interrupt
                    .wait(socket.get_ref().socket(), PollFlags::IN, Some(in_a_minute()))
                    .unwrap();
            }
            Err(error) => panic!("{error}"),
        }
    }
    drop(socket);
    assert_eq!(node.join().unwrap().as_deref(), Some("question"));
}

#[test]
fn a_self_signed_certificate_is_rejected() {
    let (port, node) = tls_node();
    let address = Address::new(&format!("wss://127.0.0.1:{port}"), "").unwrap();
    assert!(open(address, &interrupt(), in_a_minute()).is_none());
    assert_eq!(node.join().unwrap(), None);
}

/// A port that never responds: its connection queue is full, and no thread accepts.
fn silent_port() -> (u16, Vec<Socket>) {
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let port = address.as_socket_ipv4().unwrap().port();
    let mut held = vec![listener];
    for _ in 0..4 {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.set_nonblocking(true).unwrap();
        let _ = socket.connect(&address);
        held.push(socket);
    }
    (port, held)
}

#[test]
fn an_unresponsive_connection_ends_at_its_deadline_or_on_close() {
    let (port, _held) = silent_port();
    let address = || Address::new(&format!("ws://127.0.0.1:{port}"), "").unwrap();
    let started = Instant::now();
    assert!(open(address(), &interrupt(), started + Duration::from_millis(50)).is_none());
    assert!(started.elapsed() >= Duration::from_millis(50));
    let interrupt = interrupt();
    thread::scope(|scope| {
        // An interrupt for something else ends nothing.
        interrupt.signal();
        let opening = scope.spawn(|| open(address(), &interrupt, in_a_minute()).is_none());
        thread::sleep(Duration::from_millis(50));
        assert!(!opening.is_finished());
        interrupt.close();
        assert!(opening.join().unwrap());
    });
    assert!(started.elapsed() < Duration::from_secs(60));
}

/// A node that sends empty fragments of one message endlessly and without a pause.
fn flooding_node() -> (u16, thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let node = thread::spawn(move || {
        let mut socket = tungstenite::accept(listener.accept().unwrap().0).unwrap().into_inner();
        let (frame_start, pieces) = ([1, 0], vec![0; 1 << 16]);
        let until = in_a_minute();
        let mut written = socket.write_all(&frame_start);
        while written.is_ok() && Instant::now() < until {
            written = socket.write_all(&pieces);
        }
    });
    (port, node)
}

#[test]
fn close_ends_a_connection_to_a_node_that_never_pauses() {
    let (port, node) = flooding_node();
    let interrupt = interrupt();
    let address = Address::new(&format!("ws://127.0.0.1:{port}"), "").unwrap();
    let mut socket = open(address, &interrupt, in_a_minute()).unwrap();
    let closer = Arc::clone(&interrupt);
    let closing = thread::spawn(move || {
        thread::sleep(Duration::from_millis(50));
        closer.close();
    });
    let ended = loop {
        match socket.read() {
            Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => {}
            Err(Error::Io(error)) => break error.kind(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(ended, ErrorKind::ConnectionAborted);
    closing.join().unwrap();
    drop(socket);
    node.join().unwrap();
}

#[test]
fn a_silent_address_leaves_time_for_the_next() {
    let (silent, _held) = silent_port();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let live = listener.local_addr().unwrap();
    // Enough that the first ones get 1 s each, and the others enough time on a busy machine.
    let mut addresses = vec![live; 15];
    addresses.insert(0, SocketAddr::from(([127, 0, 0, 1], silent)));
    let until = Instant::now() + Duration::from_secs(16);
    let socket = connect_to_first(&addresses, &interrupt(), until).unwrap();
    assert_eq!(socket.peer_addr().unwrap(), live);
    assert!(connect_to_first(&[], &interrupt(), until).is_err());
}

#[test]
fn an_address_must_be_a_websocket_url_without_credentials() {
    for url in ["ws://a", "wss://a.b:1/c?d", "ws://[::1]:9/", "ws://127.0.0.1"] {
        assert!(Address::new(url, "Basic eA==").is_some(), "{url}");
    }
    for url in ["", "a", "/a", "http://a", "ws://", "ws:///a", "ws://a:b@c/", "ws://@c/", "ws://:9"]
    {
        assert!(Address::new(url, "").is_none(), "{url}");
    }
    assert!(Address::new("ws://a", "x\ny").is_none());
}
