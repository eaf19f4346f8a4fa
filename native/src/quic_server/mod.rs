//! The QUIC listener of an ingress thread: `solana-tpu`, one transaction for each unidirectional
//! stream. It knows connections, streams and their limits; whose key a client has and what becomes
//! of a transaction is the handler's.

pub mod handler;
pub mod limits;
pub mod server;

mod connection;
mod counts;
mod socket;
mod tls;
