/**
 * The processes of a load over QUIC: generator and leader in one, a cluster that names the leader,
 * and an edge that serves HTTP and QUIC clients. Each account has an API key and a public key.
 */

import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { encodeKey } from "../../src/core/encoding.ts";
import { freshIdentity, type Identity } from "../../src/send/identity.ts";
import { parsePrometheus } from "../../test/support/prometheus.ts";
import { startLeaderSide } from "../compare/leader-side.ts";
import { buildProgram, type LineProcess, startLines } from "../compare/program.ts";
import { freePort, LIKE_THE_IMAGE, startChild, untilReady } from "../load/children.ts";
import { writeCertificate } from "../load/edge-process.ts";
import type { QuicLoadOptions } from "./options.ts";

export interface BenchAccount {
  readonly name: string;
  readonly key: string;
  readonly identity: Identity;
}

export interface Stage {
  readonly httpAddress: string;
  readonly quicAddress: string;
  readonly edgePid: number;
  /** PEM of the certificate that the edge presents over HTTP; null: without TLS. */
  readonly certificate: string | null;
  /** Generator and leader. */
  readonly ends: LineProcess;
  /** Starts the program without Agave's crates with other arguments. */
  startTool(...args: string[]): LineProcess;
  /** Replaces the keys file, with this limit for each account; null: as good as none. */
  setAccounts(accounts: readonly BenchAccount[], limit: number | null): void;
  /** Requests so far by outcome. */
  outcomes(): Promise<Readonly<Record<string, number>>>;
  stop(): Promise<void>;
}

const READY_MS = 30_000;
const UNLIMITED = 1_000_000;

export function newAccounts(count: number): readonly BenchAccount[] {
  return Array.from({ length: count }, (_, number) => ({
    name: `load-${number}`,
    key: `td_${randomBytes(18).toString("base64url")}`,
    identity: freshIdentity(),
  }));
}

/** Starts everything; `stop` ends it. */
export async function startStage(
  options: QuicLoadOptions,
  accounts: readonly BenchAccount[],
): Promise<Stage> {
  const tool = buildProgram("touchdown-load");
  const program = options.agave ? buildProgram("touchdown-compare") : tool;
  const folder = mkdtempSync(join(tmpdir(), "touchdown-quic-load-"));
  const stops: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
  const stop = async (): Promise<void> => {
    for (const end of stops.splice(0).toReversed()) await end();
  };
  try {
    const identity = freshIdentity();
    const identityFile = join(folder, "identity.json");
    writeFileSync(identityFile, JSON.stringify([...identity.seed, ...identity.publicKey]));
    // With Agave's server the edge's identity has stake.
    const staked = options.agave ? [encodeKey(identity.publicKey)] : [];
    const cluster = await startLeaderSide(program, { staked, lands: true, realtime: false }, stops);
    const { ends, tipAccount, rpcUrl, wsUrl } = cluster;
    const ports = { http: await freePort(), admin: await freePort(), quic: await freePort() };
    const keysFile = join(folder, "keys.toml");
    const certificate = options.tls ? writeCertificate(folder) : null;
    const lines = [...edgeConfig(ports, folder, options), `[cluster]\nrpc_url = "${rpcUrl}"`];
    lines.push(`ws_url = "${wsUrl}"`, `[identity]\nkeypair = "${identityFile}"`);
    lines.push(`[tip]\naccounts = ["${tipAccount}"]`, `[accounts]\nkeys_file = "${keysFile}"\n`);
    const config = join(folder, "edge.toml");
    writeFileSync(config, lines.join("\n"));
    writeFileSync(keysFile, keysText(accounts, null));
    const edge = startChild([...LIKE_THE_IMAGE, "dist/main.js", "edge", "--config", config]);
    stops.push(() => edge.stop());
    const admin = `http://127.0.0.1:${ports.admin}`;
    await untilReady(edge, `${admin}/readyz`, READY_MS);
    return {
      httpAddress: `127.0.0.1:${ports.http}`,
      quicAddress: `127.0.0.1:${ports.quic}`,
      edgePid: edge.pid,
      certificate,
      ends,
      startTool(...args) {
        const child = startLines(tool, args);
        stops.push(() => child.stop());
        return child;
      },
      setAccounts(current, limit) {
        writeFileSync(keysFile, keysText(current, limit));
        edge.process.kill("SIGHUP");
      },
      outcomes: () => outcomesAt(`${admin}/metrics`),
      stop,
    };
  } catch (cause) {
    await stop();
    throw cause;
  }
}

function edgeConfig(
  ports: { readonly http: number; readonly admin: number; readonly quic: number },
  folder: string,
  { tls, threads }: QuicLoadOptions,
): string[] {
  const [certificate, key] = ["cert.pem", "key.pem"].map((name) => join(folder, name));
  return [
    'region = "load"',
    `[http]\nlisten = "127.0.0.1:${ports.http}"\ndrain_grace = "0s"\nthreads = ${threads}`,
    "connections_per_address = 20000",
    ...(tls ? [`[http.tls]\ncertificate = "${certificate}"\nkey = "${key}"`] : []),
    `[admin]\nlisten = "127.0.0.1:${ports.admin}"`,
    `[quic]\nlisten = "127.0.0.1:${ports.quic}"\nconnections = 20000`,
    "connections_per_address = 20000\nconnections_per_account = 20000",
    '[send]\nengine = "native"\nqueue_per_leader = 4096',
  ];
}

function keysText(accounts: readonly BenchAccount[], limit: number | null): string {
  const rate = limit ?? UNLIMITED;
  const plan = `[plans.Load]\nrate_per_second = ${rate}\nburst = ${rate}\n`;
  const entries = accounts.flatMap(({ name, key, identity }) =>
    [`token = "${key}"`, `public_key = "${encodeKey(identity.publicKey)}"`].map(
      (line) => `[[keys]]\n${line}\naccount = "${name}"\nplan = "Load"\n`,
    ),
  );
  return [plan, ...entries].join("\n");
}

async function outcomesAt(url: string): Promise<Record<string, number>> {
  const families = parsePrometheus(await (await fetch(url)).text());
  const counts: Record<string, number> = {};
  for (const { labels, value } of families.get("touchdown_requests_total")?.samples ?? []) {
    const outcome = labels["outcome"] ?? "";
    counts[outcome] = (counts[outcome] ?? 0) + value;
  }
  return counts;
}
