//! Decoding of transactions.

use napi::bindgen_prelude::Float64ArraySlice;
use napi_derive::napi;

use crate::decode::decoder::{Decoder, numbers};
use crate::node::convert::{DECODERS, fill, guarded, insert_made};
use crate::node::shared_bytes::{overlap, writable};
use crate::node::status_codes::*;

/// Makes a decoder that any thread may use. `tip_accounts` are 32 bytes each, `keys_max` is 1024
/// at most. Returns its handle, above 0, or a DECODER code, below 0.
#[napi]
pub fn decoder_create(tip_accounts: &[u8], lamports_min: f64, verify: bool, keys_max: u32) -> i32 {
    guarded(PANIC, || {
        let Some(decoder) = Decoder::new(tip_accounts, lamports_min, verify, keys_max as usize)
        else {
            return DECODER_OPTIONS;
        };
        insert_made(&DECODERS, DECODER_FULL, || decoder)
    })
}

/// Removes a decoder; calls in progress complete. Returns OK or NO_DECODER.
#[napi]
pub fn decoder_close(decoder: u32) -> i32 {
    guarded(PANIC, || if DECODERS.remove(decoder) { OK } else { NO_DECODER })
}

/// Writes `Decoder::counters` and returns how many were written.
#[napi]
pub fn decoder_counters(decoder: u32, mut out: Float64ArraySlice<'_>) -> u32 {
    guarded(0, || DECODERS.find(decoder).map_or(0, |decoder| fill(&mut out, decoder.counters())))
}

/// Validates a transaction and writes the result, eleven numbers, from `out[at]` on. Returns 1 or 0
/// like the first of them, or NO_DECODER, PANIC, or NO_ROOM if `out` is too short or shares memory
/// with the transaction.
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
        let validation = decoder.decode(bytes);
        *slot = numbers(&validation);
        i32::from(validation.is_ok())
    })
}
