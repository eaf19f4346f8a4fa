/**
 * A transport without sockets: connections to simulated leaders over a network that delays packets,
 * and loses them in either direction. A lost packet is sent again after a probe timeout, as in
 * QUIC; each delivery is one packet, as most are.
 *
 * Leaders admit connections as Agave does: eight new ones a minute from an address, no response to
 * others. A saturated leader grants four streams and returns each 200 ms after its use: a tenth of
 * what Agave grants an unstaked address.
 */

import type { Clock } from "../../src/core/clock.ts";
import { NS_PER_MS } from "../../src/core/clock.ts";
import type { ConnectionEvents, EngineConnection, Transport } from "../../src/send/transport.ts";
import { ACKED, BLOCKED, CLOSED } from "../../src/send/transport.ts";
import type { Kind, SimulatedCluster } from "./cluster.ts";
import { type Chances, type SimulationOptions, share } from "./options.ts";

/** Without a measured round trip: RFC 9002 section 6.2.2, at least twice 333 ms. */
const FIRST_PROBE_MS = 1_000;
/** RFC 9002: smoothed round trip, four variances and the other side's delay of 25 ms. */
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

/** One leader's side: how many new connections it still accepts. */
interface LeaderEndpoint {
  readonly place: number;
  readonly kind: Kind;
  tokens: number;
  atNs: number;
}

export class SimulatedNetwork implements Transport {
  readonly counters = { connections: 0, ignored: 0, packets: 0, lost: 0 };
  readonly #endpoints = new Map<string, LeaderEndpoint>();
  readonly #context: NetworkContext;

  constructor(
    options: SimulationOptions,
    clock: Clock,
    chances: Chances,
    cluster: SimulatedCluster,
  ) {
    this.#context = { options, clock, chances, cluster, counters: this.counters };
    for (const [place, { address, kind }] of cluster.leaders.entries()) {
      this.#endpoints.set(address, { place, kind, tokens: NEW_A_MINUTE, atNs: clock.nowNs() });
    }
  }

  async start(): Promise<void> {}

  async stop(): Promise<void> {}

  useIdentity(): void {}

  connect(address: string, events: ConnectionEvents): EngineConnection | null {
    const endpoint = this.#endpoints.get(address);
    if (endpoint === undefined) return null;
    this.counters.connections += 1;
    return new SimulatedConnection(endpoint, events, this.#context);
  }
}

/** The state shared by the connections of a network. */
interface NetworkContext {
  readonly options: SimulationOptions;
  readonly clock: Clock;
  readonly chances: Chances;
  readonly cluster: SimulatedCluster;
  readonly counters: NetworkCounters;
}

class SimulatedConnection implements EngineConnection {
  readonly peer = 0;
  readonly streamBytesMax = 4_096;
  readonly idleTimeoutMs = Number.POSITIVE_INFINITY;
  readonly waits = false;
  established = false;
  admitted = false;
  rttUs = 0;
  readonly isDegraded = false;
  readonly retried = false;
  streamsLeft = 0;
  readonly keepsAlive = false;
  datagramsReceived = 0;
  readonly #endpoint: LeaderEndpoint;
  readonly #events: ConnectionEvents;
  readonly #context: NetworkContext;
  readonly #open = new Set<number>();
  #streams = 0;
  #closed = false;

  constructor(endpoint: LeaderEndpoint, events: ConnectionEvents, context: NetworkContext) {
    this.#endpoint = endpoint;
    this.#events = events;
    this.#context = context;
    this.#across(FIRST_PROBE_MS, () => this.#handshake());
  }

  send(bytes: Uint8Array): number {
    if (this.#closed) return CLOSED;
    if (this.streamsLeft === 0) return BLOCKED;
    this.streamsLeft -= 1;
    const stream = this.#streams;
    this.#streams += 1;
    this.#open.add(stream);
    const copy = Uint8Array.from(bytes);
    let has = false;
    this.#across(this.#probeMs(), () => {
      if (!has) this.#context.cluster.receive(this.#endpoint.place, copy);
      has = true;
      this.#across(this.#probeMs(), () => this.#acked(stream));
    });
    return stream;
  }

  ping(): void {
    if (this.#closed) return;
    this.#across(this.#probeMs(), () =>
      this.#across(this.#probeMs(), () => this.#receiveDatagram()),
    );
  }

  close(): void {
    this.#closed = true;
  }

  /** A client's first packet reached the leader. */
  #handshake(): void {
    const { endpoint } = this;
    const { clock, counters } = this.#context;
    const nowNs = clock.nowNs();
    const earned = ((nowNs - endpoint.atNs) / NS_PER_MS / 60_000) * NEW_A_MINUTE;
    endpoint.tokens = Math.min(NEW_A_MINUTE, endpoint.tokens + earned);
    endpoint.atNs = nowNs;
    if (endpoint.kind === "dead" || endpoint.tokens < 1) {
      counters.ignored += 1;
      return;
    }
    endpoint.tokens -= 1;
    this.#across(FIRST_PROBE_MS, () => {
      this.established = true;
      this.admitted = true;
      this.rttUs = this.#context.options.rttMs * 1_000;
      this.streamsLeft = STREAMS[endpoint.kind];
      this.#receiveDatagram();
    });
  }

  get endpoint(): LeaderEndpoint {
    return this.#endpoint;
  }

  #acked(stream: number): void {
    if (!this.#open.delete(stream)) return;
    this.#events.result(stream, ACKED, this.#context.clock.nowNs());
    if (this.#endpoint.kind === "honest") this.streamsLeft += 1;
    else this.#context.clock.after(SATURATED_MS, () => this.#addStreamCredit());
    this.#receiveDatagram();
  }

  #addStreamCredit(): void {
    this.streamsLeft += 1;
    this.#receiveDatagram();
  }

  #receiveDatagram(): void {
    if (this.#closed) return;
    this.datagramsReceived += 1;
    this.#events.progress();
  }

  #probeMs(): number {
    return this.#context.options.rttMs * PROBE_SHARE + ACK_DELAY_MS;
  }

  /** Transfers a packet; a lost one is sent again after a doubling timeout. */
  #across(probeMs: number, arrived: () => void): void {
    const { options, clock, chances, counters } = this.#context;
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
