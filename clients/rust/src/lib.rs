//! A client of Touchdown's submission over QUIC: one connection, one stream for each transaction,
//! and with ALPN `touchdown/1` a verdict for each. The format is `docs/quic.md` of Touchdown.
//!
//! ```no_run
//! use touchdown_client::{Client, Config, Credential, SubmitOptions};
//!
//! # async fn example(transaction: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
//! let key = std::env::var("TOUCHDOWN_KEY")?;
//! let client = Client::start(Config::new("edge.example.org:8009", Credential::api_key(key)))?;
//! client.ready().await?;
//! let verdict = client.submit(transaction, SubmitOptions::default()).await?;
//! println!("{:?} after {} us", verdict.outcome, verdict.microseconds);
//! # Ok(())
//! # }
//! ```
//!
//! A client keeps one connection: it opens it at once, keeps it open, and opens it again when it is
//! lost, with a backoff and a bound (`Config::reconnects_max`).

#![deny(unsafe_code, unused_must_use, unreachable_pub)]
#![warn(missing_docs, clippy::all)]

mod client;
mod config;
mod connection;
mod credential;
mod error;
mod event;
mod frame;
mod reason;
mod tls;
mod verdict;

pub use client::{Client, SubmitOptions};
pub use config::{Config, Protocol, Trust};
pub use credential::Credential;
pub use error::{ConnectError, SendError};
pub use event::Event;
pub use reason::Reason;
pub use verdict::{Outcome, Verdict};

/// Compiles the README's program.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
