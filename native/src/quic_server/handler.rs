//! The interface between the QUIC listener and the submission path. Every method is called on the
//! listener's thread.

use std::net::IpAddr;

use crate::quic_server::first_byte::Flags;
use crate::quic_server::verdict::SIGNATURE_BYTES;

/// A client that has proved its key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct QuicClient {
    /// The digest by which the handler finds its key.
    pub key: [u8; 32],
    /// Its address now; an IPv4 address is never mapped into IPv6.
    pub from: IpAddr,
}

/// Why the listener refuses a connection, or a stream before its last byte.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum QuicRefusal {
    /// No certificate with an Ed25519 key and no API key, or the key is not valid, or no longer.
    Unauthorized,
    /// The client did not say in time who it is.
    NoHello,
    /// This edge has not read its keys yet.
    KeysUnread,
    /// The account has too many connections.
    AccountConnections,
    /// Too many connections of the account want receipts.
    Followers,
    /// More bytes than a transaction can have.
    TooLarge,
    /// A stream or a handshake was not finished in time.
    Slow,
    /// This edge drains.
    Draining,
    /// An unknown flag before a transaction.
    Flags,
    /// No valid frame on the control stream.
    Frame,
    /// A second control stream.
    SecondControl,
}

/// How many streams a client may open.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StreamCredit {
    /// Transactions that its limits admit now.
    pub streams: u32,
    /// After how long it may be more; None if it cannot be.
    pub more_in_ns: Option<u64>,
    /// Transactions that they admit at most at a time.
    pub burst: u32,
}

/// The limits of a client's key, or of its account's plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClientLimits {
    /// Transactions a second.
    pub rate_per_second: f64,
    /// Transactions at once.
    pub burst: u32,
}

/// What a transaction must pay.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Tips {
    /// The least tip.
    pub lamports_min: u64,
    /// One of these must be paid.
    pub accounts: Box<[[u8; 32]]>,
}

/// A transaction as its stream brought it.
#[derive(Clone, Copy, Debug)]
pub struct Submission<'a> {
    /// The transaction.
    pub bytes: &'a [u8],
    /// What its client wants for it.
    pub flags: Flags,
}

/// What became of a transaction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Decision {
    /// 0 if it was accepted, else the code of the reason.
    pub code: u32,
    /// Its first signature, where it has one.
    pub signature: Option<[u8; SIGNATURE_BYTES]>,
    /// Whether it was accepted before; false where its client does not wait for its end.
    pub is_repeated: bool,
}

/// Numbers of one thread of the listener. The first three are states, the others are counted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct QuicNumbers {
    /// Open connections of clients with a valid key.
    pub connections: u64,
    /// Handshakes in progress.
    pub handshakes: u64,
    /// Clients that want receipts, and transactions whose verdict waits for their end.
    pub followers: u64,
    /// Connections that were accepted.
    pub connected: u64,
    /// Handshakes that were refused because of a limit, or while draining, or that took too long.
    pub handshakes_refused: u64,
    /// First packets that were ignored, because too many came in a second.
    pub handshakes_delayed: u64,
    /// Clients that had to prove their address.
    pub retries: u64,
    /// Streams that their client gave up, or lost with its connection, before their end.
    pub streams_aborted: u64,
    /// Datagrams that the kernel's buffer had no room for.
    pub datagrams_dropped: u64,
    /// Datagrams that were too large, cannot be answered, or were answered with a refusal.
    pub datagrams_refused: u64,
    /// Datagrams that another thread received, and passed on.
    pub datagrams_forwarded: u64,
    /// Those that their thread did not take in time.
    pub forwards_dropped: u64,
    /// Receipts that clients were too slow to read.
    pub receipts_dropped: u64,
    /// Looks at which a client got fewer bidirectional streams than its limits admit, because it
    /// left too many verdicts unread.
    pub streams_withheld: u64,
    /// Verdicts that could not wait for the transaction's end.
    pub landings_unawaited: u64,
    /// Panics, each of which ended a connection.
    pub panics: u64,
}

/// Decides about clients and their transactions.
pub trait StreamHandler {
    /// The digest of a public key that a client has proved.
    fn key_of_certificate(&self, public_key: &[u8; 32]) -> [u8; 32];

    /// The digest of an API key that a client has sent; None of what no API key can be.
    fn key_of_token(&self, token: &[u8]) -> Option<[u8; 32]>;

    /// Whether this edge has read its keys, so that a key that it does not know is none.
    fn has_read_keys(&self) -> bool;

    /// Whether there is such a key, even if it is not valid from there.
    fn knows(&self, client: &QuicClient) -> bool;

    /// The number of the account that the client's key belongs to; None if the key is not valid
    /// from there.
    fn account_of(&self, client: &QuicClient) -> Option<u64>;

    /// What the client's limits admit.
    fn credit(&self, client: &QuicClient) -> StreamCredit;

    /// The client's limits; None if its key is not known.
    fn limits(&self, client: &QuicClient) -> Option<ClientLimits>;

    /// What every transaction must pay.
    fn tips(&self) -> Tips;

    /// One transaction, complete. Counts and records what becomes of it.
    fn submit(&mut self, client: &QuicClient, submission: &Submission<'_>) -> Decision;

    /// Counts a refusal and records it for the client's account, `None` before it is known. `bytes`
    /// arrived of the stream. Returns the code for STOP_SENDING or CONNECTION_CLOSE.
    fn refused(&mut self, client: Option<&QuicClient>, refusal: QuicRefusal, bytes: usize) -> u32;

    /// The code of a refusal.
    fn code(&self, refusal: QuicRefusal) -> u32;

    /// Publishes the numbers.
    fn publish(&mut self, numbers: &QuicNumbers);
}
