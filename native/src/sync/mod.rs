//! Primitives shared between threads: a queue (`mutex_queue`), memory shared with JavaScript
//! (`shared_memory`, `shared_lock`), the clock, thread priorities (`thread_priority`), and messages
//! to systemd (`datagram`).

pub mod clock;
pub mod datagram;
pub(crate) mod mutex_queue;
#[cfg(feature = "ingress")]
pub(crate) mod shared_lock;
#[cfg(feature = "ingress")]
#[allow(unsafe_code)]
pub mod shared_memory;
pub(crate) mod thread_priority;
