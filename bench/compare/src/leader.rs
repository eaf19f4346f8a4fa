//! The leader: Agave's own TPU streamer, and a thread that receives transactions from it.

use std::collections::HashMap;
use std::error::Error;
use std::io::{self, BufRead};
use std::net::{SocketAddr, UdpSocket};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, RwLock};

use solana_keypair::Keypair;
use solana_pubkey::Pubkey;
use solana_streamer::nonblocking::swqos::SwQosConfig;
use solana_streamer::quic::{spawn_stake_weighted_qos_server, QuicStreamerConfig};
use solana_streamer::streamer::StakedNodes;
use tokio_util::sync::CancellationToken;
use touchdown_native::sync::clock::monotonic_ns;

use crate::sender::{cpu_us, read_stamp};

/// Starts a leader with these identities as staked nodes. `take` receives each transaction and the
/// time at which it left the streamer. Runs until the process ends.
pub fn serve(
    public_keys: &[&str],
    take: impl Fn(&[u8], u64) + Send + 'static,
) -> Result<SocketAddr, Box<dyn Error>> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let address = socket.local_addr()?;
    // A large share of all stake; otherwise the limit of 200 a second for unstaked clients applies.
    let mut stakes = HashMap::from([(Pubkey::new_unique(), STAKE)]);
    for key in public_keys {
        stakes.insert(key.parse()?, STAKE);
    }
    let nodes = Arc::new(RwLock::new(StakedNodes::new(Arc::new(stakes), HashMap::new())));
    let (packet_sender, packets) = crossbeam_channel::bounded(50_000);
    let config = QuicStreamerConfig {
        max_connections_per_ipaddr_per_min: 1_000,
        num_threads: NonZeroUsize::new(2).ok_or("two is not zero")?,
        stream_receive_window_size: 4096,
        max_stream_data_bytes: 4096,
        ..QuicStreamerConfig::default()
    };
    let server = spawn_stake_weighted_qos_server(
        "solQuicTpu",
        "quic_streamer_tpu",
        [socket.into()],
        &Keypair::new(),
        packet_sender,
        nodes,
        config,
        SwQosConfig::default(),
        CancellationToken::new(),
    )?;
    std::thread::spawn(move || {
        let _server = server;
        if !go_first() {
            eprintln!("no real-time priority: arrivals are noted late where processors are busy");
        }
        for batch in packets {
            let now_ns = monotonic_ns();
            for packet in batch.iter() {
                if let Some(bytes) = packet.data(..) {
                    take(bytes, now_ns);
                }
            }
        }
    });
    Ok(address)
}

/// Gives the calling thread real-time priority; returns whether the system allows it.
///
/// The thread that records arrivals is part of the measurement: its waits for a processor would
/// count as time on the path.
fn go_first() -> bool {
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: the call reads a plain number; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &lowest) == 0 }
}

/// The leader of the senders' comparison.
///
/// Protocol in lines: it prints its address first; `reset` clears the records; `report` prints for
/// each sender the count and the one-way quantiles in nanoseconds, and the CPU time used since the
/// reset.
pub fn run(public_keys: &[&str]) -> Result<(), Box<dyn Error>> {
    let seen = Arc::new(Mutex::new([Vec::new(), Vec::new()]));
    let taken = seen.clone();
    let address = serve(public_keys, move |bytes, now_ns| {
        let Some((sender, stamp_ns)) = read_stamp(bytes) else {
            return;
        };
        if let Ok(mut seen) = taken.lock() {
            seen[sender & 1].push(now_ns.saturating_sub(stamp_ns));
        }
    })?;

    println!("{address}");
    let mut cpu_before = cpu_us();
    for line in io::stdin().lock().lines() {
        let mut seen = seen.lock().map_err(|_| "the taking thread failed")?;
        if line? == "report" {
            let [first, second] = &mut *seen;
            println!("{} {} {}", quantiles(first), quantiles(second), cpu_us() - cpu_before);
        }
        *seen = [Vec::new(), Vec::new()];
        cpu_before = cpu_us();
    }
    std::process::exit(0);
}

/// Count, p50, p99 and p99.9.
fn quantiles(latencies: &mut [u64]) -> String {
    latencies.sort_unstable();
    let at = |per_mille: usize| {
        let place = latencies.len() * per_mille / 1000;
        latencies.get(place.min(latencies.len().saturating_sub(1))).copied().unwrap_or(0)
    };
    format!("{} {} {} {}", latencies.len(), at(500), at(990), at(999))
}

const STAKE: u64 = 1_000_000_000_000;
