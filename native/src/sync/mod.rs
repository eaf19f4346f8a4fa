//! Primitives shared between threads: a queue (`mutex_queue`), memory shared with JavaScript
//! (`shared_memory`, `shared_lock`), the clock, and thread priorities (`thread_priority`).

pub mod clock;
pub(crate) mod mutex_queue;
#[cfg(feature = "ingress")]
pub(crate) mod shared_lock;
#[cfg(feature = "ingress")]
#[allow(unsafe_code)]
pub mod shared_memory;
pub(crate) mod thread_priority;
