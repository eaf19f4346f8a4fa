//! Exports of RPC clients and slot subscribers.

use napi::bindgen_prelude::{Float64ArraySlice, Function, Uint8ArraySlice};
use napi_derive::napi;

use crate::node::convert::{
    RPC_CLIENTS, SLOT_SUBSCRIBERS, fill_bytes, guarded, insert_made, milliseconds, put,
    submit_request, waker, with_rpc_client, with_slot_subscriber,
};
use crate::node::limits::{RPC_REQUEST_BYTES_MAX, RPC_RESPONSE_BYTES_MAX, STATUS_SIGNATURES_MAX};
use crate::node::status_codes::*;
use crate::rpc::client::{RpcClient, RpcRequest, RpcResponse};
use crate::rpc::statuses::SIGNATURE_BYTES;
use crate::rpc::{
    http_post::HttpClient, root_store, slot_messages::Subscription,
    slot_subscriber::SlotSubscriber, websocket::Address,
};

/// Also trusts the certificates of a PEM file for nodes; returns how many are valid, or PANIC.
#[napi]
pub fn root_certificates_set(pem: &[u8]) -> i32 {
    guarded(PANIC, || i32::try_from(root_store::set_extra_roots(pem)).unwrap_or(i32::MAX))
}

/// Opens an RPC client for a node at an http: or https: address without name and password; the
/// value of the header `authorization` is separate, empty for none. `wake` is called without
/// arguments, on the calling thread, when the first of some responses has arrived. Returns the
/// client's handle, above 0, or RPC_CLIENT_OPTIONS, RPC_CLIENT_FULL or PANIC.
#[napi]
pub fn rpc_client_open(
    url: String,
    authorization: String,
    bytes_max: u32,
    wake: Function<'_, (), ()>,
) -> i32 {
    guarded(PANIC, || {
        let bytes_max = (bytes_max as usize).min(RPC_RESPONSE_BYTES_MAX);
        let http = HttpClient::new(&url, authorization, bytes_max);
        let (Some(http), Some(waker)) = (http, waker(wake)) else {
            return RPC_CLIENT_OPTIONS;
        };
        insert_made(&RPC_CLIENTS, RPC_CLIENT_FULL, || Some(RpcClient::new(http, waker)))
    })
}

/// Closes a client's connections; pending requests get no response. Returns OK or NO_RPC_CLIENT.
#[napi]
pub fn rpc_client_close(client: u32) -> i32 {
    with_rpc_client(client, |open| {
        open.close();
        if RPC_CLIENTS.remove(client) { OK } else { NO_RPC_CLIENT }
    })
}

/// Sends a JSON body, at most 65536 bytes, on another thread. The response has the same `id`.
/// Returns OK, NO_RPC_CLIENT, NO_ROOM for a larger body, or RPC_CLIENT_FULL.
#[napi]
pub fn rpc_request(client: u32, id: u32, body: &[u8], timeout_ms: u32) -> i32 {
    if body.len() > RPC_REQUEST_BYTES_MAX {
        return NO_ROOM;
    }
    submit_request(client, id, timeout_ms, || RpcRequest::Json(body.to_vec()))
}

/// Requests the statuses of at most 256 signatures of 64 bytes each. Returns as `rpc_request`.
#[napi]
pub fn rpc_request_statuses(client: u32, id: u32, signatures: &[u8], timeout_ms: u32) -> i32 {
    let is_whole = signatures.len().is_multiple_of(SIGNATURE_BYTES);
    if !is_whole || signatures.len() > STATUS_SIGNATURES_MAX * SIGNATURE_BYTES {
        return NO_ROOM;
    }
    submit_request(client, id, timeout_ms, || RpcRequest::Statuses(signatures.to_vec()))
}

/// Writes `RpcResponse::numbers` of the oldest unread response. Returns 1, or 0 if there is none,
/// or NO_RPC_CLIENT, NO_ROOM or PANIC.
#[napi]
pub fn rpc_response_next(client: u32, mut out: Float64ArraySlice<'_>) -> i32 {
    with_rpc_client(client, |client| put(&mut out, || client.peek(RpcResponse::numbers)))
}

/// Removes that response and writes its bytes to the start of `out`, as many as fit. Returns OK,
/// NO_RPC_CLIENT or PANIC.
#[napi]
pub fn rpc_response_read(client: u32, mut out: Uint8ArraySlice<'_>) -> i32 {
    with_rpc_client(client, |client| {
        fill_bytes(&mut out, client.take().map_or_else(Vec::new, |response| response.bytes));
        OK
    })
}

/// Opens a slot subscriber for a node at a ws: or wss: address without name and password;
/// `authorization` and `wake` as in `rpc_client_open`. It subscribes to nothing yet. Returns its
/// handle, above 0, or SLOT_SUBSCRIBER_OPTIONS, SLOT_SUBSCRIBER_FULL or PANIC.
#[napi]
pub fn slot_subscriber_open(
    url: String,
    authorization: String,
    timeout_ms: u32,
    wake: Function<'_, (), ()>,
) -> i32 {
    guarded(PANIC, || {
        let (Some(address), Some(waker)) = (Address::new(&url, &authorization), waker(wake)) else {
            return SLOT_SUBSCRIBER_OPTIONS;
        };
        insert_made(&SLOT_SUBSCRIBERS, SLOT_SUBSCRIBER_FULL, || {
            SlotSubscriber::open(address, milliseconds(timeout_ms), waker)
        })
    })
}

/// Subscribes to 0 slotsUpdates or 1 slot, once the node accepted the connection. Returns OK,
/// SLOT_SUBSCRIBER_FULL while the response to the last request was not read, NO_SLOT_SUBSCRIBER,
/// SLOT_SUBSCRIBER_OPTIONS or PANIC.
#[napi]
pub fn slot_subscriber_subscribe(subscriber: u32, which: u32) -> i32 {
    with_slot_subscriber(subscriber, |subscriber| match Subscription::of(which) {
        Some(which) if subscriber.subscribe(which) => OK,
        Some(_) => SLOT_SUBSCRIBER_FULL,
        None => SLOT_SUBSCRIBER_OPTIONS,
    })
}

/// Removes the oldest notification and writes `SlotSubscriber::next`. Returns 1, or 0 if there is
/// none, or NO_SLOT_SUBSCRIBER, NO_ROOM or PANIC.
#[napi]
pub fn slot_subscriber_next(subscriber: u32, mut out: Float64ArraySlice<'_>) -> i32 {
    with_slot_subscriber(subscriber, |subscriber| put(&mut out, || subscriber.next()))
}

/// Closes a subscriber; no further notification arrives. Returns OK, NO_SLOT_SUBSCRIBER or PANIC.
#[napi]
pub fn slot_subscriber_close(subscriber: u32) -> i32 {
    with_slot_subscriber(subscriber, |open| {
        open.close();
        if SLOT_SUBSCRIBERS.remove(subscriber) { OK } else { NO_SLOT_SUBSCRIBER }
    })
}
