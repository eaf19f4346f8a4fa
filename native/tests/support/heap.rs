//! Counts the bytes that the process holds, so that a test can say that they do not grow.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

pub struct Counted;

static CORKED: AtomicUsize = AtomicUsize::new(0);

/// Bytes that are allocated now.
pub fn held() -> usize {
    CORKED.load(Ordering::Relaxed)
}

// SAFETY: everything is left to the system's allocator; only numbers are added.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CORKED.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        CORKED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}
