//! What threads share: a queue (`mutex_queue`), memory that is JavaScript's as well (`shared_memory`,
//! `shared_lock`), the clock, and who goes first (`thread_priority`).

pub mod clock;
pub(crate) mod mutex_queue;
#[cfg(feature = "ingress")]
pub(crate) mod shared_lock;
#[cfg(feature = "ingress")]
#[allow(unsafe_code)]
pub mod shared_memory;
pub(crate) mod thread_priority;
