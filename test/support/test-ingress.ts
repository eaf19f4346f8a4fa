/**
 * A real native front before an HTTP server, for tests of what clients see through one. It has no
 * pass and knows no leader, so it answers nothing by itself: every request is relayed.
 */

import { systemClock } from "../../src/core/clock.ts";
import { dedupMemory } from "../../src/dedup/recent-transactions.ts";
import { createKeyCacheMemory } from "../../src/limits/shared-state.ts";
import type { NativeEngine } from "../../src/native/contract.ts";
import {
  createIngressThreads,
  type IngressThreads,
} from "../../src/native-ingress/ingress-threads.ts";
import { SHARED_TARGET_TABLE_BYTES } from "../../src/send/native/shared-target-table.ts";
import { native } from "../native/addon.ts";

/** The addon where tests are to have fronts, which TEST_THREADS says; null where they have none. */
export const testIngressEngine: NativeEngine | null =
  Number(process.env["TEST_THREADS"] ?? 0) > 0 ? native : null;

export interface TestIngressOptions {
  /** The name of the line that the server behind reads. */
  readonly forwardedHeader: string;
  readonly connectionsMax: number;
}

export interface TestIngress {
  readonly ingressThreads: IngressThreads;
  /** Listens on loopback; what it relays goes to `upstreamPort`. */
  start(upstreamPort: number): { readonly port: number };
  /** Resolves when all that is in hand is answered, and everything closed. */
  stop(): Promise<void>;
}

export function createTestIngress(addon: NativeEngine, options: TestIngressOptions): TestIngress {
  const engine = addon.engineStart(ENGINE_OPTIONS, () => {});
  const decoder = addon.decoderCreate(new Uint8Array(32), 0, true, 0);
  if (engine <= 0 || decoder <= 0) throw new Error(`no engine or decoder: ${engine}, ${decoder}`);
  const unasked = (): never => {
    throw new Error("it took a transaction by itself");
  };
  const ingressThreads = createIngressThreads(
    {
      clock: systemClock,
      native: addon,
      yieldThread: () => addon.threadYield(),
      flushEvents: () => {},
      accounting: { recordSend: unasked, recordDuplicate: unasked },
      keyCache: {
        join: () => ({ grant() {}, onReturned() {}, leave() {} }),
        stop() {},
        counters: { cachedKeys: 0, granted: 0, revoked: 0, evicted: 0, declined: 0 },
      },
      latency: { record: unasked },
      usage: null,
      onDeath(cause) {
        throw new Error("a front died", { cause });
      },
    },
    {
      ...options,
      count: 1,
      engine: () => engine,
      decoder,
      host: "127.0.0.1",
      port: 0,
      realtime: false,
      // Clients of tests are of one address.
      connectionsPerAddress: 1_000_000,
      upstreamConnectionsMax: options.connectionsMax,
      upstreamConnectionsPerAddress: options.connectionsMax,
      readTimeoutMs: 60_000,
      routes: new SharedArrayBuffer(SHARED_TARGET_TABLE_BYTES),
      dedup: dedupMemory(),
      keyCache: createKeyCacheMemory(),
    },
  );
  return {
    ingressThreads,
    start: (upstreamPort) => ingressThreads.start(upstreamPort),
    async stop() {
      await ingressThreads.stop();
      addon.decoderClose(decoder);
      addon.engineStop(engine, 0);
    },
  };
}

/** Any that it starts with: it sends nothing. */
const ENGINE_OPTIONS = {
  binds: ["127.0.0.1:0"],
  seed: new Uint8Array(32),
  queueMax: 16,
  inFlightMax: 16,
  outcomesMax: 64,
  admissionTimeoutMs: 1_000,
  idleTimeoutMs: 1_000,
  keepAliveMs: 500,
  ackEvery: 0,
  ackDelayMs: 25,
  busyPollUs: 0,
};
