//! A stand-in for an edge, made of quinn: it speaks `touchdown/1` as docs/quic.md says, and can
//! refuse, drain and break. The real edge is in `test/clients` of Touchdown.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quinn::crypto::rustls::{HandshakeData, QuicServerConfig};
use quinn::{Connection, Endpoint, RecvStream, SendStream, ServerConfig, TransportConfig, VarInt};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::PrivatePkcs8KeyDer;
use tokio::net::UdpSocket;
use tokio::sync::Notify;
use touchdown_client::{
    Client, Config, ConnectError, Credential, Event, Outcome, Protocol, Reason, SendError,
    SubmitOptions, Trust,
};

const KEY: &str = "example-key-of-this-page";
const LIMITS: [u8; 28] = [
    0x81, 0, 24, 0, 0, 0, 0, 0, 0, 0, 0x49, 0x40, 100, 0, 0, 0, 100, 0, 0, 0, 64, 0, 0, 0, 0, 0x10,
    0, 0,
];

/// Seven receipts were dropped.
const LOST: [u8; 8] = [0x85, 0, 4, 0, 7, 0, 0, 0];

/// What the stand-in does with a transaction on a bidirectional stream.
#[derive(Clone, Copy, PartialEq)]
enum Answer {
    /// A verdict with this state and code.
    Verdict(u8, u16),
    /// The first connection is closed with this code instead; later ones accept.
    CloseFirst(u32),
    /// Never.
    Silence,
    /// Never, and it reads nothing, so that the client has credit for a few bytes only.
    Unread,
}

struct Edge {
    address: SocketAddr,
    authority: Vec<u8>,
    connections: Arc<AtomicUsize>,
    hellos: Arc<Mutex<Vec<Vec<u8>>>>,
    received: Arc<Mutex<Vec<Vec<u8>>>>,
    drain: tokio::sync::watch::Sender<Option<String>>,
    /// The edge notifies it of each stream that the client resets.
    reset: Arc<Notify>,
    /// With `solana-tpu` the edge grants streams once a test notifies it.
    grant: Arc<Notify>,
}

impl Edge {
    /// Its address by a name that its certificate has.
    fn name(&self) -> String {
        format!("localhost:{}", self.address.port())
    }

    fn config(&self, credential: Credential) -> Config {
        Config {
            trust: Trust::Authorities(vec![self.authority.clone()]),
            backoff_min: Duration::from_millis(1),
            backoff_max: Duration::from_millis(10),
            ..Config::new(self.name(), credential)
        }
    }
}

/// Starts one that answers HELLO with LIMITS, or with this close code.
fn start_edge(refusal: Option<u32>, answer: Answer) -> Edge {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).expect("a certificate");
    let authority = made.cert.der().to_vec();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let mut tls = rustls::ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())
        .expect("a key");
    tls.alpn_protocols = vec![b"touchdown/1".to_vec(), b"solana-tpu".to_vec()];
    let quic = QuicServerConfig::try_from(tls).expect("cipher suites");
    let mut config = ServerConfig::with_crypto(Arc::new(quic));
    let mut transport = TransportConfig::default();
    transport.max_concurrent_uni_streams(0u8.into());
    if answer == Answer::Unread {
        transport.stream_receive_window(200u8.into());
    }
    config.transport_config(Arc::new(transport));
    let endpoint = Endpoint::server(config, SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
    let edge = Edge {
        address: endpoint.local_addr().expect("an address"),
        authority,
        connections: Arc::default(),
        hellos: Arc::default(),
        received: Arc::default(),
        drain: tokio::sync::watch::channel(None).0,
        reset: Arc::default(),
        grant: Arc::default(),
    };
    let (connections, hellos) = (edge.connections.clone(), edge.hellos.clone());
    let (received, drain) = (edge.received.clone(), edge.drain.subscribe());
    let (reset, grant) = (edge.reset.clone(), edge.grant.clone());
    tokio::spawn(async move {
        while let Some(incoming) = endpoint.accept().await {
            let number = connections.fetch_add(1, Ordering::Relaxed);
            let Ok(connection) = incoming.await else { continue };
            let serve = Serve {
                connection,
                number,
                refusal,
                answer,
                hellos: hellos.clone(),
                received: received.clone(),
                reset: reset.clone(),
                grant: grant.clone(),
            };
            tokio::spawn(serve.run(drain.clone()));
        }
    });
    edge
}

struct Serve {
    connection: Connection,
    number: usize,
    refusal: Option<u32>,
    answer: Answer,
    hellos: Arc<Mutex<Vec<Vec<u8>>>>,
    received: Arc<Mutex<Vec<Vec<u8>>>>,
    reset: Arc<Notify>,
    grant: Arc<Notify>,
}

impl Serve {
    async fn run(self, mut drain: tokio::sync::watch::Receiver<Option<String>>) {
        let handshake = self.connection.handshake_data().expect("a handshake");
        let handshake = handshake.downcast::<HandshakeData>().expect("of TLS");
        if handshake.protocol.as_deref() == Some(b"solana-tpu") {
            self.grant.notified().await;
            self.connection.set_max_concurrent_uni_streams(8u8.into());
            self.connection.closed().await;
            return;
        }
        let Ok((mut control, mut receive)) = self.connection.accept_bi().await else { return };
        let hello = receive.read_to_end(200).await.expect("a HELLO");
        self.hellos.lock().expect("a lock").push(hello);
        if let Some(code) = self.refusal {
            self.connection.close(VarInt::from_u32(code), b"");
            return;
        }
        control.write_all(&LIMITS).await.expect("LIMITS");
        tokio::spawn(async move {
            let address = match drain.wait_for(Option::is_some).await {
                Ok(address) => address.clone().unwrap_or_default(),
                Err(_) => return,
            };
            let head = [0x83, 0, address.len() as u8, 0];
            // The client may be gone.
            let _ = control.write_all(&[&head[..], address.as_bytes()].concat()).await;
            if drain.changed().await.is_ok() {
                let _ = control.write_all(&LOST).await;
            }
            std::future::pending::<()>().await;
        });
        while let Ok((send, receive)) = self.connection.accept_bi().await {
            self.answer(send, receive).await;
        }
    }

    async fn answer(&self, mut send: SendStream, mut receive: RecvStream) {
        if self.answer == Answer::Unread {
            if let Ok(Some(_)) = receive.received_reset().await {
                self.reset.notify_one();
            }
            return;
        }
        let Ok(bytes) = receive.read_to_end(4097).await else { return };
        self.received.lock().expect("a lock").push(bytes);
        let (state, code) = match self.answer {
            Answer::Verdict(state, code) => (state, code),
            Answer::CloseFirst(code) if self.number == 0 => {
                self.connection.close(VarInt::from_u32(code), b"");
                return;
            }
            Answer::CloseFirst(_) => (1, 0),
            Answer::Silence | Answer::Unread => std::future::pending().await,
        };
        let mut verdict = [0; 88];
        verdict[..2].copy_from_slice(&[1, state]);
        verdict[2..4].copy_from_slice(&code.to_le_bytes());
        let _ = send.write_all(&verdict).await;
        let _ = send.finish();
    }
}

/// Waits for an event; other ones pass.
async fn until(events: &mut tokio::sync::broadcast::Receiver<Event>, expected: Event) {
    bounded(async { while events.recv().await.expect("an event") != expected {} }).await;
}

/// What this test waits for has to come.
async fn bounded<T>(wait: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), wait).await.expect("it within a minute")
}

const ACCEPTS: Answer = Answer::Verdict(1, 0);

#[tokio::test]
async fn api_key_is_sent_in_hello_and_limits_arrive() {
    let edge = start_edge(None, ACCEPTS);
    let client = Client::start(edge.config(Credential::api_key(KEY))).expect("a client");
    let mut events = client.events();
    client.ready().await.expect("a connection");
    let hellos = edge.hellos.lock().expect("a lock").clone();
    assert_eq!(hellos, [[&[0, 1, 0, 26, 0, 1, 0][..], KEY.as_bytes()].concat()]);
    assert!(matches!(events.recv().await, Ok(Event::Connected { .. })));
    let limits = Event::Limits { rate_per_second: 50.0, burst: 100, credit: 100 };
    assert_eq!(events.recv().await, Ok(limits));
}

#[tokio::test]
async fn submit_returns_the_verdict_and_options_are_one_byte_before() {
    let edge = start_edge(None, ACCEPTS);
    let client = Client::start(edge.config(Credential::derived(KEY))).expect("a client");
    let plain = client.submit(b"\x01abc", SubmitOptions::default()).await.expect("a verdict");
    assert_eq!(plain.outcome, Outcome::Accepted);
    let options = SubmitOptions { once: true, when_landed: true };
    client.submit(b"\x01abc", options).await.expect("a verdict");
    let received = edge.received.lock().expect("a lock").clone();
    assert_eq!(received, [b"\x01abc".to_vec(), b"\x43\x01abc".to_vec()]);
    // A certificate says who it is: HELLO has no key.
    assert_eq!(edge.hellos.lock().expect("a lock")[0], [0, 1, 0, 2, 0, 1, 0]);
}

#[tokio::test]
async fn tasks_submit_at_the_same_time() {
    let edge = start_edge(None, ACCEPTS);
    let client = Client::start(edge.config(Credential::derived(KEY))).expect("a client");
    let client = Arc::new(client);
    let tasks = (0..100u8).map(|number| {
        let client = client.clone();
        tokio::spawn(async move { client.submit(&[1, number], SubmitOptions::default()).await })
    });
    for task in tasks.collect::<Vec<_>>() {
        let verdict = task.await.expect("a task").expect("a verdict");
        assert_eq!(verdict.outcome, Outcome::Accepted);
    }
    assert_eq!(edge.received.lock().expect("a lock").len(), 100);
}

#[tokio::test]
async fn refusal_is_a_verdict_with_its_reason() {
    let edge = start_edge(None, Answer::Verdict(0, 0x10a));
    let client = Client::start(edge.config(Credential::derived(KEY))).expect("a client");
    let verdict = client.submit(b"\x01", SubmitOptions::default()).await.expect("a verdict");
    assert_eq!(verdict.outcome, Outcome::Refused(Reason::TipMissing));
    assert!(!Reason::TipMissing.is_retryable());
}

#[tokio::test]
async fn unauthorized_client_gives_up_at_once() {
    let edge = start_edge(Some(0x101), ACCEPTS);
    let client = Client::start(edge.config(Credential::api_key(KEY))).expect("a client");
    let mut events = client.events();
    let refused = ConnectError::Refused(Reason::Unauthorized);
    assert_eq!(client.ready().await, Err(refused.clone()));
    assert_eq!(bounded(events.recv()).await, Ok(Event::Failed(refused.clone())));
    let verdict = client.submit(b"\x01", SubmitOptions::default()).await;
    assert_eq!(verdict, Err(SendError::Connect(refused)));
    assert_eq!(edge.connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn first_caller_has_the_events_since_the_start() {
    let edge = start_edge(Some(0x101), ACCEPTS);
    let client = Client::start(edge.config(Credential::api_key(KEY))).expect("a client");
    let refused = ConnectError::Refused(Reason::Unauthorized);
    assert_eq!(client.ready().await, Err(refused.clone()));
    let (mut first, mut second) = (client.events(), client.events());
    assert_eq!(bounded(first.recv()).await, Ok(Event::Failed(refused)));
    assert!(second.try_recv().is_err());
}

#[tokio::test]
async fn transaction_whose_connection_is_lost_is_sent_again_on_the_next() {
    let edge = start_edge(None, Answer::CloseFirst(0x10d));
    let client = Client::start(edge.config(Credential::api_key(KEY))).expect("a client");
    let verdict = client.submit(b"\x01abc", SubmitOptions::default()).await.expect("a verdict");
    assert_eq!(verdict.outcome, Outcome::Accepted);
    let received = edge.received.lock().expect("a lock").clone();
    assert_eq!(received, [b"\x01abc", b"\x01abc"]);
    assert_eq!(edge.connections.load(Ordering::Relaxed), 2);
}

/// Passes a client's datagrams on to the edge at the address that the sender holds, and back.
fn start_relay(edge: SocketAddr) -> (String, tokio::sync::watch::Sender<SocketAddr>) {
    let socket = || {
        let socket = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        socket.set_nonblocking(true).expect("a socket of tokio");
        UdpSocket::from_std(socket).expect("a socket of tokio")
    };
    let (front, back) = (socket(), socket());
    let name = format!("localhost:{}", front.local_addr().expect("an address").port());
    let (sender, edge) = tokio::sync::watch::channel(edge);
    tokio::spawn(async move {
        let (mut from_client, mut from_edge) = ([0; 2048], [0; 2048]);
        let mut client = None;
        loop {
            tokio::select! {
                Ok((size, from)) = front.recv_from(&mut from_client) => {
                    client = Some(from);
                    let to = *edge.borrow();
                    let _ = back.send_to(&from_client[..size], to).await;
                }
                Ok((size, from)) = back.recv_from(&mut from_edge) => {
                    if let Some(client) = client.filter(|_| from == *edge.borrow()) {
                        let _ = front.send_to(&from_edge[..size], client).await;
                    }
                }
            }
        }
    });
    (name, sender)
}

#[tokio::test]
async fn transaction_is_sent_again_where_an_edge_crashed_and_another_runs_at_its_address() {
    let (edge, next) = (start_edge(None, ACCEPTS), start_edge(None, ACCEPTS));
    let (address, relay) = start_relay(edge.address);
    let config = Config {
        address,
        trust: Trust::Authorities(vec![edge.authority.clone(), next.authority.clone()]),
        timeout: Duration::from_secs(30),
        ..edge.config(Credential::api_key(KEY))
    };
    let client = Client::start(config).expect("a client");
    let mut events = client.events();
    let other = Client::start(edge.config(Credential::api_key(KEY))).expect("a client");
    let mut events_of_other = other.events();
    for each in [&client, &other] {
        each.submit(b"\x01abc", SubmitOptions::default()).await.expect("a verdict");
    }
    relay.send_replace(next.address);
    let verdict = client.submit(b"\x01def", SubmitOptions::default()).await.expect("a verdict");
    assert_eq!(verdict.outcome, Outcome::Accepted);
    assert_eq!(next.received.lock().expect("a lock").clone(), [b"\x01def"]);
    let lost = ConnectError::Failed("the edge does not answer".into());
    until(&mut events, Event::Disconnected(lost)).await;
    // A client whose edge answers has kept its connection as long.
    let mut told = std::iter::from_fn(|| events_of_other.try_recv().ok());
    assert!(!told.any(|event| matches!(event, Event::Disconnected(_))));
}

#[tokio::test]
async fn transaction_of_solana_tpu_is_sent_again_where_an_edge_crashed() {
    let (edge, next) = (start_edge(None, ACCEPTS), start_edge(None, ACCEPTS));
    let (address, relay) = start_relay(edge.address);
    let config = Config {
        address,
        protocol: Protocol::SolanaTpu,
        timeout: Duration::from_secs(30),
        ..edge.config(Credential::seed([7; 32]))
    };
    let client = Client::start(config).expect("a client");
    for running in [&edge, &next] {
        running.grant.notify_one();
        relay.send_replace(running.address);
        client.send(b"\x01abc").await.expect("an acknowledgement");
        assert_eq!(running.connections.load(Ordering::Relaxed), 1);
    }
}

#[tokio::test]
async fn durations_without_end_are_no_limits() {
    let edge = start_edge(None, Answer::CloseFirst(0x10d));
    let config = Config {
        connect_timeout: Duration::MAX,
        backoff_max: Duration::MAX,
        timeout: Duration::MAX,
        keep_alive: Duration::MAX,
        ..edge.config(Credential::api_key(KEY))
    };
    let client = Client::start(config).expect("a client");
    for when_landed in [false, true] {
        let options = SubmitOptions { when_landed, once: false };
        let verdict = bounded(client.submit(&[1, 2, 3], options)).await.expect("a verdict");
        assert_eq!(verdict.outcome, Outcome::Accepted);
    }
}

#[tokio::test]
async fn attempts_to_connect_end_at_their_bound() {
    let edge = start_edge(Some(0x10d), ACCEPTS);
    let config = Config { reconnects_max: 3, ..edge.config(Credential::api_key(KEY)) };
    let client = Client::start(config).expect("a client");
    assert_eq!(client.ready().await, Err(ConnectError::Refused(Reason::Overloaded)));
    assert_eq!(edge.connections.load(Ordering::Relaxed), 4);
}

#[tokio::test]
async fn draining_edge_is_left_for_the_one_that_it_names() {
    let (edge, other) = (start_edge(None, ACCEPTS), start_edge(None, ACCEPTS));
    let authorities = vec![edge.authority.clone(), other.authority.clone()];
    let config =
        Config { trust: Trust::Authorities(authorities), ..edge.config(Credential::api_key(KEY)) };
    let client = Client::start(config).expect("a client");
    let mut events = client.events();
    client.ready().await.expect("a connection");
    edge.drain.send_replace(Some(other.name()));
    until(&mut events, Event::Connected { address: other.name() }).await;
    client.submit(b"\x01abc", SubmitOptions::default()).await.expect("a verdict");
    assert_eq!(other.received.lock().expect("a lock").len(), 1);
    assert!(edge.received.lock().expect("a lock").is_empty());
    // What the old one still has to say arrives.
    edge.drain.send_replace(Some(String::new()));
    until(&mut events, Event::ReceiptsLost(7)).await;
}

#[tokio::test]
async fn edges_that_drain_and_name_each_other_get_one_connection_each() {
    let (edge, other) = (start_edge(None, ACCEPTS), start_edge(None, ACCEPTS));
    edge.drain.send_replace(Some(other.name()));
    other.drain.send_replace(Some(edge.name()));
    let authorities = vec![edge.authority.clone(), other.authority.clone()];
    let config =
        Config { trust: Trust::Authorities(authorities), ..edge.config(Credential::api_key(KEY)) };
    let client = Client::start(config).expect("a client");
    let mut events = client.events();
    until(&mut events, Event::Connected { address: other.name() }).await;
    until(&mut events, Event::Draining { address: Some(edge.name()) }).await;
    // A client that follows each DRAINING is at its tenth connection by the end of these.
    for number in 0..100 {
        client.submit(&[1, number], SubmitOptions::default()).await.expect("a verdict");
    }
    assert_eq!(edge.connections.load(Ordering::Relaxed), 1);
    assert_eq!(other.connections.load(Ordering::Relaxed), 1);
    assert_eq!(other.received.lock().expect("a lock").len(), 100);
}

#[tokio::test]
async fn draining_edge_that_names_itself_keeps_its_one_connection() {
    let edge = start_edge(None, ACCEPTS);
    edge.drain.send_replace(Some(edge.name()));
    let client = Client::start(edge.config(Credential::api_key(KEY))).expect("a client");
    let mut events = client.events();
    until(&mut events, Event::Draining { address: Some(edge.name()) }).await;
    for number in 0..100 {
        client.submit(&[1, number], SubmitOptions::default()).await.expect("a verdict");
    }
    assert_eq!(edge.connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn moves_to_ever_new_addresses_are_bounded() {
    let edges: Vec<Edge> = (0..12).map(|_| start_edge(None, ACCEPTS)).collect();
    for (edge, next) in edges.iter().zip(&edges[1..]) {
        edge.drain.send_replace(Some(next.name()));
    }
    let authorities = edges.iter().map(|edge| edge.authority.clone()).collect();
    let credential = Credential::api_key(KEY);
    let config = Config { trust: Trust::Authorities(authorities), ..edges[0].config(credential) };
    let client = Client::start(config).expect("a client");
    let mut events = client.events();
    until(&mut events, Event::Draining { address: Some(edges[9].name()) }).await;
    for number in 0..100 {
        client.submit(&[1, number], SubmitOptions::default()).await.expect("a verdict");
    }
    let connections = edges.iter().map(|edge| edge.connections.load(Ordering::Relaxed));
    assert_eq!(connections.collect::<Vec<_>>(), [1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0]);
}

#[tokio::test]
async fn handshake_that_took_too_long_for_the_edge_is_tried_again() {
    let edge = start_edge(Some(0x109), ACCEPTS);
    let config = Config { reconnects_max: 2, ..edge.config(Credential::api_key(KEY)) };
    let client = Client::start(config).expect("a client");
    let mut events = client.events();
    let refused = ConnectError::Refused(Reason::Undecodable);
    assert_eq!(client.ready().await, Err(refused.clone()));
    until(&mut events, Event::Disconnected(refused.clone())).await;
    until(&mut events, Event::Failed(refused)).await;
    assert_eq!(edge.connections.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn transaction_that_is_not_written_in_time_is_reset_and_not_finished() {
    let edge = start_edge(None, Answer::Unread);
    let config =
        Config { timeout: Duration::from_millis(200), ..edge.config(Credential::api_key(KEY)) };
    let client = Client::start(config).expect("a client");
    client.ready().await.expect("a connection");
    let verdict = client.submit(&[1; 1000], SubmitOptions::default()).await;
    assert_eq!(verdict, Err(SendError::Timeout));
    bounded(edge.reset.notified()).await;
}

#[tokio::test]
async fn wait_for_streams_of_solana_tpu_is_no_failed_attempt() {
    let edge = start_edge(None, ACCEPTS);
    let config = Config {
        protocol: Protocol::SolanaTpu,
        connect_timeout: Duration::from_secs(1),
        ..edge.config(Credential::seed([7; 32]))
    };
    let client = Client::start(config).expect("a client");
    let more_than_an_attempt = tokio::time::timeout(Duration::from_secs(2), client.ready());
    assert!(more_than_an_attempt.await.is_err());
    edge.grant.notify_one();
    bounded(client.ready()).await.expect("a connection");
    assert_eq!(edge.connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn waiting_is_bounded_in_time_and_number() {
    let edge = start_edge(None, Answer::Silence);
    let config = Config {
        timeout: Duration::from_millis(50),
        pending_max: 1,
        ..edge.config(Credential::api_key(KEY))
    };
    let client = Client::start(config).expect("a client");
    client.ready().await.expect("a connection");
    let submit = || client.submit(b"\x01", SubmitOptions::default());
    let (first, second) = tokio::join!(submit(), submit());
    assert_eq!((first, second), (Err(SendError::Timeout), Err(SendError::TooMany)));
    for size in [0, 4097] {
        let verdict = client.submit(&vec![1; size], SubmitOptions::default()).await;
        assert_eq!(verdict, Err(SendError::Size(size)));
    }
}

#[tokio::test]
async fn closed_client_ends_what_waits_and_connects_no_more() {
    let edge = start_edge(None, Answer::Silence);
    let client = Client::start(edge.config(Credential::api_key(KEY))).expect("a client");
    client.ready().await.expect("a connection");
    let close = async {
        while edge.received.lock().expect("a lock").is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        client.close();
    };
    let (verdict, ()) = tokio::join!(client.submit(b"\x01", SubmitOptions::default()), close);
    assert_eq!(verdict, Err(SendError::Connect(ConnectError::Closed)));
    assert_eq!(client.ready().await, Err(ConnectError::Closed));
    assert_eq!(edge.connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn api_key_is_not_sent_where_any_certificate_is_accepted() {
    let edge = start_edge(None, ACCEPTS);
    let config = Config { trust: Trust::Any, ..edge.config(Credential::api_key(KEY)) };
    assert!(matches!(Client::start(config).map(|_| ()), Err(ConnectError::Config(_))));
    // The client trusts an authority that did not sign the edge's certificate, and does not connect.
    let other = start_edge(None, ACCEPTS);
    let config = Config {
        trust: Trust::Authorities(vec![other.authority.clone()]),
        reconnects_max: 0,
        ..edge.config(Credential::api_key(KEY))
    };
    let client = Client::start(config).expect("a client");
    assert!(matches!(client.ready().await, Err(ConnectError::Failed(_))));
    assert!(edge.hellos.lock().expect("a lock").is_empty());
}
