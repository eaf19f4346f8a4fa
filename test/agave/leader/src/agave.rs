//! A leader that is the very server validators run: `solana-streamer`'s stake-weighted QoS.

use {
    crate::{Options, events::Events},
    crossbeam_channel::bounded,
    solana_keypair::Keypair,
    solana_streamer::{
        nonblocking::swqos::SwQosConfig,
        quic::{QuicStreamerConfig, SpawnServerResult, spawn_stake_weighted_qos_server},
        streamer::StakedNodes,
    },
    std::{
        net::UdpSocket,
        sync::{Arc, RwLock},
        thread::JoinHandle,
    },
    tokio_util::sync::CancellationToken,
};

/// Bytes in a stream at most: the validator's setting for its TPU port (agave 4.2, 2026-11).
const STREAM_BYTES_MAX: u32 = 4096;

pub struct Leader {
    cancel: CancellationToken,
    server: SpawnServerResult,
    printer: JoinHandle<()>,
}

pub fn start(options: &Options, index: usize, socket: UdpSocket, events: &Events) -> Leader {
    let (sender, receiver) = bounded(50_000);
    let cancel = CancellationToken::new();
    let stakes = StakedNodes::new(Arc::new(options.stakes.clone()), Default::default());
    let server = spawn_stake_weighted_qos_server(
        "leader",
        "leader_quic",
        [socket.into()],
        &Keypair::new(),
        sender,
        Arc::new(RwLock::new(stakes)),
        QuicStreamerConfig {
            max_connections_per_ipaddr_per_min: options.per_minute,
            stream_receive_window_size: STREAM_BYTES_MAX,
            max_stream_data_bytes: STREAM_BYTES_MAX,
            ..QuicStreamerConfig::default()
        },
        SwQosConfig {
            max_unstaked_connections: options.unstaked_max,
            max_connections_per_unstaked_peer: options.per_unstaked_peer_max,
            ..SwQosConfig::default()
        },
        cancel.clone(),
    )
    .expect("the server starts on a bound socket");
    let events = events.clone();
    let printer = std::thread::spawn(move || {
        for batch in receiver {
            for packet in batch.iter() {
                let meta = packet.meta();
                let bytes = packet.data(..).unwrap_or_default();
                events.transaction(
                    index,
                    bytes,
                    meta.remote_pubkey(),
                    meta.is_from_staked_node(),
                );
            }
        }
    });
    Leader {
        cancel,
        server,
        printer,
    }
}

impl Leader {
    /// Ends the server and waits until its threads are gone; its port is free soon after.
    pub fn stop(self) {
        self.cancel.cancel();
        drop(self.server.key_updater);
        drop(self.server.endpoints);
        let _ = self.server.thread.join();
        let _ = self.printer.join();
    }
}
