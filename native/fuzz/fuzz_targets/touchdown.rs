//! What a client of `touchdown/1` may send is read as its page says.
#![no_main]
#![allow(clippy::indexing_slicing)]

#[path = "../../tests/support/touchdown_frames.rs"]
mod touchdown_frames;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    touchdown_frames::feed(bytes);
});
