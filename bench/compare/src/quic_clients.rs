//! QUIC connections to an edge, as validators' clients open them: the engine that sends to leaders
//! sends to the edge. Each account has an engine of its own, because an engine has one identity.

use std::error::Error;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use touchdown_native::quic::delivery::PeerState;
use touchdown_native::quic::engine::{Engine, Options};
use touchdown_native::quic::event::{Kind, Reason, RECORD_FIELDS};
use touchdown_native::quic::landed_shares::Offer;
use touchdown_native::quic::tls::Transport;
use touchdown_native::sync::clock::{monotonic_ns, NS_PER_S};

use crate::load::{Clients, Ends, Load, Sender};
use crate::simulated_leader::unread;

/// How long a transaction may wait for stream credit.
const TTL_MS: u32 = 2_000;
/// Handshakes at a time: an edge bounds those of one address.
const OPENED_TOGETHER: usize = 16;
const OPEN_NS_MAX: u64 = 10 * NS_PER_S;
/// Sends of an account between two looks at its events.
const SENDS_PER_DRAIN: usize = 64;
const RECORDS: usize = 256;
/// Without keep-alive of its own: the edge pings.
const NEVER: Duration = Duration::from_secs(86_400);

/// The connections of one account.
pub struct AccountPeers {
    engine: Arc<Engine>,
    peers: Vec<u32>,
    turn: usize,
    sent: usize,
    ends: Ends,
    records: Vec<f64>,
}

impl AccountPeers {
    /// Opens `connections` with the identity of a seed, and waits until each has stream credit.
    pub fn open(
        address: std::net::SocketAddr,
        seed: &[u8],
        connections: usize,
    ) -> Result<Self, Box<dyn Error>> {
        let seed = *seed.first_chunk().ok_or("a seed has 32 bytes")?;
        let binds = vec!["127.0.0.1:0".parse()?];
        let transport = Transport {
            idle_timeout: Duration::from_secs(60),
            keep_alive: NEVER,
            ..Transport::default()
        };
        let options = Options { binds, seed, transport, ..Options::default() };
        let engine = Engine::start(options, Box::new(|| {}));
        let engine = engine.map_err(|error| format!("{error:?}"))?;
        let mut peers = Vec::with_capacity(connections);
        while peers.len() < connections {
            let count = OPENED_TOGETHER.min(connections - peers.len());
            peers.extend(open_admitted(&engine, address, count)?);
        }
        let records = vec![0.0; RECORDS * RECORD_FIELDS];
        let mut account = Self { engine, peers, turn: 0, sent: 0, ends: Ends::default(), records };
        account.drain();
        account.ends = Ends::default();
        Ok(account)
    }

    /// How many connections are open.
    #[allow(dead_code, reason = "only the program touchdown-load asks")]
    pub fn open_count(&self) -> usize {
        let is_open = |peer: &&u32| self.engine.peer_state(**peer) == PeerState::Admitted;
        self.peers.iter().filter(is_open).count()
    }

    fn send(&mut self, index: usize, bytes: &[u8]) -> u64 {
        let peer = self.peers[self.turn];
        self.turn = (self.turn + 1) % self.peers.len();
        self.sent += 1;
        let sent_ns = monotonic_ns();
        let offer = Offer { account: 0, lamports: 0.0 };
        self.engine.send(&[peer, 0], bytes, index as u64, TTL_MS, offer);
        if self.sent % SENDS_PER_DRAIN == 0 {
            self.drain();
        }
        sent_ns
    }

    /// Counts the events since the last call.
    fn drain(&mut self) {
        loop {
            let count = self.engine.events().drain(&mut self.records);
            for record in self.records.chunks_exact(RECORD_FIELDS).take(count) {
                let ends = &mut self.ends;
                let (kind, reason) = (record[0] as u8, record[4] as u8);
                if kind == Kind::Acked as u8 {
                    ends.accepted += 1;
                } else if kind == Kind::Failed as u8 && reason == Reason::StreamStopped as u8 {
                    ends.refused += 1;
                } else if kind == Kind::Failed as u8 {
                    ends.cut += 1;
                } else if kind == Kind::Dropped as u8 {
                    ends.unsent += 1;
                } else if kind == Kind::Closed as u8 {
                    ends.closed += 1;
                    ends.last_closed_ns = record[5] as u64;
                    if ends.closed == 1 {
                        ends.first_closed_ns = record[5] as u64;
                    }
                }
            }
            if count < RECORDS {
                return;
            }
        }
    }

    fn ended(&self) -> usize {
        self.ends.accepted + self.ends.refused + self.ends.cut + self.ends.unsent
    }
}

fn open_admitted(
    engine: &Engine,
    address: std::net::SocketAddr,
    count: usize,
) -> Result<Vec<u32>, Box<dyn Error>> {
    let peers = (0..count).map(|_| engine.peer_open(address));
    let peers: Vec<u32> = peers.collect::<Result<_, _>>().map_err(|error| format!("{error:?}"))?;
    let patience_ns = monotonic_ns() + OPEN_NS_MAX;
    loop {
        let states = peers.iter().map(|peer| engine.peer_state(*peer));
        let admitted = states.filter(|state| *state == PeerState::Admitted).count();
        if admitted == count {
            return Ok(peers);
        }
        if monotonic_ns() > patience_ns {
            return Err(format!("{admitted} of {count} QUIC connections were admitted").into());
        }
        sleep(Duration::from_millis(1));
    }
}

/// The connections of all accounts, by group.
pub struct QuicClients {
    groups: Vec<Vec<AccountPeers>>,
}

impl QuicClients {
    pub fn open(load: &Load) -> Result<Self, Box<dyn Error>> {
        let mut groups = Vec::new();
        for group in &load.groups {
            let address = if group.is_elsewhere { unread()? } else { load.address };
            let open = |account: &crate::load::Account| {
                AccountPeers::open(address, &account.seed, group.connections)
            };
            groups.push(group.accounts.iter().map(open).collect::<Result<_, _>>()?);
        }
        Ok(Self { groups })
    }
}

impl Clients for QuicClients {
    fn send(&mut self, sender: Sender, index: usize, bytes: &[u8]) -> Result<u64, Box<dyn Error>> {
        Ok(self.groups[sender.group][sender.account].send(index, bytes))
    }

    fn finish(&mut self) -> Result<Ends, Box<dyn Error>> {
        let patience_ns = monotonic_ns() + u64::from(TTL_MS) * 1_000_000 + NS_PER_S;
        let mut total = Ends::default();
        for account in self.groups.iter_mut().flatten() {
            while account.ended() < account.sent && monotonic_ns() < patience_ns {
                sleep(Duration::from_millis(1));
                account.drain();
            }
            let ends = &account.ends;
            total.accepted += ends.accepted;
            total.refused += ends.refused;
            total.unsent += ends.unsent;
            total.cut += ends.cut;
            if ends.closed > 0 {
                let is_first = total.closed == 0;
                let first = ends.first_closed_ns;
                total.first_closed_ns =
                    if is_first { first } else { total.first_closed_ns.min(first) };
                total.last_closed_ns = total.last_closed_ns.max(ends.last_closed_ns);
                total.closed += ends.closed;
            }
        }
        Ok(total)
    }
}
