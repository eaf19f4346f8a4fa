//! Why a client has no connection, and why a transaction has no verdict.

use crate::reason::Reason;

/// Why a client cannot connect.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectError {
    /// The settings contradict each other.
    #[error("{0}")]
    Config(String),
    /// The address names no host, or the host has no address.
    #[error("{address}: {cause}")]
    Address {
        /// As configured, or as an edge named it.
        address: String,
        /// What the system says.
        cause: String,
    },
    /// The edge closed the connection with this reason.
    #[error("the edge refused the connection: {0}")]
    Refused(Reason),
    /// No connection came about, or the edge did not answer in time.
    #[error("no connection: {0}")]
    Failed(String),
    /// The client was closed.
    #[error("the client is closed")]
    Closed,
}

impl ConnectError {
    /// Whether another attempt may succeed without a change of the settings or the account.
    pub(crate) fn is_temporary(&self) -> bool {
        match self {
            // `undecodable` closes a connection whose handshake took the edge's time.
            Self::Refused(reason) => reason.is_retryable() || *reason == Reason::Undecodable,
            Self::Address { .. } | Self::Failed(_) => true,
            Self::Config(_) | Self::Closed => false,
        }
    }
}

/// Why a transaction was not sent, or has no verdict.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendError {
    /// A transaction has 1 to 4,096 bytes.
    #[error("a transaction has 1 to 4,096 bytes, this has {0}")]
    Size(usize),
    /// `Config::pending_max` transactions wait already.
    #[error("too many transactions wait")]
    TooMany,
    /// No verdict within `Config::timeout`. The transaction may have been sent; it is safe to submit
    /// the same bytes again.
    #[error("no verdict in time")]
    Timeout,
    /// The edge stopped the stream: the transaction was not sent. Only where there are no verdicts.
    #[error("the edge refused the stream: {0}")]
    Refused(Reason),
    /// The answer is none of the format.
    #[error("the edge's answer has {0} bytes, a verdict has 88")]
    Protocol(usize),
    /// `solana-tpu` has no verdicts.
    #[error("solana-tpu has no verdicts: use touchdown/1, or send")]
    NoVerdicts,
    /// The client has given up, or was closed.
    #[error(transparent)]
    Connect(#[from] ConnectError),
}
