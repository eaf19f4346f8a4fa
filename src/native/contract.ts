/**
 * The native engine's exports, with the names and the order of native/src/node.
 *
 * Only bytes, handles and numbers cross; no promise, and no string per transaction. Errors are
 * codes below 0. Arrays are borrowed for the call. Engines and decoders belong to the process: a
 * handle that one thread received is valid on every other.
 */

/** `contract_version` of `native/src/node/quic.rs`; change both together. */
export const CONTRACT_VERSION = 35;

/** The options of an engine; every field is present. */
export interface NativeEngineOptions {
  /** Local addresses to send from, "ip:port" each; port 0 is any free port. */
  readonly binds: string[];
  /** The identity's 32-byte Ed25519 seed. */
  readonly seed: Uint8Array;
  /** Maximum number of deliveries queued for one leader. */
  readonly queueMax: number;
  /** Maximum number of deliveries to one leader that await acknowledgement. */
  readonly inFlightMax: number;
  /**
   * How long after `peerOpen` a leader may grant no stream before the connection attempt times out.
   */
  readonly admissionTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly keepAliveMs: number;
  /** How long the I/O thread polls for datagrams before it sleeps; 0: no polling. */
  readonly busyPollUs: number;
}

/** The addon's sending part. */
export interface NativeSending {
  /** Returns CONTRACT_VERSION if the addon was built for this contract. */
  contractVersion(): number;
  /**
   * Starts an engine, at most 16 per process; it calls `wake` once per batch of events. Returns its
   * handle above 0, or a code below 0.
   */
  engineStart(options: NativeEngineOptions, wake: () => void): number;
  /**
   * Closes all connections, each once its deliveries are acknowledged; blocks meanwhile, for at
   * most 1250 ms. Its events can be drained until another engine is started.
   */
  engineStop(engine: number, closeTimeoutMs: number): number;
  /** Writes ENGINE_COUNTERS; returns the count. */
  engineCounters(engine: number, out: Float64Array): number;
  /** Sets the identity of connections opened from now on. */
  identitySet(engine: number, seed: Uint8Array): number;
  /** Connects to "ip:port" or "[ipv6]:port". Returns a handle above 0, or a code below 0. */
  peerOpen(engine: number, address: string): number;
  peerClose(engine: number, peer: number, closeTimeoutMs: number): number;
  /** Makes the leader respond, so that its silence is meaningful. */
  peerPing(engine: number, peer: number): number;
  /** Writes PEER_STATS; returns the count, 0 when the connection is gone. */
  peerStats(engine: number, peer: number, out: Float64Array): number;
  /**
   * Sends to up to 16 leaders, a handle and a tag each. Where it must wait, it goes before those of
   * a lower rank: `lamports`, below 0 after all others, times the landed share of `account`, a
   * number of 53 bits. Bit i of the result: delivery i is on the wire; bit 16 + i: it was accepted
   * and waits. Neither: it was rejected, or the queue is full and nothing in it has a lower rank;
   * then it ends without a record, otherwise in one.
   */
  txSend(
    engine: number,
    deliveries: Uint32Array,
    bytes: Uint8Array,
    tx: number,
    ttlMs: number,
    account: number,
    lamports: number,
  ): number;
  /** Sets landed shares: pairs of an account's number and its share. Returns OK or NOT_STARTED. */
  landedSharesSet(engine: number, pairs: Float64Array): number;
  /**
   * Sets where all threads send: to the connections with these handles, each of which accepts
   * transactions of so many bytes, for at most `ttlMs`. Returns OK, NOT_STARTED, or NO_ROOM for
   * lists of different lengths or with more than TARGETS_MAX.
   */
  targetsSet(engine: number, peers: Uint32Array, bytesMax: Uint32Array, ttlMs: number): number;
  /**
   * Moves events into `out`, the oldest first, as many as fit; returns how many units of
   * EVENT_NUMBERS numbers they have. What is not a submission has one.
   */
  eventsDrain(engine: number, out: Float64Array): number;
  /** Returns how many units of events are not drained yet. */
  eventsUnread(engine: number): number;
}

/** Numbers of an event: kind, tx, peer, tag, reason, at_ns, rtt_us, detail. */
export const EVENT_NUMBERS = 8;
/**
 * The kind of an event: `Kind` of `native/src/quic/event.rs`. Those below are submissions:
 * `src/engine/submission-record.ts`.
 */
export const EVENT_KIND = {
  sent: 5,
  acked: 6,
  failed: 7,
  dropped: 8,
  connected: 9,
  admitted: 10,
  closed: 11,
} as const;
/** Why a connection ended, the reason of a closed event: `CloseCause` of the same file. */
export const CLOSE_CAUSE = {
  local: 1,
  application: 2,
  transport: 3,
  protocol: 4,
  timedOut: 5,
  reset: 6,
  version: 7,
  admissionTimeout: 8,
  internal: 9,
} as const;
/**
 * The reason of a failed event whose leader stopped the stream. A reason is 0 for none, or one
 * more than its index in `DELIVERY_REASONS`: `Reason` of the same file.
 */
export const STREAM_STOPPED = 6;
/** The numbers of `engineCounters`, in order. */
export const ENGINE_COUNTERS = [
  "peers",
  "eventsLost",
  "inboxDrops",
  "sendErrors",
  "panics",
  "deliveriesQueued",
  "deliveriesEvicted",
] as const;
/**
 * The numbers of `peerStats`, in order. `received`: datagrams; `streamsLeft`: streams that may be
 * opened now, by the leader's grant and by what it reads, up to 1024.
 */
export const PEER_STATS = [
  "state",
  "rttUs",
  "queued",
  "inFlight",
  "mtu",
  "window",
  "lostPackets",
  "sentPackets",
  "received",
  "streamsLeft",
] as const;

/** The complete addon. */
export type NativeEngine = NativeSending &
  NativeDecoding &
  NativeIngress &
  NativeKeys &
  NativeSubmitting &
  NativeScheduling &
  NativeSystemd;

/** The addon's decoder and verifier. */
export interface NativeDecoding {
  /**
   * Creates a decoder for use by any thread: tip accounts of 32 bytes each, the minimum tip in
   * lamports, whether it verifies signatures, and how many keys may have a table of 64 kB (0 to
   * 1024). Returns a handle above 0, or DECODER_OPTIONS, DECODER_FULL or PANIC.
   */
  decoderCreate(
    tipAccounts: Uint8Array,
    lamportsMin: number,
    verify: boolean,
    keysMax: number,
  ): number;
  /** Releases a decoder. Returns OK or NO_DECODER. */
  decoderClose(decoder: number): number;
  /** Writes DECODER_COUNTERS numbers: verified, invalid, keys found, made, evicted, declined. */
  decoderCounters(decoder: number, out: Float64Array): number;
  /**
   * Validates a transaction and writes VALIDATION_NUMBERS numbers from `out[at]` on. Rejected: 0,
   * error, found, needed. Accepted: 1, version, signature offset and count, message offset and
   * size, keys offset, blockhash offset, durable nonce, tip and priority fee in lamports. Returns 1
   * or 0, or NO_DECODER, PANIC, or NO_ROOM if `out` is too short or overlaps `bytes`. Both arrays
   * may be in shared memory.
   */
  decode(decoder: number, bytes: Uint8Array, out: Float64Array, at: number): number;
}

/** A method of JSON-RPC that needs no key, and its result. */
export interface NativeKeylessResult {
  readonly method: string;
  /** JSON text. */
  readonly json: string;
}

/** The options of an ingress thread; every field is present. */
export interface NativeIngressThreadOptions {
  /** Handles. */
  readonly engine: number;
  readonly decoder: number;
  readonly keys: number;
  /** That of the path whose dedup cache it uses. */
  readonly path: number;
  /** The methods besides `getHealth` that need no key. */
  readonly keylessResults: NativeKeylessResult[];
  /** Whether the thread has realtime priority. */
  readonly realtime: boolean;
  /** Connections open at the same time, of clients and to the upstream server. */
  readonly connectionsMax: number;
  readonly upstreamConnectionsMax: number;
  /** Connections to the upstream server for clients of one address. */
  readonly upstreamConnectionsPerAddress: number;
  /** Time limit of a client for a request's head, and for its body. */
  readonly readTimeoutMs: number;
  /** How long a connection may be idle. */
  readonly idleTimeoutMs: number;
  /** Loopback port of the upstream server for proxied requests. */
  readonly upstreamPort: number;
  /** The name of the header in which it forwards the client's address. */
  readonly forwardedHeader: string;
}

/** Where and how ingress threads serve QUIC clients; every field is present. */
export interface NativeQuicListenOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /**
   * The thread of each socket of the process that this one replaces, which may still listen there,
   * in the order in which the kernel has them; empty: it does not.
   */
  readonly predecessorPlaces: number[];
  /** How many processes it succeeds, one after the other. */
  readonly processNumber: number;
  /** Most connections, handshakes in progress included. */
  readonly connectionsMax: number;
  /** Most of those of one address, and of one account. */
  readonly connectionsPerAddress: number;
  readonly connectionsPerAccount: number;
  /** How long a stream may take from its first byte to its last. */
  readonly streamTimeoutMs: number;
  /** Where clients are sent when this edge drains, "host:port"; empty: nowhere. */
  readonly drainTo: string;
}

/** Threads that accept requests without entering JavaScript. */
export interface NativeIngress {
  /**
   * Starts an ingress thread, at most 64 per process. `counters` spans a complete
   * `SharedArrayBuffer` (layout: native-ingress/thread-counters.ts), which it writes to until
   * `ingressThreadClose`. It calls `wake` when its state has changed.
   * Returns its handle above 0, or INGRESS_THREAD_OPTIONS, INGRESS_THREAD_FULL, NO_PRIORITY or
   * PANIC.
   */
  ingressThreadStart(
    options: NativeIngressThreadOptions,
    counters: Uint8Array,
    wake: () => void,
  ): number;
  /**
   * Listens; port 0 is any free port. Returns the socket's file descriptor, for the caller to
   * close, or INGRESS_THREAD_LISTEN or PANIC.
   */
  socketListen(host: string, port: number): number;
  /**
   * Adopts a listening TCP socket that this process inherited, under another descriptor, which
   * programs started from here do not inherit. Returns as `socketListen`.
   */
  socketInherit(descriptor: number): number;
  /**
   * These ingress threads receive the connections of a listening socket in turn. One address may
   * hold `perAddress` connections over all of them. Returns the port, or NO_INGRESS_THREAD,
   * INGRESS_THREAD_LISTEN or PANIC.
   */
  ingressThreadsListen(threads: Uint32Array, descriptor: number, perAddress: number): number;
  /**
   * These ingress threads present this certificate chain to new connections from now on: with
   * `quic` to `touchdown/1` clients, otherwise to HTTP clients, with which they then speak TLS.
   * Chain and key are PEM. With no thread it only checks. Returns OK, NO_INGRESS_THREAD,
   * INGRESS_THREAD_TLS (not a certificate and its key, or a key of a kind that the engine does not
   * sign with) or PANIC.
   */
  ingressThreadsTls(
    threads: Uint32Array,
    certificate: Uint8Array,
    key: Uint8Array,
    quic: boolean,
  ): number;
  /**
   * Has these ingress threads serve QUIC clients too, on one port. Returns the port, or
   * NO_INGRESS_THREAD, INGRESS_THREAD_LISTEN or PANIC.
   */
  ingressThreadsListenQuic(threads: Uint32Array, options: NativeQuicListenOptions): number;
  /**
   * Of a process with so many threads that serve QUIC clients: returns the thread of the socket
   * that the kernel has at this place, once the process before it, whose sockets are those of the
   * threads in `before`, has closed them; 0 where there is none; or PANIC. These are the
   * `predecessorPlaces` of its successor.
   */
  quicThreadAt(before: Uint32Array, threads: number, place: number): number;
  /**
   * Passes receipts on to the QUIC clients of these ingress threads that want them,
   * QUIC_RECEIPT_BYTES each: the account's number as a float, little-endian, and a verdict of
   * docs/quic.md. Returns 1, 0 if a thread does not keep up and none gets them, NO_INGRESS_THREAD
   * or PANIC.
   */
  ingressThreadsReceipts(threads: Uint32Array, batch: Uint8Array): number;
  /**
   * Sends an ingress thread one of INGRESS_THREAD_COMMANDS. Returns OK, NO_INGRESS_THREAD,
   * INGRESS_THREAD_OPTIONS or PANIC.
   */
  ingressThreadCommand(thread: number, command: number): number;
  /**
   * Returns one of INGRESS_THREAD_STATES, or NO_INGRESS_THREAD or PANIC. Each change calls `wake`.
   */
  ingressThreadState(thread: number): number;
  /**
   * Releases the memory: ends the ingress thread if it has not ended, and waits for it. Returns OK,
   * NO_INGRESS_THREAD or PANIC.
   */
  ingressThreadClose(thread: number): number;
}

/**
 * Refuse submissions; accept no connection and report when idle; end immediately; answer
 * `getHealth` as unhealthy; accept no connection and close each with its next response; distribute
 * the datagrams of QUIC clients among the threads again, because a successor has ended; close each
 * connection with its next response.
 */
export const INGRESS_THREAD_COMMANDS = {
  drain: 1,
  stop: 2,
  exit: 3,
  announceDrain: 4,
  retire: 5,
  takeBack: 6,
  disableKeepAlive: 7,
} as const;
/** Idle: it received the stop command and currently has no pending work. */
export const INGRESS_THREAD_STATES = { running: 1, exited: 2, panicked: 3, idle: 4 } as const;

/** Bytes of one receipt for QUIC clients. */
export const QUIC_RECEIPT_BYTES = 96;

/** Requests to the system's scheduler. */
export interface NativeScheduling {
  /** Yields the processor to other threads that wait for it. Returns OK. */
  threadYield(): number;
}

/** Keys, and the limits that they charge, for all ingress threads and the main thread. */
export interface NativeKeys {
  /** Returns the handle of an empty table, above 0, or KEY_TABLE_FULL or PANIC. */
  keyTableCreate(): number;
  /** Returns OK or NO_KEY_TABLE. */
  keyTableClose(table: number): number;
  /** Writes KEY_TABLE_COUNTERS; returns the count. */
  keyTableCounters(table: number, out: Float64Array): number;
  /**
   * Sets the plan of this number for all its keys: rate, burst, and 1 if all edges share the limit
   * of an account. Numbers follow each other from 0 on.
   */
  planPut(table: number, plan: number, name: string, numbers: Float64Array): number;
  /**
   * Adds or replaces keys, as `engine-keys.ts` writes them; with `isNext` in the set that is built
   * aside. Returns how many it put.
   */
  keysPut(table: number, isNext: boolean, batch: Uint8Array): number;
  /** Removes the keys with these digests, of 32 bytes each. Returns how many there were. */
  keysRemove(table: number, digests: Uint8Array): number;
  /** Starts a set of keys aside, or replaces all keys by it: one of KEYS_REPLACE. */
  keysReplace(table: number, step: number): number;
  /**
   * Charges one request to the limits of the key with this digest. Returns 0 if it is admitted or
   * the key is not there, or 1 if a limit is used up, and writes the wait in nanoseconds, and 1 if
   * the limit is the key's own.
   */
  keyCharge(table: number, digest: Uint8Array, nowNs: number, out: Float64Array): number;
  /** Sets the number of edges that share limits; 0: every limit is of this edge alone. */
  limitsShare(table: number, edgeCount: number): number;
  /**
   * Starts to watch shared limits that were charged, as many as both arrays have room for; a name
   * may need 65,537 bytes. Writes their slots, and their names one after the other, each as a
   * 16-bit size and UTF-8. Returns the count.
   */
  limitsWatch(table: number, slots: Float64Array, names: Uint8Array): number;
  /**
   * Writes of a watched limit when its bucket is full, the count of its requests, and what one of
   * them costs. Returns 1, or 0 for one that is not watched.
   */
  limitRead(table: number, slot: number, out: Float64Array): number;
  /** Replaces the bucket of a watched limit if it is still `wasNs`. Returns 1, or 0 if not. */
  limitReplace(table: number, slot: number, wasNs: number, fullNs: number): number;
  /** Ends the watch of a limit whose count was last `count`. */
  limitUnwatch(table: number, slot: number, count: number): number;
}

/** The path of a transaction, for the requests that the calling thread accepts. */
export interface NativeSubmitting {
  /**
   * Opens a path with this engine and decoder and an empty dedup cache, at most 64 per process,
   * until `submitPathClose`. Returns its handle above 0, or SUBMIT_PATH_OPTIONS, SUBMIT_PATH_FULL
   * or PANIC.
   */
  submitPathOpen(engine: number, decoder: number): number;
  /** Returns OK, NO_SUBMIT_PATH or PANIC. */
  submitPathClose(path: number): number;
  /**
   * Before a further copy of a transaction leaves at `nowNs`, of which the caller knows no newer
   * copy than that of `sinceNs`: until 2 s later no thread sends one. Returns 1; 0 if a newer copy
   * left, and nothing changes; or NO_SUBMIT_PATH or PANIC.
   */
  submitPathRenew(path: number, bytes: Uint8Array, sinceNs: number, nowNs: number): number;
  /**
   * The next submission of a transaction counts as new, unless a copy left after `sinceNs`. Returns
   * OK, NO_SUBMIT_PATH or PANIC.
   */
  submitPathForget(path: number, bytes: Uint8Array, sinceNs: number): number;
  /** Returns how many recent transactions were forgotten early, or NO_SUBMIT_PATH or PANIC. */
  submitPathEvicted(path: number): number;
  /**
   * Submits a transaction, or with `isCall` that of a JSON-RPC call sendTransaction in its usual
   * form. `number` is that of the record that an accepted one leaves among the events; `maxRetries`
   * below 0: the client set none. Writes to `out` the text of the signature, SIGNATURE_TEXT_MAX
   * bytes, and from there on SUBMIT_NUMBERS floats: start and end of the call's id in `body`,
   * error, found and needed of a transaction that is not valid, and the result of `eventsUnread`.
   * Returns the number of characters of the signature of an accepted one; 0 for a call in another
   * form, of which nothing is submitted; or SUBMIT_INVALID, SUBMIT_LEADERS_FULL, SUBMIT_NO_LEADER,
   * SUBMIT_BUSY, SUBMIT_RING_FULL, NO_SUBMIT_PATH, NO_ROOM or PANIC.
   */
  submit(
    path: number,
    body: Uint8Array,
    isCall: boolean,
    number: number,
    account: number,
    receivedNs: number,
    maxRetries: number,
    out: Uint8Array,
  ): number;
}

/** The numbers of `keyTableCounters`, in order. */
export const KEY_TABLE_COUNTERS = ["keys", "limits"] as const;
export const KEYS_REPLACE = { start: 1, finish: 2 } as const;

/** Messages to the service manager. */
export interface NativeSystemd {
  /**
   * Sends a message, as `sd_notify(3)` describes it, to the socket that NOTIFY_SOCKET names.
   * Returns OK, NOTIFY_FAILED or PANIC.
   */
  systemdNotify(socket: string, message: string): number;
}

/** The most characters of a signature, and the numbers that `submit` writes after it. */
export const SIGNATURE_TEXT_MAX = 88;
export const SUBMIT_NUMBERS = 6;
/** Numbers of a validation result, and of a decoder's counters. */
export const VALIDATION_NUMBERS = 11;
export const DECODER_COUNTERS = 6;

/** Return codes of every call. */
export const OK = 0;
export const PANIC = -2;
/** Return codes of `engineStart`. */
export const START_FULL = -10;
export const START_OPTIONS = -11;
export const START_IDENTITY = -13;
export const START_THREAD = -14;
/** From `engineStart`, minus the system's error number: a socket cannot be bound. */
export const START_SOCKET = -1000;
/** Return codes of the decoder's calls. */
export const DECODER_OPTIONS = -40;
export const DECODER_FULL = -41;
export const NO_DECODER = -42;
export const NO_ROOM = -43;
/** Return codes of the calls of key tables. */
export const NO_KEY_TABLE = -50;
export const KEY_TABLE_FULL = -51;
/**
 * Return codes of `submit`: not valid; no queue takes it; no leader takes it; valid, but another
 * thread does not finish sending it, or the event ring is full.
 */
export const SUBMIT_INVALID = -60;
export const SUBMIT_LEADERS_FULL = -61;
export const SUBMIT_NO_LEADER = -62;
export const SUBMIT_BUSY = -63;
export const SUBMIT_RING_FULL = -67;
export const NO_SUBMIT_PATH = -64;
export const SUBMIT_PATH_OPTIONS = -65;
export const SUBMIT_PATH_FULL = -66;
export const NO_PRIORITY = -70;
/** Return codes of an ingress thread's calls. */
export const INGRESS_THREAD_OPTIONS = -80;
export const INGRESS_THREAD_FULL = -81;
export const NO_INGRESS_THREAD = -82;
export const INGRESS_THREAD_LISTEN = -83;
export const INGRESS_THREAD_TLS = -84;
export const NOTIFY_FAILED = -90;
