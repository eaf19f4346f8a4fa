//! Whatever the parser reads from a JSON-RPC request equals what a complete JSON parser reads.
#![no_main]
#![allow(clippy::indexing_slicing)]

#[path = "../../tests/support/json_rpc_bodies.rs"]
mod json_rpc_bodies;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    json_rpc_bodies::feed(bytes);
});
