/**
 * The simulated cluster's WebSocket: slots, slot updates and signatures, in the real one's formats.
 *
 * It can simulate the faults of real providers: missing slot updates, accepted but silent
 * subscriptions, shreds of the far future, and slots off by a few.
 */

import type { Server } from "node:http";
import { createSocketServer, type ServerSocket } from "../cluster/slots/websocket.ts";
import type { Bank, Block, Commitment, Landed } from "./cluster-bank.ts";
import { errorOf, toJson } from "./cluster-http.ts";
import { type ClusterFaults, commitmentIn, RpcFault } from "./cluster-rpc.ts";
import { SANDBOX_SOCKET_BYTES_MAX, SANDBOX_SUBSCRIPTIONS_MAX } from "./limits.ts";

export interface SocketDeps {
  readonly bank: Bank;
  readonly unixMs: () => number;
  readonly faults: () => ClusterFaults;
}

interface Subscription {
  readonly id: number;
  readonly socket: ServerSocket;
  readonly feed: "slotsUpdates" | "slot" | "signature";
  readonly signature: string;
  readonly commitment: Commitment;
}

const BOGUS_EVERY_SLOTS = 5;

/** Accepts WebSocket connections on an HTTP server. */
export function attachSocket(server: Server, deps: SocketDeps): ClusterSocket {
  return new ClusterSocket(server, deps);
}

export class ClusterSocket {
  readonly #deps: SocketDeps;
  readonly #server: ReturnType<typeof createSocketServer>;
  readonly #subscriptions = new Map<number, Subscription>();
  #lastId = 0;

  constructor(server: Server, deps: SocketDeps) {
    this.#deps = deps;
    this.#server = createSocketServer(server, 64 * 1024);
    this.#server.on("connection", (socket) => this.#connected(socket));
    // The owner of the underlying HTTP server handles its errors.
    this.#server.on("error", () => undefined);
  }

  get subscriptions(): number {
    return this.#subscriptions.size;
  }

  /** A block has begun. */
  blockStarted(block: Block): void {
    const { slot, parent } = block;
    const { bogusSlotsAhead } = this.#deps.faults();
    if (bogusSlotsAhead > 0 && slot % BOGUS_EVERY_SLOTS === 0) {
      this.#update({ type: "firstShredReceived", slot: slot + bogusSlotsAhead });
    }
    this.#update({ type: "firstShredReceived", slot });
    this.#update({ type: "createdBank", slot, parent });
    if (this.#deps.faults().slots === "works") {
      const root = this.#deps.bank.block("finalized").slot;
      this.#publish("slot", "slotNotification", { slot, parent, root });
    }
    this.#notifySignatures();
  }

  /** A block is complete. */
  frozen({ slot }: Block): void {
    const { bank } = this.#deps;
    const stats = {
      numTransactionEntries: 1,
      numSuccessfulTransactions: 0,
      numFailedTransactions: 0,
      maxTransactionsPerEntry: 1,
    };
    this.#update({ type: "completed", slot });
    this.#update({ type: "frozen", slot, stats });
    if (bank.phase === "vote_only") return;
    this.#update({ type: "optimisticConfirmation", slot: bank.block("confirmed").slot });
    const root = { type: "root", slot: bank.block("finalized").slot };
    this.#update(root);
    // As seen of Agave 4.4 with Alpenglow, 2026-11.
    if (bank.phase === "alpenglow") this.#update(root);
  }

  landed({ signature }: Landed): void {
    this.#notifySignatures(signature);
  }

  /** Ends every connection without a close frame, like a process that dies. */
  drop(): void {
    for (const socket of this.#server.clients) socket.terminate();
    this.#server.close();
    this.#subscriptions.clear();
  }

  #connected(socket: ServerSocket): void {
    socket.on("message", (data) => this.#message(socket, String(data)));
    socket.on("close", () => this.#forget(socket));
    // A reset connection also emits `close`, which is handled.
    socket.on("error", () => undefined);
  }

  #forget(socket: ServerSocket): void {
    for (const each of this.#subscriptions.values()) {
      if (each.socket === socket) this.#subscriptions.delete(each.id);
    }
  }

  #message(socket: ServerSocket, text: string): void {
    let call: unknown;
    try {
      call = JSON.parse(text);
    } catch {
      // The client receives it in the form of every other error.
      send(socket, errorOf(null, -32700, "Parse error"));
      return;
    }
    if (typeof call !== "object" || call === null) return;
    // A call without an id is a notification, such as the ping of web3.js: no response.
    if (!("id" in call) || !("method" in call)) return;
    const params = "params" in call && Array.isArray(call.params) ? call.params : [];
    try {
      const result = this.#call(socket, String(call.method), params);
      send(socket, { jsonrpc: "2.0", result, id: call.id });
      this.#notifySignatures();
    } catch (error) {
      if (!(error instanceof RpcFault)) throw error;
      send(socket, errorOf(call.id, error.code, error.message));
    }
  }

  #call(socket: ServerSocket, method: string, params: readonly unknown[]): unknown {
    const { slotsUpdates, slots } = this.#deps.faults();
    switch (method) {
      case "slotsUpdatesSubscribe":
        if (slotsUpdates === "unsupported") break;
        return this.#subscribe(socket, "slotsUpdates");
      case "slotSubscribe":
        if (slots === "unsupported") break;
        return this.#subscribe(socket, "slot");
      case "signatureSubscribe": {
        const [signature, config] = params;
        if (typeof signature !== "string") throw new RpcFault(-32602, "Invalid params");
        const commitment = commitmentIn(config) ?? "finalized";
        return this.#subscribe(socket, "signature", signature, commitment);
      }
      case "slotsUpdatesUnsubscribe":
      case "slotUnsubscribe":
      case "signatureUnsubscribe":
        if (this.#subscriptions.delete(Number(params[0]))) return true;
        throw new RpcFault(-32602, "Invalid subscription id.");
    }
    throw new RpcFault(-32601, "Method not found");
  }

  #subscribe(
    socket: ServerSocket,
    feed: Subscription["feed"],
    signature = "",
    commitment: Commitment = "processed",
  ): number {
    let own = 0;
    for (const each of this.#subscriptions.values()) if (each.socket === socket) own += 1;
    if (own >= SANDBOX_SUBSCRIPTIONS_MAX) throw new RpcFault(-32603, "Too many subscriptions");
    this.#lastId += 1;
    const id = this.#lastId;
    this.#subscriptions.set(id, { id, socket, feed, signature, commitment });
    return id;
  }

  #update(update: { readonly slot: number; readonly [field: string]: unknown }): void {
    const { slotsUpdates, skewSlots } = this.#deps.faults();
    if (slotsUpdates !== "works") return;
    const timestamp = this.#deps.unixMs();
    const slot = Math.max(0, update.slot + skewSlots);
    this.#publish("slotsUpdates", "slotsUpdatesNotification", { ...update, slot, timestamp });
  }

  #publish(feed: Subscription["feed"], method: string, result: unknown): void {
    for (const each of this.#subscriptions.values()) {
      if (each.feed === feed) notify(each, method, result);
    }
  }

  /** Notifies subscribers whose signature reached their commitment, and ends the subscription. */
  #notifySignatures(only: string | null = null): void {
    const { bank } = this.#deps;
    const rank = { processed: 0, confirmed: 1, finalized: 2 } as const;
    for (const each of this.#subscriptions.values()) {
      if (each.feed !== "signature" || (only !== null && each.signature !== only)) continue;
      const landed = bank.statusOf(each.signature);
      if (landed === null || rank[bank.commitmentOf(landed)] < rank[each.commitment]) continue;
      const context = { slot: bank.block("processed").slot };
      const result = { context, value: { err: landed.err } };
      notify(each, "signatureNotification", result);
      this.#subscriptions.delete(each.id);
    }
  }
}

function notify({ socket, id }: Subscription, method: string, result: unknown): void {
  send(socket, { jsonrpc: "2.0", method, params: { result, subscription: id } });
}

function send(socket: ServerSocket, message: unknown): void {
  if (socket.bufferedAmount > SANDBOX_SOCKET_BYTES_MAX) socket.terminate();
  else socket.send(toJson(message));
}
