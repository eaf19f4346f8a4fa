//! Memory that JavaScript lends for the time of one call, and a list of it that is read only as
//! far as it can be of use.

use napi::bindgen_prelude::{Array, Float64ArraySlice, FromNapiValue, Result, Uint8ArraySlice};
use napi::sys::{napi_env, napi_value};

use crate::limits::SOCKETS_MAX;

/// The texts of a short array; None where it is too long. Room for as many as an array says it has
/// is not taken: an empty one may say four billion, and then the process would end.
pub struct Texts(pub Option<Vec<String>>);

impl FromNapiValue for Texts {
    unsafe fn from_napi_value(env: napi_env, value: napi_value) -> Result<Self> {
        // SAFETY: handed through as they were given.
        let list = unsafe { Array::from_napi_value(env, value)? };
        if list.len() as usize > SOCKETS_MAX {
            return Ok(Self(None));
        }
        let text = |index| Ok(list.get::<String>(index)?.unwrap_or_default());
        (0..list.len()).map(text).collect::<Result<_>>().map(|texts| Self(Some(texts)))
    }
}

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
pub fn overlap<A, B>(one: &[A], other: &[B]) -> bool {
    let (one, other) = (one.as_ptr_range(), other.as_ptr_range());
    one.start.addr() < other.end.addr() && other.start.addr() < one.end.addr()
}
