//! Fixed limits of the engine. What an operator may change is in `engine::Options`; limits given by
//! the network have their source and the date it was checked.

use std::time::Duration;

/// Most deliveries of one send call; each has a bit in the result.
pub const DELIVERIES_MAX: usize = 16;
/// Most open connections, including those that are closing.
pub const PEERS_MAX: usize = 4096;
/// Most local addresses to send from.
pub const SOCKETS_MAX: usize = 16;
/// Most datagrams queued for one connection's lock; more are dropped like lost packets.
pub const INBOX_DATAGRAMS_MAX: usize = 1024;
/// Largest datagram that leaders may send and that is processed: what an Ethernet link carries.
/// Larger ones are dropped, so that the queue of a connection is bounded in bytes too.
pub const DATAGRAM_BYTES_MAX: u16 = 1472;
/// Most datagrams of one connection that are handled in one turn.
pub const DATAGRAMS_PER_TURN: usize = 32;
/// Most streams that are opened ahead to measure a leader's stream credit. Agave grants 128 to an
/// unstaked address (`swqos.rs`, 2026-11); larger credit is only known to be larger.
pub const STREAMS_AHEAD_MAX: usize = 1024;
/// Most deliveries that a thread corks: 16 transactions for 16 leaders each.
pub const CORKED_DELIVERIES_MAX: usize = 256;
/// Most queued deliveries of a leader that are searched for ones that fit into one datagram.
pub const BATCH_CANDIDATES_MAX: usize = 16;
/// Most deliveries that may arrive in one turn and still count as sent immediately (`detail` 0 of
/// `Sent`); at most 1 / `IMMEDIATE_PART` of the queue limit. Above that the main thread is woken.
pub const IMMEDIATE_MAX: usize = 4;
/// See `IMMEDIATE_MAX`.
pub const IMMEDIATE_PART: usize = 4;
/// Turns of a sending thread before it hands the connection to the I/O thread.
pub const CALLER_TURNS: usize = 2;
/// Turns of the I/O thread before it serves other connections.
pub const IO_TURNS: usize = 4;
/// Most receive calls on one socket before timers and other sockets get their turn.
pub const RECEIVES_PER_TURN: usize = 8;
/// Buffers of one receive call.
pub const RECEIVE_BUFFERS: usize = 8;
/// Size of a receive buffer: the largest datagram train that the kernel coalesces.
pub const RECEIVE_BUFFER_BYTES: usize = 65_535;
/// Most segments of one segmented send; the kernel takes 64.
pub const SEGMENTS_MAX: usize = 16;
/// Delay before a datagram is offered again to a socket whose buffer was full, in nanoseconds.
pub const STALL_RETRY_NS: u64 = 500_000;
/// Shortest time between two searches for expired deliveries of a connection, in nanoseconds.
pub const EXPIRY_INTERVAL_NS: u64 = 5_000_000;
/// Timers of idle connections further off than this are coalesced, in nanoseconds.
pub const IDLE_AFTER_NS: u64 = 150_000_000;
/// Coalesced timers fall on multiples of this, in nanoseconds.
pub const IDLE_GRID_NS: u64 = 40_000_000;
/// Units of 64 bytes of the event ring: 8 MB. A power of two.
pub const EVENT_UNITS: usize = 131_072;
/// Units in use above which no submission is written: 3 MB. 65,536 outcomes fit besides.
pub const SUBMISSION_UNITS_MAX: usize = 49_152;
/// Most units of one submission: its transaction of 4,096 bytes, and 552 bytes about it.
pub const SUBMISSION_UNITS_EACH: usize = 73;
/// Unread units at which the reader is woken, regardless of their age: some 110 transactions to two
/// leaders, with their outcomes.
pub const UNITS_PER_WAKE: usize = 2_048;
/// Longest that an event without urgency waits for others, in nanoseconds: slightly longer than an
/// interval of the main thread's coalesced timers (`COALESCE_MS` of
/// `src/runtime/coalesced-timers.ts`), which drain them without a wake. Code that reads outcomes
/// drains all of them first, and urgent ones do not wait.
pub const OUTCOMES_DELAY_NS_MAX: u64 = 210_000_000;
/// Units that only connections' events may use; each connection creates at most three.
pub const PEER_EVENTS_MAX: usize = 16_384;
/// Most that a timer may be late to share a wake-up with others, in nanoseconds.
pub const TIMER_SLACK_NS_MAX: u64 = 4_000_000;
/// Longest that the I/O thread sleeps, in nanoseconds.
pub const SLEEP_NS_MAX: u64 = 1_000_000_000;
/// Longest that a stopping engine waits for acknowledgements, whatever was requested: the thread
/// that stops it blocks for as long.
pub const STOP_CLOSE_TIMEOUT_MAX: Duration = Duration::from_secs(1);
/// Longest that a stopping engine waits for its connections to close, in nanoseconds.
pub const CLOSE_NS_MAX: u64 = 250_000_000;
/// Receive and send buffer requested from the kernel for each socket, in bytes.
pub const SOCKET_BUFFER_BYTES: usize = 4 * 1024 * 1024;
/// Largest queue and in-flight limit of a leader that an operator may set.
pub const QUEUE_MAX: usize = 65_536;
/// Shortest allowed timeout.
pub const TIMEOUT_MIN: Duration = Duration::from_millis(10);
/// Longest that the I/O thread may poll for datagrams before it sleeps.
pub const BUSY_POLL_MAX: Duration = Duration::from_millis(10);
