/**
 * Simulates a bad network in front of one UDP port, on loopback: it loses, delays, reorders and
 * duplicates datagrams in both directions. The seed alone determines what happens to the nth
 * datagram of each direction. Each client has its own port towards the target, as behind a NAT; the
 * proxy ignores clients above the bound.
 */

import { formatAddress, parseAddress } from "../core/address.ts";
import type { Clock, Timer } from "../core/clock.ts";
import {
  type DatagramSocket,
  newDatagramCounters,
  openDatagramSocket,
} from "../send/portable/datagram.ts";
import { FAULT_PROXY_CLIENTS_MAX, FAULT_PROXY_HELD_MAX } from "./limits.ts";

export interface Faults {
  /** Share of lost datagrams, 0 to 1. */
  readonly loss: number;
  readonly delayMs: number;
  /** Maximum additional random delay per datagram: later ones may overtake it. */
  readonly jitterMs: number;
  /** Share of datagrams that are delayed by a further `reorderMs`. */
  readonly reorder: number;
  readonly reorderMs: number;
  /** Share of datagrams that are duplicated. */
  readonly duplicate: number;
}

export const NO_FAULTS: Faults = {
  loss: 0,
  delayMs: 0,
  jitterMs: 0,
  reorder: 0,
  reorderMs: 20,
  duplicate: 0,
};

export interface FaultProxyOptions {
  readonly clock: Clock;
  /** "ip:port" of the target behind the proxy. */
  readonly target: string;
  readonly seed: number;
  readonly faults?: Partial<Faults>;
  readonly host?: string;
}

export class FaultProxyCounters {
  passed = 0;
  lost = 0;
  reordered = 0;
  doubled = 0;
  /** Above the bounds on clients or on held datagrams. */
  refused = 0;
}

export function createFaultProxy(options: FaultProxyOptions): FaultProxy {
  return new FaultProxy(options);
}

/** One direction through the proxy. */
type Pass = (bytes: Uint8Array) => void;

export class FaultProxy {
  readonly counters = new FaultProxyCounters();
  readonly #clock: Clock;
  readonly #host: string;
  readonly #target: { readonly host: string; readonly port: number };
  readonly #there: () => number;
  readonly #back: () => number;
  readonly #datagrams = newDatagramCounters();
  /** By the client's address; null while its socket is being bound. */
  readonly #clients = new Map<string, DatagramSocket | null>();
  readonly #held = new Set<Timer>();
  #faults: Faults;
  #socket: DatagramSocket | null = null;

  constructor({ clock, target, seed, faults, host }: FaultProxyOptions) {
    const parsed = parseAddress(target);
    if (parsed === null) throw new RangeError(`no address to pass on to: ${target}`);
    this.#clock = clock;
    this.#host = host ?? "127.0.0.1";
    this.#target = parsed;
    this.#there = rolls(seed);
    this.#back = rolls(seed + 1);
    this.#faults = { ...NO_FAULTS, ...faults };
  }

  /** @throws Error when the address cannot be bound */
  async start(): Promise<{ readonly address: string }> {
    const receive = (bytes: Uint8Array, host: string, port: number): void =>
      this.#fromClient(bytes, host, port);
    this.#socket = await openDatagramSocket(this.#host, 0, receive, this.#datagrams);
    return { address: formatAddress(this.#host, this.#socket.port) };
  }

  async stop(): Promise<void> {
    for (const timer of this.#held) timer.cancel();
    this.#held.clear();
    this.#socket?.close();
    this.#socket = null;
    for (const client of this.#clients.values()) client?.close();
    this.#clients.clear();
  }

  setFaults(faults: Partial<Faults>): void {
    this.#faults = { ...this.#faults, ...faults };
  }

  #fromClient(bytes: Uint8Array, host: string, port: number): void {
    const key = `${host} ${port}`;
    const client = this.#clients.get(key);
    if (client === undefined) void this.#open(key, host, port);
    // Datagrams that arrive before the socket is bound are lost, as first datagrams often are.
    if (client === undefined || client === null) return;
    const { host: toHost, port: toPort } = this.#target;
    this.#suffer(bytes, this.#there, (copy) => put(client, copy, toHost, toPort));
  }

  async #open(key: string, host: string, port: number): Promise<void> {
    if (this.#clients.size >= FAULT_PROXY_CLIENTS_MAX) {
      this.counters.refused += 1;
      return;
    }
    this.#clients.set(key, null);
    const response = (bytes: Uint8Array): void =>
      this.#suffer(bytes, this.#back, (copy) => {
        if (this.#socket !== null) put(this.#socket, copy, host, port);
      });
    try {
      const client = await openDatagramSocket(this.#host, 0, response, this.#datagrams);
      if (this.#socket === null) client.close();
      else this.#clients.set(key, client);
    } catch {
      // No free port: the client is not forwarded and may retry.
      this.#clients.delete(key);
      this.counters.refused += 1;
    }
  }

  #suffer(bytes: Uint8Array, roll: () => number, pass: Pass): void {
    const { loss, delayMs, jitterMs, reorder, reorderMs, duplicate } = this.#faults;
    // Each datagram draws the same number of random values, whatever happens to it.
    const [isLost, share, isLate, isTwice] = [
      roll() < loss,
      roll(),
      roll() < reorder,
      roll() < duplicate,
    ];
    if (isLost) {
      this.counters.lost += 1;
      return;
    }
    if (isLate) this.counters.reordered += 1;
    if (isTwice) this.counters.doubled += 1;
    const waitMs = delayMs + jitterMs * share + (isLate ? reorderMs : 0);
    const copy = Uint8Array.from(bytes);
    for (let times = isTwice ? 2 : 1; times > 0; times -= 1) this.#hold(copy, waitMs, pass);
  }

  #hold(bytes: Uint8Array, waitMs: number, pass: Pass): void {
    this.counters.passed += 1;
    if (waitMs === 0) {
      pass(bytes);
      return;
    }
    if (this.#held.size >= FAULT_PROXY_HELD_MAX) {
      this.counters.refused += 1;
      return;
    }
    const timer = this.#clock.after(waitMs, () => {
      this.#held.delete(timer);
      pass(bytes);
    });
    this.#held.add(timer);
  }
}

function put(socket: DatagramSocket, bytes: Uint8Array, host: string, port: number): void {
  if (bytes.length > socket.scratch.length) return;
  socket.scratch.set(bytes);
  socket.flush(bytes.length, host, port);
}

/** Random numbers in [0, 1), the same for the same seed (Mulberry32, public domain). */
function rolls(seed: number): () => number {
  let state = Math.imul(seed, 0x9e3779b1) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
