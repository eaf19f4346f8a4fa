//! What a client learns besides the verdicts.

use crate::error::ConnectError;
use crate::verdict::Verdict;

/// An event of a client's connection.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The edge at this address has authenticated the client.
    Connected {
        /// `host:port`.
        address: String,
    },
    /// The connection is lost, or an attempt to connect failed; the client tries again.
    Disconnected(ConnectError),
    /// The client has given up for good, and this is the last event: make a new client.
    Failed(ConnectError),
    /// The limits of the account or key.
    Limits {
        /// Transactions a second in the long run.
        rate_per_second: f64,
        /// Transactions at once.
        burst: u32,
        /// Transactions that are admitted at this moment.
        credit: u32,
    },
    /// The least tip, and the accounts of which one must be paid.
    Tips {
        /// In lamports.
        lamports_min: u64,
        /// Public keys.
        accounts: Vec<[u8; 32]>,
    },
    /// The edge is about to end; the client goes to this address, if there is one.
    Draining {
        /// `host:port`.
        address: Option<String>,
    },
    /// What became of a transaction of the account; with `Config::receipts` only.
    Receipt(Verdict),
    /// Receipts that the edge dropped because the client read too slowly.
    ReceiptsLost(u32),
}
