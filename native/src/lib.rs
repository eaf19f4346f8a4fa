//! Touchdown's native engine.
//!
//! `node` is the door for JavaScript: every exported item and what these share; all else is
//! sans-Node. `http` and `submit` are the path of a client's transaction, `decode` and `ed25519` say
//! whether it is sound, `quic` sends it, and `rpc` asks nodes. `base58` is everybody's, and `limits`
//! and `sync` are for all.
//!
//! A transaction is sent on the thread that asks for it, under its connection's baton
//! (`quic::peer`); one I/O thread receives, acknowledges and runs timers (`quic::endpoint`); what
//! became of each copy comes back through one bounded ring (`quic::event_ring`). What a node is asked
//! (`rpc::client`) and what it tells of slots (`rpc::slot_subscriber`) has threads of its own, which give
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
pub mod decode;
pub mod ed25519;
pub mod http;
pub mod limits;
pub mod node;
pub mod quic;
#[cfg(feature = "rpc")]
pub mod rpc;
#[cfg(feature = "ingress")]
pub mod submit;
pub mod sync;
