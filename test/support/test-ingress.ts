/**
 * A real native ingress thread before an HTTP server, for tests of client behaviour through one.
 * It has no leader, so it refuses each submission. With TEST_TLS it speaks TLS,
 * and clients reach it through a tunnel.
 */

import { systemClock } from "../../src/core/clock.ts";
import { REJECTION_NAMES } from "../../src/core/errors.ts";
import {
  REJECTED,
  type RingRecord,
  SubmissionRecords,
  VIOLATED,
} from "../../src/engine/submission-record.ts";
import { keylessResults } from "../../src/http/submit/json-rpc.ts";
import type { Principal } from "../../src/limits/access-control.ts";
import { EVENT_NUMBERS, type NativeEngine } from "../../src/native/contract.ts";
import { EngineKeys } from "../../src/native-ingress/engine-keys.ts";
import {
  createIngressThreads,
  type IngressThreads,
} from "../../src/native-ingress/ingress-threads.ts";
import { BATCH_NUMBERS } from "../../src/send/native/transport-native.ts";
import { native } from "../native/addon.ts";
import { createAuthority, type Issued } from "./authority.ts";
import { startTunnel, type Tunnel } from "./tls-tunnel.ts";

/** The addon where tests use ingress threads, which TEST_THREADS sets; null otherwise. */
export const testIngressEngine: NativeEngine | null =
  Number(process.env["TEST_THREADS"] ?? 0) > 0 ? native : null;

/**
 * Whether clients reach it through a tunnel, because it speaks TLS: it then sees the tunnel's
 * address, and the tunnel's buffers and closes are between it and them.
 */
export const isTunneled = process.env["TEST_TLS"] !== undefined;

/** What a transaction must pay, and to whom. */
export const TIP_ACCOUNT = new Uint8Array(32).fill(9);
export const LAMPORTS_MIN = 1_000;

/** How long the thread keeps an idle connection. */
export const IDLE_TIMEOUT_MS = 75_000;

export interface TestIngressOptions {
  /** The name of the forwarded header that the upstream server reads. */
  readonly forwardedHeader: string;
  readonly connectionsMax: number;
  /** The keys, by their SHA-256 in hexadecimal digits. */
  readonly principals: ReadonlyMap<string, Principal>;
  /** A submission of an account was refused for this reason. */
  readonly onRejected: (account: string, reason: string) => void;
  /** A key of an account was used as its policy does not allow. */
  readonly onViolated: (account: string, message: string) => void;
}

export interface TestIngress {
  readonly ingressThreads: IngressThreads;
  /** Listens on loopback and proxies to `upstreamPort`. */
  start(upstreamPort: number): Promise<{ readonly port: number }>;
  /** Reports what was refused so far. */
  flushEvents(): void;
  /** Resolves when all pending requests are answered, and everything is closed. */
  stop(): Promise<void>;
}

export function createTestIngress(
  addon: NativeEngine,
  { principals, onRejected, onViolated, ...options }: TestIngressOptions,
): TestIngress {
  const authority = isTunneled ? createAuthority() : null;
  let tunnel: Tunnel | null = null;
  const batch = new Float64Array(BATCH_NUMBERS);
  const engine = addon.engineStart(ENGINE_OPTIONS, () => {});
  const decoder = addon.decoderCreate(TIP_ACCOUNT, LAMPORTS_MIN, true, 0);
  if (engine <= 0 || decoder <= 0) throw new Error(`no engine or decoder: ${engine}, ${decoder}`);
  const path = addon.submitPathOpen(engine, decoder);
  if (path <= 0) throw new Error(`no path: ${path}`);
  const records = new SubmissionRecords(batch);
  /** There are no leaders, so all events are submissions. */
  function flushEvents(): void {
    for (;;) {
      const end = EVENT_NUMBERS * addon.eventsDrain(engine, batch);
      if (end <= 0) return;
      for (let at = 0; at < end; at += records.sizeOf(at)) report(records.read(at));
    }
  }
  function report({ kind, account, reason, bytes }: RingRecord): void {
    if (kind === REJECTED) onRejected(account, REJECTION_NAMES[reason] ?? `${reason}`);
    else if (kind === VIOLATED) onViolated(account, Buffer.from(bytes).toString());
    else throw new Error("the ingress thread accepted a transaction without a leader");
  }
  const ingressThreads = createIngressThreads(
    {
      clock: systemClock,
      native: addon,
      flushEvents,
      keys: engineKeys(addon, principals),
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
      keylessResults: keylessResults({ tipAccounts: ["Tip1111", "Tip2222"], version: "1.2.3" }),
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
    flushEvents,
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

function engineKeys(addon: NativeEngine, principals: ReadonlyMap<string, Principal>): EngineKeys {
  const keys = new EngineKeys(addon);
  const rebuild = keys.startRebuild();
  for (const [digest, principal] of principals) {
    rebuild.put({ ...principal, sha256: Buffer.from(digest, "hex") });
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
  busyPollUs: 0,
};
