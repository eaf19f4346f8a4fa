//! Whatever is read of a JSON-RPC call is what a whole JSON parser reads of it.
#![no_main]
#![allow(clippy::indexing_slicing)]

#[path = "../../tests/support/calls.rs"]
mod calls;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    calls::feed(bytes);
});
