//! The interface between the QUIC listener and the submission path. Every method is called on the
//! listener's thread.

use std::net::IpAddr;

/// A client that has proved its key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct QuicClient {
    /// Its Ed25519 public key.
    pub public_key: [u8; 32],
    /// Its address now; an IPv4 address is never mapped into IPv6.
    pub from: IpAddr,
}

/// Why the listener refuses a connection, or a stream before its last byte.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum QuicRefusal {
    /// No certificate with an Ed25519 key, or the key is not valid, or no longer.
    Unauthorized,
    /// The account has too many connections.
    AccountConnections,
    /// More bytes than a transaction can have.
    TooLarge,
    /// A stream or a handshake was not finished in time.
    Slow,
    /// This edge drains.
    Draining,
}

/// How many streams a client may open.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StreamCredit {
    /// Transactions that its limits admit now.
    pub streams: u32,
    /// After how long it may be more; None if it cannot be.
    pub more_in_ns: Option<u64>,
}

/// Numbers of the listener. The first two are states, the others are counted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct QuicNumbers {
    /// Open connections of clients with a valid key.
    pub connections: u64,
    /// Handshakes in progress.
    pub handshakes: u64,
    /// Connections that were accepted.
    pub connected: u64,
    /// Handshakes that were refused because of a limit, or while draining, or that took too long.
    pub handshakes_refused: u64,
    /// Clients that had to prove their address.
    pub retries: u64,
    /// Streams that their client gave up, or lost with its connection, before their end.
    pub streams_aborted: u64,
    /// Datagrams that the kernel's buffer had no room for.
    pub datagrams_dropped: u64,
    /// Panics, each of which ended a connection.
    pub panics: u64,
}

/// Decides about clients and their transactions.
pub trait StreamHandler {
    /// The number of the account that the client's key belongs to; None if the key is not valid
    /// from there.
    fn account_of(&self, client: &QuicClient) -> Option<u64>;

    /// What the client's limits admit.
    fn credit(&self, client: &QuicClient) -> StreamCredit;

    /// One transaction, complete. Counts and records what becomes of it.
    fn submit(&mut self, client: &QuicClient, bytes: &[u8]);

    /// Counts a refusal and records it for the client's account, `None` before it is known. `bytes`
    /// arrived of the stream. Returns the code for STOP_SENDING or CONNECTION_CLOSE.
    fn refused(&mut self, client: Option<&QuicClient>, refusal: QuicRefusal, bytes: usize) -> u32;

    /// The code of a refusal.
    fn code(&self, refusal: QuicRefusal) -> u32;

    /// Publishes the numbers.
    fn publish(&mut self, numbers: &QuicNumbers);
}
