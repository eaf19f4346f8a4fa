/**
 * A transport without sockets: connections to simulated leaders over a network that delays, and
 * loses packets in either direction. What is lost is sent again after a probe's timeout, as QUIC
 * does; each copy of a transaction is one packet, as most are.
 *
 * Leaders admit as Agave does: eight new connections a minute from an address, more are not
 * answered. A saturated one grants four streams and gives each back 200 ms after it was used: a
 * tenth of what Agave lets an unstaked address have.
 */

import type { Clock } from "../../src/core/clock.ts";
import { NS_PER_MS } from "../../src/core/clock.ts";
import type { Connection, ConnectionEvents, Fate, Transport } from "../../src/send/transport.ts";
import { ACKED, BLOCKED, CLOSED, FLYING } from "../../src/send/transport.ts";
import type { Kind, SimulatedChain } from "./chain.ts";
import { type Chances, type SimulationOptions, share } from "./options.ts";

/** Of an engine without a measured round trip: RFC 9002 section 6.2.2, twice 333 ms at least. */
const FIRST_PROBE_MS = 1_000;
/** RFC 9002: smoothed round trip, four variances and 25 ms of the other side's patience. */
const PROBE_SHARE = 1.25;
const ACK_DELAY_MS = 25;
const PROBES_MAX = 6;
const STREAMS = { honest: 128, saturated: 4, dead: 0 } as const;
const SATURATED_MS = 200;
/** Agave `connection_rate_limiter`, 4.3, 2026-11. */
const NEW_A_MINUTE = 8;

export interface NetworkCounters {
  connections: number;
  ignored: number;
  packets: number;
  lost: number;
}

/** One leader's side: how many new connections it still answers. */
interface Door {
  readonly place: number;
  readonly kind: Kind;
  tokens: number;
  atNs: number;
}

export class SimulatedNetwork implements Transport {
  readonly counters = { connections: 0, ignored: 0, packets: 0, lost: 0 };
  readonly #doors = new Map<string, Door>();
  readonly #wire: Wire;

  constructor(options: SimulationOptions, clock: Clock, chances: Chances, chain: SimulatedChain) {
    this.#wire = { options, clock, chances, chain, counters: this.counters };
    for (const [place, { address, kind }] of chain.leaders.entries()) {
      this.#doors.set(address, { place, kind, tokens: NEW_A_MINUTE, atNs: clock.nowNs() });
    }
  }

  async start(): Promise<void> {}

  async stop(): Promise<void> {}

  useIdentity(): void {}

  connect(address: string, events: ConnectionEvents): Connection | null {
    const door = this.#doors.get(address);
    if (door === undefined) return null;
    this.counters.connections += 1;
    return new SimulatedConnection(door, events, this.#wire);
  }
}

/** What the connections of a network share. */
interface Wire {
  readonly options: SimulationOptions;
  readonly clock: Clock;
  readonly chances: Chances;
  readonly chain: SimulatedChain;
  readonly counters: NetworkCounters;
}

class SimulatedConnection implements Connection {
  readonly shared = null;
  established = false;
  admitted = false;
  rttUs = 0;
  readonly worn = false;
  readonly retried = false;
  readonly sentNs = 0;
  readonly endNs = 0;
  streamsLeft = 0;
  readonly keepsAlive = false;
  heard = 0;
  readonly #door: Door;
  readonly #events: ConnectionEvents;
  readonly #wire: Wire;
  readonly #fates = new Map<number, Fate>();
  #streams = 0;
  #closed = false;

  constructor(door: Door, events: ConnectionEvents, wire: Wire) {
    this.#door = door;
    this.#events = events;
    this.#wire = wire;
    this.#across(FIRST_PROBE_MS, () => this.#knock());
  }

  send(bytes: Uint8Array): number {
    if (this.#closed) return CLOSED;
    if (this.streamsLeft === 0) return BLOCKED;
    this.streamsLeft -= 1;
    const stream = this.#streams;
    this.#streams += 1;
    this.#fates.set(stream, FLYING);
    const copy = Uint8Array.from(bytes);
    let has = false;
    this.#across(this.#probeMs(), () => {
      if (!has) this.#wire.chain.receive(this.#door.place, copy);
      has = true;
      this.#across(this.#probeMs(), () => this.#acked(stream));
    });
    return stream;
  }

  fate(stream: number): Fate {
    const fate = this.#fates.get(stream) ?? ACKED;
    if (fate === ACKED) this.#fates.delete(stream);
    return fate;
  }

  ping(): void {
    if (this.#closed) return;
    this.#across(this.#probeMs(), () => this.#across(this.#probeMs(), () => this.#hear()));
  }

  close(): void {
    this.#closed = true;
  }

  /** A client's first packet is at the leader. */
  #knock(): void {
    const { door } = this;
    const { clock, counters } = this.#wire;
    const nowNs = clock.nowNs();
    const earned = ((nowNs - door.atNs) / NS_PER_MS / 60_000) * NEW_A_MINUTE;
    door.tokens = Math.min(NEW_A_MINUTE, door.tokens + earned);
    door.atNs = nowNs;
    if (door.kind === "dead" || door.tokens < 1) {
      counters.ignored += 1;
      return;
    }
    door.tokens -= 1;
    this.#across(FIRST_PROBE_MS, () => {
      this.established = true;
      this.admitted = true;
      this.rttUs = this.#wire.options.rttMs * 1_000;
      this.streamsLeft = STREAMS[door.kind];
      this.#hear();
    });
  }

  get door(): Door {
    return this.#door;
  }

  #acked(stream: number): void {
    if (this.#fates.get(stream) !== FLYING) return;
    this.#fates.set(stream, ACKED);
    if (this.#door.kind === "honest") this.streamsLeft += 1;
    else this.#wire.clock.after(SATURATED_MS, () => this.#grant());
    this.#hear();
  }

  #grant(): void {
    this.streamsLeft += 1;
    this.#hear();
  }

  #hear(): void {
    if (this.#closed) return;
    this.heard += 1;
    this.#events.progress();
  }

  #probeMs(): number {
    return this.#wire.options.rttMs * PROBE_SHARE + ACK_DELAY_MS;
  }

  /** A packet crosses; one that is lost is sent again after a time that doubles. */
  #across(probeMs: number, arrived: () => void): void {
    const { options, clock, chances, counters } = this.#wire;
    let waitMs = 0;
    counters.packets += 1;
    for (let probes = 0; share(chances.network) < options.loss; probes += 1) {
      counters.lost += 1;
      if (probes === PROBES_MAX) return;
      waitMs += probeMs * 2 ** probes;
    }
    const oneWayMs = (options.rttMs / 2) * (1 + options.jitter * share(chances.network));
    clock.after(waitMs + oneWayMs, () => {
      if (!this.#closed) arrived();
    });
  }
}
