//! Latency of a small transaction sent directly after one of each size.
//!
//! `cargo bench --bench small_after_large -- [ROUNDS] [RTT_MS] [FROM] [TO]`. Through the engine,
//! over loopback, to one leader with many connections and a round trip of RTT_MS. Each pair has a
//! connection on which nothing else is in flight. Sizes alternate in every round, so that other
//! load on the machine affects all of them alike. Numbers are microseconds, with bands of sizes
//! that share a line if there are many; `late` counts those that waited for half a round trip.
//!
//! Each size is also compared with its neighbours: how many of its waits are above 1.2 times their
//! p99, and whether that is more than chance makes likely, for the size alone and for 16 sizes
//! together.
//! Of 100 rounds 7 such waits of one size are too many, of 16 sizes about 30 in 1,600.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::Duration;

use support::path::Path;
use support::{ACKED, LONG_MS, Leader, LeaderOptions, SENT, Sender, options};
use touchdown_native::quic::engine::Engine;
use touchdown_native::quic::event::RECORD_FIELDS;
use touchdown_native::quic::landed_shares::Offer;
use touchdown_native::sync::clock::monotonic_ns;

fn main() {
    let words: Vec<usize> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    let word = |place: usize, default| words.get(place).copied().unwrap_or(default);
    let (rounds, rtt_ms) = (word(0, 10), word(1, 80) as u64);
    let sizes: Vec<usize> = (word(2, 1)..=word(3, 4096)).collect();
    println!("mtu,sizes,count,p50_us,p99_us,late");
    for mtu in [1452, 1200] {
        let mut waits = measure(mtu, &sizes, rounds, rtt_ms);
        let band = sizes.len().div_ceil(64);
        for (band, waits) in sizes.chunks(band).zip(waits.chunks_mut(band)) {
            line(mtu, band, waits.concat(), rtt_ms);
        }
        line(mtu, &sizes, waits.concat(), rtt_ms);
        let is_late = |waits: &mut Vec<u64>| {
            waits.sort_unstable();
            late(waits, rtt_ms) > waits.len() / 2
        };
        let all = sizes.iter().zip(&mut waits);
        let mostly: Vec<_> = all.filter_map(|(size, all)| is_late(all).then_some(size)).collect();
        println!("mostly late at {mtu}: {mostly:?}");
        for together in [1, 16] {
            println!(
                "above 1.2 x p99 at {mtu}, {together} sizes: {:?}",
                above(&sizes, &waits, together)
            );
        }
    }
}

fn line(mtu: u64, sizes: &[usize], mut waits: Vec<u64>, rtt_ms: u64) {
    waits.sort_unstable();
    let at = |part: f64| waits[((waits.len() - 1) as f64 * part) as usize] as f64 / 1e3;
    let (from, to) = (sizes[0], sizes[sizes.len() - 1]);
    let (p50, p99, late) = (at(0.5), at(0.99), late(&waits, rtt_ms));
    println!("{mtu},{from}-{to},{},{p50:.1},{p99:.1},{late}", waits.len());
}

fn late(waits: &[u64], rtt_ms: u64) -> usize {
    waits.iter().filter(|wait| **wait > rtt_ms * 500_000).count()
}

/// The groups of `together` neighbouring sizes of which more waits are above 1.2 times the p99 of
/// the sizes around them than chance makes likely: first size, number of waits, number above.
fn above(sizes: &[usize], waits: &[Vec<u64>], together: usize) -> Vec<(usize, usize, usize)> {
    let mut found = Vec::new();
    for at in 0..(waits.len() + 1).saturating_sub(together) {
        let own = at.saturating_sub(NEAR)..(at + together + NEAR).min(waits.len());
        let around = at.saturating_sub(FAR)..(at + together + FAR).min(waits.len());
        let mut base: Vec<u64> = around
            .filter(|place| !own.contains(place))
            .flat_map(|place| waits[place].clone())
            .collect();
        if base.is_empty() {
            continue;
        }
        base.sort_unstable();
        let limit = base[(base.len() - 1) * 99 / 100] * 6 / 5;
        let beyond = |all: &[u64]| all.iter().filter(|wait| **wait > limit).count();
        let share = (beyond(&base) + 1) as f64 / (base.len() + 1) as f64;
        let group = waits[at..at + together].concat();
        let count = beyond(&group);
        if tail(group.len(), count, share) < CHANCE / waits.len() as f64 {
            found.push((sizes[at], group.len(), count));
        }
    }
    found
}

/// The probability that at least `count` of `all` waits are above the limit, if `share` of all are.
fn tail(all: usize, count: usize, share: f64) -> f64 {
    let mut exactly = (1.0 - share).powi(all as i32);
    let mut below = 0.0;
    for n in 0..count {
        below += exactly;
        exactly *= (all - n) as f64 / (n + 1) as f64 * share / (1.0 - share);
    }
    1.0 - below
}

/// Nanoseconds until the small transaction was on the wire, per size.
fn measure(mtu: u64, sizes: &[usize], rounds: usize, rtt_ms: u64) -> Vec<Vec<u64>> {
    // RFC 9000 section 18.2: max_udp_payload_size.
    let params: support::transport_params::Params = if mtu == 1200 { &[(3, 1200)] } else { &[] };
    let leader = Leader::start(LeaderOptions { params, ..LeaderOptions::default() });
    let delay = Duration::from_millis(rtt_ms / 2);
    let path = Path::with_delay(leader.address, delay, |_, datagram| vec![datagram.to_vec()]);
    let mut sender = Sender::start(options());
    let peers: Vec<u32> = (0..PEERS).map(|_| sender.open_admitted(path.address)).collect();
    let engine = sender.engine.clone();
    while peers.iter().any(|peer| engine.peer(*peer).unwrap().stats()[4] != mtu) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut pairs: Vec<Pair> = (0..PEERS).map(|_| Pair::default()).collect();
    let mut waits = vec![Vec::new(); sizes.len()];
    let turns = (0..=rounds).flat_map(|round| (0..sizes.len()).map(move |turn| (round, turn)));
    for (count, (round, turn)) in turns.enumerate() {
        // Neighbouring sizes are not measured one after the other.
        let place = turn * 1009 % sizes.len();
        let tag = count % PEERS;
        while pairs[tag].acked < 2 {
            drain(&engine, &mut pairs, &mut waits);
            std::thread::sleep(Duration::from_micros(100));
        }
        let deliveries = [peers[tag], tag as u32];
        engine.send(&deliveries, &vec![1; sizes[place]], 1, LONG_MS, Offer::default());
        pairs[tag] =
            Pair { began_ns: monotonic_ns(), place: (round > 0).then_some(place), acked: 0 };
        engine.send(&deliveries, &[2; 200], 2, LONG_MS, Offer::default());
    }
    while pairs.iter().any(|pair| pair.acked < 2) {
        drain(&engine, &mut pairs, &mut waits);
    }
    waits
}

/// What is in flight on one connection.
struct Pair {
    began_ns: u64,
    /// None for a warm-up round.
    place: Option<usize>,
    acked: usize,
}

impl Default for Pair {
    fn default() -> Self {
        Self { began_ns: 0, place: None, acked: 2 }
    }
}

fn drain(engine: &Engine, pairs: &mut [Pair], waits: &mut [Vec<u64>]) {
    let mut records = [0.0; 64 * RECORD_FIELDS];
    let count = engine.events().drain(&mut records);
    for record in records.chunks_exact(RECORD_FIELDS).take(count) {
        let [kind, tx, tag, at_ns] = [0, 1, 3, 5].map(|field| record[field] as u64);
        let Some(pair) = pairs.get_mut(tag as usize) else { continue };
        if kind == u64::from(ACKED) {
            pair.acked += 1;
        } else if let (SENT, 2, Some(place)) = (kind as u8, tx, pair.place) {
            waits[place].push(at_ns.saturating_sub(pair.began_ns));
        }
    }
}

/// Sizes on each side that may share a cause with the measured one, and those it is compared with.
const NEAR: usize = 20;
const FAR: usize = 100;
/// The probability that a run in which all sizes are alike names a size.
const CHANCE: f64 = 0.01;
/// Connections used in rotation.
const PEERS: usize = 64;
