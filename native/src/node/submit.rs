//! Exports of the path of a transaction, for requests that the main thread accepts.

use std::sync::Arc;

use napi::bindgen_prelude::Uint8ArraySlice;
use napi_derive::napi;
use parking_lot::Mutex;

use crate::decode::base58::SIGNATURE_TEXT_MAX;
use crate::node::convert::{DECODERS, ENGINES, guarded, insert_made};
use crate::node::handles::Handles;
use crate::node::limits::SUBMIT_PATHS_MAX;
use crate::node::shared_bytes::{overlap, writable_bytes};
use crate::node::status_codes::*;
use crate::submit::dedup::DedupCache;
use crate::submit::fan_out::EngineRef;
use crate::submit::main_thread::MainThread;
use crate::submit::path::{Outcome, RequestMeta};
use crate::submit::records::Submitter;

/// Of those that JavaScript threads use; None: closed.
type SubmitPathCell = Mutex<Option<MainThread<EngineRef>>>;

static SUBMIT_PATHS: Handles<SubmitPathCell> = Handles::new(SUBMIT_PATHS_MAX);

/// Bytes that `submit` writes: the signature's text, and `ANSWER_NUMBERS` numbers.
const ANSWER_BYTES: usize = SIGNATURE_TEXT_MAX + 8 * ANSWER_NUMBERS;
/// Start and end of the call's id in the body; error, found and needed of what is not valid; units
/// of events that are unread.
const ANSWER_NUMBERS: usize = 6;

/// Opens the path, until `submit_path_close`. Returns its handle, above 0, or SUBMIT_PATH_OPTIONS,
/// SUBMIT_PATH_FULL or PANIC.
#[napi]
pub fn submit_path_open(engine: u32, decoder: u32) -> i32 {
    guarded(PANIC, || {
        let (Some(found), Some(decoder)) = (ENGINES.find(engine), DECODERS.find(decoder)) else {
            return SUBMIT_PATH_OPTIONS;
        };
        let open = || Mutex::new(Some(MainThread::open(found, decoder)));
        insert_made(&SUBMIT_PATHS, SUBMIT_PATH_FULL, open)
    })
}

/// Closes a path. Returns OK, NO_SUBMIT_PATH or PANIC.
#[napi]
pub fn submit_path_close(path: u32) -> i32 {
    guarded(PANIC, || {
        let Some(cell) = SUBMIT_PATHS.find(path) else { return NO_SUBMIT_PATH };
        // Waits for a call in progress.
        drop(cell.lock().take());
        SUBMIT_PATHS.remove(path);
        OK
    })
}

/// Before a further copy of a transaction leaves at `now_ns`, of which the caller knows no newer
/// copy than that of `since_ns`: until 2 s later no thread sends one. Returns 1; 0 if a newer copy
/// left, and nothing changes; or NO_SUBMIT_PATH or PANIC.
#[napi]
pub fn submit_path_renew(path: u32, bytes: &[u8], since_ns: f64, now_ns: f64) -> i32 {
    with_path(path, |path| i32::from(path.renew(bytes, since_ns as u64, now_ns as u64)))
}

/// The next submission of a transaction counts as new, unless a copy left after `since_ns`. Returns
/// OK, NO_SUBMIT_PATH or PANIC.
#[napi]
pub fn submit_path_forget(path: u32, bytes: &[u8], since_ns: f64) -> i32 {
    with_path(path, |path| {
        path.forget(bytes, since_ns as u64);
        OK
    })
}

/// Returns how many recent transactions were forgotten early, for lack of room, or NO_SUBMIT_PATH
/// or PANIC.
#[napi]
pub fn submit_path_evicted(path: u32) -> i32 {
    with_path(path, |path| i32::try_from(path.evicted()).unwrap_or(i32::MAX))
}

/// The result of `act` with the path of a handle; NO_SUBMIT_PATH or PANIC otherwise.
fn with_path(handle: u32, act: impl FnOnce(&mut MainThread<EngineRef>) -> i32) -> i32 {
    guarded(PANIC, || {
        let Some(cell) = SUBMIT_PATHS.find(handle) else { return NO_SUBMIT_PATH };
        cell.lock().as_mut().map_or(NO_SUBMIT_PATH, act)
    })
}

/// The dedup cache of a path; None if the path is closed.
pub(crate) fn dedup_of(path: u32) -> Option<Arc<DedupCache>> {
    SUBMIT_PATHS.find(path)?.lock().as_ref().map(MainThread::dedup)
}

/// Submits a transaction, or with `is_call` that of a JSON-RPC call `sendTransaction`. `number` is
/// that of the record which it leaves in the ring, `account` the account's number, `max_retries`
/// below 0 for none. Writes the answer to `out`: the signature's text, start and end of the call's
/// id in `body`, error, found and needed of what is not valid, and how many units of events are
/// unread. Returns the number of characters of the signature if it is accepted; 0 for a call in
/// another form, of which nothing is submitted; or a SUBMIT code, NO_SUBMIT_PATH, NO_ROOM or PANIC.
#[allow(clippy::too_many_arguments)]
#[napi]
pub fn submit(
    path: u32,
    body: &[u8],
    is_call: bool,
    number: u32,
    account: f64,
    received_ns: f64,
    max_retries: f64,
    mut out: Uint8ArraySlice<'_>,
) -> i32 {
    let out = writable_bytes(&mut out);
    if out.len() < ANSWER_BYTES || overlap(body, out) {
        return NO_ROOM;
    }
    with_path(path, |path| {
        let meta = RequestMeta {
            submitter: Submitter::MainThread { number, account: account as u64 },
            received_ns: received_ns as u64,
            // The HTTP server counts the request.
            body_bytes: 0,
            max_retries: (max_retries >= 0.0).then_some(max_retries as u64),
        };
        let outcome = if !is_call {
            path.submit(body, &meta)
        } else {
            let Some((call, outcome)) = path.submit_call(body, &meta) else { return 0 };
            put(out, 0, &[call.id.0 as f64, call.id.1 as f64]);
            outcome
        };
        put(out, ANSWER_NUMBERS - 1, &[path.unread() as f64]);
        answer(outcome, out)
    })
}

/// Writes the answer; returns its code. None: the submission panicked.
fn answer(outcome: Option<Outcome>, out: &mut [u8]) -> i32 {
    let Some(outcome) = outcome else { return PANIC };
    match outcome {
        Outcome::Accepted(signature) => {
            let text = signature.text();
            for (to, byte) in out.iter_mut().zip(text) {
                *to = *byte;
            }
            i32::try_from(text.len()).unwrap_or(PANIC)
        }
        Outcome::Invalid(rejected) => {
            let error = f64::from(rejected.error as u8);
            put(out, 2, &[error, rejected.found as f64, rejected.needed as f64]);
            SUBMIT_INVALID
        }
        Outcome::LeadersFull => SUBMIT_LEADERS_FULL,
        Outcome::NoLeader => SUBMIT_NO_LEADER,
        Outcome::Busy => SUBMIT_BUSY,
        Outcome::RingFull => SUBMIT_RING_FULL,
    }
}

/// Writes numbers from the answer's number `at` on.
fn put(out: &mut [u8], at: usize, numbers: &[f64]) {
    let rest = out.get_mut(SIGNATURE_TEXT_MAX + 8 * at..).unwrap_or_default();
    for (slot, number) in rest.as_chunks_mut().0.iter_mut().zip(numbers) {
        *slot = number.to_le_bytes();
    }
}
