/** An edge with nothing configured but where things are, and the cluster that it looks at. */

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { encodeKey } from "../../src/core/encoding.ts";
import { type Child, freePort, startChild, untilReady } from "../load/children.ts";
import type { LeaderMessage } from "../load/leader-process.ts";

const LEADERS = 4;
const SLOT_MS = 250;
const READY_MS = 60_000;

export interface IdleScene {
  readonly edgePid: number;
  stop(): Promise<void>;
}

/** Resolves when the edge is ready. */
export async function startScene(): Promise<IdleScene> {
  const folder = mkdtempSync(join(tmpdir(), "touchdown-idle-"));
  const children: Child[] = [];
  const stop = async (): Promise<void> => {
    for (const child of children.toReversed()) await child.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const script = fileURLToPath(new URL("../load/leader-process.ts", import.meta.url));
    const args = ["--import", "tsx", script, String(LEADERS), "0", String(SLOT_MS)];
    const leaders = startChild(args, true);
    children.push(leaders);
    const [cluster] = await once(leaders.process, "message");
    const [http, admin] = [await freePort(), await freePort()];
    const file = join(folder, "edge.toml");
    writeFileSync(join(folder, "keys.toml"), KEYS);
    // Its first message tells where it listens.
    const { rpcUrl, wsUrl } = cluster as Extract<LeaderMessage, { kind: "ready" }>;
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
    const edge = startChild([...options, "dist/main.js", "edge", "--config", file]);
    children.push(edge);
    await untilReady(edge, `http://127.0.0.1:${admin}/readyz`, READY_MS);
    return { edgePid: edge.pid, stop };
  } catch (cause) {
    await stop();
    throw cause;
  }
}

const KEYS = "[plans.Idle]\nrate_per_second = 50\nburst = 50\n";
