//! Every fixed bound of the engine. What an operator may change is in `engine::Options`; what
//! the network dictates carries its source and the date it was checked.

use std::time::Duration;

/// Largest transaction that is sent, in bytes: a v1 transaction. SIMD-0296, 2026-11.
pub const TRANSACTION_BYTES_MAX: usize = 4096;
/// Most copies that one call sends; a bit of the answer stands for each.
pub const DELIVERIES_MAX: usize = 16;
/// Most connections open at once, those that still say goodbye included.
pub const PEERS_MAX: usize = 4096;
/// Most engines of a process at once.
pub const ENGINES_MAX: usize = 16;
/// Most local addresses to send from.
pub const SOCKETS_MAX: usize = 16;
/// Most datagrams that wait for one connection's baton; more are dropped like lost packets.
pub const INBOX_DATAGRAMS_MAX: usize = 1024;
/// Largest datagram that leaders are told to send and that is looked at: what an Ethernet link
/// carries. Larger ones are dropped, so that what waits for a connection is bounded in bytes too.
pub const DATAGRAM_BYTES_MAX: u16 = 1472;
/// Most datagrams of one connection that are handled in one turn.
pub const DATAGRAMS_PER_TURN: usize = 32;
/// Most streams that are opened ahead to learn how many a leader grants. Agave grants 128 to an
/// unstaked address (`swqos.rs`, 2026-11); of more than this it is known that they are more.
pub const STREAMS_AHEAD_MAX: usize = 1024;
/// Most copies that a thread holds: 16 transactions for 16 leaders each.
pub const CORKED_MAX: usize = 256;
/// Most waiting copies of a leader among which those are looked for that share datagrams.
pub const BATCH_CANDIDATES_MAX: usize = 16;
/// Copies that come upon a connection at work and leave with its next turn, at most, of which nobody
/// is told at once; fewer where fewer may wait. The sender keeps back what comes while as many wait
/// as may, and has to hear of it when they are gone: of two turns' worth it never comes to that.
pub const PROMPT_MAX: usize = 4;
/// The part of the copies that may wait which counts as few.
pub const PROMPT_PART: usize = 4;
/// Turns that a sending thread takes before it hands the baton to the I/O thread.
pub const CALLER_TURNS: usize = 2;
/// Turns that the I/O thread takes before it looks after other connections.
pub const IO_TURNS: usize = 4;
/// Most receive calls on one socket before timers and other sockets get their turn.
pub const RECEIVES_PER_TURN: usize = 8;
/// Buffers of one receive call.
pub const RECEIVE_BUFFERS: usize = 8;
/// Size of a receive buffer: the largest datagram train that the kernel joins.
pub const RECEIVE_BUFFER_BYTES: usize = 65_535;
/// Most segments of one segmented send; the kernel takes 64.
pub const SEGMENTS_MAX: usize = 16;
/// Wait before a datagram is offered again to a socket whose buffer was full, in nanoseconds.
pub const STALL_RETRY_NS: u64 = 500_000;
/// Timers further off than this are in no hurry, in nanoseconds.
pub const IDLE_AFTER_NS: u64 = 150_000_000;
/// Timers in no hurry fall on multiples of this, in nanoseconds.
pub const IDLE_GRID_NS: u64 = 40_000_000;
/// Outcomes that wake JavaScript however young they are.
pub const OUTCOMES_PER_WAKE: usize = 256;
/// Longest that an outcome which is only noted waits for others, in nanoseconds, and a record of a
/// front as well, because one wake is for both: a little longer than a round of the main thread
/// (`COALESCE_MS` of `core/rounds.ts`), which takes them in without a wake. Who looks at what became of
/// copies has all of it taken in first, and what is acted on waits for nobody.
pub const OUTCOMES_DELAY_NS_MAX: u64 = 210_000_000;
/// Events about connections that wait to be drained; each connection makes at most three.
pub const PEER_EVENTS_MAX: usize = 16_384;
/// Most that a timer may be late so that others share its waking, in nanoseconds.
pub const TIMER_SLACK_NS_MAX: u64 = 4_000_000;
/// Longest that the I/O thread sleeps, in nanoseconds.
pub const SLEEP_NS_MAX: u64 = 1_000_000_000;
/// Longest that a stopping engine waits for acknowledgements, whatever it was asked for: the
/// thread that stops it waits for as long.
pub const STOP_CLOSE_TIMEOUT_MAX: Duration = Duration::from_secs(1);
/// Most a stopping engine waits for its connections' goodbyes, in nanoseconds.
pub const CLOSE_NS_MAX: u64 = 250_000_000;
/// Receive and send buffer asked of the kernel for each socket, in bytes.
pub const SOCKET_BUFFER_BYTES: usize = 4 * 1024 * 1024;
/// Most that an operator may ask for as a leader's queue or copies in flight.
pub const QUEUE_MAX: usize = 65_536;
/// Most outcomes that an operator may ask to be kept.
pub const OUTCOMES_MAX: usize = 1 << 20;
/// Shortest timeout that makes sense.
pub const TIMEOUT_MIN: Duration = Duration::from_millis(10);
/// Longest that the I/O thread may look for datagrams before it sleeps.
pub const BUSY_POLL_MAX: Duration = Duration::from_millis(10);
/// Most fronts at once: `INGRESS_THREADS_MAX` of `front-limits.ts` for each of a few edges.
pub const INGRESS_THREADS_MAX: usize = 64;
/// Most nodes that are asked at once.
pub const RPC_CLIENTS_MAX: usize = 64;
/// Most questions to one node in hand.
pub const RPC_REQUESTS_MAX: usize = 64;
/// Most connections to one node, and threads that wait for its answers.
pub const CONNECTIONS_TO_NODE_MAX: usize = 16;
/// Stack of such a thread: a TLS handshake needs less than half of it.
pub const RPC_THREAD_STACK_BYTES: usize = 512 * 1024;
/// Times that a question is asked where the connection is closed before the answer.
pub const HTTP_ATTEMPTS_MAX: u32 = 2;
/// Most feeds of slots at once, their threads until they end included.
pub const SLOT_SUBSCRIBERS_MAX: usize = 64;
/// Most news of a feed that wait for JavaScript; beyond it events of slots are dropped.
pub const SLOT_NOTIFICATIONS_MAX: usize = 256;
/// Largest message of a feed; a larger one ends it. `WEBSOCKET_MESSAGE_BYTES_MAX` of `limits.ts`.
pub const WEBSOCKET_MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// Buffer for each direction of a feed's connection, and most that a node answers to open it.
pub const WEBSOCKET_BUFFER_BYTES: usize = 16 * 1024;
/// For how long it is not asked again which addresses a node's name stands for.
pub const DNS_CACHE_TTL: Duration = Duration::from_secs(30);
/// How long a lookup may take where older addresses are known, and when the next one follows where
/// it brought nothing.
pub const DNS_REFRESH_TIMEOUT: Duration = Duration::from_millis(500);
/// See above.
pub const DNS_RETRY_DELAY: Duration = Duration::from_secs(5);
/// Buffer for each direction of a connection to a node.
pub const HTTP_BUFFER_BYTES: usize = 32 * 1024;
/// Largest question.
pub const RPC_REQUEST_BYTES_MAX: usize = 64 * 1024;
/// Largest answer that an operator may ask for.
pub const RPC_RESPONSE_BYTES_MAX: usize = 1 << 30;
/// Most signatures asked for at a time. Agave `MAX_GET_SIGNATURE_STATUSES_QUERY_ITEMS`, 2026-11.
pub const STATUS_SIGNATURES_MAX: usize = 256;
