//! The short way of a transaction, on threads of its own without JavaScript: takes requests, answers
//! those that it accepts, and relays every other one, as bytes, to the server of the main thread
//! behind it, which answers with the code for its own.
//!
//! ```text
//!  client ─▶ http ─▶ path: key_cache ─▶ dedup ─▶ decode ─▶ fan_out ─▶ leaders
//!             │  ▲                                     └─▶ record_ring ─▶ main thread
//!             ▼  │
//!            proxy ◀──▶ main thread's server
//! ```
//!
//! `thread` runs the loop of `http` with what takes submissions, which is `path`. `wakeup` says when
//! the main thread is woken. What both look at lies in memory that they share
//! (`sync::shared_memory`): the states of limits (`rate_limit`), what was seen (`dedup`), the routes
//! (`route_table`), records (`record_ring`) and figures (`counters`). The layouts are those of the
//! files in `src/` that each module names.

pub mod counters;
pub mod dedup;
mod dedup_index;
pub mod fan_out;
pub mod key_cache;
pub mod path;
pub mod rate_limit;
pub mod record_ring;
pub mod route_table;
pub mod thread;
pub mod wakeup;
