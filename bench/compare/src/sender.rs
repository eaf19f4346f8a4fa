//! A sender process: the generator, and either engine behind it.
//!
//! Protocol in lines: it prints its public key first, and `ready` when the leader has admitted it.
//! `run RATE SECONDS` sends at that mean rate with the gaps of a Poisson process, sleeping in
//! between, and prints the count sent and the CPU time used in microseconds.

use std::error::Error;
use std::io::{self, BufRead};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use solana_keypair::{keypair_from_seed, Keypair};
use solana_tpu_client_next::client_builder::{Client, ClientBuilder, TransactionSender};
use solana_tpu_client_next::leader_updater::LeaderUpdater;
use touchdown_native::quic::delivery::PeerState;
use touchdown_native::quic::engine::{Engine, Options};
use touchdown_native::quic::event::RECORD_FIELDS;
use touchdown_native::quic::landed_shares::Offer;
use touchdown_native::sync::clock::{monotonic_ns, NS_PER_S};

/// All transactions rank alike.
pub const NO_OFFER: Offer = Offer { account: 0, lamports: 0.0 };

/// The senders by the number in their payloads.
pub const SENDERS: [&str; 2] = ["touchdown", "tpu-client-next"];

/// The identity of a sender.
pub fn identity(sender: usize) -> Result<Keypair, Box<dyn Error>> {
    keypair_from_seed(&seed(sender)).map_err(|error| error.to_string().into())
}

pub fn run(name: &str, address: SocketAddr) -> Result<(), Box<dyn Error>> {
    let number = SENDERS.iter().position(|sender| *sender == name).ok_or("no such sender")?;
    let mut generator = Generator { sender: number, state: 0x9e37_79b9_7f4a_7c15 };
    let mut engine: Box<dyn Sends> = match number {
        0 => Box::new(Touchdown::connect(address)?),
        _ => Box::new(TpuClientNext::connect(address)?),
    };
    println!("ready");
    for line in io::stdin().lock().lines() {
        let line = line?;
        let mut words = line.split(' ').skip(1).map(str::parse::<u64>);
        let (rate, seconds) = (words.next().ok_or("rate")??, words.next().ok_or("seconds")??);
        let cpu_before = cpu_us();
        let sent = generator.run(rate, seconds, engine.as_mut());
        println!("{sent} {}", cpu_us() - cpu_before);
        engine.settle();
    }
    std::process::exit(0);
}

struct Generator {
    sender: usize,
    state: u64,
}

impl Generator {
    fn run(&mut self, rate: u64, seconds: u64, engine: &mut dyn Sends) -> u64 {
        let mut due_ns = monotonic_ns();
        let end_ns = due_ns + seconds * NS_PER_S;
        let mut sent = 0;
        while due_ns < end_ns {
            sleep_until(due_ns);
            let size = 250 + (self.random() % 950) as usize;
            let mut payload = vec![0x5a; size];
            payload[8] = self.sender as u8;
            payload[..8].copy_from_slice(&monotonic_ns().to_le_bytes());
            engine.send(payload);
            sent += 1;
            let uniform = (self.random() >> 11) as f64 / (1u64 << 53) as f64;
            let gap_ns = -(1.0 - uniform).ln() * NS_PER_S as f64 / rate as f64;
            due_ns += gap_ns as u64;
        }
        sent
    }

    fn random(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }
}

/// The sender's number and the stamp of a payload.
pub fn read_stamp(payload: &[u8]) -> Option<(usize, u64)> {
    let stamp = payload.first_chunk::<8>()?;
    Some((usize::from(*payload.get(8)?), u64::from_le_bytes(*stamp)))
}

/// CPU time of this process so far, in microseconds.
pub fn cpu_us() -> u64 {
    // SAFETY: `rusage` is plain numbers, and the call fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let micros = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
    micros(usage.ru_utime) + micros(usage.ru_stime)
}

fn sleep_until(at_ns: u64) {
    let now_ns = monotonic_ns();
    if at_ns > now_ns {
        std::thread::sleep(Duration::from_nanos(at_ns - now_ns));
    }
}

/// Either engine, as the generator uses it.
trait Sends {
    fn send(&mut self, payload: Vec<u8>);

    /// After a run: prints the engine's known errors to stderr.
    fn settle(&mut self);
}

struct Touchdown {
    engine: Arc<Engine>,
    peer: u32,
    tx: u64,
    /// Records so far by kind.
    kinds: [u64; 16],
    records: Vec<f64>,
}

impl Touchdown {
    fn connect(address: SocketAddr) -> Result<Self, Box<dyn Error>> {
        let binds = vec!["127.0.0.1:0".parse()?];
        let options = Options { binds, seed: seed(0), ..Options::default() };
        let engine = Engine::start(options, Box::new(|| {}));
        let engine = engine.map_err(|error| format!("{error:?}"))?;
        let peer = engine.peer_open(address).map_err(|error| format!("{error:?}"))?;
        for _ in 0..1000 {
            if engine.peer_state(peer) == PeerState::Admitted {
                let records = vec![0.0; 256 * RECORD_FIELDS];
                return Ok(Self { engine, peer, tx: 0, kinds: [0; 16], records });
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Err("the leader did not admit touchdown".into())
    }

    fn drain(&mut self) {
        loop {
            let count = self.engine.events().drain(&mut self.records);
            for record in self.records.chunks_exact(RECORD_FIELDS).take(count) {
                self.kinds[record[0] as usize & 15] += 1;
            }
            if count < 256 {
                return;
            }
        }
    }
}

impl Sends for Touchdown {
    fn send(&mut self, payload: Vec<u8>) {
        self.tx += 1;
        self.engine.send(&[self.peer, 0], &payload, self.tx, 2_000, NO_OFFER);
        if self.tx % 64 == 0 {
            self.drain();
        }
    }

    fn settle(&mut self) {
        std::thread::sleep(Duration::from_millis(150));
        self.drain();
        let [_, _, _, _, _, sent, acked, failed, dropped, ..] = self.kinds;
        if acked != self.tx {
            let given = self.tx;
            eprintln!("given {given} sent {sent} acked {acked} failed {failed} dropped {dropped}");
        }
    }
}

struct TpuClientNext {
    sender: TransactionSender,
    /// Kept alive, not used.
    _runtime: (tokio::runtime::Runtime, Client),
}

impl TpuClientNext {
    fn connect(address: SocketAddr) -> Result<Self, Box<dyn Error>> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let (sender, client) = build_client(runtime.handle(), address, 1, 128)?;
        // It connects at the first transaction.
        sender.try_send_transactions_in_batch(vec![vec![0x5a; 8]])?;
        std::thread::sleep(Duration::from_millis(500));
        Ok(Self { sender, _runtime: (runtime, client) })
    }
}

/// `tpu-client-next` to one leader, with the identity of that number.
pub fn build_client(
    runtime: &tokio::runtime::Handle,
    address: SocketAddr,
    number: usize,
    channel_size: usize,
) -> Result<(TransactionSender, Client), Box<dyn Error>> {
    let keypair = identity(number)?;
    let builder = ClientBuilder::new(Box::new(Pinned(address)))
        .runtime_handle(runtime.clone())
        .bind_socket(UdpSocket::bind("127.0.0.1:0")?)
        .leader_send_fanout(1)
        .identity(&keypair)
        .sender_channel_size(channel_size)
        .worker_channel_size(channel_size);
    Ok(builder.build()?)
}

impl Sends for TpuClientNext {
    fn send(&mut self, payload: Vec<u8>) {
        // A full channel loses the transaction, which the leader's count shows.
        let _ = self.sender.try_send_transactions_in_batch(vec![payload]);
    }

    fn settle(&mut self) {}
}

struct Pinned(SocketAddr);

#[async_trait]
impl LeaderUpdater for Pinned {
    fn next_leaders(&mut self, _lookahead_leaders: usize) -> Vec<SocketAddr> {
        vec![self.0]
    }

    async fn stop(&mut self) {}
}

fn seed(sender: usize) -> [u8; 32] {
    [sender as u8 + 1; 32]
}
