//! Touchdown's native engine.
//!
//! `node` has the exports for JavaScript; everything else is independent of Node. `http` and
//! `submit` are the path of a client's transaction, `decode` and `ed25519` validate it, and `quic`
//! sends it. `quic_server` is the other way in: transactions on QUIC streams. `sync` is shared by
//! all.
//!
//! A transaction is sent on the calling thread, under its connection's lock (`quic::peer`); one I/O
//! thread receives, acknowledges and runs timers (`quic::io_thread`); the outcome of each delivery
//! is returned through one bounded ring (`quic::event_ring`). Ingress threads (`submit`) serve
//! client requests without JavaScript. Nodes are read by a thread of `src/cluster`.

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

pub mod decode;
pub mod ed25519;
pub mod http;
pub mod node;
pub mod quic;
#[cfg(feature = "ingress")]
pub mod quic_server;
#[cfg(feature = "ingress")]
pub mod submit;
pub mod sync;
