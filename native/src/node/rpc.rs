//! Nodes: what they are asked, and what they tell of slots.

use napi::bindgen_prelude::{Float64ArraySlice, Function, Uint8ArraySlice};
use napi_derive::napi;

use crate::limits::{ANSWER_BYTES_MAX, QUESTION_BYTES_MAX, SIGNATURES_ASKED_MAX};
use crate::node::convert::{
    ASKERS, FEEDS, fill_bytes, guarded, milliseconds, placed, put, take_on, waker, with_asker,
    with_feed,
};
use crate::node::status_codes::*;
use crate::rpc::client::{Answer, Asker, Question};
use crate::rpc::statuses::SIGNATURE_BYTES;
use crate::rpc::{
    http_post::Web, root_store, slot_feed::SlotFeed, slot_messages::Feed, websocket::Address,
};

/// Has nodes' certificates held against a PEM file's too; returns how many are good, or PANIC.
#[napi]
pub fn authorities_trust(pem: &[u8]) -> i32 {
    guarded(PANIC, || i32::try_from(root_store::trust(pem)).unwrap_or(i32::MAX))
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
