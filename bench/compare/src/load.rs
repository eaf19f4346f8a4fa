//! The generator: an open loop over connections that are open already, with minimal CPU use.
//!
//! One thread sleeps until the next transaction is due and hands it to the next connection of its
//! account. `http_clients` and `quic_clients` do this with the least work, `library_clients` with the
//! libraries that programs take; all stamp before they write.

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use touchdown_native::sync::clock::{monotonic_ns, NS_PER_S};

use crate::http_clients::HttpClients;
use crate::library_clients::LibraryClients;
use crate::quic_clients::QuicClients;
use crate::stolen::Stolen;
use crate::transactions::{Random, Signing};

/// What to send, where and how fast.
#[derive(serde::Deserialize)]
pub struct Load {
    /// Distinguishes this run from others.
    pub run: u64,
    pub address: SocketAddr,
    pub transport: Transport,
    pub groups: Vec<Group>,
    pub count: usize,
    /// The process whose CPU time is measured.
    pub pid: i32,
    /// The number of initial transactions that no measurement includes.
    pub warm: usize,
    /// PEM of the certificate that the edge presents over HTTP; without it HTTP is plain.
    #[serde(default)]
    pub certificate: Option<String>,
    /// Whether each response over HTTP wakes a thread.
    #[serde(default)]
    pub responses_wake: bool,
}

/// How transactions reach the edge.
#[derive(Clone, Copy, PartialEq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// The bytes as the body of an HTTP request.
    Raw,
    /// JSON-RPC with base64 over HTTP.
    Json,
    /// A unidirectional stream each, ALPN `solana-tpu`.
    Quic,
    /// As `Raw`, by the library `reqwest`.
    Reqwest,
    /// As `Json`, by that library.
    #[serde(rename = "reqwest-json")]
    ReqwestJson,
    /// As `Quic`, by the library `touchdown-client`.
    Tpu,
    /// A bidirectional stream each, ALPN `touchdown/1`, by the library `touchdown-client`.
    Touchdown,
}

/// Accounts that share a rate and are measured together.
#[derive(serde::Deserialize)]
pub struct Group {
    pub rate: u64,
    pub accounts: Vec<Account>,
    /// Connections of each account.
    pub connections: usize,
    /// Whether its signatures are wrong, which shows only once the edge has verified them.
    #[serde(default)]
    pub is_forged: bool,
    /// Over QUIC: whether its connections are to a server of this program that takes nothing.
    #[serde(default)]
    pub is_elsewhere: bool,
}

/// An account by its two keys.
#[derive(serde::Deserialize)]
pub struct Account {
    /// The API key, for HTTP.
    pub key: String,
    /// The seed of a registered public key, for QUIC.
    #[serde(default)]
    pub seed: Vec<u8>,
}

/// Which account sends a transaction.
#[derive(Clone, Copy)]
pub struct Sender {
    pub group: usize,
    pub account: usize,
}

/// All transactions, and the sender of each.
pub struct Schedule {
    pub transactions: Vec<Vec<u8>>,
    pub senders: Vec<Sender>,
}

/// Signs all transactions, and draws the sender of each: a group by its rate, its accounts in turn.
pub fn prepare(load: &Load) -> Schedule {
    let mut signing = Signing::new(load.run);
    let mut random = Random(0x2545_f491_4f6c_dd1d ^ load.run);
    let total = total_rate(load);
    let mut turns = vec![0; load.groups.len()];
    let senders = (0..load.count).map(|_| {
        let mut at = random.next() % total;
        let mut group = 0;
        while at >= load.groups[group].rate {
            at -= load.groups[group].rate;
            group += 1;
        }
        turns[group] += 1;
        Sender { group, account: turns[group] % load.groups[group].accounts.len() }
    });
    let senders: Vec<Sender> = senders.collect();
    let sign = |(index, sender): (usize, &Sender)| {
        let mut transaction = signing.sign(index as u64);
        if load.groups[sender.group].is_forged {
            // The last byte of what was signed.
            transaction.last_mut().into_iter().for_each(|byte| *byte ^= 1);
        }
        transaction
    };
    let transactions = senders.iter().enumerate().map(sign).collect();
    Schedule { transactions, senders }
}

fn total_rate(load: &Load) -> u64 {
    load.groups.iter().map(|group| group.rate).sum::<u64>().max(1)
}

/// The results of a run.
pub struct Shots {
    pub due_ns: Vec<u64>,
    /// When each was handed to its connection.
    pub sent_ns: Vec<u64>,
    pub ends: Ends,
    /// CPU time of the process behind the address since the warm-up, in nanoseconds.
    pub cpu_ns: u64,
    /// From the end of the warm-up to the end of the last transaction.
    pub took_ns: u64,
    /// The share of the processors' time that the host used meanwhile (steal).
    pub stolen: f64,
}

/// What the clients learned of their transactions and connections.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Ends {
    /// Answered with a success over HTTP; received by the edge's QUIC stack.
    pub accepted: usize,
    /// Refused by an answer, or by STOP_SENDING.
    pub refused: usize,
    pub first_refusal: Option<String>,
    /// Never written, because the edge granted no stream in time.
    pub unsent: usize,
    /// Written on a QUIC connection that ended before it was acknowledged.
    pub cut: usize,
    /// QUIC connections that the edge closed, and when it closed the first and the last one.
    pub closed: usize,
    pub first_closed_ns: u64,
    pub last_closed_ns: u64,
}

/// The connections of a load.
pub trait Clients {
    /// Hands over a transaction, and returns when it did. Waits only where there is no connection
    /// on which it can be written; that wait is part of the latencies from the due time.
    fn send(&mut self, sender: Sender, index: usize, bytes: &[u8]) -> Result<u64, Box<dyn Error>>;

    /// Waits for what is outstanding.
    fn finish(&mut self) -> Result<Ends, Box<dyn Error>>;

    /// When each was handed over, where `send` did not know it.
    fn sent_ns(&self) -> Option<Vec<u64>> {
        None
    }
}

/// Sends all transactions on schedule, and waits for their ends.
pub fn fire(load: &Load, schedule: &Schedule) -> Result<Shots, Box<dyn Error>> {
    let mut clients: Box<dyn Clients> = match load.transport {
        Transport::Quic => Box::new(QuicClients::open(load)?),
        Transport::Reqwest | Transport::ReqwestJson | Transport::Tpu | Transport::Touchdown => {
            Box::new(LibraryClients::open(load)?)
        }
        Transport::Raw | Transport::Json => Box::new(HttpClients::open(load, schedule)?),
    };
    // SAFETY: a plain call that affects only this thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000) };
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ load.run);
    let mean_ns = NS_PER_S as f64 / total_rate(load) as f64;
    let (mut due, mut sent) = (Vec::with_capacity(load.count), Vec::with_capacity(load.count));
    let (mut cpu_before, mut started_ns, mut stolen) = (0, 0, None);
    let mut due_ns = monotonic_ns() + 20_000_000;
    for (index, bytes) in schedule.transactions.iter().enumerate() {
        if index == load.warm {
            cpu_before = cpu_ns_of(load.pid)?;
            started_ns = monotonic_ns();
            stolen = Some(Stolen::since(started_ns));
        }
        sleep_until(due_ns);
        due.push(due_ns);
        sent.push(clients.send(schedule.senders[index], index, bytes)?);
        due_ns += random.gap(mean_ns);
    }
    let ends = clients.finish()?;
    let ended_ns = monotonic_ns();
    Ok(Shots {
        due_ns: due,
        sent_ns: clients.sent_ns().unwrap_or(sent),
        ends,
        cpu_ns: cpu_ns_of(load.pid)? - cpu_before,
        took_ns: ended_ns - started_ns,
        stolen: stolen.map_or(0.0, |stolen| stolen.share(ended_ns)),
    })
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
