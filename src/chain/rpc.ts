/**
 * The cluster's RPC node, through @solana/web3.js; the only file that knows that library.
 *
 * Small answers come by its public methods. Three things go around them, each for a reason that was
 * measured or seen in version 1.99.0. Answers that are large, or asked for often, are read without
 * the library's validation (`rpc-read.ts`): for the leader schedule and the list of nodes it holds
 * the thread for 480 ms and 55 ms at mainnet's size, where parsing takes 5 ms and 3 ms. Its
 * `getLeaderSchedule` takes no slot, so it cannot ask for the next epoch. And subscriptions use the
 * library's WebSocket client without its subscription manager, which asks again in a tight loop
 * when a subscription is refused, throws into a promise that nobody holds when a node sends an
 * update of a kind that it does not know (which ends the process), reconnects for ever and keeps
 * the process alive.
 */

import { Connection, type EpochSchedule } from "@solana/web3.js";
import type { Clock } from "../core/clock.ts";
import { RPC_ANSWER_BYTES_MAX } from "../core/limits.ts";
import { createPoster, type Poster } from "./post.ts";
import {
  type Blockhash,
  isRecord,
  readBlockhash,
  readBlockSignatures,
  readContacts,
  readCount,
  readDelinquent,
  readLeaders,
  readSlotTime,
  readStatuses,
} from "./rpc-read.ts";
import type { Contact, SlotEventKind, StatusAnswer } from "./target.ts";

export interface RpcOptions {
  readonly rpcUrl: string;
  readonly wsUrl: string;
  /** A request without a whole answer in this time has failed. */
  readonly timeoutMs: number;
}

/** An epoch's place among the slots. */
export interface EpochSpan {
  readonly epoch: number;
  readonly firstSlot: number;
  readonly slots: number;
}

export interface EpochPair {
  /** The slot in progress. */
  readonly slot: number;
  readonly current: EpochSpan;
  readonly next: EpochSpan;
}

/** How far a block has got, as a question names it. */
export type Commitment = "processed" | "confirmed";

/** Which events a node is asked to send. */
export type FeedName = "slotsUpdates" | "slot";

export interface FeedEvents {
  opened(): void;
  event(feed: FeedName, kind: SlotEventKind, slot: number): void;
  /** Once, whether it was ever open or not; not after `end`. */
  closed(): void;
}

/** One WebSocket connection; it does not come back by itself. */
export interface FeedSocket {
  /** True when the node will send these events, false when it refuses to. */
  subscribe(feed: FeedName): Promise<boolean>;
  end(): void;
}

export interface Rpc {
  /** The slot that the node processes. */
  slot(): Promise<number>;
  /** The slot time of the last minutes in milliseconds; null where the node has not measured it. */
  slotTimeMs(): Promise<number | null>;
  epochs(): Promise<EpochPair>;
  /** The leaders of the epoch that a slot lies in; null when the node does not know them yet. */
  leaders(slot: number): Promise<ReadonlyMap<string, readonly number[]> | null>;
  contacts(): Promise<readonly Contact[]>;
  /** Blocks up to and with the newest of that commitment. */
  blockHeight(commitment: Commitment): Promise<number>;
  latestBlockhash(commitment: Commitment): Promise<Blockhash>;
  /** What became of at most 256 signatures, base58. */
  statuses(signatures: readonly string[]): Promise<StatusAnswer>;
  /**
   * The signatures of a confirmed block; null for a slot without one.
   *
   * @throws RpcError also for a block that the node does not keep
   */
  blockSignatures(slot: number): Promise<readonly string[] | null>;
  /** Identities of the validators that have not voted for 128 slots. */
  delinquent(): Promise<readonly string[]>;
  openFeed(events: FeedEvents): FeedSocket;
  /** Ends requests in hand; they fail. */
  close(): void;
}

/** A client; nothing is connected before the first request. */
export function createRpc(clock: Clock, options: RpcOptions): Rpc {
  const inHand = new Set<AbortController>();
  const poster = createPoster(options.rpcUrl, RPC_ANSWER_BYTES_MAX);
  const connection = new Connection(options.rpcUrl, {
    commitment: "processed",
    wsEndpoint: options.wsUrl,
    httpAgent: false,
    disableRetryOnRateLimit: true,
    fetch: boundedFetch(clock, options.timeoutMs, poster, inHand),
  });
  let epochSchedule: EpochSchedule | null = null;

  return {
    slot: () => connection.getSlot("processed"),
    slotTimeMs: async () =>
      readSlotTime(await call(connection, "getRecentPerformanceSamples", [SAMPLES])),
    async epochs() {
      epochSchedule ??= await connection.getEpochSchedule();
      const info = await connection.getEpochInfo("processed");
      const { epoch, absoluteSlot: slot, slotIndex, slotsInEpoch: slots } = info;
      const firstSlot = slot - slotIndex;
      const nextSlots = epochSchedule.getSlotsInEpoch(epoch + 1);
      return {
        slot,
        current: { epoch, firstSlot, slots },
        next: { epoch: epoch + 1, firstSlot: firstSlot + slots, slots: nextSlots },
      };
    },
    leaders: async (slot) => readLeaders(await call(connection, "getLeaderSchedule", [slot])),
    contacts: async () => readContacts(await call(connection, "getClusterNodes", [])),
    blockHeight: async (commitment) =>
      readCount("getBlockHeight", await call(connection, "getBlockHeight", [{ commitment }])),
    latestBlockhash: async (commitment) =>
      readBlockhash(await call(connection, "getLatestBlockhash", [{ commitment }])),
    async statuses(signatures) {
      const params = [signatures, { searchTransactionHistory: false }];
      const result = await call(connection, "getSignatureStatuses", params);
      return readStatuses(result, signatures.length);
    },
    async blockSignatures(slot) {
      const detail = { transactionDetails: "signatures", rewards: false };
      const config = { ...detail, commitment: "confirmed", maxSupportedTransactionVersion: 0 };
      try {
        return readBlockSignatures(await call(connection, "getBlock", [slot, config]));
      } catch (error) {
        if (error instanceof RpcError && NO_BLOCK_CODES.has(error.code)) return null;
        throw error;
      }
    },
    delinquent: async () => readDelinquent(await call(connection, "getVoteAccounts", [])),
    openFeed: (events) => openFeed(options, events),
    close() {
      for (const request of inHand) request.abort();
      poster.close();
    },
  };
}

/** What this file uses of the library besides its declared interface. */
interface Internals {
  readonly _rpcRequest: (method: string, params: readonly unknown[]) => Promise<unknown>;
  readonly _rpcWebSocket: SocketClient;
}

interface SocketClient {
  dataPack: { encode(value: unknown): string; decode(text: string): unknown };
  readonly socket: { terminate(): void } | undefined;
  connect(): void;
  call(method: string, params: readonly unknown[]): Promise<unknown>;
  on(event: string, listener: (value: unknown) => void): void;
  removeAllListeners(): void;
  setAutoReconnect(reconnect: boolean): void;
}

function internalsOf(connection: Connection): Internals {
  // These fields exist but are not declared; the version is pinned, and a test fails without them.
  return connection as unknown as Internals;
}

/** The result of a call, not validated; throws when the node answers with an error. */
async function call(
  connection: Connection,
  method: string,
  params: readonly unknown[],
): Promise<unknown> {
  const answer = await internalsOf(connection)._rpcRequest(method, params);
  if (!isRecord(answer)) throw new Error(`${method}: the answer is no JSON-RPC`);
  if ("result" in answer) return answer["result"];
  const { error } = answer;
  const code = isRecord(error) && typeof error["code"] === "number" ? error["code"] : 0;
  const message = isRecord(error) ? String(error["message"]) : "no result";
  throw new RpcError(code, `${method}: ${message}`);
}

/** The node's own word that it does not do what it was asked. */
export class RpcError extends Error {
  override readonly name = "RpcError";
  /** Of JSON-RPC; 0 where it named none. */
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** Slot skipped, block not there yet. Agave `rpc-client-api/src/custom_error.rs`, 4.3, 2026-11. */
const NO_BLOCK_CODES: ReadonlySet<number> = new Set([-32004, -32007, -32009]);

/**
 * What the library fetches with: a deadline for the whole answer and a bound for its size. `fetch`
 * itself would hold the thread for twice as long.
 */
function boundedFetch(
  clock: Clock,
  timeoutMs: number,
  poster: Poster,
  inHand: Set<AbortController>,
): typeof fetch {
  const ask = async (_: unknown, init: Question): Promise<FetchAnswer> => {
    const request = new AbortController();
    inHand.add(request);
    const late = new Error(`no answer in ${timeoutMs} ms`);
    const timer = clock.after(timeoutMs, () => request.abort(late));
    try {
      const { status, statusText, body } = await poster.post(
        init.headers,
        init.body,
        request.signal,
      );
      const ok = status >= 200 && status < 300;
      return { ok, status, statusText, text: async () => body.toString("utf8") };
    } catch (cause) {
      // The library never calls back for what is not an Error.
      throw cause instanceof Error ? cause : new Error(String(cause));
    } finally {
      timer.cancel();
      inHand.delete(request);
    }
  };
  // The library gives and reads no more than these fields; a test fails when it does.
  return ask as unknown as typeof fetch;
}

/** What the library gives to fetch, and what it reads of the answer. */
interface Question {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

interface FetchAnswer {
  readonly ok: boolean;
  readonly status: number;
  readonly statusText: string;
  text(): Promise<string>;
}

/** Minutes over which a node tells its slot time. */
const SAMPLES = 3;

const SUBSCRIBE = { slotsUpdates: "slotsUpdatesSubscribe", slot: "slotSubscribe" } as const;

function openFeed({ rpcUrl, wsUrl }: RpcOptions, events: FeedEvents): FeedSocket {
  const connection = new Connection(rpcUrl, { wsEndpoint: wsUrl, httpAgent: false });
  const client = internalsOf(connection)._rpcWebSocket;
  let ended = false;

  function end(): void {
    ended = true;
    client.removeAllListeners();
    // A polite close waits half a minute for a peer that is gone, and keeps the process alive.
    client.socket?.terminate();
  }
  function close(): void {
    if (ended) return;
    end();
    events.closed();
  }

  client.removeAllListeners();
  client.setAutoReconnect(false);
  client.dataPack = { encode: (value) => JSON.stringify(value), decode: decodeMessage };
  client.on("open", () => events.opened());
  // A connection that could not be opened tells only of its error.
  client.on("error", close);
  client.on("close", close);
  client.on("slotsUpdatesNotification", (params) => {
    const update = resultIn(params);
    const kind = UPDATE_KINDS.get(update["type"]);
    if (kind !== undefined) events.event("slotsUpdates", kind, Number(update["slot"]));
  });
  client.on("slotNotification", (params) => {
    events.event("slot", "start", Number(resultIn(params)["slot"]));
  });
  client.connect();

  return {
    async subscribe(feed) {
      try {
        await client.call(SUBSCRIBE[feed], []);
        return true;
      } catch {
        // Refused, or the connection ended, of which `closed` tells.
        return false;
      }
    },
    end,
  };
}

/** What the updates of a node say about a slot; other kinds say nothing that is needed here. */
const UPDATE_KINDS: ReadonlyMap<unknown, SlotEventKind> = new Map([
  ["firstShredReceived", "start"],
  ["createdBank", "start"],
  ["completed", "end"],
  ["frozen", "end"],
]);

/** Only what the client can take: it reads fields of whatever it is given, null included. */
function decodeMessage(text: string): unknown {
  const message: unknown = JSON.parse(text);
  if (!isRecord(message)) throw new Error("a message that is no JSON-RPC");
  const { id, method, params, result, error } = message;
  if (typeof method === "string") return { method, params };
  return error === undefined ? { id, result } : { id, error };
}

function resultIn(params: unknown): Readonly<Record<string, unknown>> {
  const result = isRecord(params) ? params["result"] : null;
  return isRecord(result) ? result : {};
}
