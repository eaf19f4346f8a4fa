/** An edge with only the required addresses configured, and its cluster. */

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { encodeKey } from "../../src/core/encoding.ts";
import { type Child, freePort, LIKE_THE_IMAGE, startChild, untilReady } from "../load/children.ts";
import type { LeaderMessage } from "../load/leader-process.ts";

const LEADERS = 4;
const SLOT_MS = 250;
const READY_MS = 60_000;

export interface IdleFixture {
  readonly edgePid: number;
  stop(): Promise<void>;
}

interface Cluster {
  readonly rpcUrl: string;
  readonly wsUrl: string;
}

/** A process of leaders; the caller stops it. */
async function startCluster(leaders: number, children: Child[]): Promise<Cluster> {
  const script = fileURLToPath(new URL("../load/leader-process.ts", import.meta.url));
  const args = ["--import", "tsx", script, String(leaders), "0", String(SLOT_MS)];
  const child = startChild(args, true);
  children.push(child);
  const [message] = await once(child.process, "message");
  // Its first message is its addresses.
  return message as Extract<LeaderMessage, { kind: "ready" }>;
}

/** Runs a function that starts children, and stops them if it fails. */
async function withChildren<T>(
  start: (children: Child[], folder: string) => Promise<T>,
): Promise<T & { stop(): Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), "touchdown-idle-"));
  const children: Child[] = [];
  const stop = async (): Promise<void> => {
    for (const child of children.toReversed()) await child.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    return { ...(await start(children, folder)), stop };
  } catch (cause) {
    await stop();
    throw cause;
  }
}

/** Resolves when the edge is ready. */
export function startFixture(): Promise<IdleFixture> {
  return withChildren(async (children, folder) => {
    const { rpcUrl, wsUrl } = await startCluster(LEADERS, children);
    const [http, admin] = [await freePort(), await freePort()];
    const file = join(folder, "edge.toml");
    writeFileSync(join(folder, "keys.toml"), KEYS);
    writeFileSync(
      file,
      [
        `[http]\nlisten = "127.0.0.1:${http}"\ndrain_grace = "0s"`,
        `[admin]\nlisten = "127.0.0.1:${admin}"`,
        `[cluster]\nrpc_url = "${rpcUrl}"\nws_url = "${wsUrl}"`,
        `[tip]\naccounts = ["${encodeKey(randomBytes(32))}"]`,
        '[accounts]\nkeys_file = "keys.toml"\n',
      ].join("\n"),
    );
    const options = (process.env["IDLE_NODE_OPTIONS"] ?? "").split(" ").filter((o) => o !== "");
    const edge = startChild([
      ...options,
      ...LIKE_THE_IMAGE,
      "dist/main.js",
      "edge",
      "--config",
      file,
    ]);
    children.push(edge);
    await untilReady(edge, `http://127.0.0.1:${admin}/readyz`, READY_MS);
    return { edgePid: edge.pid };
  });
}

export interface ConnectionsFixture {
  readonly pid: number;
  /** Opens all connections; resolves when they are warm. */
  warm(): Promise<void>;
  stop(): Promise<void>;
}

/** The native engine alone, and one leader per connection. */
export function startConnections(count: number): Promise<ConnectionsFixture> {
  return withChildren(async (children) => {
    const { rpcUrl } = await startCluster(count, children);
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "getClusterNodes" });
    const response = await fetch(rpcUrl, { method: "POST", body });
    // The simulated cluster responds like the real one.
    const { result } = (await response.json()) as { result: readonly { tpuQuic: string }[] };
    const script = fileURLToPath(new URL("./connections-process.ts", import.meta.url));
    const child = startChild(["--import", "tsx", script], true);
    children.push(child);
    await once(child.process, "message");
    return {
      pid: child.pid,
      async warm() {
        child.process.send(result.map(({ tpuQuic }) => tpuQuic));
        await once(child.process, "message", { signal: AbortSignal.timeout(WARM_MS) });
      },
    };
  });
}

/** Time for 1,000 handshakes with leaders that share the processors. */
const WARM_MS = 240_000;
const KEYS = "[plans.Idle]\nrate_per_second = 50\nburst = 50\n";
