//! Real Agave TPU servers on loopback, driven by a test through stdin and stdout.
//!
//! Two kinds of leader: `agave` is the stake-weighted QoS server that validators run, `raw` is a
//! bare quinn server with Agave's TLS and transport settings that admits, refuses, ignores and
//! closes when it is told to. Everything that happens is one JSON line on stdout; commands are
//! lines on stdin (see `usage`). The program ends when stdin ends, so a test that dies leaves no
//! server behind.

mod agave;
mod events;
mod raw;

use {
    events::Events,
    solana_pubkey::Pubkey,
    std::{
        collections::HashMap,
        io::BufRead,
        net::{Ipv4Addr, SocketAddr, UdpSocket},
        str::FromStr,
        time::{Duration, Instant},
    },
};

/// What the command line says. Figures default to those of a validator's TPU port.
pub struct Options {
    kind: String,
    leaders: usize,
    stakes: HashMap<Pubkey, u64>,
    unstaked_max: usize,
    per_unstaked_peer_max: usize,
    per_minute: u64,
}

/// A running leader, of either kind.
enum Leader {
    Agave(agave::Leader),
    Raw(raw::Leader),
}

impl Leader {
    fn stop(self) {
        match self {
            Leader::Agave(leader) => leader.stop(),
            Leader::Raw(leader) => leader.stop(),
        }
    }
}

fn usage() -> ! {
    eprintln!(
        "agave-leader [--kind agave|raw] [--leaders N] [--stake PUBKEY=LAMPORTS]... \n\
         [--unstaked-max N] [--per-peer-max N] [--per-minute N]\n\
         stdin: stop I | start I | admit I STREAMS | close I CODE REASON | refuse I on|off |\n\
         ignore I on|off   (the last four: raw only)"
    );
    std::process::exit(2);
}

fn options() -> Options {
    let mut options = Options {
        kind: "agave".into(),
        leaders: 1,
        stakes: HashMap::new(),
        unstaked_max: 2000,
        per_unstaked_peer_max: 8,
        per_minute: 8,
    };
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        let value = args.next().unwrap_or_else(|| usage());
        let number = || value.parse::<u64>().unwrap_or_else(|_| usage());
        match name.as_str() {
            "--kind" => options.kind = value,
            "--leaders" => options.leaders = number() as usize,
            "--unstaked-max" => options.unstaked_max = number() as usize,
            "--per-peer-max" => options.per_unstaked_peer_max = number() as usize,
            "--per-minute" => options.per_minute = number(),
            "--stake" => {
                let (pubkey, lamports) = value.split_once('=').unwrap_or_else(|| usage());
                let pubkey = Pubkey::from_str(pubkey).unwrap_or_else(|_| usage());
                let lamports = lamports.parse().unwrap_or_else(|_| usage());
                options.stakes.insert(pubkey, lamports);
            }
            _ => usage(),
        }
    }
    options
}

/// Binds, and goes on trying for a while: a stopped server lets go of its port a moment later.
fn bind(port: u16) -> UdpSocket {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        match UdpSocket::bind(address) {
            Ok(socket) => return socket,
            Err(error) if Instant::now() > deadline => panic!("cannot bind {address}: {error}"),
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

fn start(options: &Options, index: usize, port: u16, events: &Events) -> (Leader, u16) {
    let socket = bind(port);
    let address = socket.local_addr().expect("a bound socket has an address");
    let leader = match options.kind.as_str() {
        "agave" => Leader::Agave(agave::start(options, index, socket, events)),
        "raw" => Leader::Raw(raw::start(index, socket, events)),
        _ => usage(),
    };
    events.listening(index, address);
    (leader, address.port())
}

fn main() {
    let options = options();
    let events = Events::new();
    let mut ports = vec![0; options.leaders];
    let mut leaders: Vec<Option<Leader>> = Vec::new();
    for (index, port) in ports.iter_mut().enumerate() {
        let (leader, bound) = start(&options, index, 0, &events);
        *port = bound;
        leaders.push(Some(leader));
    }

    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let words: Vec<&str> = line.split_whitespace().collect();
        let index = words.get(1).and_then(|word| word.parse::<usize>().ok());
        let Some(index) = index.filter(|index| *index < leaders.len()) else {
            events.unknown(&line);
            continue;
        };
        match (words[0], &leaders[index]) {
            ("stop", Some(_)) => {
                if let Some(leader) = leaders[index].take() {
                    leader.stop();
                }
                events.stopped(index);
            }
            ("start", None) => {
                leaders[index] = Some(start(&options, index, ports[index], &events).0);
            }
            (command, Some(Leader::Raw(leader))) if leader.obey(command, &words[2..]) => {
                events.done(index, command);
            }
            _ => events.unknown(&line),
        }
    }
    // Ended by the test: nothing is left to flush, and servers need no farewell.
    std::process::exit(0);
}
