//! Keep-alive HTTP connections, each with one request at a time.
//!
//! Responses do not wake the generator: it reads each one, without blocking, when the connection's
//! turn comes again, and waits for one only when all connections of the account have one
//! outstanding. Beside QUIC clients each response wakes another thread, as it wakes any client that
//! waits for it, and as each acknowledgement wakes a thread of the QUIC clients: on loopback the
//! edge, which sends it, pays for the wake.

use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use base64::prelude::{Engine, BASE64_STANDARD};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use touchdown_native::sync::clock::{monotonic_ns, NS_PER_S};

use crate::load::{Clients, Ends, Load, Schedule, Sender, Transport};

const EVENTS_PER_POLL: usize = 64;
/// How soon the thread that responses wake ends.
const WAKES_END: Duration = Duration::from_secs(1);

/// The connections of each account, by group, and all requests.
pub struct HttpClients {
    groups: Vec<Vec<AccountLines>>,
    requests: Requests,
    ends: Ends,
    /// Its end is that of the thread that responses wake.
    _wakes: Option<Arc<()>>,
}

struct AccountLines {
    lines: Vec<Line>,
    turn: usize,
}

/// All requests concatenated, and the end of each.
struct Requests {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl HttpClients {
    /// Builds all requests and opens all connections.
    pub fn open(load: &Load, schedule: &Schedule) -> Result<Self, Box<dyn Error>> {
        let requests = build_requests(load, schedule);
        let tls = load.certificate.as_deref().map(tls_of).transpose()?;
        let mut groups = Vec::new();
        for group in &load.groups {
            let mut accounts = Vec::new();
            for _ in &group.accounts {
                let lines = (0..group.connections).map(|_| Line::open(load.address, tls.as_ref()));
                accounts.push(AccountLines { lines: lines.collect::<Result<_, _>>()?, turn: 0 });
            }
            groups.push(accounts);
        }
        let wakes = load.responses_wake.then(|| wake_by_responses(&groups)).transpose()?;
        Ok(Self { groups, requests, ends: Ends::default(), _wakes: wakes })
    }
}

impl Clients for HttpClients {
    fn send(&mut self, sender: Sender, index: usize, _: &[u8]) -> Result<u64, Box<dyn Error>> {
        let account = &mut self.groups[sender.group][sender.account];
        let place = idle_line(&mut account.lines, account.turn, &mut self.ends)?;
        account.turn = (place + 1) % account.lines.len();
        let sent_ns = monotonic_ns();
        let request = self.requests.ends[index]..self.requests.ends[index + 1];
        account.lines[place].send(&self.requests.bytes[request])?;
        Ok(sent_ns)
    }

    fn finish(&mut self) -> Result<Ends, Box<dyn Error>> {
        let patience_ns = monotonic_ns() + 3 * NS_PER_S;
        for account in self.groups.iter_mut().flatten() {
            let lines = &mut account.lines;
            while lines.iter().any(|line| line.awaits) && monotonic_ns() < patience_ns {
                wait_for_any(lines, 100);
                for line in &mut *lines {
                    line.look(&mut self.ends)?;
                }
            }
        }
        Ok(self.ends.clone())
    }
}

/// Starts a thread that each response wakes, and that does nothing else. It ends some time after
/// what is returned.
fn wake_by_responses(groups: &[Vec<AccountLines>]) -> Result<Arc<()>, Box<dyn Error>> {
    let mut poll = Poll::new()?;
    for line in groups.iter().flatten().flat_map(|account| &account.lines) {
        let fd = line.stream.as_raw_fd();
        poll.registry().register(&mut SourceFd(&fd), Token(0), Interest::READABLE)?;
    }
    let alive = Arc::new(());
    let weak = Arc::downgrade(&alive);
    std::thread::spawn(move || {
        let mut events = Events::with_capacity(EVENTS_PER_POLL);
        while weak.strong_count() > 0 && poll.poll(&mut events, Some(WAKES_END)).is_ok() {}
    });
    Ok(alive)
}

/// The body of a JSON-RPC call.
pub fn call_of(id: usize, transaction: &[u8]) -> Vec<u8> {
    let text = BASE64_STANDARD.encode(transaction);
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"sendTransaction","params":["{text}",{{"encoding":"base64"}}]}}"#
    )
    .into_bytes()
}

fn build_requests(load: &Load, schedule: &Schedule) -> Requests {
    let mut requests = Requests { bytes: Vec::new(), ends: vec![0] };
    for (index, transaction) in schedule.transactions.iter().enumerate() {
        let sender = schedule.senders[index];
        let key = &load.groups[sender.group].accounts[sender.account].key;
        let (path, kind, body) = match load.transport == Transport::Json {
            false => ("sendRawTransaction", "application/octet-stream", transaction.clone()),
            true => ("sendTransaction", "application/json", call_of(index, transaction)),
        };
        let head = format!(
            "POST /api/v1/{path} HTTP/1.1\r\nhost: {}\r\ncontent-type: {kind}\r\napi-x-token: {key}\r\ncontent-length: {}\r\n\r\n",
            load.address,
            body.len()
        );
        requests.bytes.extend_from_slice(head.as_bytes());
        requests.bytes.extend_from_slice(&body);
        requests.ends.push(requests.bytes.len());
    }
    requests
}

/// The next connection from `turn` on without an outstanding response.
fn idle_line(lines: &mut [Line], turn: usize, ends: &mut Ends) -> Result<usize, Box<dyn Error>> {
    let count = lines.len();
    let patience_ns = monotonic_ns() + 5 * NS_PER_S;
    loop {
        for step in 0..count {
            let place = (turn + step) % count;
            lines[place].look(ends)?;
            if !lines[place].awaits {
                return Ok(place);
            }
        }
        if monotonic_ns() > patience_ns {
            return Err("no answer for five seconds".into());
        }
        wait_for_any(lines, 1_000);
    }
}

fn wait_for_any(lines: &[Line], timeout_ms: i32) {
    let mut fds: Vec<libc::pollfd> = lines
        .iter()
        .filter(|line| line.awaits)
        .map(|line| libc::pollfd { fd: line.stream.as_raw_fd(), events: libc::POLLIN, revents: 0 })
        .collect();
    // SAFETY: the array outlives the call, which receives its length.
    unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout_ms) };
}

/// The certificate in this PEM.
pub fn certificate_of(pem: &str) -> Result<CertificateDer<'static>, Box<dyn Error>> {
    Ok(CertificateDer::from_pem_slice(pem.as_bytes())?)
}

/// The settings of a TLS client that trusts this certificate, PEM, alone.
pub fn tls_of(certificate: &str) -> Result<Arc<ClientConfig>, Box<dyn Error>> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate_of(certificate)?)?;
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// One keep-alive connection.
struct Line {
    stream: TcpStream,
    tls: Option<ClientConnection>,
    awaits: bool,
    response: Vec<u8>,
}

impl Line {
    fn open(address: SocketAddr, tls: Option<&Arc<ClientConfig>>) -> Result<Self, Box<dyn Error>> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let tls = match tls {
            None => None,
            Some(config) => {
                let mut tls = ClientConnection::new(config.clone(), address.ip().into())?;
                while tls.is_handshaking() {
                    tls.complete_io(&mut stream)?;
                }
                Some(tls)
            }
        };
        stream.set_nonblocking(true)?;
        Ok(Self { stream, tls, awaits: false, response: Vec::with_capacity(4096) })
    }

    fn read(&mut self, chunk: &mut [u8]) -> std::io::Result<usize> {
        match &mut self.tls {
            None => self.stream.read(chunk),
            Some(tls) => rustls::Stream::new(tls, &mut self.stream).read(chunk),
        }
    }

    /// A request fits into the socket's buffer, because the previous one has its response.
    fn send(&mut self, request: &[u8]) -> Result<(), Box<dyn Error>> {
        match &mut self.tls {
            None => self.stream.write_all(request)?,
            Some(tls) => rustls::Stream::new(tls, &mut self.stream).write_all(request)?,
        }
        self.awaits = true;
        Ok(())
    }

    /// Reads the received part of the response.
    fn look(&mut self, ends: &mut Ends) -> Result<(), Box<dyn Error>> {
        if !self.awaits {
            return Ok(());
        }
        let mut chunk = [0; 4096];
        match self.read(&mut chunk) {
            Ok(0) => return Err("a connection was closed".into()),
            Ok(size) => self.response.extend_from_slice(&chunk[..size]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        let Some(is_success) = judge(&self.response) else {
            return Ok(());
        };
        self.awaits = false;
        if is_success {
            ends.accepted += 1;
        } else {
            ends.refused += 1;
            let text = || String::from_utf8_lossy(&self.response).into_owned();
            ends.first_refusal.get_or_insert_with(text);
        }
        self.response.clear();
        Ok(())
    }
}

/// Whether a response is a success; None while it is incomplete.
fn judge(response: &[u8]) -> Option<bool> {
    let head_size = response.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&response[..head_size]).ok()?.to_ascii_lowercase();
    let length = head.split("content-length:").nth(1)?.split("\r\n").next()?;
    let body = response.get(head_size..head_size + length.trim().parse::<usize>().ok()?)?;
    let is_error = body.windows(7).any(|seven| seven == b"\"error\"");
    Some(head.starts_with("http/1.1 200") && !is_error)
}
