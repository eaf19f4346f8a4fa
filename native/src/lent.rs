//! Memory that JavaScript lends for the time of one call.

use napi::bindgen_prelude::{Float64ArraySlice, Uint8ArraySlice};

/// What a call may write its numbers to.
pub fn writable<'a>(out: &'a mut Float64ArraySlice<'_>) -> &'a mut [f64] {
    // SAFETY: the call holds JavaScript's thread, so nobody else of it writes to the array, and
    // what another thread does to a shared one changes numbers, not the program.
    unsafe { out.as_mut() }
}

/// The same of bytes.
pub fn writable_bytes<'a>(out: &'a mut Uint8ArraySlice<'_>) -> &'a mut [u8] {
    // SAFETY: as above.
    unsafe { out.as_mut() }
}

/// Whether two arrays share memory, as views of one buffer may.
#[must_use]
pub fn overlap(one: &[u8], other: &[u8]) -> bool {
    let (one, other) = (one.as_ptr_range(), other.as_ptr_range());
    one.start < other.end && other.start < one.end
}
