//! The native ingress: threads without JavaScript that receive requests, answer submissions, and
//! proxy every other request, as bytes, to the main thread's server, which answers it like a direct
//! one.
//!
//! ```text
//!  client ─▶ http ─▶ path: key_table ─▶ dedup ─▶ decode ─▶ fan_out ─▶ leaders
//!             │  ▲                                     └─▶ records ─▶ main thread
//!             ▼  │
//!            proxy ◀──▶ main thread's server
//! ```
//!
//! `thread` runs the event loop of `http` with the request handler of `requests`. Requests that the
//! main thread's server accepts pass through the same path, by one call (`main_thread`). All
//! of them write what they did (`records`) to the events of the engine, which the main thread reads.
//! All ingress threads and the main thread use one table of keys (`key_table`), one state of each
//! rate limit (`limit_registry`), one dedup cache (`dedup`) and the engine's targets
//! (`quic::targets`). They share memory with TypeScript (`sync::shared_memory`) for their `counters`
//! alone.

pub mod counters;
pub mod dedup;
pub mod fan_out;
mod ingress_path;
pub mod key_batch;
pub mod key_format;
pub mod key_table;
pub mod limit_registry;
pub mod main_thread;
pub mod networks;
pub mod path;
pub mod rate_limit;
pub mod records;
pub mod requests;
pub mod streams;
pub mod thread;
pub mod thread_status;
