/**
 * A real native ingress thread before an HTTP server, for tests of client behaviour through one.
 * Its keys have limits that it cannot charge, so it proxies every request with one of them. It
 * refuses all others itself. With TEST_TLS it speaks TLS, and clients reach it through a tunnel.
 */

import { tokenSha256 } from "../../src/accounts/keys/keys-file.ts";
import { systemClock } from "../../src/core/clock.ts";
import { DUPLICATE, SENT, SubmissionRecords } from "../../src/engine/submission-record.ts";
import { EVENT_NUMBERS, type NativeEngine } from "../../src/native/contract.ts";
import { EngineKeys } from "../../src/native-ingress/engine-keys.ts";
import {
  createIngressThreads,
  type IngressThreads,
} from "../../src/native-ingress/ingress-threads.ts";
import { BATCH_NUMBERS } from "../../src/send/native/transport-native.ts";
import { native } from "../native/addon.ts";
import { createAuthority, type Issued } from "./authority.ts";
import { testPrincipal } from "./principals.ts";
import { startTunnel, type Tunnel } from "./tls-tunnel.ts";

/** The addon where tests use ingress threads, which TEST_THREADS sets; null otherwise. */
export const testIngressEngine: NativeEngine | null =
  Number(process.env["TEST_THREADS"] ?? 0) > 0 ? native : null;

/**
 * Whether clients reach it through a tunnel, because it speaks TLS: it then sees the tunnel's
 * address, and the tunnel's buffers and closes are between it and them.
 */
export const isTunneled = process.env["TEST_TLS"] !== undefined;

/** How long the thread keeps an idle connection. */
export const IDLE_TIMEOUT_MS = 75_000;

export interface TestIngressOptions {
  /** The name of the forwarded header that the upstream server reads. */
  readonly forwardedHeader: string;
  readonly connectionsMax: number;
  /** The keys. */
  readonly tokens: readonly string[];
}

export interface TestIngress {
  readonly ingressThreads: IngressThreads;
  /** Listens on loopback and proxies to `upstreamPort`. */
  start(upstreamPort: number): Promise<{ readonly port: number }>;
  /** Resolves when all pending requests are answered, and everything is closed. */
  stop(): Promise<void>;
}

export function createTestIngress(
  addon: NativeEngine,
  { tokens, ...options }: TestIngressOptions,
): TestIngress {
  const authority = isTunneled ? createAuthority() : null;
  let tunnel: Tunnel | null = null;
  const batch = new Float64Array(BATCH_NUMBERS);
  const engine = addon.engineStart(ENGINE_OPTIONS, () => {});
  const decoder = addon.decoderCreate(new Uint8Array(32), 0, true, 0);
  if (engine <= 0 || decoder <= 0) throw new Error(`no engine or decoder: ${engine}, ${decoder}`);
  const path = addon.submitPathOpen(engine, decoder);
  if (path <= 0) throw new Error(`no path: ${path}`);
  const records = new SubmissionRecords(batch);
  /** There are no leaders, so all events are submissions. */
  function flushEvents(): void {
    const end = EVENT_NUMBERS * addon.eventsDrain(engine, batch);
    for (let at = 0; at < end; at += records.sizeOf(at)) {
      const { kind } = records.read(at);
      if (kind !== SENT && kind !== DUPLICATE) continue;
      throw new Error("the ingress thread accepted a transaction itself");
    }
  }
  const ingressThreads = createIngressThreads(
    {
      clock: systemClock,
      native: addon,
      flushEvents,
      keys: engineKeys(addon, tokens),
      onDeath(cause) {
        throw new Error("an ingress thread died", { cause });
      },
    },
    {
      ...options,
      count: 1,
      engine: () => engine,
      path: () => path,
      decoder,
      host: "127.0.0.1",
      port: 0,
      socket: null,
      realtime: false,
      // All test clients have one address.
      connectionsPerAddress: 1_000_000,
      certificates:
        authority === null ? [] : [{ current: pemOf(authority.server), protocols: ["http"] }],
      upstreamConnectionsMax: options.connectionsMax,
      upstreamConnectionsPerAddress: options.connectionsMax,
      readTimeoutMs: 60_000,
      idleTimeoutMs: IDLE_TIMEOUT_MS,
      quic: null,
    },
  );
  return {
    ingressThreads,
    async start(upstreamPort) {
      const bound = ingressThreads.start(upstreamPort);
      if (authority !== null) tunnel = await startTunnel(bound.port, authority.certificate);
      return tunnel ?? bound;
    },
    async stop() {
      tunnel?.stop();
      await ingressThreads.stop();
      addon.submitPathClose(path);
      addon.decoderClose(decoder);
      addon.engineStop(engine, 0);
    },
  };
}

const pemOf = ({ certificate, key }: Issued) => ({
  certificate: Buffer.from(certificate),
  key: Buffer.from(key),
});

function engineKeys(addon: NativeEngine, tokens: readonly string[]): EngineKeys {
  const keys = new EngineKeys(addon);
  const plan = { name: "Uncharged", ratePerSecond: 0, burst: 1, shared: false };
  const rebuild = keys.startRebuild();
  for (const token of tokens) {
    rebuild.put({ ...testPrincipal("any", plan), sha256: tokenSha256(token) });
  }
  rebuild.finish();
  return keys;
}

/** Any initial value: it sends nothing. */
const ENGINE_OPTIONS = {
  binds: ["127.0.0.1:0"],
  seed: new Uint8Array(32),
  queueMax: 16,
  inFlightMax: 16,
  admissionTimeoutMs: 1_000,
  idleTimeoutMs: 1_000,
  keepAliveMs: 500,
  ackEvery: 0,
  ackDelayMs: 25,
  busyPollUs: 0,
};
