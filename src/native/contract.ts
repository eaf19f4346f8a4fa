/**
 * What the native engine exports, with the names and the order of native/src/bindings.rs.
 *
 * Bytes, handles and numbers cross; no promise, and no string for each transaction. What goes
 * wrong is a code below 0. Arrays are lent for the call. Engines and decoders are the process's: a
 * handle that one thread was given is good on every other.
 */

/** The version of bindings.rs that this is written for; the two are changed together. */
export const CONTRACT_VERSION = 10;

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
  engineStop(engine: number, lingerMs: number): number;
  /** Writes sends, peers, outcomes lost, inbox drops, send errors, panics; answers how many. */
  engineCounters(engine: number, out: Float64Array): number;
  /** Connections opened from now on carry this identity. */
  identitySet(engine: number, seed: Uint8Array): number;
  /** Connects to "ip:port" or "[ipv6]:port". Answers a handle above 0, or a code below 0. */
  peerOpen(engine: number, address: string): number;
  peerClose(engine: number, peer: number, lingerMs: number): number;
  /** Makes the leader answer, so that its silence means something. */
  peerPing(engine: number, peer: number): number;
  /**
   * Writes state, rtt_us, queued, in flight, mtu, window, lost and sent packets, datagrams heard
   * and streams that may be opened now (up to 1024); answers how many, 0 when the connection
   * is gone.
   */
  peerFigures(engine: number, peer: number, out: Float64Array): number;
  /**
   * Sends to up to 16 leaders, a handle and a tag each. Bit i of the answer: copy i is on the wire;
   * bit 16 + i: it was taken and waits. Each copy ends in a record.
   */
  txSend(engine: number, copies: Uint32Array, bytes: Uint8Array, tx: number, ttlMs: number): number;
  /**
   * As `txSend`, but the calling thread keeps the copies until it calls `txRelease`, or has 256 and
   * one more comes: all that are taken wait.
   */
  txHold(engine: number, copies: Uint32Array, bytes: Uint8Array, tx: number, ttlMs: number): number;
  /**
   * Sends what the calling thread keeps. Answers 1 where copies wait now for one of those leaders,
   * or 0, or PANIC.
   */
  txRelease(): number;
  /** Moves records of RECORD_NUMBERS numbers into `out`; answers how many records. */
  outcomesDrain(engine: number, out: Float64Array): number;
}

/** Numbers of a record: kind, tx, peer, tag, reason, at_ns, rtt_us, detail. */
export const RECORD_NUMBERS = 8;

/** The whole addon. */
export type NativeEngine = NativeSending &
  NativeDecoding &
  NativeReading &
  NativeAsking &
  NativeFeeding &
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
   * Judges a transaction and writes VERDICT_NUMBERS numbers from `out[at]` on. Refused: 0, fault,
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
export interface NativeAsking {
  /**
   * Has certificates of nodes held against the authorities of a PEM file too, in all of the process
   * and in the place of those that were given before; what is connected stays. Answers how many of
   * its certificates are good, or PANIC.
   */
  authoritiesTrust(pem: Uint8Array): number;
  /**
   * Makes an asker of one node at an http: or https: address without name and password; what goes
   * into the header `authorization` is given apart, empty for none. An answer above `bytesMax` is
   * no answer. `wake` is called when the first of some answers is there. Answers a handle above 0,
   * or ASKER_OPTIONS, ASKER_FULL or PANIC.
   */
  askerOpen(url: string, authorization: string, bytesMax: number, wake: () => void): number;
  /** Ends its connections; questions in hand get no answer. Answers OK or NO_ASKER. */
  askerClose(asker: number): number;
  /**
   * Asks with a body of JSON, 65536 bytes at most, on another thread; `id`, a whole number below
   * 2^32, comes back with the answer. Answers OK, NO_ASKER, NO_ROOM for a larger body, or
   * ASKER_FULL while 64 questions are in hand.
   */
  ask(asker: number, id: number, body: Uint8Array, timeoutMs: number): number;
  /** Asks what became of at most 256 signatures of 64 bytes each. Answers as `ask`. */
  askStatuses(asker: number, id: number, signatures: Uint8Array, timeoutMs: number): number;
  /**
   * Writes ANSWER_NUMBERS of the oldest answer that was not taken: the question's id, its kind
   * (ANSWER), the HTTP status, for how many seconds the node asks to be left alone, and its size in
   * bytes. Answers 1, or 0 where there is none, or NO_ASKER, NO_ROOM or PANIC.
   */
  answerNext(asker: number, out: Float64Array): number;
  /**
   * Takes that answer; its bytes go to the start of `out`, as many as it holds. Answers OK,
   * NO_ASKER or PANIC.
   */
  answerTake(asker: number, out: Uint8Array): number;
}

/** The feed of slots of a node, over a WebSocket on a thread of the addon's own. */
export interface NativeFeeding {
  /**
   * Opens a feed at a ws: or wss: address without name and password; what goes into the header
   * `authorization` is given apart, empty for none. `timeoutMs` is for all until the node took the
   * connection, but for the lookup of its name. `wake` is called when the first of some news is
   * there. Answers a handle above 0, or FEED_OPTIONS, FEED_FULL or PANIC.
   */
  feedOpen(url: string, authorization: string, timeoutMs: number, wake: () => void): number;
  /**
   * Asks for the events of a feed, 0 slotsUpdates or 1 slot, once the node took the connection.
   * Answers OK, FEED_FULL while the answer to the last such question was not taken, NO_FEED,
   * FEED_OPTIONS or PANIC.
   */
  feedSubscribe(feed: number, which: number): number;
  /**
   * Takes the oldest news and writes FEED_NUMBERS: what it is (FEED_NEWS), the feed's number, the
   * slot or NaN, and how many events were lost so far because they were not taken. Answers 1, or 0
   * where there is none, or NO_FEED, NO_ROOM or PANIC.
   */
  feedNext(feed: number, out: Float64Array): number;
  /** Ends a feed; it tells nothing any more. Answers OK, NO_FEED or PANIC. */
  feedClose(feed: number): number;
}

/** What a thread asks of the system's scheduler. */
export interface NativeScheduling {
  /** Lets other threads that wait for this processor have their turn first. Answers OK. */
  threadYield(): number;
  /**
   * Has this thread wait for no other from now on that has no real-time priority. Answers OK, or
   * NO_PRIORITY where the system does not allow it.
   */
  threadGoFirst(): number;
}

/** Numbers of `feedNext`. */
export const FEED_NUMBERS = 4;
/**
 * What a feed tells: that the node took the connection, that it will send a feed's events or
 * refuses to, that a slot began or is whole, and that the connection ended, which is the last.
 */
export const FEED_NEWS = {
  opened: 1,
  accepted: 2,
  refused: 3,
  start: 4,
  end: 5,
  closed: 6,
} as const;

/** Numbers of `answerNext`. */
export const ANSWER_NUMBERS = 5;
/**
 * What an answer's bytes are: the words of what went wrong; nothing, because the time was up or the
 * answer too large; the body of an HTTP answer; or statuses of n signatures: the node's slot and
 * the slot of each or -1 as doubles, a byte for each, 1 where its block is confirmed, and for each
 * that failed its index and the error's size as doubles and the error as JSON.
 */
export const ANSWER = { failed: 0, late: 1, tooLarge: 2, body: 3, statuses: 4 } as const;

/** Numbers of a call, and most characters of a signature. */
export const CALL_NUMBERS = 5;
export const SIGNATURE_TEXT_MAX = 88;

/** Numbers of a verdict, and of a decoder's counters. */
export const VERDICT_NUMBERS = 11;
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
export const ASKER_OPTIONS = -50;
export const ASKER_FULL = -51;
export const NO_ASKER = -52;
/** Answers of a feed's calls. */
export const FEED_OPTIONS = -60;
export const FEED_FULL = -61;
export const NO_FEED = -62;
export const NO_PRIORITY = -70;
