//! Exports of the engine: connections to leaders, and deliveries.

use napi::bindgen_prelude::{Float64ArraySlice, Function};
use napi_derive::napi;

use crate::node::convert::{
    ENGINES, fill, guarded, milliseconds, parse_options, waker, with_engine,
};
use crate::node::options::EngineOptions;
use crate::node::shared_bytes::writable;
use crate::node::status_codes::*;
use crate::quic::engine::Engine;
use crate::quic::landed_shares::Offer;
use crate::quic::targets::Targets;

/// Version of these exports; `contract.ts` names the one it was written for.
#[napi]
pub fn contract_version() -> u32 {
    35
}

/// Starts an engine. `wake` is called without arguments, on the thread that called this, once for
/// each batch of outcomes. Returns the engine's handle, above 0 and good on every thread, or a
/// START code or PANIC, below 0.
#[napi]
pub fn engine_start(options: EngineOptions, wake: Function<'_, (), ()>) -> i32 {
    guarded(PANIC, || {
        let (Some(options), Some(waker)) = (parse_options(&options), waker(wake)) else {
            return START_OPTIONS;
        };
        // A stopped engine keeps its slot, so that it can be drained, until the slot is needed.
        match ENGINES.insert(Engine::is_stopped, || Engine::start(options, waker)) {
            Some(Ok(handle)) => i32::try_from(handle).unwrap_or(START_FULL),
            Some(Err(error)) => start_code(&error),
            None => START_FULL,
        }
    })
}

/// Closes all connections, each once its deliveries are acknowledged; blocks until then, for at
/// most `close_timeout_ms` or one second, and up to 250 ms for the closing packets. Returns OK or
/// NOT_STARTED.
#[napi]
pub fn engine_stop(engine: u32, close_timeout_ms: u32) -> i32 {
    with_engine(engine, NOT_STARTED, |engine| {
        engine.stop(milliseconds(close_timeout_ms));
        OK
    })
}

/// Writes `Engine::counters` and returns how many were written.
#[napi]
pub fn engine_counters(engine: u32, mut out: Float64ArraySlice<'_>) -> u32 {
    with_engine(engine, 0, |engine| fill(&mut out, engine.counters()))
}

/// Connections opened from now on use this identity. Returns OK, NOT_STARTED or START_IDENTITY.
#[napi]
pub fn identity_set(engine: u32, seed: &[u8]) -> i32 {
    with_engine(engine, NOT_STARTED, |engine| match <&[u8; 32]>::try_from(seed) {
        Ok(seed) if engine.identity_set(seed) => OK,
        _ => START_IDENTITY,
    })
}

/// Connects to "ip:port" or "[ipv6]:port". Returns the connection's handle, above 0, or
/// NOT_STARTED or an OPEN code, below 0.
#[napi]
pub fn peer_open(engine: u32, address: String) -> i64 {
    with_engine(engine, i64::from(NOT_STARTED), |engine| {
        let Ok(address) = address.parse() else { return i64::from(OPEN_ADDRESS) };
        engine.peer_open(address).map_or_else(|error| open_code(&error).into(), i64::from)
    })
}

/// Closes a connection once its deliveries are acknowledged, after `close_timeout_ms` at the
/// latest. Returns OK, NOT_STARTED or NO_PEER.
#[napi]
pub fn peer_close(engine: u32, peer: u32, close_timeout_ms: u32) -> i32 {
    with_engine(engine, NOT_STARTED, |engine| {
        if engine.peer_close(peer, milliseconds(close_timeout_ms)) { OK } else { NO_PEER }
    })
}

/// Makes the leader respond, so that its silence means something. Returns OK, NOT_STARTED or
/// NO_PEER.
#[napi]
pub fn peer_ping(engine: u32, peer: u32) -> i32 {
    with_engine(engine, NOT_STARTED, |engine| {
        engine.peer(peer).map_or(NO_PEER, |peer| {
            peer.ping();
            OK
        })
    })
}

/// Writes `Peer::stats`, of which the first is 1 connecting, 2 connected, 3 admitted, 4 closing or
/// 5 closed, and returns how many were written; 0 when the connection is gone.
#[napi]
pub fn peer_stats(engine: u32, peer: u32, mut out: Float64ArraySlice<'_>) -> u32 {
    with_engine(engine, 0, |engine| {
        engine.peer(peer).map_or(0, |peer| fill(&mut out, peer.stats()))
    })
}

/// Sends a transaction to up to 16 leaders on this thread. `deliveries` holds a handle and a tag
/// for each; `account` and `lamports` are its `Offer`. Bit i of the result: delivery i is on the
/// wire; bit 16 + i: it is queued. Each of these ends in a record `acked`, `failed` or `dropped`.
/// The result is 0 where the engine is not started, or the transaction is empty or above 4096
/// bytes.
#[napi]
pub fn tx_send(
    engine: u32,
    deliveries: &[u32],
    bytes: &[u8],
    tx: f64,
    ttl_ms: u32,
    account: f64,
    lamports: f64,
) -> u32 {
    let offer = Offer { account: account as u64, lamports };
    with_engine(engine, 0, |engine| engine.send(deliveries, bytes, tx as u64, ttl_ms, offer).bits())
}

/// Sets landed shares, by which what waits is ranked: `pairs` holds an account's number and its
/// share each. Returns OK or NOT_STARTED.
#[napi]
pub fn landed_shares_set(engine: u32, pairs: &[f64]) -> i32 {
    with_engine(engine, NOT_STARTED, |engine| {
        engine.landed_shares().update(pairs);
        OK
    })
}

/// Sets where all threads send: to the connections with these handles, each of which accepts
/// transactions of so many bytes, for at most `ttl_ms`. Returns OK, NOT_STARTED, or NO_ROOM for
/// lists of different lengths or with more than 16.
#[napi]
pub fn targets_set(engine: u32, peers: &[u32], bytes_max: &[u32], ttl_ms: u32) -> i32 {
    with_engine(engine, NOT_STARTED, |engine| {
        if engine.is_stopped() {
            return NOT_STARTED;
        }
        let Some(targets) = Targets::of(peers, bytes_max, ttl_ms) else { return NO_ROOM };
        engine.targets().set(targets);
        OK
    })
}

/// Moves events into `out`, the oldest first, and returns how many units of 8 numbers they have.
/// Those of one unit: kind (5 sent, 6 acked, 7 failed, 8 dropped, 9 connected, 10 admitted,
/// 11 closed), tx, peer, tag, reason, at_ns, rtt_us, detail. Submissions (1 to 4) have several.
#[napi]
pub fn events_drain(engine: u32, mut out: Float64ArraySlice<'_>) -> u32 {
    with_engine(engine, 0, |engine| count_of(engine.events().drain(writable(&mut out))))
}

/// Returns how many units of events are unread.
#[napi]
pub fn events_unread(engine: u32) -> u32 {
    with_engine(engine, 0, |engine| count_of(engine.events().unread()))
}

fn count_of(units: usize) -> u32 {
    u32::try_from(units).unwrap_or(u32::MAX)
}
