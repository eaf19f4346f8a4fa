//! Memory shared with JavaScript: the bytes of a `SharedArrayBuffer`.
//!
//! A `Memory` keeps its bytes alive. They are accessed as atomics, as with JavaScript's `Atomics`.

use std::any::Any;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

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

    /// Its first `count` cells. None if they are out of bounds or not aligned.
    #[must_use]
    pub fn atomics(&self, count: usize) -> Option<AtomicSlice> {
        let is_inside = count.checked_mul(size_of::<AtomicU64>())? <= self.size;
        let at = self.at.cast::<AtomicU64>();
        (is_inside && at.is_aligned()).then(|| AtomicSlice { at, count, _memory: self.clone() })
    }
}

/// Cells of shared memory, as a slice of atomics.
pub struct AtomicSlice {
    at: *const AtomicU64,
    count: usize,
    _memory: Memory,
}

// SAFETY: atomics may be shared, and the memory is kept alive.
unsafe impl Send for AtomicSlice {}
// SAFETY: as above.
unsafe impl Sync for AtomicSlice {}

impl Deref for AtomicSlice {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: `atomics` checked bounds and alignment, and any bits are a valid atomic.
        unsafe { std::slice::from_raw_parts(self.at, self.count) }
    }
}

impl AtomicSlice {
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
        let [one, other] = [2, 8].map(|count| memory.atomics(count).unwrap());
        one[1].store(7, Relaxed);
        assert_eq!((one.len(), other[1].load(Relaxed)), (2, 7));
    }

    #[test]
    fn out_of_bounds_or_unaligned_access_is_rejected() {
        let memory = Memory::fresh(64);
        assert!(memory.atomics(8).is_some());
        assert!(memory.atomics(9).is_none());
        assert!(memory.atomics(usize::MAX).is_none());
        // SAFETY: the keeper keeps these bytes of `memory` in place.
        let part = unsafe { Memory::borrowed(memory.at.add(4), 60, Arc::new(memory.clone())) };
        assert!(part.atomics(1).is_none());
    }

    #[test]
    fn slice_keeps_its_memory_alive() {
        let atomics = Memory::fresh(8).atomics(1).unwrap();
        atomics[0].store(7, Relaxed);
        assert_eq!(atomics[0].load(Relaxed), 7);
    }
}
