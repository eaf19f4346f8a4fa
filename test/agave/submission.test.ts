/**
 * Agave's own TPU client, `tpu-client-next`, unchanged, sends to an edge as to a validator.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { encodeKey } from "../../src/core/encoding.ts";
import { loadNative } from "../../src/native/load.ts";
import { freshIdentity, type Identity } from "../../src/send/identity.ts";
import { ENGINE, type Flow, startFlow } from "../support/flow.ts";
import { seriesValue } from "../support/prometheus.ts";
import { until } from "../support/wait.ts";
import { buildClient, leaderProgram } from "./build.ts";

const COUNT = 10_000;
const release = dirname(leaderProgram());
const isNative = ENGINE === "native" && loadNative().kind === "loaded";

/** What the client counted: transactions written, streams and connections that the edge ended. */
interface ClientCounts {
  readonly sent: number;
  readonly stopped: number;
  readonly lost: number;
  readonly closed: number;
}

describe.skipIf(!isNative)("tpu-client-next at an edge", () => {
  const client = freshIdentity();
  const folder = mkdtempSync(join(tmpdir(), "touchdown-submission-"));
  let flow: Flow;

  beforeAll(buildClient);
  afterEach(() => flow?.stop());
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  async function startEdge(): Promise<void> {
    const key = `public_key = "${encodeKey(client.publicKey)}"`;
    flow = await startFlow({
      leaderCount: 2,
      // Slower than the client: the edge's stream credit has to hold it back.
      keys: [
        `[[keys]]\n${key}\naccount = "tpu"\nplan = "Paced"\n`,
        "[plans.Paced]\nrate_per_second = 1_000\nburst = 64\n",
      ].join("\n"),
      edge: {
        http: { threads: 1 },
        send: { engine: "native" },
        quic: { listen: "127.0.0.1:0" },
        landing: { resends_per_second: 0 },
      },
    });
  }

  /** Sends these with the client, and returns what it counted once it has ended. */
  async function send(identity: Identity, transactions: readonly Uint8Array[]) {
    const keypair = join(folder, "keypair.json");
    writeFileSync(keypair, JSON.stringify([...identity.seed, ...identity.publicKey]));
    const { quicAddress } = flow.sandbox.edge;
    if (quicAddress === null) throw new Error("the edge serves no QUIC clients");
    const child = spawn(join(release, "agave-client"), [quicAddress, keypair]);
    let output = "";
    child.stdout.on("data", (data: Buffer) => {
      output += data.toString();
    });
    child.stderr.pipe(process.stderr);
    for (const bytes of transactions) {
      child.stdin.write(`${Buffer.from(bytes).toString("base64")}\n`);
    }
    child.stdin.end();
    await once(child, "close");
    const counts: ClientCounts = JSON.parse(output);
    return counts;
  }

  async function requests(outcome: string): Promise<number> {
    return seriesValue(await flow.metrics(), "touchdown_requests_total", { outcome }) ?? 0;
  }

  it("sends ten thousand, as fast as its limit allows, and leaders receive each", async () => {
    await startEdge();
    const sent = Array.from({ length: COUNT }, () => flow.tipped().bytes);
    const counts = await send(client, sent);
    expect(counts).toEqual({ sent: COUNT, stopped: 0, lost: 0, closed: 0 });
    expect(await requests("accepted")).toBe(COUNT);
    const atLeaders = () => new Set(flow.received.map(({ bytes }) => bytes.toString("latin1")));
    await until("each is at a leader", () => atLeaders().size === COUNT);
    const received = atLeaders();
    const missing = sent.filter((bytes) => !received.has(Buffer.from(bytes).toString("latin1")));
    expect(missing).toEqual([]);
  });

  it("is closed without a registered key, and nothing is accepted", async () => {
    await startEdge();
    const { closed } = await send(freshIdentity(), [flow.tipped().bytes]);
    expect(closed).toBeGreaterThan(0);
    expect(await requests("accepted")).toBe(0);
    expect(await requests("unauthorized")).toBeGreaterThan(0);
  });
});
