//! Views of JavaScript buffers: arrays borrowed for one call, `SharedArrayBuffer`s kept alive for
//! longer, and a bounded array reader.

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::Arc;

use napi::Error;
use napi::bindgen_prelude::{Array, Float64ArraySlice, FromNapiValue, Result, Uint8ArraySlice};
use napi::sys::{
    Status, TypedarrayType, napi_create_reference, napi_delete_reference, napi_env,
    napi_get_typedarray_info, napi_is_arraybuffer, napi_ref, napi_value,
};

use crate::quic::limits::SOCKETS_MAX;
use crate::sync::shared_memory::Memory;

/// The strings of a short array; None if it is too long. Does not allocate by the array's length:
/// an empty one may report four billion, and the process would end.
pub struct Texts(pub Option<Vec<String>>);

impl FromNapiValue for Texts {
    unsafe fn from_napi_value(env: napi_env, value: napi_value) -> Result<Self> {
        // SAFETY: the arguments are passed on unchanged.
        let list = unsafe { Array::from_napi_value(env, value)? };
        if list.len() as usize > SOCKETS_MAX {
            return Ok(Self(None));
        }
        let text = |index| Ok(list.get::<String>(index)?.unwrap_or_default());
        (0..list.len()).map(text).collect::<Result<_>>().map(|texts| Self(Some(texts)))
    }
}

/// The array that a call writes numbers to.
pub fn writable<'a>(out: &'a mut Float64ArraySlice<'_>) -> &'a mut [f64] {
    // SAFETY: the call occupies JavaScript's thread, so no other code of it writes to the array,
    // and writes of another thread to a shared one change numbers, not the program.
    unsafe { out.as_mut() }
}

/// The same for bytes.
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

/// Bytes of a `SharedArrayBuffer`, which cannot be detached or shrunk, kept from the garbage
/// collector until `release_shared`. An array of memory that is not shared is rejected.
pub struct SharedBytes {
    at: *mut u8,
    size: usize,
    reference: NodeReference,
}

/// A reference that Node keeps, valid on the thread that created it.
struct NodeReference(napi_env, napi_ref);

impl Drop for NodeReference {
    fn drop(&mut self) {
        // SAFETY: dropped on the thread that created it, during a call of the addon.
        unsafe { napi_delete_reference(self.0, self.1) };
    }
}

impl FromNapiValue for SharedBytes {
    unsafe fn from_napi_value(env: napi_env, value: napi_value) -> Result<Self> {
        let (mut kind, mut size, mut offset) = (0, 0, 0);
        let (mut at, mut buffer) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the arguments are passed on unchanged, and each result is checked.
        let info_status = unsafe {
            napi_get_typedarray_info(
                env,
                value,
                &mut kind,
                &mut size,
                &mut at,
                &mut buffer,
                &mut offset,
            )
        };
        let mut is_own = true;
        // SAFETY: as above.
        let kind_status = unsafe { napi_is_arraybuffer(env, buffer, &mut is_own) };
        if info_status != Status::napi_ok
            || kind_status != Status::napi_ok
            || kind != TypedarrayType::uint8_array
            || is_own
        {
            return Err(Error::new(napi::Status::InvalidArg, "no Uint8Array of shared memory"));
        }
        let mut reference = ptr::null_mut();
        // SAFETY: as above.
        if unsafe { napi_create_reference(env, value, 1, &mut reference) } != Status::napi_ok {
            return Err(Error::new(napi::Status::GenericFailure, "no reference"));
        }
        Ok(Self { at: at.cast(), size, reference: NodeReference(env, reference) })
    }
}

thread_local! {
    /// References that this thread retains, by the handle of the ingress thread that uses them.
    static RETAINED: RefCell<Vec<(u32, ManuallyDrop<NodeReference>)>> = const { RefCell::new(Vec::new()) };
}

impl SharedBytes {
    /// The memory, valid until the end of the call, or until `release_shared` if it is retained.
    #[must_use]
    pub fn memory(&self) -> Memory {
        // SAFETY: shared memory stays in place while its array is referenced, and the user of the
        // `Memory` ends before `release_shared`.
        unsafe { Memory::borrowed(self.at, self.size, Arc::new(())) }
    }

    /// Keeps the memory for `handle` beyond the call. If this thread ends first, its end releases
    /// it.
    pub fn retain(self, handle: u32) {
        RETAINED
            .with_borrow_mut(|retained| retained.push((handle, ManuallyDrop::new(self.reference))));
    }
}

/// Releases what this thread retains for `handle`.
pub fn release_shared(handle: u32) {
    RETAINED.with_borrow_mut(|retained| {
        for (_, reference) in retained.extract_if(.., |(retained_for, _)| *retained_for == handle) {
            drop(ManuallyDrop::into_inner(reference));
        }
    });
}
