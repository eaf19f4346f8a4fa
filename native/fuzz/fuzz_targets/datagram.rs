//! No sequence of datagrams from a leader panics a connection or makes it an amplifier.
#![no_main]
#![allow(clippy::indexing_slicing)]

#[path = "../../tests/support/datagrams.rs"]
mod datagrams;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    datagrams::feed(bytes);
});
