//! Touchdown's native engine.
//!
//! The folders hold the native part of the stage of their name in `src/`. Beside them is the door
//! for JavaScript: `bindings` holds every exported item and nothing else, and `crossing`,
//! `front_crossing`, `codes`, `handles` and `lent` are what these share; all else is sans-Node.
//! `http` reads a client's call, `base58` is everybody's, and `limits` and `sync` are for all.
//!
//! A transaction is sent on the thread that asks for it, under its connection's baton
//! (`quic::peer`); one I/O thread receives, acknowledges and runs timers (`quic::endpoint`); what
//! became of each copy comes back through one bounded ring (`quic::event_ring`). What a node is asked
//! (`rpc::client`) and what it tells of slots (`rpc::slot_feed`) has threads of its own, which give
//! way. Fronts (`submit`) are threads that take clients' requests by themselves.

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

pub mod base58;
#[cfg(feature = "addon")]
// The macro around the exports writes unsafe code.
#[allow(unsafe_code)]
pub mod bindings;
#[cfg(feature = "addon")]
mod codes;
#[cfg(feature = "addon")]
mod crossing;
pub mod decode;
pub mod ed25519;
#[cfg(feature = "addon")]
mod front_crossing;
pub mod handles;
pub mod http;
#[cfg(feature = "addon")]
// A view into JavaScript's memory takes unsafe code.
#[allow(unsafe_code)]
pub mod lent;
pub mod limits;
pub mod quic;
#[cfg(feature = "reading")]
pub mod rpc;
#[cfg(feature = "front")]
pub mod submit;
pub mod sync;
