//! The generator: an open loop over keep-alive connections, with minimal CPU use.
//!
//! One thread sleeps until the next request is due and writes it to the next connection. Responses
//! do not wake the thread: it reads each one, without blocking, when the connection's turn comes
//! again. The thread waits for a response only when all connections have one outstanding; that wait
//! is included in the latencies counted from the due time.

use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

use base64::prelude::{Engine, BASE64_STANDARD};
use touchdown_native::sync::clock::{monotonic_ns, NS_PER_S};

use crate::stolen::Stolen;
use crate::transactions::{Random, Signing};

/// What to send, where and how fast.
#[derive(serde::Deserialize)]
pub struct Load {
    /// Distinguishes this run from others.
    pub run: u64,
    pub address: SocketAddr,
    /// The key of an account.
    pub key: String,
    /// JSON-RPC with base64; otherwise the raw bytes.
    pub json: bool,
    pub rate: u64,
    pub count: usize,
    pub connections: usize,
    /// The process whose CPU time is measured.
    pub pid: i32,
    /// The number of initial requests that no measurement includes.
    pub warm: usize,
}

/// The results of a run.
pub struct Shots {
    pub due_ns: Vec<u64>,
    /// When each request was written; 0: never.
    pub sent_ns: Vec<u64>,
    pub accepted: usize,
    pub refused: usize,
    pub first_refusal: Option<String>,
    /// CPU time of the process behind the address since the warm-up, in nanoseconds.
    pub cpu_ns: u64,
    /// From the end of the warm-up to the last response.
    pub took_ns: u64,
    /// The share of the processors' time that the host used meanwhile (steal).
    pub stolen: f64,
}

/// All requests concatenated, and the end of each.
pub struct Requests {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// Signs all transactions and builds all requests.
pub fn prepare(load: &Load) -> Requests {
    let mut signing = Signing::new(load.run);
    let mut requests = Requests { bytes: Vec::new(), ends: vec![0] };
    for index in 0..load.count {
        let transaction = signing.sign(index as u64);
        let (path, kind, body) = match load.json {
            false => ("sendRawTransaction", "application/octet-stream", transaction),
            true => {
                let text = BASE64_STANDARD.encode(transaction);
                let body = format!(
                    r#"{{"jsonrpc":"2.0","id":{index},"method":"sendTransaction","params":["{text}",{{"encoding":"base64"}}]}}"#
                );
                ("sendTransaction", "application/json", body.into_bytes())
            }
        };
        let head = format!(
            "POST /api/v1/{path} HTTP/1.1\r\nhost: {}\r\ncontent-type: {kind}\r\napi-x-token: {}\r\ncontent-length: {}\r\n\r\n",
            load.address,
            load.key,
            body.len()
        );
        requests.bytes.extend_from_slice(head.as_bytes());
        requests.bytes.extend_from_slice(&body);
        requests.ends.push(requests.bytes.len());
    }
    requests
}

/// Sends all requests on schedule, and waits for the outstanding responses.
pub fn fire(load: &Load, requests: &Requests) -> Result<Shots, Box<dyn Error>> {
    let mut lines = Vec::new();
    for _ in 0..load.connections {
        lines.push(Line::open(load.address)?);
    }
    // SAFETY: a plain call that affects only this thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000) };
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ load.run);
    let mean_ns = NS_PER_S as f64 / load.rate as f64;
    let mut shots = Shots {
        due_ns: Vec::with_capacity(load.count),
        sent_ns: Vec::with_capacity(load.count),
        accepted: 0,
        refused: 0,
        first_refusal: None,
        cpu_ns: 0,
        took_ns: 0,
        stolen: 0.0,
    };
    let (mut cpu_before, mut started_ns, mut stolen) = (0, 0, None);
    let mut due_ns = monotonic_ns() + 20_000_000;
    let mut turn = 0;
    for (index, ends) in requests.ends.windows(2).enumerate() {
        if index == load.warm {
            cpu_before = cpu_ns_of(load.pid)?;
            started_ns = monotonic_ns();
            stolen = Some(Stolen::since(started_ns));
        }
        sleep_until(due_ns);
        turn = idle_line(&mut lines, turn, &mut shots)?;
        shots.due_ns.push(due_ns);
        shots.sent_ns.push(monotonic_ns());
        lines[turn].send(&requests.bytes[ends[0]..ends[1]])?;
        turn = (turn + 1) % lines.len();
        due_ns += random.gap(mean_ns);
    }
    let patience_ns = monotonic_ns() + 3 * NS_PER_S;
    while lines.iter().any(|line| line.awaits) && monotonic_ns() < patience_ns {
        wait_for_any(&lines, 100);
        for line in &mut lines {
            line.look(&mut shots)?;
        }
    }
    let ended_ns = monotonic_ns();
    shots.took_ns = ended_ns - started_ns;
    shots.stolen = stolen.map_or(0.0, |stolen| stolen.share(ended_ns));
    shots.cpu_ns = cpu_ns_of(load.pid)? - cpu_before;
    Ok(shots)
}

/// The next connection from `turn` on without an outstanding response.
fn idle_line(lines: &mut [Line], turn: usize, shots: &mut Shots) -> Result<usize, Box<dyn Error>> {
    let count = lines.len();
    let patience_ns = monotonic_ns() + 5 * NS_PER_S;
    loop {
        for step in 0..count {
            let place = (turn + step) % count;
            lines[place].look(shots)?;
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

/// One keep-alive connection.
struct Line {
    stream: TcpStream,
    awaits: bool,
    response: Vec<u8>,
}

impl Line {
    fn open(address: SocketAddr) -> Result<Self, Box<dyn Error>> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self { stream, awaits: false, response: Vec::with_capacity(4096) })
    }

    /// A request fits into the socket's buffer, because the previous one has its response.
    fn send(&mut self, request: &[u8]) -> Result<(), Box<dyn Error>> {
        self.stream.write_all(request)?;
        self.awaits = true;
        Ok(())
    }

    /// Reads the received part of the response.
    fn look(&mut self, shots: &mut Shots) -> Result<(), Box<dyn Error>> {
        if !self.awaits {
            return Ok(());
        }
        let mut chunk = [0; 4096];
        match self.stream.read(&mut chunk) {
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
            shots.accepted += 1;
        } else {
            shots.refused += 1;
            let text = || String::from_utf8_lossy(&self.response).into_owned();
            shots.first_refusal.get_or_insert_with(text);
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

fn sleep_until(at_ns: u64) {
    let now_ns = monotonic_ns();
    if at_ns > now_ns {
        std::thread::sleep(Duration::from_nanos(at_ns - now_ns));
    }
}

/// CPU time of all threads of a process, including ended ones.
fn cpu_ns_of(pid: i32) -> Result<u64, Box<dyn Error>> {
    // SAFETY: both calls fill plain numbers that outlive them.
    unsafe {
        let mut clock: libc::clockid_t = 0;
        if libc::clock_getcpuclockid(pid, &mut clock) != 0 {
            return Err("no such process".into());
        }
        let mut time: libc::timespec = std::mem::zeroed();
        if libc::clock_gettime(clock, &mut time) != 0 {
            return Err("no CPU clock of that process".into());
        }
        Ok(time.tv_sec as u64 * NS_PER_S + time.tv_nsec as u64)
    }
}
