//! Memory shared with JavaScript: the bytes of a `SharedArrayBuffer`.
//!
//! A `Memory` keeps its bytes alive. They are accessed as atomics, as with JavaScript's `Atomics`.

use std::any::Any;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Keeps memory in place.
type Keeper = Arc<dyn Any + Send + Sync>;

/// A piece of shared memory; clones are of the same bytes.
#[derive(Clone)]
pub struct Memory {
    at: *mut u8,
    size: usize,
    _keeper: Keeper,
}

// SAFETY: see the module comment: every access is safe from any thread.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// # Safety
    /// The bytes stay in place for as long as `keeper` lives, and other threads write to them only
    /// as the module comment permits.
    #[must_use]
    pub unsafe fn borrowed(at: *mut u8, size: usize, keeper: Keeper) -> Self {
        Self { at, size, _keeper: keeper }
    }

    /// New memory, all zero, aligned to 8 bytes. For tests, and for memory that JavaScript does not
    /// use.
    #[must_use]
    pub fn fresh(size: usize) -> Self {
        let mut words = vec![0_u64; size.div_ceil(8)];
        let at = words.as_mut_ptr().cast();
        Self { at, size, _keeper: Arc::new(words) }
    }

    /// Size in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// `count` cells from byte `from` on. None if they are out of bounds or not aligned.
    #[must_use]
    pub fn atomics<T: Atomic>(&self, from: usize, count: usize) -> Option<AtomicSlice<T>> {
        let bytes = count.checked_mul(size_of::<T>())?;
        let is_inside = from.checked_add(bytes)? <= self.size;
        let at = self.at.wrapping_add(from).cast::<T>();
        (is_inside && at.is_aligned()).then(|| AtomicSlice { at, count, _memory: self.clone() })
    }
}

/// Types of cells in shared memory.
pub trait Atomic: sealed::Sealed {}
impl Atomic for AtomicU32 {}
impl Atomic for AtomicU64 {}

mod sealed {
    use std::sync::atomic::{AtomicU32, AtomicU64};

    pub trait Sealed {}
    impl Sealed for AtomicU32 {}
    impl Sealed for AtomicU64 {}
}

/// Cells of shared memory, as a slice of atomics.
pub struct AtomicSlice<T> {
    at: *const T,
    count: usize,
    _memory: Memory,
}

// SAFETY: atomics may be shared, and the memory is kept alive.
unsafe impl<T: Sync> Send for AtomicSlice<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for AtomicSlice<T> {}

impl<T> Deref for AtomicSlice<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `atomics` checked bounds and alignment, and any bits are a valid atomic.
        unsafe { std::slice::from_raw_parts(self.at, self.count) }
    }
}

impl AtomicSlice<AtomicU64> {
    /// Cells of their own memory, all zero.
    #[must_use]
    pub fn zeroed(count: usize) -> Self {
        let memory = Memory::fresh(8 * count);
        Self { at: memory.at.cast(), count, _memory: memory }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn slices_of_one_memory_share_its_bytes() {
        let memory = Memory::fresh(64);
        let words = memory.atomics::<AtomicU32>(8, 4).unwrap();
        let pairs = memory.atomics::<AtomicU64>(0, 8).unwrap();
        words[0].store(7, Relaxed);
        assert_eq!(pairs[1].load(Relaxed).to_ne_bytes()[..4], 7_u32.to_ne_bytes());
    }

    #[test]
    fn out_of_bounds_or_unaligned_access_is_rejected() {
        let memory = Memory::fresh(64);
        assert!(memory.atomics::<AtomicU64>(56, 1).is_some());
        assert!(memory.atomics::<AtomicU64>(56, 2).is_none());
        assert!(memory.atomics::<AtomicU64>(usize::MAX, 1).is_none());
        assert!(memory.atomics::<AtomicU64>(0, usize::MAX).is_none());
        assert!(memory.atomics::<AtomicU64>(4, 1).is_none());
    }

    #[test]
    fn slice_keeps_its_memory_alive() {
        let atomics = Memory::fresh(8).atomics::<AtomicU64>(0, 1).unwrap();
        atomics[0].store(7, Relaxed);
        assert_eq!(atomics[0].load(Relaxed), 7);
    }
}
