//! What a client needs to know, with the defaults.

use std::time::Duration;

use crate::credential::Credential;

/// How a client speaks to an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// ALPN `touchdown/1`: verdicts, limits, tips and receipts.
    Touchdown1,
    /// ALPN `solana-tpu`, as validators speak it: transactions only.
    SolanaTpu,
}

/// Which server certificates are accepted.
#[derive(Clone, Debug)]
pub enum Trust {
    /// One for the host name of the address, from an authority that the system trusts.
    System,
    /// One for the host name, from one of these authorities: each in DER, or in PEM with one or
    /// more. Certificates in PEM that are no authority's are ignored beside one that is.
    Authorities(Vec<Vec<u8>>),
    /// Any. Whoever is on the path can pose as the edge then and read the transactions, but learns no
    /// secret. Refused for [`Credential::api_key`].
    Any,
}

/// The settings of a client.
#[derive(Clone, Debug)]
pub struct Config {
    /// `host:port` of the edge's `quic.listen`; an IPv6 address is in brackets.
    pub address: String,
    /// Who sends.
    pub credential: Credential,
    /// How.
    pub protocol: Protocol,
    /// With [`Protocol::SolanaTpu`] it has no effect: validators' clients verify no certificate.
    pub trust: Trust,
    /// Whether receipts of the account's transactions arrive as events.
    pub receipts: bool,
    /// How long one attempt to connect may take, until the edge has authenticated the client. With
    /// [`Protocol::SolanaTpu`] until the handshake's end: the edge may grant streams later.
    pub connect_timeout: Duration,
    /// Attempts to connect in a row that may fail before the client gives up.
    pub reconnects_max: u32,
    /// The wait before the second attempt, and before the client follows an edge that drains; it
    /// doubles with each one, up to `backoff_max`.
    pub backoff_min: Duration,
    /// The longest wait between two attempts.
    pub backoff_max: Duration,
    /// How long a transaction may wait for a connection, for stream credit, and for its verdict. A
    /// verdict that is asked for when the transaction has landed has 120 s more.
    pub timeout: Duration,
    /// Transactions that may wait at a time; further ones are refused with `SendError::TooMany`.
    pub pending_max: usize,
    /// Events that wait for their reader; beyond it the oldest are dropped.
    pub events_max: usize,
    /// Idle time after which the client pings, so that routers keep the path open; 0, or 60 s and
    /// more, for no pings of the client. An edge pings after 20 s.
    pub keep_alive: Duration,
}

impl Config {
    /// `touchdown/1` to this address with this credential, and defaults otherwise.
    #[must_use]
    pub fn new(address: impl Into<String>, credential: Credential) -> Self {
        Self {
            address: address.into(),
            credential,
            protocol: Protocol::Touchdown1,
            trust: Trust::System,
            receipts: false,
            connect_timeout: Duration::from_secs(5),
            reconnects_max: 20,
            backoff_min: Duration::from_millis(50),
            backoff_max: Duration::from_secs(5),
            timeout: Duration::from_secs(5),
            pending_max: 4096,
            events_max: 1024,
            keep_alive: Duration::from_secs(15),
        }
    }
}
