//! A handwritten leader, down to the frames, that can send what no library allows.
//!
//! It completes a valid handshake with one client at a time and acknowledges what it receives,
//! unless its `Behaviour` differs; the test sends everything else through `Session`.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use quinn::crypto::ServerConfig as _;
use quinn::crypto::rustls::QuicServerConfig;
use quinn_proto::ConnectionId;
use rustls::Side;
use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::quic::{KeyChange, ServerConnection, Version};

use super::client_frames::Received;
use super::packets::{
    CRYPTO, DATA, HANDSHAKE, HANDSHAKE_DONE, ID_BYTES, INITIAL, MAX_STREAMS_UNI, Outline, PING,
    Space, VERSION, frame, long, number, open, outline, short,
};
use super::{PATIENCE, server_tls};

/// Ids of transport parameters, RFC 9000 section 18.2, that tests change.
pub const ORIGINAL_ID: u64 = 0x00;
pub const RESET_TOKEN: u64 = 0x02;
pub const MAX_DATA_PARAM: u64 = 0x04;
pub const STREAM_DATA_PARAM: u64 = 0x07;
pub const STREAMS_PARAM: u64 = 0x09;
pub const SOURCE_ID: u64 = 0x0f;
pub const RETRY_ID: u64 = 0x10;

pub type Params = Vec<(u64, Vec<u8>)>;

/// A malicious leader's behaviour until its handshake is complete.
pub struct Behaviour {
    /// Changes the transport parameters before they are sent.
    pub params: fn(&mut Params),
    /// Retry packets that it sends first, in response to as many Initials.
    pub retries: usize,
    /// Version Negotiation packets before its response, each with these versions.
    pub versions: &'static [&'static [u32]],
    /// Number of packet number spaces, from the first, that it sends in: the handshake stops there.
    pub spaces: usize,
    /// Streams granted once the handshake is complete.
    pub grant: u64,
    /// Bytes appended to each of its packets in the same datagram.
    pub coalesced: fn(&Session) -> Vec<u8>,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            params: |_| {},
            retries: 0,
            versions: &[],
            spaces: 3,
            grant: 64,
            coalesced: |_| Vec::new(),
        }
    }
}

/// One client's connection, from the leader's side.
pub struct Session {
    pub socket: UdpSocket,
    pub client: SocketAddr,
    /// The client's connection id, and the one that this side chose.
    pub theirs: Vec<u8>,
    pub own: [u8; ID_BYTES],
    pub spaces: [Space; 3],
    pub received: Received,
    /// Whether it acknowledges what it receives.
    pub acks: bool,
    tls: ServerConnection,
    read: [usize; 3],
    /// Handshake bytes of this side, by space.
    flight: [Vec<u8>; 3],
    ready: bool,
    behaviour: Arc<Behaviour>,
}

pub struct MaliciousLeader {
    pub address: SocketAddr,
    session: Arc<Mutex<Option<Session>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl MaliciousLeader {
    pub fn start(behaviour: Behaviour) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        // For all that a test sends while this thread gets no processor.
        socket2::SockRef::from(&socket).set_recv_buffer_size(4 * 1024 * 1024).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        let address = socket.local_addr().unwrap();
        let (session, stop) = (Arc::new(Mutex::new(None)), Arc::new(AtomicBool::new(false)));
        let mut doorman = Doorman {
            socket,
            behaviour: Arc::new(behaviour),
            session: session.clone(),
            original: Vec::new(),
            retried: Vec::new(),
            answers: 0,
        };
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 2048];
            while !stopped.load(Ordering::Relaxed) {
                if let Ok((size, from)) = doorman.socket.recv_from(&mut buffer) {
                    doorman.receive(&mut buffer[..size], from);
                }
            }
        });
        Self { address, session, stop, thread: Some(thread) }
    }

    /// Runs `act` on the current session.
    pub fn with_session<T>(&self, act: impl FnOnce(&mut Session) -> T) -> T {
        act(self.session.lock().as_mut().expect("a client is connected"))
    }

    /// The same, if a client has connected.
    pub fn with_session_if_any(&self, act: impl FnOnce(&mut Session)) {
        self.session.lock().as_mut().map(act);
    }

    /// Waits until `is_so`; only a failing test reaches the deadline.
    pub fn until(&self, what: &str, mut is_so: impl FnMut(&mut Session) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !self.session.lock().as_mut().is_some_and(&mut is_so) {
            assert!(Instant::now() < deadline, "not {what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Sends `count` packets of `frames`, a few at a time so that few are lost, until the last one
    /// is acknowledged or the client closed.
    pub fn flood(&self, count: usize, mut frames: impl FnMut(usize) -> Vec<u8>) {
        for first in (0..count).step_by(PACKETS_A_WAVE) {
            let last = self.with_session(|session| {
                for index in first..count.min(first + PACKETS_A_WAVE) {
                    session.send(&frames(index));
                }
                session.spaces[DATA].next
            });
            let mut rounds = 0;
            self.until("acknowledged", |session| {
                // Repeated now and then, as it may be lost itself.
                if rounds % 100 == 0 {
                    session.send(&[PING as u8]);
                }
                rounds += 1;
                session.received.closed.is_some() || session.received.acked[DATA] >= Some(last)
            });
        }
    }
}

impl Drop for MaliciousLeader {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Responds to Initials until there is a session for them.
struct Doorman {
    socket: UdpSocket,
    behaviour: Arc<Behaviour>,
    session: Arc<Mutex<Option<Session>>>,
    /// The destination of the first Initial, and of the one after the first Retry.
    original: Vec<u8>,
    retried: Vec<u8>,
    answers: usize,
}

impl Doorman {
    fn receive(&mut self, datagram: &mut [u8], from: SocketAddr) {
        let shared = self.session.clone();
        let mut session = shared.lock();
        let initial = outline(datagram).filter(|outline| outline.space == INITIAL);
        let known = |id: &[u8]| session.as_ref().is_some_and(|session| session.theirs == id);
        if let Some(initial) = initial.filter(|initial| !known(&initial.from)) {
            *session = self.admit(initial, from);
        }
        if let Some(session) = session.as_mut() {
            session.receive(datagram);
        }
    }

    fn admit(&mut self, initial: Outline, from: SocketAddr) -> Option<Session> {
        if self.original.is_empty() {
            self.original = initial.to.clone();
        }
        self.answers += 1;
        if let Some(versions) = self.behaviour.versions.get(self.answers - 1) {
            let packet = version_negotiation(&initial.from, &initial.to, versions);
            self.socket.send_to(&packet, from).unwrap();
        }
        if self.answers <= self.behaviour.retries {
            let id = [self.answers as u8; ID_BYTES];
            self.socket.send_to(&retry(&initial.from, &id, &initial.to), from).unwrap();
            if self.retried.is_empty() {
                self.retried = id.to_vec();
            }
            // The next Initial responds to the first Retry, or repeats the last.
            return None;
        }
        let own = [0xab; ID_BYTES];
        let mut params = vec![
            (ORIGINAL_ID, self.original.clone()),
            (SOURCE_ID, own.to_vec()),
            (RESET_TOKEN, STATELESS_TOKEN.to_vec()),
            (MAX_DATA_PARAM, value(1 << 24)),
            (STREAM_DATA_PARAM, value(4096)),
            (STREAMS_PARAM, value(0)),
        ];
        if !self.retried.is_empty() {
            params.push((RETRY_ID, self.retried.clone()));
        }
        (self.behaviour.params)(&mut params);
        let mut written = Vec::new();
        for (id, bytes) in &params {
            number(&mut written, *id);
            number(&mut written, bytes.len() as u64);
            written.extend(bytes);
        }
        let mut tls = server_tls();
        tls.send_tls13_tickets = 0;
        let tls = ServerConnection::new(Arc::new(tls), Version::V1, written).unwrap();
        let suite = TLS13_AES_128_GCM_SHA256.tls13().unwrap().quic_suite().unwrap();
        let mut spaces: [Space; 3] = Default::default();
        spaces[INITIAL].keys = Some(suite.keys(&initial.to, Side::Server, Version::V1));
        Some(Session {
            socket: self.socket.try_clone().unwrap(),
            client: from,
            theirs: initial.from,
            own,
            spaces,
            received: Received::default(),
            acks: true,
            tls,
            read: [0; 3],
            flight: Default::default(),
            ready: false,
            behaviour: self.behaviour.clone(),
        })
    }
}

impl Session {
    /// Sends these frames in one packet with a short header; returns its number.
    pub fn send(&mut self, frames: &[u8]) -> u64 {
        let packet = self.packet(DATA, frames);
        self.socket.send_to(&packet, self.client).unwrap();
        self.spaces[DATA].next - 1
    }

    /// Builds a packet of these frames.
    pub fn packet(&mut self, space: usize, frames: &[u8]) -> Vec<u8> {
        match space {
            DATA => short(&mut self.spaces[DATA], &self.theirs, frames),
            _ => long(&mut self.spaces[space], space, &self.theirs, &self.own, frames),
        }
    }

    fn receive(&mut self, mut datagram: &mut [u8]) {
        self.received.datagrams += 1;
        self.received.bytes += datagram.len() as u64;
        let (mut news, mut wants_ack) = (false, false);
        while let Some(outline) = outline(datagram) {
            let (packet, rest) = datagram.split_at_mut(outline.size);
            let space = outline.space;
            if let Some((packet_number, frames)) = open(&mut self.spaces[space], &outline, packet) {
                // An earlier packet means that this side's response was lost.
                news |= !self.spaces[space].note(packet_number) || space < DATA;
                let elicits = self.received.take(space, &frames).expect("well-formed frames");
                wants_ack |= elicits && space == DATA;
            }
            datagram = rest;
        }
        self.shake_hands();
        if news || !self.ready {
            self.send_flight();
        }
        if wants_ack && self.acks {
            let ack = self.spaces[DATA].ack();
            self.send(&ack);
        }
    }

    /// Passes received handshake bytes to TLS, and queues its output.
    fn shake_hands(&mut self) {
        for space in [INITIAL, HANDSHAKE] {
            let fresh = self.received.crypto[space][self.read[space]..].to_vec();
            self.read[space] += fresh.len();
            if !fresh.is_empty() && self.tls.read_hs(&fresh).is_err() {
                return;
            }
            loop {
                let at = self.spaces.iter().filter(|space| space.keys.is_some()).count() - 1;
                let mut said = Vec::new();
                let change = self.tls.write_hs(&mut said);
                let done = said.is_empty() && change.is_none();
                self.flight[at].extend(said);
                match change {
                    Some(KeyChange::Handshake { keys }) => self.spaces[HANDSHAKE].keys = Some(keys),
                    Some(KeyChange::OneRtt { keys, next }) => {
                        self.spaces[DATA].keys = Some(keys);
                        self.spaces[DATA].change_later(next);
                    }
                    None => {}
                }
                if done {
                    break;
                }
            }
        }
    }

    /// Sends this side's handshake flight; repeated until the handshake is complete.
    fn send_flight(&mut self) {
        let behaviour = self.behaviour.clone();
        for space in [INITIAL, HANDSHAKE] {
            if self.spaces[space].keys.is_none() || space >= behaviour.spaces {
                continue;
            }
            let flight = self.flight[space].clone();
            for (index, piece) in flight.chunks(1000).enumerate() {
                let mut frames = self.spaces[space].ack();
                frames.extend(frame(CRYPTO, &[1000 * index as u64, piece.len() as u64], piece));
                if space == INITIAL {
                    frames.resize(1150, 0);
                }
                let mut datagram = self.packet(space, &frames);
                datagram.extend((behaviour.coalesced)(self));
                self.socket.send_to(&datagram, self.client).unwrap();
            }
        }
        if !self.tls.is_handshaking() && behaviour.spaces == 3 {
            self.ready = true;
            let mut frames = frame(HANDSHAKE_DONE, &[], &[]);
            frames.extend(frame(MAX_STREAMS_UNI, &[behaviour.grant], &[]));
            self.send(&frames);
        }
    }
}

/// A varint as the value of a transport parameter.
pub fn value(value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    number(&mut bytes, value);
    bytes
}

/// A Retry packet with the source id `own`, in response to an Initial that was sent to `to`.
pub fn retry(theirs: &[u8], own: &[u8], to: &[u8]) -> Vec<u8> {
    let mut packet = vec![0xf0];
    packet.extend(VERSION.to_be_bytes());
    for id in [theirs, own] {
        packet.push(id.len() as u8);
        packet.extend(id);
    }
    packet.extend(b"a token");
    let crypto = QuicServerConfig::try_from(server_tls()).unwrap();
    let tag = crypto.retry_tag(VERSION, &ConnectionId::new(to), &packet);
    packet.extend(tag);
    packet
}

fn version_negotiation(theirs: &[u8], to: &[u8], versions: &[u32]) -> Vec<u8> {
    let mut packet = vec![0x80, 0, 0, 0, 0];
    for id in [theirs, to] {
        packet.push(id.len() as u8);
        packet.extend(id);
    }
    packet.extend(versions.iter().flat_map(|version| version.to_be_bytes()));
    packet
}

/// The stateless reset token that every malicious leader announces.
pub const STATELESS_TOKEN: [u8; 16] = [0x5a; 16];
/// Fits the kernel's default receive buffer.
const PACKETS_A_WAVE: usize = 40;
