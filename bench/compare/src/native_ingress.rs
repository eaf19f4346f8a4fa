//! An HTTP path without JavaScript: one thread parses HTTP, decodes, sends through Touchdown's
//! engine and responds. No key, no limit, no verification and no accounting, so it is the
//! counterpart of the incumbent's path and the baseline for ingress in the engine.
//!
//! Prints its address once the leader has admitted it, and runs until it is killed.

use std::collections::HashMap;
use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use touchdown_native::decode::base58::{signature_text, SIGNATURE_TEXT_MAX};
use touchdown_native::decode::decoder::Decoder;
use touchdown_native::http::json_rpc::read_call;
use touchdown_native::quic::delivery::PeerState;
use touchdown_native::quic::engine::{Engine, Options};
use touchdown_native::quic::event::RECORD_FIELDS;
use touchdown_native::quic::peer;
use touchdown_native::sync::clock::monotonic_ns;

use crate::sender::NO_OFFER;

const LISTENER: Token = Token(0);
const EVENTS: usize = 256;
const TRANSACTION_BYTES_MAX: usize = 4096;
/// Head and body of a request.
const REQUEST_BYTES_MAX: usize = 16 * 1024;
const HEADERS_MAX: usize = 32;
const TIP_LAMPORTS_MIN: f64 = 1_000_000.0;
const TTL_MS: u32 = 800;
/// As in an ingress thread: the number of uncorked sends without a pause, and the pause length.
const RUN: u32 = 4;
const PAUSE_NS: u64 = 60_000;
const DRAIN_EVERY: Duration = Duration::from_millis(100);

/// The identity file holds the seed and the public key as a JSON array of 64 numbers.
pub fn run(leader: SocketAddr, identity: &str, tip: &str) -> Result<(), Box<dyn Error>> {
    let keypair: Vec<u8> = serde_json::from_str(&std::fs::read_to_string(identity)?)?;
    let seed = *keypair.first_chunk().ok_or("no seed in the identity file")?;
    let options = Options { binds: vec!["0.0.0.0:0".parse()?], seed, ..Options::default() };
    let engine = Engine::start(options, Box::new(|| {})).map_err(|error| format!("{error:?}"))?;
    let peer = engine.peer_open(leader).map_err(|error| format!("{error:?}"))?;
    while engine.peer_state(peer) != PeerState::Admitted {
        std::thread::sleep(Duration::from_millis(5));
    }
    let drained = engine.clone();
    std::thread::spawn(move || drain(&drained));
    let accounts = bs58::decode(tip).into_vec()?;
    let decoder = Decoder::new(&accounts, TIP_LAMPORTS_MIN, false, 0).ok_or("no tip account")?;
    let sending = Sending { engine, decoder, peer, tx: 0, run: 0, last_ns: 0, is_holding: false };
    serve(sending)
}

/// Discards the outcomes.
fn drain(engine: &Engine) {
    let mut records = vec![0.0; EVENTS * RECORD_FIELDS];
    loop {
        std::thread::sleep(DRAIN_EVERY);
        while engine.events().drain(&mut records) == EVENTS {}
    }
}

struct Sending {
    engine: Arc<Engine>,
    decoder: Decoder,
    peer: u32,
    tx: u64,
    /// Transactions without a pause, and when the last one finished.
    run: u32,
    last_ns: u64,
    is_holding: bool,
}

impl Sending {
    /// Returns the signature if the transaction was sent.
    fn submit(&mut self, bytes: &[u8]) -> Option<String> {
        let accepted = self.decoder.decode(bytes).ok()?;
        self.tx += 1;
        let has_paused = monotonic_ns() - self.last_ns >= PAUSE_NS;
        self.run = if has_paused { 0 } else { self.run + 1 };
        let copies = [self.peer, 0];
        if self.run >= RUN {
            self.is_holding = true;
            self.engine.cork(&copies, bytes, self.tx, TTL_MS, NO_OFFER);
        } else {
            self.engine.send(&copies, bytes, self.tx, TTL_MS, NO_OFFER);
        }
        self.last_ns = monotonic_ns();
        let mut text = [0; SIGNATURE_TEXT_MAX];
        let signature = bytes.get(accepted.signature_offset..)?.first_chunk()?;
        let size = signature_text(signature, &mut text);
        Some(String::from_utf8_lossy(text.get(..size)?).into_owned())
    }

    fn end_turn(&mut self) {
        if std::mem::take(&mut self.is_holding) {
            peer::uncork();
        }
    }
}

struct Client {
    stream: TcpStream,
    /// Received bytes without a response.
    bytes: Vec<u8>,
}

impl Client {
    /// Responds to all complete requests; false when the connection is unusable.
    fn serve(&mut self, sending: &mut Sending) -> bool {
        let mut chunk = [0; REQUEST_BYTES_MAX];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => return false,
                Ok(count) => self.bytes.extend_from_slice(&chunk[..count]),
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
            while let Some((size, response)) = answer_first(&self.bytes, sending) {
                self.bytes.drain(..size);
                // The generator reads its responses; one that does not fit closes its connection.
                if !matches!(self.stream.write(response.as_bytes()), Ok(count) if count == response.len())
                {
                    return false;
                }
            }
            if self.bytes.len() > REQUEST_BYTES_MAX {
                return false;
            }
        }
    }
}

/// The size of the first request and its response; None while it is incomplete.
fn answer_first(bytes: &[u8], sending: &mut Sending) -> Option<(usize, String)> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let head = match request.parse(bytes) {
        Ok(httparse::Status::Complete(head)) => head,
        Ok(httparse::Status::Partial) => return None,
        Err(_) => return Some((bytes.len(), reply("400 Bad Request", ""))),
    };
    let length =
        request.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|header| std::str::from_utf8(header.value).ok()?.parse().ok());
    let body = bytes.get(head..head + length.unwrap_or(0usize))?;
    let response = match request.path {
        Some("/api/v1/sendTransaction") => answer_call(body, sending),
        _ => sending
            .submit(body)
            .map(|signature| format!(r#"{{"success":true,"signature":"{signature}"}}"#)),
    };
    let response =
        response.map_or_else(|| reply("400 Bad Request", ""), |text| reply("200 OK", &text));
    Some((head + body.len(), response))
}

fn answer_call(body: &[u8], sending: &mut Sending) -> Option<String> {
    let mut transaction = [0; TRANSACTION_BYTES_MAX];
    let call = read_call(body, &mut transaction)?;
    let signature = sending.submit(transaction.get(..call.size)?)?;
    let id = std::str::from_utf8(body.get(call.id.0..call.id.1)?).ok()?;
    Some(format!(r#"{{"jsonrpc":"2.0","result":"{signature}","id":{id}}}"#))
}

fn reply(status: &str, text: &str) -> String {
    let size = text.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {size}\r\n\r\n{text}"
    )
}

fn serve(mut sending: Sending) -> Result<(), Box<dyn Error>> {
    let mut poll = Poll::new()?;
    let mut events = Events::with_capacity(EVENTS);
    let mut listener = TcpListener::bind("127.0.0.1:0".parse()?)?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    println!("{}", listener.local_addr()?);
    let mut clients: HashMap<Token, Client> = HashMap::new();
    let mut last = LISTENER;
    loop {
        poll.poll(&mut events, None)?;
        for event in &events {
            if event.token() == LISTENER {
                while let Ok((mut stream, _)) = listener.accept() {
                    stream.set_nodelay(true)?;
                    last = Token(last.0 + 1);
                    poll.registry().register(&mut stream, last, Interest::READABLE)?;
                    clients.insert(last, Client { stream, bytes: Vec::new() });
                }
            } else if let Some(client) = clients.get_mut(&event.token()) {
                if !client.serve(&mut sending) {
                    clients.remove(&event.token());
                }
            }
        }
        sending.end_turn();
    }
}
