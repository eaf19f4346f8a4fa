//! Every item that Node sees, and nothing else.
//!
//! Bytes, handles and numbers cross, in one call a batch; no promise and, past `peer_open`, no
//! string. What can go wrong is a code (`codes`); an argument of another type than declared is the
//! caller's bug and throws. Panics stay here: the call answers `PANIC`.

use napi::bindgen_prelude::{Float64ArraySlice, Function, Uint8Array, Uint8ArraySlice};
use napi_derive::napi;

use crate::base58::signature_text_at;
use crate::call::read_call;
use crate::chain::asker::{Answer, Asker, Question};
use crate::chain::statuses::SIGNATURE_BYTES;
use crate::chain::{feed::SlotFeed, line::Address, news::Feed, trust, web::Web};
use crate::codes::*;
use crate::crossing::{
    ASKERS, DECODERS, ENGINES, FEEDS, fill, fill_bytes, guarded, milliseconds, parse_options,
    placed, put, take_on, waker, with_asker, with_engine, with_feed,
};
use crate::decode::decoder::{Decoder, numbers, numbers_of_all};
use crate::lent::{Texts, overlap, writable, writable_bytes};
use crate::limits::{
    ANSWER_BYTES_MAX, QUESTION_BYTES_MAX, SIGNATURES_ASKED_MAX, TRANSACTION_BYTES_MAX,
};
use crate::send::{engine::Engine, held::release};

/// What an engine is started with; every field is present.
#[napi(object, object_to_js = false)]
pub struct EngineOptions {
    /// Local addresses to send from, "ip:port" each, port 0 for any.
    #[napi(ts_type = "Array<string>")]
    pub binds: Texts,
    /// The identity's 32-byte Ed25519 seed.
    pub seed: Uint8Array,
    /// Most copies that wait for one leader.
    pub queue_max: u32,
    /// Most copies of one leader that await its acknowledgement.
    pub in_flight_max: u32,
    /// Most outcomes that wait to be drained.
    pub outcomes_max: u32,
    /// A leader that grants no stream for so long after `peer_open` is given up.
    pub admission_timeout_ms: u32,
    /// Silence after which a connection is given up.
    pub idle_timeout_ms: u32,
    /// Pause after which a ping keeps an idle connection alive.
    pub keep_alive_ms: u32,
    /// Packets that a leader need not acknowledge at once; 0 leaves its own habit.
    pub ack_every: u32,
    /// The longest that a leader shall wait with an acknowledgement.
    pub ack_delay_ms: u32,
    /// How long the I/O thread looks for datagrams before it sleeps; 0: not at all.
    pub busy_poll_us: u32,
}

/// The version of this list of exports; `contract.ts` names the one it was written for.
#[napi]
pub fn contract_version() -> u32 {
    10
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
        // A stopped engine keeps its place, so that it can be drained, until that is needed.
        match ENGINES.insert(Engine::is_stopped, || Engine::start(options, waker)) {
            Some(Ok(handle)) => i32::try_from(handle).unwrap_or(START_FULL),
            Some(Err(error)) => start_code(&error),
            None => START_FULL,
        }
    })
}

/// Closes all connections, each once its copies are acknowledged; blocks for as long, for
/// `linger_ms` or a second at the most, and up to 250 ms for goodbyes. Returns OK or NOT_STARTED.
#[napi]
pub fn engine_stop(engine: u32, linger_ms: u32) -> i32 {
    with_engine(engine, NOT_STARTED, |engine| {
        engine.stop(milliseconds(linger_ms));
        OK
    })
}

/// Writes `Engine::counters` and returns how many were written.
#[napi]
pub fn engine_counters(engine: u32, mut out: Float64ArraySlice<'_>) -> u32 {
    with_engine(engine, 0, |engine| fill(&mut out, engine.counters()))
}

/// Connections opened from now on carry this identity. Returns OK, NOT_STARTED or START_IDENTITY.
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

/// Closes a connection once its copies are acknowledged, after `linger_ms` at the latest.
/// Returns OK, NOT_STARTED or NO_PEER.
#[napi]
pub fn peer_close(engine: u32, peer: u32, linger_ms: u32) -> i32 {
    with_engine(engine, NOT_STARTED, |engine| {
        if engine.peer_close(peer, milliseconds(linger_ms)) { OK } else { NO_PEER }
    })
}

/// Makes the leader answer, so that its silence means something. Returns OK, NOT_STARTED or NO_PEER.
#[napi]
pub fn peer_ping(engine: u32, peer: u32) -> i32 {
    with_engine(engine, NOT_STARTED, |engine| {
        engine.peer(peer).map_or(NO_PEER, |peer| {
            peer.ping();
            OK
        })
    })
}

/// Writes `Peer::figures`, of which the first is 1 connecting, 2 connected, 3 admitted, 4 closing
/// or 5 closed, and returns how many were written; 0 when the connection is gone.
#[napi]
pub fn peer_figures(engine: u32, peer: u32, mut out: Float64ArraySlice<'_>) -> u32 {
    with_engine(engine, 0, |engine| {
        engine.peer(peer).map_or(0, |peer| fill(&mut out, peer.figures()))
    })
}

/// Sends a transaction to up to 16 leaders on this thread. `copies` is a handle and a tag for
/// each. Bit i of the answer: copy i is on the wire; bit 16 + i: it was taken and waits. Every copy
/// ends in a record `acked`, `failed` or `dropped`, unless the engine is not started or the
/// transaction is empty or above 4096 bytes: then the answer is 0.
#[napi]
pub fn tx_send(engine: u32, copies: &[u32], bytes: &[u8], tx: f64, ttl_ms: u32) -> u32 {
    with_engine(engine, 0, |engine| engine.send(copies, bytes, tx as u64, ttl_ms).bits())
}

/// As `tx_send`, but this thread keeps the copies until `tx_release`: all of them wait.
#[napi]
pub fn tx_hold(engine: u32, copies: &[u32], bytes: &[u8], tx: f64, ttl_ms: u32) -> u32 {
    with_engine(engine, 0, |engine| engine.hold(copies, bytes, tx as u64, ttl_ms).bits())
}

/// Sends what this thread keeps. Returns 1 where copies wait now for a leader of it, 0 or PANIC.
#[napi]
pub fn tx_release() -> i32 {
    guarded(PANIC, || i32::from(release()))
}

/// Moves records into `out` and returns how many: kind (1 sent, 2 acked, 3 failed, 4 dropped,
/// 5 connected, 6 admitted, 7 closed), tx, peer, tag, reason, at_ns, rtt_us, detail.
#[napi]
pub fn outcomes_drain(engine: u32, mut out: Float64ArraySlice<'_>) -> u32 {
    with_engine(engine, 0, |engine| {
        u32::try_from(engine.outcomes_drain(writable(&mut out))).unwrap_or(u32::MAX)
    })
}

/// Makes a decoder that any thread may use. `tip_accounts` are 32 bytes each, `keys_max` is 1024
/// at most. Returns its handle, above 0, or a DECODER code, below 0.
#[napi]
pub fn decoder_create(tip_accounts: &[u8], lamports_min: f64, verify: bool, keys_max: u32) -> i32 {
    guarded(PANIC, || {
        let Some(decoder) = Decoder::new(tip_accounts, lamports_min, verify, keys_max as usize)
        else {
            return DECODER_OPTIONS;
        };
        placed(&DECODERS, DECODER_FULL, || Some(decoder))
    })
}

/// Forgets a decoder; calls under way end as usual. Returns OK or NO_DECODER.
#[napi]
pub fn decoder_close(decoder: u32) -> i32 {
    guarded(PANIC, || if DECODERS.remove(decoder) { OK } else { NO_DECODER })
}

/// Writes `Decoder::counters` and returns how many were written.
#[napi]
pub fn decoder_counters(decoder: u32, mut out: Float64ArraySlice<'_>) -> u32 {
    guarded(0, || DECODERS.find(decoder).map_or(0, |decoder| fill(&mut out, decoder.counters())))
}

/// Judges a transaction and writes the verdict, eleven numbers, from `out[at]` on. Returns 1 or 0
/// like the first of them, or NO_DECODER, PANIC, or NO_ROOM where `out` is too short or shares
/// memory with the transaction.
#[napi]
pub fn decode(decoder: u32, bytes: &[u8], mut out: Float64ArraySlice<'_>, at: u32) -> i32 {
    guarded(PANIC, || {
        let Some(decoder) = DECODERS.find(decoder) else {
            return NO_DECODER;
        };
        let out = writable(&mut out);
        if overlap(bytes, out) {
            return NO_ROOM;
        }
        let rest = out.get_mut(at as usize..);
        let Some(slot) = rest.and_then(|rest| rest.first_chunk_mut()) else {
            return NO_ROOM;
        };
        let verdict = decoder.decode(bytes);
        *slot = numbers(&verdict);
        i32::from(verdict.is_ok())
    })
}

/// Judges many transactions that lie in one buffer, as `numbers_of_all` does. Returns how many were
/// judged, or NO_DECODER or PANIC, or NO_ROOM where `out` shares memory with what is read.
#[napi]
pub fn decode_batch(
    decoder: u32,
    bytes: &[u8],
    spans: &[u32],
    mut out: Float64ArraySlice<'_>,
) -> i32 {
    guarded(PANIC, || {
        let Some(decoder) = DECODERS.find(decoder) else {
            return NO_DECODER;
        };
        let out = writable(&mut out);
        if overlap(bytes, out) || overlap(spans, out) {
            return NO_ROOM;
        }
        numbers_of_all(&decoder, bytes, spans, out)
    })
}

/// Reads one JSON-RPC call sendTransaction in its usual form and writes the transaction to the start
/// of `out`, which holds 4096 bytes or more, and `Call::numbers`. Returns 1; 0 for any other form,
/// or NO_ROOM or PANIC.
#[napi]
pub fn call_read(
    body: &[u8],
    mut out: Uint8ArraySlice<'_>,
    mut numbers: Float64ArraySlice<'_>,
) -> i32 {
    guarded(PANIC, || {
        let (out, told) = (writable_bytes(&mut out), writable(&mut numbers));
        let shared = overlap(body, out) || overlap(body, told) || overlap(out, told);
        if shared || out.len() < TRANSACTION_BYTES_MAX {
            return NO_ROOM;
        }
        put(&mut numbers, || read_call(body, out).map(|call| call.numbers(body)))
    })
}

/// Writes the signature of 64 bytes at `offset` in base58 to the start of `out`. Returns how many
/// characters it has, at most 88, or NO_ROOM where either array is too short, or PANIC.
#[napi]
pub fn signature_write(bytes: &[u8], offset: u32, mut out: Uint8ArraySlice<'_>) -> i32 {
    guarded(PANIC, || {
        let size = signature_text_at(bytes, offset as usize, writable_bytes(&mut out));
        size.map_or(NO_ROOM, |size| i32::try_from(size).unwrap_or(PANIC))
    })
}

/// Has nodes' certificates held against a PEM file's too; returns how many are good, or PANIC.
#[napi]
pub fn authorities_trust(pem: &[u8]) -> i32 {
    guarded(PANIC, || i32::try_from(trust::trust(pem)).unwrap_or(i32::MAX))
}

/// Makes an asker of one node at an http: or https: address without name and password; what goes
/// into the header `authorization` is given apart, empty for none. `wake` is called without
/// arguments, on the thread that called this, when the first of some answers is there. Returns the
/// asker's handle, above 0, or ASKER_OPTIONS, ASKER_FULL or PANIC.
#[napi]
pub fn asker_open(
    url: String,
    authorization: String,
    bytes_max: u32,
    wake: Function<'_, (), ()>,
) -> i32 {
    guarded(PANIC, || {
        let bytes_max = (bytes_max as usize).min(ANSWER_BYTES_MAX);
        let web = Web::new(&url, authorization, bytes_max);
        let (Some(web), Some(waker)) = (web, waker(wake)) else {
            return ASKER_OPTIONS;
        };
        placed(&ASKERS, ASKER_FULL, || Some(Asker::new(web, waker)))
    })
}

/// Ends an asker's connections; questions in hand get no answer. Returns OK or NO_ASKER.
#[napi]
pub fn asker_close(asker: u32) -> i32 {
    with_asker(asker, |open| {
        open.close();
        if ASKERS.remove(asker) { OK } else { NO_ASKER }
    })
}

/// Asks with a body of JSON, 65536 bytes at most, on another thread. `id` comes back with the
/// answer. Returns OK, NO_ASKER, NO_ROOM for a larger body, or ASKER_FULL.
#[napi]
pub fn ask(asker: u32, id: u32, body: &[u8], timeout_ms: u32) -> i32 {
    if body.len() > QUESTION_BYTES_MAX {
        return NO_ROOM;
    }
    take_on(asker, id, timeout_ms, || Question::Json(body.to_vec()))
}

/// Asks what became of at most 256 signatures of 64 bytes each. Returns as `ask`.
#[napi]
pub fn ask_statuses(asker: u32, id: u32, signatures: &[u8], timeout_ms: u32) -> i32 {
    let is_whole = signatures.len().is_multiple_of(SIGNATURE_BYTES);
    if !is_whole || signatures.len() > SIGNATURES_ASKED_MAX * SIGNATURE_BYTES {
        return NO_ROOM;
    }
    take_on(asker, id, timeout_ms, || Question::Statuses(signatures.to_vec()))
}

/// Writes `Answer::numbers` of the oldest answer that was not taken. Returns 1, or 0 where there is
/// none, or NO_ASKER, NO_ROOM or PANIC.
#[napi]
pub fn answer_next(asker: u32, mut out: Float64ArraySlice<'_>) -> i32 {
    with_asker(asker, |asker| put(&mut out, || asker.peek(Answer::numbers)))
}

/// Takes that answer; its bytes go to the start of `out`, as many as it holds. Returns OK,
/// NO_ASKER or PANIC.
#[napi]
pub fn answer_take(asker: u32, mut out: Uint8ArraySlice<'_>) -> i32 {
    with_asker(asker, |asker| {
        fill_bytes(&mut out, asker.take().map_or_else(Vec::new, |answer| answer.bytes));
        OK
    })
}

/// Opens a node's feed of slots at a ws: or wss: address without name and password; `authorization`
/// as in `asker_open`, `wake` likewise for news. Nothing is asked for yet. Returns the feed's
/// handle, above 0, or FEED_OPTIONS, FEED_FULL or PANIC.
#[napi]
pub fn feed_open(
    url: String,
    authorization: String,
    timeout_ms: u32,
    wake: Function<'_, (), ()>,
) -> i32 {
    guarded(PANIC, || {
        let (Some(address), Some(waker)) = (Address::new(&url, &authorization), waker(wake)) else {
            return FEED_OPTIONS;
        };
        placed(&FEEDS, FEED_FULL, || SlotFeed::open(address, milliseconds(timeout_ms), waker))
    })
}

/// Asks for events, 0 slotsUpdates or 1 slot, once the node took the connection. Returns OK,
/// FEED_FULL while the last answer to that was not taken, NO_FEED, FEED_OPTIONS or PANIC.
#[napi]
pub fn feed_subscribe(feed: u32, which: u32) -> i32 {
    with_feed(feed, |feed| match Feed::of(which) {
        Some(which) if feed.subscribe(which) => OK,
        Some(_) => FEED_FULL,
        None => FEED_OPTIONS,
    })
}

/// Takes the oldest news and writes `SlotFeed::next`. Returns 1, or 0 where there is none, or
/// NO_FEED, NO_ROOM or PANIC.
#[napi]
pub fn feed_next(feed: u32, mut out: Float64ArraySlice<'_>) -> i32 {
    with_feed(feed, |feed| put(&mut out, || feed.next()))
}

/// Ends a feed; nothing is told any more. Returns OK, NO_FEED or PANIC.
#[napi]
pub fn feed_close(feed: u32) -> i32 {
    with_feed(feed, |open| {
        open.close();
        if FEEDS.remove(feed) { OK } else { NO_FEED }
    })
}

/// Lets other threads that wait for this processor have their turn first. Returns OK.
#[napi]
pub fn thread_yield() -> i32 {
    std::thread::yield_now();
    OK
}

/// Has this thread go before all that have no real-time priority. Returns OK or NO_PRIORITY.
#[napi]
pub fn thread_go_first() -> i32 {
    if crate::priority::go_first() { OK } else { NO_PRIORITY }
}
