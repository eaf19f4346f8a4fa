//! The native ingress: threads without JavaScript that receive requests, answer those that they
//! accept or reject, and proxy every other one, as bytes, to the main thread's server, which
//! answers it like a direct request.
//!
//! ```text
//!  client ─▶ http ─▶ path: key_cache ─▶ dedup ─▶ decode ─▶ fan_out ─▶ leaders
//!             │  ▲                                     └─▶ record_ring ─▶ main thread
//!             ▼  │
//!            proxy ◀──▶ main thread's server
//! ```
//!
//! `thread` runs the event loop of `http` with the request handler of `path`. `wakeup` decides when
//! the main thread is woken. Both threads share memory (`sync::shared_memory`): rate limit states
//! (`rate_limit`), accounts of keys (`key_accounts`), the dedup cache (`dedup`), the targets (`target_table`), records (`record_ring`)
//! and counters (`counters`). The layouts are those of the files in `src/` that each module names.

pub mod counters;
pub mod dedup;
mod dedup_index;
pub mod fan_out;
pub mod key_accounts;
pub mod key_cache;
pub mod path;
pub mod rate_limit;
pub mod record_ring;
pub mod target_table;
pub mod thread;
pub mod wakeup;
