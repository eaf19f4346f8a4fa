//! Memory that this thread shares with JavaScript's: the same bytes that are a `SharedArrayBuffer`
//! there.
//!
//! Whoever has a `Memory` keeps it alive. All that is read or written of it are atomics, as
//! JavaScript's `Atomics` are, or bytes which the caller alone may touch just now: because it holds
//! the lock of them, or because their turn in a ring is its own.

use std::any::Any;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

/// Whatever keeps memory in its place.
type Keeper = Arc<dyn Any + Send + Sync>;

/// A piece of shared memory; clones are of the same bytes.
#[derive(Clone)]
pub struct Memory {
    at: *mut u8,
    size: usize,
    _keeper: Keeper,
}

// SAFETY: see the head: what is done to it is safe from any thread.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// # Safety
    /// The bytes stay where they are for as long as `keeper` lives, and are written to by other
    /// threads only as the head says.
    #[must_use]
    pub unsafe fn borrowed(at: *mut u8, size: usize, keeper: Keeper) -> Self {
        Self { at, size, _keeper: keeper }
    }

    /// Fresh memory, all zero; of 8 bytes a word. For tests, and for what JavaScript does not see.
    #[must_use]
    pub fn fresh(size: usize) -> Self {
        let mut words = vec![0_u64; size.div_ceil(8)];
        let at = words.as_mut_ptr().cast();
        Self { at, size, _keeper: Arc::new(words) }
    }

    /// How many bytes it has.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// So many cells from byte `from` on. None where they are not inside or not aligned.
    #[must_use]
    pub fn atomics<T: Atomic>(&self, from: usize, count: usize) -> Option<AtomicSlice<T>> {
        let bytes = count.checked_mul(size_of::<T>())?;
        let is_inside = from.checked_add(bytes)? <= self.size;
        let at = self.at.wrapping_add(from).cast::<T>();
        (is_inside && at.is_aligned()).then(|| AtomicSlice { at, count, _memory: self.clone() })
    }
}

/// What shared memory is made of.
pub trait Atomic: sealed::Sealed {}
impl Atomic for AtomicU8 {}
impl Atomic for AtomicU32 {}
impl Atomic for AtomicU64 {}

mod sealed {
    use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

    pub trait Sealed {}
    impl Sealed for AtomicU8 {}
    impl Sealed for AtomicU32 {}
    impl Sealed for AtomicU64 {}
}

/// Cells of shared memory, as a slice of atomics.
pub struct AtomicSlice<T> {
    at: *const T,
    count: usize,
    _memory: Memory,
}

// SAFETY: atomics may be shared, and the memory is kept.
unsafe impl<T: Sync> Send for AtomicSlice<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for AtomicSlice<T> {}

impl<T> Deref for AtomicSlice<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `cells` checked the bounds and the alignment, and any bits are an atomic's.
        unsafe { std::slice::from_raw_parts(self.at, self.count) }
    }
}

impl AtomicSlice<AtomicU8> {
    /// Copies bytes in from `at` on; whether they fit. The caller alone may touch that part now.
    pub fn write(&self, at: usize, bytes: &[u8]) -> bool {
        let Some(part) = self.get(at..at.saturating_add(bytes.len())) else { return false };
        let to = part.as_ptr().cast::<u8>().cast_mut();
        // SAFETY: the part is inside, and nobody else is at it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        true
    }

    /// Whether these bytes lie from `at` on. Nobody may write to that part now.
    #[must_use]
    pub fn holds(&self, at: usize, bytes: &[u8]) -> bool {
        let Some(part) = self.get(at..at.saturating_add(bytes.len())) else { return false };
        // SAFETY: the part is inside, and nobody writes to it.
        bytes == unsafe { std::slice::from_raw_parts(part.as_ptr().cast::<u8>(), part.len()) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn cells_of_one_memory_are_the_same_bytes() {
        let memory = Memory::fresh(64);
        let words = memory.atomics::<AtomicU32>(8, 4).unwrap();
        let bytes = memory.atomics::<AtomicU8>(0, 64).unwrap();
        words[0].store(0x0403_0201, Relaxed);
        assert!(bytes.holds(8, &[1, 2, 3, 4]));
        assert!(!bytes.holds(8, &[1, 2, 3, 5]));
        assert!(bytes.write(12, &[5, 0, 0, 0]));
        assert_eq!(words[1].load(Relaxed), 5);
    }

    #[test]
    fn what_is_outside_or_not_aligned_is_not_given() {
        let memory = Memory::fresh(64);
        assert!(memory.atomics::<AtomicU64>(56, 1).is_some());
        assert!(memory.atomics::<AtomicU64>(56, 2).is_none());
        assert!(memory.atomics::<AtomicU64>(usize::MAX, 1).is_none());
        assert!(memory.atomics::<AtomicU64>(0, usize::MAX).is_none());
        assert!(memory.atomics::<AtomicU64>(4, 1).is_none());
        let bytes = memory.atomics::<AtomicU8>(0, 64).unwrap();
        assert!(!bytes.write(62, &[0; 3]));
        assert!(!bytes.holds(62, &[0; 3]));
        assert!(!bytes.holds(usize::MAX, &[0; 3]));
    }

    #[test]
    fn cells_outlive_the_memory_that_gave_them() {
        let atomics = Memory::fresh(8).atomics::<AtomicU64>(0, 1).unwrap();
        atomics[0].store(7, Relaxed);
        assert_eq!(atomics[0].load(Relaxed), 7);
    }
}
