//! Touchdown's native engine.
//!
//! Everything here is sans-Node except `lent` and `bindings`, which holds every exported item and
//! nothing else. A transaction is sent on the thread that asks for it, under its connection's baton
//! (`baton`, `peer`); one I/O thread receives, acknowledges and runs timers (`endpoint`); what
//! became of each copy comes back through one bounded ring (`outcomes`). What a node is asked
//! (`asker`) and what it tells of slots (`feed`) has threads of its own, which give way.

#![deny(
    unsafe_code,
    unused_must_use,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::dbg_macro,
    clippy::print_stdout,
    clippy::print_stderr
)]
#![warn(missing_docs, clippy::all)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic))]

mod alarm;
#[cfg(feature = "addon")]
pub mod asker;
pub mod base58;
#[cfg(feature = "addon")]
// The macro around the exports writes unsafe code.
#[allow(unsafe_code)]
pub mod bindings;
#[cfg(feature = "addon")]
pub mod brief;
pub mod call;
pub mod certificate;
pub mod clock;
#[cfg(feature = "addon")]
mod codes;
pub mod comb;
pub mod compute_budget;
pub mod connection;
pub mod copies;
#[cfg(feature = "addon")]
mod crossing;
pub mod curve;
pub mod decoder;
pub mod encoding;
pub mod endpoint;
pub mod engine;
pub mod faults;
#[cfg(feature = "addon")]
pub mod feed;
pub mod field;
pub mod flights;
pub mod handles;
mod inverse;
pub mod key_tables;
#[cfg(target_arch = "x86_64")]
// A function for a processor that has more than every one takes unsafe code to be called.
#[allow(unsafe_code)]
pub mod lane_points;
#[cfg(target_arch = "x86_64")]
// A vector that is read from memory takes unsafe code.
#[allow(unsafe_code)]
mod lanes;
#[cfg(all(test, target_arch = "x86_64"))]
// A function for a processor that has more than every one takes unsafe code to be called.
#[allow(unsafe_code)]
mod lanes_tests;
pub mod legacy;
#[cfg(feature = "reading")]
pub mod lenient;
#[cfg(feature = "addon")]
// A view into JavaScript's memory takes unsafe code.
#[allow(unsafe_code)]
pub mod lent;
pub mod limits;
#[cfg(feature = "addon")]
pub mod line;
#[cfg(all(test, feature = "addon"))]
mod line_tests;
pub mod message;
#[cfg(feature = "addon")]
pub mod names;
#[cfg(feature = "reading")]
pub mod news;
#[cfg(feature = "addon")]
pub mod object;
pub mod outbox;
pub mod outcomes;
pub mod peer;
mod priority;
pub mod scan;
pub mod shared;
pub mod signal;
#[cfg(feature = "addon")]
pub mod statuses;
pub mod sums;
pub mod table;
mod terms;
pub mod tip;
pub mod tls;
pub mod tx;
pub mod v1;
pub mod verify;
#[cfg(feature = "addon")]
pub mod web;
