//! Whatever is read of a node's message about slots is what a whole JSON parser finds in it.
#![no_main]
#![allow(clippy::indexing_slicing)]

#[path = "../../tests/support/messages.rs"]
mod messages;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    messages::feed(bytes);
});
