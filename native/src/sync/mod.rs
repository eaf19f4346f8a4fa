//! Primitives shared between threads: a queue (`mutex_queue`), a ring (`entry_ring`), memory shared
//! with JavaScript (`shared_memory`), the clock, thread priorities (`thread_priority`), messages to
//! systemd (`datagram`), and what counts as one address (`source_address`).

pub mod clock;
pub mod datagram;
pub mod entry_ring;
pub(crate) mod mutex_queue;
#[allow(unsafe_code)]
pub mod shared_memory;
#[cfg(feature = "ingress")]
pub mod source_address;
pub(crate) mod thread_priority;
