//! Agave's `tpu-client-next` as a program: sends the transactions on stdin, one a line in base64, to
//! one address as to a leader, with the keypair of a file that `solana-keygen` writes. Once all are
//! sent, its connection is closed, or a minute is over, it prints the client's counters as one line of JSON.

use {
    async_trait::async_trait,
    base64::{Engine, prelude::BASE64_STANDARD},
    solana_keypair::read_keypair_file,
    solana_tpu_client_next::{ClientBuilder, SendTransactionStats, leader_updater::LeaderUpdater},
    std::{
        io::BufRead,
        net::{Ipv4Addr, SocketAddr, UdpSocket},
        sync::{
            Arc,
            atomic::{AtomicU64, Ordering},
        },
        time::{Duration, Instant},
    },
    tokio_util::sync::CancellationToken,
};

/// Transactions that the client takes at once.
const BATCH: usize = 64;
/// Batches that may wait in the client; it drops further ones.
const BATCHES_WAITING: usize = 1_024;
const PATIENCE: Duration = Duration::from_secs(60);

/// The edge, in place of the leaders.
struct Pinned(SocketAddr);

#[async_trait]
impl LeaderUpdater for Pinned {
    fn next_leaders(&mut self, _lookahead_leaders: usize) -> Vec<SocketAddr> {
        vec![self.0]
    }

    async fn stop(&mut self) {}
}

/// What the client counted so far.
#[derive(Default)]
struct Counts {
    sent: AtomicU64,
    stopped: AtomicU64,
    lost: AtomicU64,
    closed: AtomicU64,
}

impl Counts {
    fn add(&self, stats: &SendTransactionStats) {
        let read = stats.read_and_reset();
        self.sent
            .fetch_add(read.successfully_sent, Ordering::Relaxed);
        self.stopped
            .fetch_add(read.write_error_stopped, Ordering::Relaxed);
        self.lost
            .fetch_add(read.write_error_connection_lost, Ordering::Relaxed);
        self.closed
            .fetch_add(read.connection_error_application_closed, Ordering::Relaxed);
    }
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, keypair] = arguments.as_slice() else {
        eprintln!("agave-client ADDRESS KEYPAIR_FILE < TRANSACTIONS");
        std::process::exit(2);
    };
    let address: SocketAddr = address.parse().expect("an address with a port");
    let keypair = read_keypair_file(keypair).expect("a keypair file");
    let transactions: Vec<Vec<u8>> = std::io::stdin()
        .lock()
        .lines()
        .map(|line| {
            BASE64_STANDARD
                .decode(line.expect("a line"))
                .expect("base64")
        })
        .collect();

    let counts = Arc::new(Counts::default());
    let reported = counts.clone();
    let report = move |stats: Arc<SendTransactionStats>, cancel: CancellationToken| async move {
        while !cancel.is_cancelled() {
            reported.add(&stats);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        reported.add(&stats);
    };
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a UDP socket");
    let (sender, client) = ClientBuilder::new(Box::new(Pinned(address)))
        .bind_socket(socket)
        .leader_send_fanout(1)
        .identity(&keypair)
        .worker_channel_size(BATCHES_WAITING)
        .metric_reporter(report)
        .build()
        .expect("a client");

    let count = transactions.len() as u64;
    for batch in transactions.chunks(BATCH) {
        sender
            .send_transactions_in_batch(batch.to_vec())
            .await
            .expect("a running client");
    }
    let ended = || {
        let [sent, stopped, lost, closed] =
            [&counts.sent, &counts.stopped, &counts.lost, &counts.closed]
                .map(|each| each.load(Ordering::Relaxed));
        sent + stopped + lost >= count || closed > 0
    };
    let since = Instant::now();
    while !ended() && since.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // What is sent is not received yet: the client closes its connections when it ends.
    tokio::time::sleep(Duration::from_secs(1)).await;
    drop(client);
    println!(
        r#"{{"sent":{},"stopped":{},"lost":{},"closed":{}}}"#,
        counts.sent.load(Ordering::Relaxed),
        counts.stopped.load(Ordering::Relaxed),
        counts.lost.load(Ordering::Relaxed),
        counts.closed.load(Ordering::Relaxed),
    );
}
