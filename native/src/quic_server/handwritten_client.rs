//! A client by hand, down to the frames, that can send what no library allows. It takes the turns of
//! a listener without a thread itself, so that nothing is left to chance.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::pki_types::ServerName;
use rustls::quic::{ClientConnection, KeyChange, Version};
use rustls::{ClientConfig, Side};

use super::packets::{
    ACK, CRYPTO, DATA, HANDSHAKE, INITIAL, Space, frame, long, number, open, outline, short,
    take_number,
};

/// The transport parameter with the client's own connection id (RFC 9000 section 18.2).
const SOURCE_ID: u64 = 0x0f;
/// A first packet has at least this many bytes (RFC 9000 section 14.1).
pub(super) const INITIAL_BYTES_MIN: usize = 1200;
const DATAGRAM_BYTES_MAX: usize = 2048;
/// The frame of one byte that means nothing.
const PADDING: u64 = 0;
const OWN_ID: [u8; 8] = [0xc1; 8];
/// Turns after which a handshake is given up.
const TURNS_MAX: usize = 20;

pub(super) struct HandwrittenClient {
    pub(super) socket: UdpSocket,
    to: SocketAddr,
    /// The connection id that packets are sent to: until the server's is known one of its own.
    theirs: Vec<u8>,
    spaces: [Space; 3],
    tls: ClientConnection,
    /// Handshake bytes that were received, by space.
    received: [Vec<u8>; 2],
}

impl HandwrittenClient {
    /// One that has sent nothing yet.
    pub(super) fn new(from: SocketAddr, to: SocketAddr, tls: Arc<ClientConfig>, id: u64) -> Self {
        let socket = UdpSocket::bind(from).unwrap();
        socket.set_nonblocking(true).unwrap();
        let mut parameters = Vec::new();
        number(&mut parameters, SOURCE_ID);
        number(&mut parameters, OWN_ID.len() as u64);
        parameters.extend(OWN_ID);
        let name = ServerName::try_from("localhost").unwrap();
        let tls = ClientConnection::new(tls, Version::V1, name, parameters).unwrap();
        let theirs = id.to_be_bytes().to_vec();
        let suite = TLS13_AES_128_GCM_SHA256.tls13().unwrap().quic_suite().unwrap();
        let mut spaces: [Space; 3] = Default::default();
        spaces[INITIAL].keys = Some(suite.keys(&theirs, Side::Client, Version::V1));
        Self { socket, to, theirs, spaces, tls, received: Default::default() }
    }

    /// Sends these frames in a first packet, which the server can open.
    pub(super) fn send_initial(&mut self, frames: &[u8]) {
        let mut frames = frames.to_vec();
        frames.resize(frames.len().max(INITIAL_BYTES_MIN), 0);
        let packet = long(&mut self.spaces[INITIAL], INITIAL, &self.theirs, &OWN_ID, &frames);
        let _ = self.socket.send_to(&packet, self.to);
    }

    /// Sends these frames on the connection.
    pub(super) fn send(&mut self, frames: &[u8]) {
        let packet = short(&mut self.spaces[DATA], &self.theirs, frames);
        self.socket.send_to(&packet, self.to).unwrap();
    }

    /// Connects; `turn` takes a turn of the server.
    pub(super) fn connect(&mut self, mut turn: impl FnMut()) {
        self.say(INITIAL);
        for _ in 0..TURNS_MAX {
            turn();
            self.receive();
            if self.spaces[DATA].keys.is_some() {
                return;
            }
        }
        panic!("the server does not shake hands");
    }

    /// Reads what has arrived; returns how many bytes.
    pub(super) fn receive(&mut self) -> usize {
        let mut total = 0;
        let mut buffer = [0; DATAGRAM_BYTES_MAX];
        while let Ok(size) = self.socket.recv(&mut buffer) {
            total += size;
            let mut datagram = &mut buffer[..size];
            while let Some(outline) = outline(datagram) {
                let (packet, rest) = datagram.split_at_mut(outline.size);
                let space = outline.space;
                if let Some((_, frames)) = open(&mut self.spaces[space], &outline, packet)
                    && space != DATA
                {
                    self.theirs = outline.from;
                    self.take_handshake(space, &frames);
                }
                datagram = rest;
            }
        }
        total
    }

    /// Passes handshake bytes on to TLS, up to the first frame that is neither these nor an
    /// acknowledgement.
    fn take_handshake(&mut self, space: usize, mut frames: &[u8]) {
        let mut fresh = Vec::new();
        while let Some(kind) = take_number(&mut frames) {
            match kind {
                PADDING => {}
                ACK => {
                    let mut numbers = || take_number(&mut frames).unwrap();
                    let (_, _, count, _) = (numbers(), numbers(), numbers(), numbers());
                    for _ in 0..2 * count {
                        numbers();
                    }
                }
                CRYPTO => {
                    let at = take_number(&mut frames).unwrap() as usize;
                    let size = take_number(&mut frames).unwrap() as usize;
                    let (piece, rest) = frames.split_at(size);
                    frames = rest;
                    let known = self.received[space].len();
                    if at <= known && at + size > known {
                        fresh.extend(&piece[known - at..]);
                        self.received[space].extend(&piece[known - at..]);
                    }
                }
                _ => break,
            }
        }
        if !fresh.is_empty() {
            // The frames of others may have broken the handshake.
            if self.tls.read_hs(&fresh).is_ok() {
                self.say(space);
            }
        }
    }

    /// Sends what TLS has to say, from this space on.
    fn say(&mut self, mut space: usize) {
        loop {
            let mut said = Vec::new();
            let change = self.tls.write_hs(&mut said);
            if !said.is_empty() {
                let frames = frame(CRYPTO, &[0, said.len() as u64], &said);
                match space {
                    INITIAL => self.send_initial(&frames),
                    _ => {
                        let keys = &mut self.spaces[HANDSHAKE];
                        let packet = long(keys, HANDSHAKE, &self.theirs, &OWN_ID, &frames);
                        self.socket.send_to(&packet, self.to).unwrap();
                    }
                }
            }
            match change {
                Some(KeyChange::Handshake { keys }) => {
                    self.spaces[HANDSHAKE].keys = Some(keys);
                    space = HANDSHAKE;
                }
                Some(KeyChange::OneRtt { keys, next }) => {
                    self.spaces[DATA].keys = Some(keys);
                    self.spaces[DATA].change_later(next);
                }
                None if said.is_empty() => return,
                None => {}
            }
        }
    }
}
