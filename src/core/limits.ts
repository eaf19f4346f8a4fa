/**
 * Every fixed bound of the process in one place. What an operator may change is in `config/`
 * instead; what the network dictates carries its source and the date it was checked.
 */

/** Largest legacy or v0 transaction, in bytes. Agave `agave-transaction-view`, 2026-11. */
export const LEGACY_TRANSACTION_BYTES_MAX = 1232;
/** Largest v1 transaction, in bytes. SIMD-0296, 2026-11. */
export const V1_TRANSACTION_BYTES_MAX = 4096;
/** Largest body of the binary endpoint, in bytes; above it 413 and the connection is closed. */
export const RAW_BODY_BYTES_MAX = 16 * 1024;
/** Largest body of the JSON-RPC endpoint, in bytes; above it 413 and the connection is closed. */
export const RPC_BODY_BYTES_MAX = 128 * 1024;
/** Most calls in one JSON-RPC batch. */
export const RPC_BATCH_CALLS_MAX = 16;

// observe/

/** Refusals of one account that are kept for the dashboard, and accounts of which any are. */
export const REFUSALS_PER_ACCOUNT_MAX = 64;
export const REFUSALS_ACCOUNTS_MAX = 2048;
/** Levels of nested objects that the log follows. */
export const LOG_DEPTH_MAX = 6;
/** Entries of one object or array that the log shows. */
export const LOG_ENTRIES_MAX = 64;
/** Characters of one text that the log shows. */
export const LOG_TEXT_CHARS_MAX = 8192;
/** Copies that one receipt shows; later ones are counted only. */
export const RECEIPT_COPIES_MAX = 64;
/** Copies that there is room for, for each receipt; when it runs out, the oldest receipts go. */
export const RECEIPT_COPIES_MEAN = 4;
/** Accounts that can see one receipt: the first that sent the transaction. */
export const RECEIPT_OWNERS_MAX = 4;
/** Packets whose outcomes can still find their receipt, at least; else as many as receipts. */
export const RECEIPT_PACKETS_MIN = 131_072;
/** Changes of state that are kept for streams, for each receipt that there is room for. */
export const RECEIPT_CHANGES_MEAN = 4;
/** Different errors of the network that receipts hold, and the characters of one. */
export const RECEIPT_ERRORS_MAX = 4096;
export const RECEIPT_ERROR_CHARS_MAX = 1024;
/** Receipts that one list shows, and that it looks at to find them. */
export const RECEIPT_LIST_MAX = 200;
export const RECEIPT_LIST_STEPS_MAX = 20_000;
/** Receipts let go in one round of the sweep. */
export const RECEIPT_SWEEP_MAX = 4096;
/** How long a request to the admin listener may take to arrive, in milliseconds. */
export const ADMIN_REQUEST_TIMEOUT_MS = 10_000;
/** Connections to the admin listener at a time. */
export const ADMIN_CONNECTIONS_MAX = 64;
/** Headers of a request to the admin listener, in bytes. */
export const ADMIN_HEADERS_BYTES_MAX = 8192;

// config/

/** Largest configuration file, in bytes. */
export const CONFIG_FILE_BYTES_MAX = 1024 * 1024;
/** Largest file of certificate authorities, in bytes; all of Mozilla's are 0.2 MB. */
export const AUTHORITIES_BYTES_MAX = 16 * 1024 * 1024;

// send
/** Connections to leaders at once; Anza's own client caches 64 (`tpu-client-next`, 2026-11). */
export const PEER_CONNECTIONS_MAX = 64;
/**
 * Attempts at one leader in the time in which it grants as many. Agave
 * `connection_rate_limiter.rs`: eight a minute for each address, 4.3, 2026-11.
 */
export const LEADER_ATTEMPTS_MAX = 8;
/** Leaders whose record is kept; mainnet has about a thousand. */
export const LEADERS_SCORED_MAX = 4096;
/** Addresses whose pacing is remembered after they left the plan. */
export const PEERS_REMEMBERED_MAX = 1024;
/** Copies of one connection whose acknowledgement is awaited. */
export const COPIES_IN_FLIGHT_MAX = 1024;
/**
 * Copies in flight on a connection from which on it takes no resends: half of what Agave grants an
 * unstaked one (`swqos.rs`, 4.3, 2026-11), so that first sends find credit.
 */
export const RESENDS_IN_FLIGHT_MAX = 64;
/** Copies that wait for one leader. Anza's own client queues 128 (`tpu-client-next`, 2026-11). */
export const COPIES_QUEUED_MAX = 128;
/** Bytes that may wait in one UDP socket's queue before datagrams are dropped. */
export const SOCKET_QUEUE_BYTES_MAX = 1024 * 1024;
/** Asked of the kernel for each UDP socket, in bytes; it may grant less (`doctor` tells). */
export const SOCKET_BUFFER_BYTES = 4 * 1024 * 1024;
/**
 * What a leader may say on one connection of the portable engine, in bytes, beyond half of what it
 * is sent: one that lives its 15 minutes says a tenth of that. The binding keeps some of it for as
 * long as the connection lives.
 */
export const LEADER_SAYS_BYTES_MAX = 1024 * 1024;
/** Datagrams that one connection sends in one go; a flush that has more is a fault. */
export const FLUSH_DATAGRAMS_MAX = 256;
/** UDP payload of the QUIC handshake's datagrams. RFC 9000 section 14.1, 2026-11. */
export const INITIAL_DATAGRAM_BYTES = 1200;

// sandbox: the simulated leader
/** Connections from one address. Agave `streamer/src/quic.rs`, 4.3, 2026-11. */
export const LEADER_CONNECTIONS_PER_ADDRESS_MAX = 8;
/** Connections of one simulated leader; above it new ones are ignored. */
export const LEADER_CONNECTIONS_MAX = 256;
/** Streams that a connection may have open. Agave `swqos.rs`, unstaked, 4.3, 2026-11. */
export const LEADER_STREAMS_MAX = 128;

// decode: what leaders take on. Agave crate `agave-transaction-view` 4.2.2 unless a line says more.

/** Most signatures of a transaction, 2026-11. */
export const SIGNATURES_MAX = 12;
/** Most static account keys of a legacy or v0 transaction (38 fill a packet), 2026-11. */
export const LEGACY_KEYS_MAX = 38;
/** Most account keys of a v1 transaction; also the most accounts one may lock, 2026-11. */
export const V1_KEYS_MAX = 64;
/** Most top-level instructions. SIMD-0160, 2026-11. */
export const INSTRUCTIONS_MAX = 64;
/** Most accounts of one instruction. SIMD-0406, 2026-11. */
export const INSTRUCTION_ACCOUNTS_MAX = 255;
/** Most address lookup tables that fit into a packet, 2026-11. */
export const LOOKUP_TABLES_MAX = 31;
/** Most accounts, static and looked up: an index is one byte, 2026-11. */
export const ACCOUNTS_MAX = 256;
/** Least and most heap that may be requested, in steps of 1024. `execution_budget.rs`, 2026-11. */
export const HEAP_BYTES_MIN = 32 * 1024;
export const HEAP_BYTES_MAX = 256 * 1024;
/** Most compute units of a transaction. `execution_budget.rs`, 2026-11. */
export const COMPUTE_UNITS_MAX = 1_400_000;
/** How much of a refused body is read to tell text from a damaged transaction. */
export const HINT_SAMPLE_BYTES_MAX = 256;

// cli/

/** Longest wait for work in hand when a service stops, in milliseconds. */
export const STOP_MS_MAX = 30_000;
/** Longest wait for one answer of `/readyz`, in milliseconds. */
export const READY_PROBE_MS_MAX = 2_000;
/** Wait between two questions of `ready`, in milliseconds. */
export const READY_POLL_MS = 200;
/** Longest wait of `send` for its answer, in milliseconds. */
export const SEND_ANSWER_MS_MAX = 15_000;
/** Most that a command reads from standard input or as one small file, in bytes. */
export const COMMAND_INPUT_BYTES_MAX = 64 * 1024;

// route/

/**
 * Slot events whose majority gives the current slot. Agave `recent_leader_slots.rs`, 4.3, 2026-11.
 */
export const SLOT_EVENTS_KEPT = 48;
/** Slots beyond the expected one that are still believed. Same source. */
export const SLOT_SKIP_DISTANCE = 48;
/** Sources of slots that are at most this many slots apart agree: the time of a slow poll. */
export const SLOT_AGREE_DISTANCE = 4;
/** How long a source that makes no progress still has a vote: four slots skipped, a slow poll. */
export const SLOT_SOURCE_LIVE_MS = 4_000;
/**
 * How long the first word has no more weight than others, in milliseconds, and how often a source
 * makes progress before it may be taken instead.
 */
export const SLOT_SETTLE_MS = 30_000;
export const SLOT_STEPS_MIN = 8;
/** Slots for which each source remembers when it told of them. */
export const SLOT_LAG_SLOTS = 64;
/** Slots that may pass by the wall clock alone before the current slot counts as unknown. */
export const SLOT_COAST_MAX = 240;
/** Announcements of slots that are kept, to tell which slot was in progress when. */
export const SLOT_PAST_KEPT = 256;
/** Shortest and longest slot time that is believed, in milliseconds. */
export const SLOT_TIME_MS_MIN = 100;
export const SLOT_TIME_MS_MAX = 1000;
/** Epochs held: the one before, this one, the next. */
export const EPOCHS_MAX = 3;
/** Largest epoch that is taken in, in slots. Mainnet has 432,000; 2026-11. */
export const EPOCH_SLOTS_MAX = 1_000_000;
/** Contacts held. The largest cluster gossips about 5,000; 2026-11. */
export const CONTACTS_MAX = 32_768;
/** Slots that the planner looks ahead for leaders to keep warm. */
export const PLAN_SLOTS_AHEAD_MAX = 256;
/**
 * Slots that a leader may be ahead of its turn and still keep what it is sent. Agave clears what
 * comes 20 slots early (`banking_stage/decision_maker.rs`, 4.3, 2026-11).
 */
export const SEND_SLOTS_AHEAD_MAX = 19;

// decode
/** Transactions that wait for one worker thread; a power of two. About 25 ms of its work. */
export const DECODE_RING_SLOTS = 256;
/** Transactions in a worker's hand from which on it counts as behind. */
export const DECODE_BEHIND = 8;
/** Signers for whom the native engine keeps a table of 64 kB each, for all threads. */
export const NATIVE_KEYS_MAX = 512;
/** Transactions of a turn that the calling thread decodes itself, and while workers are behind. */
export const DECODE_HERE_AT_LEAST = 3;
export const DECODE_HERE_A_TURN = 6;
/** Public keys that each thread keeps ready to verify with; about 10 MB when full. */
export const DECODE_KEYS_MAX = 4096;
/** The wait before a worker thread that died is replaced; doubled each time up to the longest. */
export const WORKER_RESTART_MS_MIN = 100;
export const WORKER_RESTART_MS_MAX = 30_000;
/** How long a worker thread lives before its earlier deaths are forgotten. */
export const WORKER_SETTLED_MS = 60_000;
/** The longest wait for worker threads to come up, and to finish when they are stopped. */
export const WORKERS_START_MS_MAX = 15_000;
export const WORKERS_STOP_MS_MAX = 5_000;
/** The most memory that one worker thread's heap may take, in megabytes. */
export const WORKER_HEAP_MB_MAX = 128;
/** Of that for what is young: verdicts, which live for a moment. */
export const WORKER_YOUNG_MB_MAX = 6;

// ingress/
/** Shortest and longest key that a client may hold, in characters. */
export const TOKEN_CHARS_MIN = 16;
export const TOKEN_CHARS_MAX = 128;
/** Accounts and keys whose limit is remembered; above it another one starts anew for each. */
export const LIMITED_ACCOUNTS_MAX = 262_144;
/**
 * Keys that threads which take requests may let in by themselves: 0.8 kB each on the main thread
 * and 0.3 on every other one.
 */
export const PASSES_MAX = 16_384;
/** Of them, held against the keys in one turn of the event loop; some 0.4 us each. */
export const PASSES_A_TURN = 512;
/** And of those taken back: two messages each, 6 us on either thread. */
export const PASSES_BACK_A_TURN = 64;
/** Once there are as many: looks for one's place, and how long after the last such looks. */
export const PASS_PLACE_LOOKS = 8;
export const PASS_PLACE_MS = 10;
/** Largest body of a JSON-RPC call without a key: room for getHealth, not for a transaction. */
export const KEYLESS_BODY_BYTES_MAX = 256;
/** Largest body of a JSON-RPC call on `/`, which takes no key. */
export const OPEN_BODY_BYTES_MAX = 16 * 1024;
/** Body that is read and thrown away, so that a refused client can keep its connection. */
export const UNREAD_BODY_BYTES_MAX = RPC_BODY_BYTES_MAX;
/** Answers held until a transaction has ended, in all and for each account. */
export const RECEIPT_WAITS_MAX = 4096;
export const RECEIPT_WAITS_PER_ACCOUNT_MAX = 256;
/** Of them, given in one turn of the event loop; some 20 us each. */
export const RECEIPT_ANSWERS_A_TURN = 16;
/** How long an answer may be held, in milliseconds: at least, at most, and when not told. */
export const RECEIPT_WAIT_MS_MIN = 10;
export const RECEIPT_WAIT_MS_MAX = 60_000;
export const RECEIPT_WAIT_MS = 10_000;
/** Streams of receipts open at once, in all and for each account. */
export const RECEIPT_STREAMS_MAX = 512;
export const RECEIPT_STREAMS_PER_ACCOUNT_MAX = 8;
/** Characters written to a stream in one go, and changes looked at for it. */
export const RECEIPT_STREAM_CHARS_A_ROUND = 64 * 1024;
export const RECEIPT_STREAM_STEPS_A_ROUND = 4096;
/** Changes looked at in a round: once for all streams that are told, and for those that read on. */
export const RECEIPT_STREAM_PASS_STEPS_MAX = 65_536;
export const RECEIPT_STREAM_ALONE_STEPS_MAX = 32_768;
/** How long a stream may take in nothing before it is cut, in milliseconds. */
export const RECEIPT_STREAM_STALL_MS_MAX = 15_000;
/** Receipts that a list shows when it is not told how many. */
export const RECEIPT_LIST_DEFAULT = 50;
/** Answers that are given in one turn of the HTTP thread; further ones are given in the next. */
export const ANSWERS_A_TURN_MAX = 64;
/** Answers without a body, all together: so many at once and a second; more end the connection. */
export const BODILESS_ANSWERS_BURST = 1_000;
export const BODILESS_ANSWERS_PER_SECOND = 20;
/**
 * Bytes of answers that wait for their clients to read, all together; above it the connection
 * closes that took in nothing for the longest.
 */
export const UNREAD_BYTES_MAX = 32 * 1024 * 1024;
/** Connections that are open at once; above it a new one is closed. */
export const HTTP_CONNECTIONS_MAX = 20_000;
/** Open files that an edge needs at most besides its clients' connections and worker threads. */
export const EDGE_FILES_MAX = 256;
/** Open files of one worker thread: what its event loop polls with and is woken by. */
export const WORKER_FILES = 4;
/** Characters of a refusal's sentence that the status line repeats. */
export const STATUS_SENTENCE_CHARS_MAX = 240;
/** How many accepted transactions are remembered to tell a repetition. */
export const SEEN_TRANSACTIONS_MAX = 65_536;
/** Bytes of accepted transactions that are remembered, allocated once. */
export const SEEN_BYTES_MAX = 32 * 1024 * 1024;
/** How long a leader drops identical packets. Agave `core/src/sigverify_stage.rs`, 2026-11. */
export const SEEN_KEEP_MS = 2_000;

// land/
/**
 * Bytes of transactions in flight that there is room for, for each that is watched; when it runs
 * out, the oldest ends as dropped.
 */
export const WATCH_BYTES_MEAN = 1024;
/** How long a leader drops identical packets. Agave `core/src/sigverify_stage.rs`, 2026-11. */
export const RESEND_SAME_LEADER_MS = 2_000;
/** Leaders that a transaction can have been sent to in that time, besides those of one plan. */
export const RESEND_MARKS_SPARE = 4;
/** Shortest time between two sends of one transaction, in milliseconds: a slot or two. */
export const RESEND_PAUSE_MS = 400;
/** Blocks for which a blockhash is valid. Agave `MAX_PROCESSING_AGE`, 2026-11. */
export const BLOCKHASH_AGE_MAX = 150;
/** Blocks by which the newest block may be above the newest height that is known. */
export const BLOCKHASH_SLACK_BLOCKS = 16;
/** Blocks by which the cluster has to be past a blockhash's last one, for the sake of forks. */
export const EXPIRY_MARGIN_BLOCKS = 8;
/**
 * Slots that an answer on a signature's status surely reaches back. Agave's status cache holds 300
 * rooted slots, 2026-11.
 */
export const STATUS_SPAN_SLOTS = 280;
/** Signatures of one request. Agave `MAX_GET_SIGNATURE_STATUSES_QUERY_ITEMS`, 2026-11. */
export const STATUSES_A_REQUEST = 256;
/** Transactions ended in one turn where a block or an answer tells of more; some 2 us each. */
export const LANDINGS_A_TURN = 64;
/** Of all that is in flight, looked at in one turn; some 100 ns each, 700 where it first ages. */
export const LOOKS_A_TURN = 2_048;
/** Requests for statuses at a time; what is due beyond them waits. */
export const STATUS_REQUESTS_MAX = 4;
/** How long a request for statuses is waited for, in milliseconds. */
export const STATUS_DEADLINE_MS = 5_000;

// sandbox/cluster

/** Clients of a fault proxy; more are not passed on. */
export const FAULT_PROXY_CLIENTS_MAX = 64;
/** Datagrams on their way through a fault proxy; more are lost. */
export const FAULT_PROXY_HELD_MAX = 8_192;
/** Transactions that simulated leaders hold for their next turn. */
export const SANDBOX_HELD_MAX = 10_000;
/** Landed transactions whose status the simulated cluster remembers. */
export const SANDBOX_STATUSES_MAX = 100_000;
/** Largest request to the simulated RPC, in bytes. Agave `MAX_REQUEST_BODY_SIZE`, 2026-11. */
export const SANDBOX_RPC_BODY_BYTES_MAX = 50 * 1024;
/** Subscriptions of one WebSocket of the simulated cluster. */
export const SANDBOX_SUBSCRIPTIONS_MAX = 4096;
/** Bytes that wait for a slow WebSocket before it is closed. */
export const SANDBOX_SOCKET_BYTES_MAX = 4 * 1024 * 1024;
/** Landings that the sandbox tells of on its terminal. */
export const SANDBOX_LANDINGS_SHOWN_MAX = 100;

// chain

/** Largest answer of the RPC node that is read. A leader schedule has 3 MB on mainnet; 2026-11. */
export const RPC_ANSWER_BYTES_MAX = 64 * 1024 * 1024;
/** The longest that a node is left alone because it asks for that. */
export const RETRY_AFTER_MS_MAX = 30_000;
/** The nodes' addresses are read at most once in this time, whoever is missed meanwhile. */
export const CONTACTS_GAP_MS = 10_000;
/** Largest message of a node's WebSocket that is read; one on a slot has a few hundred bytes. */
export const FEED_MESSAGE_BYTES_MAX = 64 * 1024;
/** News of a node's WebSocket taken in one turn of the event loop; a slot makes three. */
export const FEED_NEWS_A_TURN = 64;
/**
 * Shortest time of a block for which a height is believed at once: a quarter of the 200 ms to which
 * SIMD-0525 shortens slots, for who tells of several at a time; and blocks beyond that.
 */
export const HEIGHT_BLOCK_MS_MIN = 50;
export const HEIGHT_SLACK_BLOCKS = 32;
/** Blocks by which a node may lag behind another and still speak of the same chain. */
export const HEIGHT_BACK_MAX = 48;
/** The first two heights may be so far apart: less than a blockhash lives. */
export const HEIGHT_FIRST_BLOCKS = 140;
/**
 * How long heights that do not fit must go on before they are believed, in milliseconds: higher
 * ones, and lower ones, as also a node tells for minutes that was restarted and catches up.
 */
export const HEIGHT_DOUBT_UP_MS = 10_000;
export const HEIGHT_DOUBT_DOWN_MS = 60_000;
/** And at what pace: who catches up is faster, who stands still proves nothing. */
export const HEIGHT_PACE_MS_MIN = 200;
export const HEIGHT_PACE_MS_MAX = 2_000;
/** Blockhashes whose age is known. Agave's queue holds 300 (`MAX_RECENT_BLOCKHASHES`, 2026-11). */
export const BLOCKHASHES_KEPT = 512;
/** Blocks told by gRPC whose confirmation is awaited. */
export const GEYSER_BLOCKS_MAX = 256;
/** Largest gRPC message that is read: a block's rewards come with its height, 2026-11. */
export const GEYSER_MESSAGE_BYTES_MAX = 16 * 1024 * 1024;
/** Blocks that are asked for in search of signatures that landed, and signatures asked for then. */
export const STATUS_PROBE_BLOCKS_MAX = 4;
export const STATUS_PROBE_SIGNATURES = 4;

// send/transport-native.ts

/** Local addresses to send from: as many sockets. */
export const SEND_ADDRESSES_MAX = 16;
/** How long the I/O thread and the workers look for work before they sleep, where they may poll. */
export const BUSY_POLL_US = 1_000;
/** Processors below which polling takes the time of those who have work. */
export const BUSY_POLL_PROCESSORS_MIN = 4;
/** Copies of one leader that the native engine tracks until they are acknowledged. */
export const NATIVE_COPIES_IN_FLIGHT_MAX = 4096;
/**
 * Copies of one leader that the native engine has and that are not on the wire yet; more only where
 * the leader takes them in a moment (`ROUTE_WAITING_MS`).
 */
export const NATIVE_COPIES_WAITING_MAX = 32;
/** Records that the native engine keeps for JavaScript; above it the oldest is lost and counted. */
export const NATIVE_RECORDS_MAX = 65_536;
/** Records taken from the native engine in one call. */
export const NATIVE_RECORDS_A_DRAIN = 512;
