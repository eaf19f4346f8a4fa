//! The QUIC listener of the ingress threads: `solana-tpu`, one transaction for each unidirectional
//! stream, and `touchdown/1`, which also answers on bidirectional ones and has a control stream. It
//! knows connections, streams and their limits; whose key a client has and what becomes of a
//! transaction is the handler's.
//!
//! The format is in `docs/quic.md`.
//!
//! Decision: docs/decisions/0055-quic-in-the-ingress-threads.md

pub mod first_byte;
pub mod frame;
pub mod handler;
pub mod limits;
pub mod options;
pub mod server;
pub mod verdict;

mod admission;
mod clients;
mod connection;
mod control;
mod counts;
mod followers;
mod handshake_rate;
mod landing_waits;
mod receipts;
mod routing;
mod schedule;
mod socket;
mod stream_bytes;
mod thread_socket;
mod threads;
mod tls;
