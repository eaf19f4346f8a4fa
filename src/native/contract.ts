/**
 * What the native engine exports, with the names and the order of native/src/node.
 *
 * Bytes, handles and numbers cross; no promise, and no string for each transaction. What goes
 * wrong is a code below 0. Arrays are lent for the call. Engines and decoders are the process's: a
 * handle that one thread was given is good on every other.
 */

/** `contract_version` of `native/src/node/quic.rs`; the two are changed together. */
export const CONTRACT_VERSION = 12;

/** What an engine is started with; every field is present. */
export interface NativeEngineOptions {
  /** Local addresses to send from, "ip:port" each, port 0 for any. */
  readonly binds: string[];
  /** The identity's 32-byte Ed25519 seed. */
  readonly seed: Uint8Array;
  /** Most copies that wait for one leader. */
  readonly queueMax: number;
  /** Most copies of one leader that await its acknowledgement. */
  readonly inFlightMax: number;
  /** Most outcomes that wait to be drained. */
  readonly outcomesMax: number;
  /** A leader that grants no stream for so long after `peerOpen` is given up. */
  readonly admissionTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly keepAliveMs: number;
  /** Packets that a leader need not acknowledge at once; 0 leaves its own habit. */
  readonly ackEvery: number;
  readonly ackDelayMs: number;
  /** How long the I/O thread looks for datagrams before it sleeps; 0: not at all. */
  readonly busyPollUs: number;
}

/** The sender's part of the addon. */
export interface NativeSending {
  /** Answers CONTRACT_VERSION where the addon was built for this contract. */
  contractVersion(): number;
  /**
   * Starts an engine, of which a process may have 16; `wake` is called once for each batch of
   * outcomes. Answers its handle above 0, or a code below 0.
   */
  engineStart(options: NativeEngineOptions, wake: () => void): number;
  /**
   * Closes all connections, each once its copies are acknowledged; blocks for as long, for 1250 ms
   * at the most. Its outcomes can be drained until another engine is started.
   */
  engineStop(engine: number, closeTimeoutMs: number): number;
  /** Writes sends, peers, outcomes lost, inbox drops, send errors, panics; answers how many. */
  engineCounters(engine: number, out: Float64Array): number;
  /** Connections opened from now on carry this identity. */
  identitySet(engine: number, seed: Uint8Array): number;
  /** Connects to "ip:port" or "[ipv6]:port". Answers a handle above 0, or a code below 0. */
  peerOpen(engine: number, address: string): number;
  peerClose(engine: number, peer: number, closeTimeoutMs: number): number;
  /** Makes the leader answer, so that its silence means something. */
  peerPing(engine: number, peer: number): number;
  /**
   * Writes state, rtt_us, queued, in flight, mtu, window, lost and sent packets, datagrams heard
   * and streams that may be opened now (up to 1024); answers how many, 0 when the connection
   * is gone.
   */
  peerStats(engine: number, peer: number, out: Float64Array): number;
  /**
   * Sends to up to 16 leaders, a handle and a tag each. Bit i of the answer: copy i is on the wire;
   * bit 16 + i: it was taken and waits. Each copy ends in a record.
   */
  txSend(
    engine: number,
    deliveries: Uint32Array,
    bytes: Uint8Array,
    tx: number,
    ttlMs: number,
  ): number;
  /** Moves records of RECORD_NUMBERS numbers into `out`; answers how many records. */
  outcomesDrain(engine: number, out: Float64Array): number;
}

/** Numbers of a record: kind, tx, peer, tag, reason, at_ns, rtt_us, detail. */
export const RECORD_NUMBERS = 8;

/** The whole addon. */
export type NativeEngine = NativeSending &
  NativeDecoding &
  NativeReading &
  NativeRpc &
  NativeSlotSubscribing &
  NativeIngress &
  NativeScheduling;

/** The decoder's and verifier's part of the addon. */
export interface NativeDecoding {
  /**
   * Makes a decoder that any thread may use: tip accounts of 32 bytes each, the least tip in
   * lamports, whether signatures are verified, and how many keys may have a table of 64 kB (0 to
   * 1024). Answers a handle above 0, or DECODER_OPTIONS, DECODER_FULL or PANIC.
   */
  decoderCreate(
    tipAccounts: Uint8Array,
    lamportsMin: number,
    verify: boolean,
    keysMax: number,
  ): number;
  /** Forgets a decoder. Answers OK or NO_DECODER. */
  decoderClose(decoder: number): number;
  /** Writes DECODER_COUNTERS numbers: verified, invalid, keys found, made, evicted, declined. */
  decoderCounters(decoder: number, out: Float64Array): number;
  /**
   * Judges a transaction and writes VALIDATION_NUMBERS numbers from `out[at]` on. Refused: 0, fault,
   * found, needed. Accepted: 1, version, signature offset and count, message offset and size, keys
   * offset, blockhash offset, durable nonce, tip and priority fee in lamports. Answers 1 or 0, or
   * NO_DECODER, PANIC, or NO_ROOM where `out` is too short or a part of it is of `bytes` too. Both
   * arrays may lie in shared memory.
   */
  decode(decoder: number, bytes: Uint8Array, out: Float64Array, at: number): number;
  /**
   * Judges many transactions in one buffer; `spans` is offset, size and the place in `out` for
   * each. Stops at the first that lies outside. Answers how many were judged, or NO_DECODER, or
   * NO_ROOM where a part of `out` is of what is read too.
   */
  decodeBatch(decoder: number, bytes: Uint8Array, spans: Uint32Array, out: Float64Array): number;
}

/** What the addon does with text. */
export interface NativeReading {
  /**
   * Reads one JSON-RPC call sendTransaction in its usual form and writes the transaction to the
   * start of `out`, which holds 4096 bytes or more. `numbers` gets CALL_NUMBERS: its size,
   * `maxRetries` or -1, the id where that is a count or else -1, and where the id's text starts and
   * ends in `body`. Answers 1; 0 for any other form, or NO_ROOM or PANIC.
   */
  callRead(body: Uint8Array, out: Uint8Array, numbers: Float64Array): number;
  /**
   * Writes the signature of 64 bytes at `offset` in base58 to the start of `out`. Answers how many
   * characters it has, at most SIGNATURE_TEXT_MAX, or NO_ROOM where an array is too short, or
   * PANIC.
   */
  signatureWrite(bytes: Uint8Array, offset: number, out: Uint8Array): number;
}

/** Questions to nodes over HTTP, on threads of the addon's own. */
export interface NativeRpc {
  /**
   * Has certificates of nodes held against the authorities of a PEM file too, in all of the process
   * and in the place of those that were given before; what is connected stays. Answers how many of
   * its certificates are good, or PANIC.
   */
  rootCertificatesSet(pem: Uint8Array): number;
  /**
   * Makes an asker of one node at an http: or https: address without name and password; what goes
   * into the header `authorization` is given apart, empty for none. An answer above `bytesMax` is
   * no answer. `wake` is called when the first of some answers is there. Answers a handle above 0,
   * or RPC_CLIENT_OPTIONS, RPC_CLIENT_FULL or PANIC.
   */
  rpcClientOpen(url: string, authorization: string, bytesMax: number, wake: () => void): number;
  /** Ends its connections; questions in hand get no answer. Answers OK or NO_RPC_CLIENT. */
  rpcClientClose(client: number): number;
  /**
   * Asks with a body of JSON, 65536 bytes at most, on another thread; `id`, a whole number below
   * 2^32, comes back with the answer. Answers OK, NO_RPC_CLIENT, NO_ROOM for a larger body, or
   * RPC_CLIENT_FULL while 64 questions are in hand.
   */
  rpcRequest(client: number, id: number, body: Uint8Array, timeoutMs: number): number;
  /** Asks what became of at most 256 signatures of 64 bytes each. Answers as `ask`. */
  rpcRequestStatuses(client: number, id: number, signatures: Uint8Array, timeoutMs: number): number;
  /**
   * Writes RPC_RESPONSE_NUMBERS of the oldest answer that was not taken: the question's id, its kind
   * (ANSWER), the HTTP status, for how many seconds the node asks to be left alone, and its size in
   * bytes. Answers 1, or 0 where there is none, or NO_RPC_CLIENT, NO_ROOM or PANIC.
   */
  rpcResponseNext(client: number, out: Float64Array): number;
  /**
   * Takes that answer; its bytes go to the start of `out`, as many as it holds. Answers OK,
   * NO_RPC_CLIENT or PANIC.
   */
  rpcResponseRead(client: number, out: Uint8Array): number;
}

/** The feed of slots of a node, over a WebSocket on a thread of the addon's own. */
export interface NativeSlotSubscribing {
  /**
   * Opens a feed at a ws: or wss: address without name and password; what goes into the header
   * `authorization` is given apart, empty for none. `timeoutMs` is for all until the node took the
   * connection, but for the lookup of its name. `wake` is called when the first of some news is
   * there. Answers a handle above 0, or SLOT_SUBSCRIBER_OPTIONS, SLOT_SUBSCRIBER_FULL or PANIC.
   */
  slotSubscriberOpen(
    url: string,
    authorization: string,
    timeoutMs: number,
    wake: () => void,
  ): number;
  /**
   * Asks for the events of a feed, 0 slotsUpdates or 1 slot, once the node took the connection.
   * Answers OK, SLOT_SUBSCRIBER_FULL while the answer to the last such question was not taken, NO_SLOT_SUBSCRIBER,
   * SLOT_SUBSCRIBER_OPTIONS or PANIC.
   */
  slotSubscriberSubscribe(feed: number, which: number): number;
  /**
   * Takes the oldest news and writes SLOT_NOTIFICATION_NUMBERS: what it is (SLOT_NOTIFICATION), the feed's number, the
   * slot or NaN, and how many events were lost so far because they were not taken. Answers 1, or 0
   * where there is none, or NO_SLOT_SUBSCRIBER, NO_ROOM or PANIC.
   */
  slotSubscriberNext(feed: number, out: Float64Array): number;
  /** Ends a feed; it tells nothing any more. Answers OK, NO_SLOT_SUBSCRIBER or PANIC. */
  slotSubscriberClose(feed: number): number;
}

/** What a front is started with; every field is present. */
export interface NativeIngressThreadOptions {
  /** Handles. */
  readonly engine: number;
  readonly decoder: number;
  /** The front's own, which it tells with each request that it relays. */
  readonly number: number;
  /** Whether its thread goes before others. */
  readonly realtime: boolean;
  /** Connections open at once, of clients and to the server behind. */
  readonly connectionsMax: number;
  readonly upstreamConnectionsMax: number;
  /** Connections to the server behind for clients of one address. */
  readonly upstreamConnectionsPerAddress: number;
  /** How long a client may take for a request's head, and for its body. */
  readonly readTimeoutMs: number;
  /** Where the server listens, on loopback, that the front relays to. */
  readonly upstreamPort: number;
  /** The name of the header line by which it says what it knows of such a request. */
  readonly forwardedHeader: string;
}

/** What a front shares with the main thread: arrays of a whole `SharedArrayBuffer` each. */
export interface NativeIngressThreadMemory {
  /** As front/records.ts has it. */
  readonly records: Uint8Array;
  /** As front/figures.ts has it. */
  readonly figures: Uint8Array;
  /** As send/shared-routes.ts has it. */
  readonly routes: Uint8Array;
  /** As ingress/seen.ts has it. */
  readonly dedup: Uint8Array;
  /** As ingress/limit-cells.ts has it. */
  readonly keyCache: Uint8Array;
}

/** Threads that take requests by themselves. */
export interface NativeIngress {
  /**
   * Starts a front, of which a process may have 64, on memory that it uses until `ingressThreadClose`.
   * `wake` is called when it has something: records, returned passes, or its end. Answers its
   * handle above 0, or INGRESS_THREAD_OPTIONS, INGRESS_THREAD_FULL, NO_PRIORITY or PANIC.
   */
  ingressThreadStart(
    options: NativeIngressThreadOptions,
    memory: NativeIngressThreadMemory,
    wake: () => void,
  ): number;
  /**
   * Listens for these fronts, which get the connections in turn; port 0 takes any free one. One
   * address may hold `perAddress` connections, over all of them. Answers the port, or NO_INGRESS_THREAD,
   * INGRESS_THREAD_LISTEN or PANIC.
   */
  ingressThreadsListen(
    threads: Uint32Array,
    host: string,
    port: number,
    perAddress: number,
  ): number;
  /**
   * The front lets this key in by itself from now on. `numbers` are KEY_GRANT_NUMBERS: the place, rate
   * and burst, 1 where the limit holds over all edges, the account's cell, the key's cell, rate and
   * burst or -1, when it ends in Unix milliseconds or -1, and 1 where it may only be used from
   * `ranges`, in CIDR notation with commas in between. Answers OK, NO_INGRESS_THREAD, INGRESS_THREAD_OPTIONS or
   * PANIC.
   */
  ingressThreadGrantKey(
    thread: number,
    token: string,
    numbers: Float64Array,
    ranges: string,
  ): number;
  /** Takes that pass back; `ingressThreadReleasedSlots` tells when it is not used any more. As `ingressThreadGrantKey`. */
  ingressThreadRevokeKey(thread: number, token: string, keySlot: number): number;
  /**
   * Writes places of passes that the front uses no more, as many as there is room for. Answers how
   * many, or NO_INGRESS_THREAD or PANIC. Whatever comes after this call wakes again.
   */
  ingressThreadReleasedSlots(thread: number, out: Float64Array): number;
  /** Has a front do INGRESS_THREAD_COMMANDS. Answers OK, NO_INGRESS_THREAD, INGRESS_THREAD_OPTIONS or PANIC. */
  ingressThreadCommand(thread: number, command: number): number;
  /** INGRESS_THREAD_STATES, or NO_INGRESS_THREAD or PANIC. */
  ingressThreadState(thread: number): number;
  /**
   * Gives the memory back: ends the front's thread, and waits for it, where it has not ended.
   * Answers OK, NO_INGRESS_THREAD or PANIC.
   */
  ingressThreadClose(thread: number): number;
}

/** Numbers of a pass. */
export const KEY_GRANT_NUMBERS = 10;
/** To relay every request; to take no connection, and say when it is idle; to end at once. */
export const INGRESS_THREAD_COMMANDS = { drain: 1, stop: 2, exit: 3 } as const;
/** Idle: it was told to stop, and has nothing in hand at the moment. */
export const INGRESS_THREAD_STATES = { running: 1, exited: 2, panicked: 3, idle: 4 } as const;

/** What a thread asks of the system's scheduler. */
export interface NativeScheduling {
  /** Lets other threads that wait for this processor have their turn first. Answers OK. */
  threadYield(): number;
}

/** Numbers of `slotSubscriberNext`. */
export const SLOT_NOTIFICATION_NUMBERS = 4;
/**
 * What a feed tells: that the node took the connection, that it will send a feed's events or
 * refuses to, that a slot began or is whole, and that the connection ended, which is the last.
 */
export const SLOT_NOTIFICATION = {
  opened: 1,
  accepted: 2,
  refused: 3,
  start: 4,
  end: 5,
  closed: 6,
} as const;

/** Numbers of `rpcResponseNext`. */
export const RPC_RESPONSE_NUMBERS = 5;
/**
 * What an answer's bytes are: the words of what went wrong; nothing, because the time was up or the
 * answer too large; the body of an HTTP answer; or statuses of n signatures: the node's slot and
 * the slot of each or -1 as doubles, a byte for each, 1 where its block is confirmed, and for each
 * that failed its index and the error's size as doubles and the error as JSON.
 */
export const RPC_RESPONSE = { failed: 0, timedOut: 1, tooLarge: 2, body: 3, statuses: 4 } as const;

/** Numbers of a call, and most characters of a signature. */
export const CALL_NUMBERS = 5;
export const SIGNATURE_TEXT_MAX = 88;

/** Numbers of a verdict, and of a decoder's counters. */
export const VALIDATION_NUMBERS = 11;
export const DECODER_COUNTERS = 6;

/** Answers of every call. */
export const OK = 0;
export const PANIC = -2;
/** Of `engineStart`, less the system's error number: a socket cannot be bound. */
export const START_SOCKET = -1000;
/** Answers of the decoder's calls. */
export const DECODER_OPTIONS = -40;
export const DECODER_FULL = -41;
export const NO_DECODER = -42;
export const NO_ROOM = -43;
/** Answers of an asker's calls. */
export const RPC_CLIENT_OPTIONS = -50;
export const RPC_CLIENT_FULL = -51;
export const NO_RPC_CLIENT = -52;
/** Answers of a feed's calls. */
export const SLOT_SUBSCRIBER_OPTIONS = -60;
export const SLOT_SUBSCRIBER_FULL = -61;
export const NO_SLOT_SUBSCRIBER = -62;
export const NO_PRIORITY = -70;
/** Answers of a front's calls. */
export const INGRESS_THREAD_OPTIONS = -80;
export const INGRESS_THREAD_FULL = -81;
export const NO_INGRESS_THREAD = -82;
export const INGRESS_THREAD_LISTEN = -83;
