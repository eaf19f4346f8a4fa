//! Fixed limits of the QUIC listener. What an operator may change is in `options::Options`.

use std::time::Duration;

use crate::sync::clock::{NS_PER_MS, NS_PER_S};

/// Largest transaction: the network's own limit.
pub const STREAM_BYTES_MAX: usize = crate::decode::limits::TRANSACTION_BYTES_MAX;
/// Most streams that a connection may open ahead of its account's limit.
pub const STREAMS_AHEAD_MAX: u32 = 64;
/// A connection is closed after this time without a packet.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Idle time after which the listener pings a client.
pub const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// How long an acknowledgement waits for others, unless the client asks for another time
/// (RFC 9000 section 18.2, max_ack_delay, whose default quinn-proto has).
pub const ACK_DELAY: Duration = Duration::from_millis(25);
/// After so long without a datagram to the client, what it sends is acknowledged in the turn that
/// handles it: early enough that the thread seldom wakes up for `ACK_DELAY` alone, and seldom
/// enough that a client that sends a lot gets no more acknowledgements.
pub const ACK_GAP_NS: u64 = 12 * NS_PER_MS;
/// How long a handshake may take.
pub const HANDSHAKE_NS_MAX: u64 = 5 * NS_PER_S;
/// Handshakes in progress above which a client must first prove its address, by a Retry.
pub const HANDSHAKES_BEFORE_RETRY: usize = 64;
/// Most handshakes in progress; further ones are refused.
pub const HANDSHAKES_MAX: usize = 1024;
/// Most handshakes in progress of one address, an IPv6 address with its /64: as many that did not
/// prove it, and as many that did.
pub const HANDSHAKES_PER_ADDRESS: usize = 32;
/// Datagrams that wait for a thread which others received; further ones are dropped.
pub const FORWARDS_MAX: usize = 1024;
/// How long the sockets of a process that this one replaces may be open: it closes its connections
/// within `DRAIN_NS_MAX`, and keeps them for `CLOSED_NS_MAX`.
pub const PREDECESSOR_NS_MAX: u64 = 10 * NS_PER_S;
/// Handshakes that begin in a second; the first packet of a further one is ignored, and its client
/// sends it again a second later.
pub const HANDSHAKES_PER_SECOND: usize = 1000;
/// Of these, those of one address that was proved, an IPv6 address with its /64.
pub const HANDSHAKES_PER_SECOND_PER_ADDRESS: usize = 250;
/// The same once half of all have begun, so that a few addresses leave the other half to others.
pub const HANDSHAKES_PER_SECOND_PER_ADDRESS_LATE: usize = 25;
/// Datagrams of handshakes that are handled before other clients get their turn: one may take as
/// long as many transactions.
pub const HANDSHAKE_DATAGRAMS_PER_TURN: usize = 4;
/// How long a closed connection is kept, to answer what its client still sends. QUIC's own time for
/// it depends on what the client says of its delays, and may be a minute.
pub const CLOSED_NS_MAX: u64 = NS_PER_S;
/// Most closed connections that are kept, by all threads in equal parts; one more is forgotten at
/// once.
pub const CLOSED_MAX: usize = 1024;
/// Buffers of the one receive call of a turn.
pub const RECEIVE_BUFFERS: usize = 8;
/// Size of a receive buffer: the largest datagram train that the kernel coalesces.
pub const RECEIVE_BUFFER_BYTES: usize = 65_535;
/// Most datagrams of one segmented send.
pub const SEGMENTS_MAX: usize = 10;
/// How often keys, handshakes and unfinished streams of all connections are checked.
pub const SCAN_NS: u64 = 250 * NS_PER_MS;
/// How long a draining listener waits for unfinished streams.
pub const DRAIN_NS_MAX: u64 = NS_PER_S;
/// Connections whose keys and times are checked before other clients get their turn.
pub const SCANNED_PER_TURN: usize = 1024;
/// Connections of known clients that are driven before other clients get their turn.
pub const DRIVEN_PER_TURN: usize = 64;
/// The same of connections whose client's key is not known: one takes as long as a transaction.
pub const UNKNOWN_DRIVEN_PER_TURN: usize = 8;
/// The listener drops larger datagrams. Clients send at most 1,472 bytes, which quinn-proto tells
/// them (RFC 9000 section 18.2, max_udp_payload_size). The listener keeps a client's first datagram
/// until its handshake begins, so its size is a part of the memory that a client can use.
pub const DATAGRAM_BYTES_MAX: usize = 1500;
/// Bytes that are kept of a client whose handshake waits for its turn to begin; more are dropped,
/// as if lost on the way.
pub const ARRIVAL_BYTES_MAX: u64 = 6 * 1024;
/// The same of all of them, for each thread.
pub const ARRIVALS_BYTES_MAX: u64 = 1024 * 1024;
/// Streams that are read of one connection before the next one is driven.
pub const STREAMS_PER_DRIVE: usize = 16;
/// Streams that are read of all connections before other clients get their turn: a transaction
/// takes some hundredths of a millisecond.
pub const STREAMS_PER_TURN: usize = 64;
/// Fewer streams than this, and than half of a burst, that the limits of an account admit are
/// divided among its connections.
pub const STREAMS_SHARED: u32 = 16;
/// Longest wait before a connection without credit is looked at again.
pub const CREDIT_NS_MAX: u64 = NS_PER_S;
/// Shortest wait before a connection without credit is looked at again.
pub const CREDIT_NS_MIN: u64 = 10 * NS_PER_MS;
/// How many connections of one account are looked at in that time, at most.
pub const CREDIT_LOOKS: u64 = 16;
/// Receive and send buffer requested from the kernel, in bytes.
pub const SOCKET_BUFFER_BYTES: usize = 4 * 1024 * 1024;
/// Verdicts of one connection that wait for their transaction's end.
pub const LANDINGS_PER_CONNECTION: usize = 1024;
/// The same of one account.
pub const LANDINGS_PER_ACCOUNT: usize = 4096;
/// The same of all connections.
pub const LANDINGS_MAX: usize = 16_384;
/// How long a verdict waits for its transaction's end.
pub const LANDING_NS_MAX: u64 = 120 * NS_PER_S;
/// Bidirectional streams of one connection that are open on either side; with as many the client
/// gets no further one until it has acknowledged a verdict.
pub const BIDIRECTIONAL_OPEN_MAX: u64 = 2048;
/// The same of one account, in equal parts on its connections; each may have `STREAMS_AHEAD_MAX`.
pub const BIDIRECTIONAL_OPEN_PER_ACCOUNT: u64 = 65_536;
/// Frames that wait for a client to read its control stream; then the oldest receipt is dropped.
pub const CONTROL_FRAMES_MAX: usize = 256;
/// Connections of one account that receive receipts.
pub const FOLLOWERS_PER_ACCOUNT: usize = 16;
/// Bytes that a connection may hold which its client has not acknowledged.
pub const SEND_WINDOW_BYTES: u64 = 128 * 1024;
