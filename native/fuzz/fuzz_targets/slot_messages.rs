//! Whatever the parser reads from a node's slot message equals what a complete JSON parser finds.
#![no_main]
#![allow(clippy::indexing_slicing)]

#[path = "../../tests/support/messages.rs"]
mod messages;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    messages::feed(bytes);
});
