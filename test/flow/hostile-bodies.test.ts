/**
 * 10,000 bodies that no well-meaning client sends, on both endpoints of an edge in a separate
 * process: each gets a response in time, none an internal error, nothing crashes, and memory does
 * not grow. HOSTILE_SEED selects other bodies; a failure reports its seed.
 */

import { Agent, type IncomingMessage, request } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type EdgeProcess,
  type Network,
  startEdgeProcess,
  startNetwork,
  untilReady,
} from "../support/edge-process.ts";
import { RAW_PATH, RPC_PATH, WIDE_KEY } from "../support/flow.ts";
import { createHostileBodies } from "../support/hostile-bodies.ts";
import { seriesValue } from "../support/prometheus.ts";
import { until } from "../support/wait.ts";

const WARM_UP = 3_000;
const COUNT = 10_000;
const CONNECTIONS = 12;
/** The response deadline configured for the edge, plus a margin for a busy machine. */
const ANSWER_MS_MAX = 5_000 + 25_000;
const GROWTH_BYTES_MAX = 64 * 1024 * 1024;
const SEED = Number(process.env["HOSTILE_SEED"] ?? 1);

let network: Network;
let edge: EdgeProcess;
beforeAll(async () => {
  network = await startNetwork(2);
  edge = await startEdgeProcess(network);
  await untilReady(edge);
});
afterAll(async () => {
  await edge?.remove();
  await network?.stop();
});

interface EdgeResponse {
  readonly status: number;
  readonly body: string;
}

function send(agent: Agent, path: string, body: Uint8Array): Promise<EdgeResponse> {
  return new Promise((resolve, reject) => {
    const sent = request(
      edge.url + path,
      {
        agent,
        method: "POST",
        headers: { "api-x-token": WIDE_KEY, "content-length": body.length },
        timeout: ANSWER_MS_MAX,
      },
      (response: IncomingMessage) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () =>
          resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() }),
        );
      },
    );
    sent.on("timeout", () => sent.destroy(new Error(`no response within ${ANSWER_MS_MAX} ms`)));
    sent.on("error", reject);
    sent.end(body);
  });
}

/** What is wrong with a response; null for nothing. */
function complaint(path: string, { status, body }: EdgeResponse): string | null {
  if (![200, 400, 413].includes(status)) return `status ${status}: ${body.slice(0, 300)}`;
  let json: unknown;
  try {
    json = JSON.parse(body);
  } catch {
    return `a response that is not JSON: ${body.slice(0, 300)}`;
  }
  const responses = Array.isArray(json) ? json : [json];
  const isWhole = (answer: object): boolean =>
    path === RAW_PATH
      ? "success" in answer && ("signature" in answer || ("error" in answer && "reason" in answer))
      : "jsonrpc" in answer && "id" in answer && ("result" in answer || "error" in answer);
  return responses.every(isWhole) ? null : `a response that is neither: ${body.slice(0, 300)}`;
}

/** Sends `count` bodies over several connections; returns the count of each status. */
async function attack(count: number, seed: number): Promise<ReadonlyMap<number, number>> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  const bodies = createHostileBodies(seed, () => network.tipped());
  const statuses = new Map<number, number>();
  let sent = 0;
  const worker = async (): Promise<void> => {
    while (sent < count) {
      sent += 1;
      const path = sent % 2 === 0 ? RAW_PATH : RPC_PATH;
      const { kind, bytes } = bodies.next(path === RPC_PATH);
      const where = `seed ${seed}, ${kind} of ${bytes.length} bytes to ${path}`;
      let answer: EdgeResponse;
      try {
        answer = await send(agent, path, bytes);
      } catch (cause) {
        throw new Error(`${where}: ${String(cause)}; ${edge.output().slice(-2000)}`, { cause });
      }
      const wrong = complaint(path, answer);
      if (wrong !== null) throw new Error(`${where}: ${wrong}; ${edge.output().slice(-2000)}`);
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
    }
  };
  try {
    await Promise.all(Array.from({ length: CONNECTIONS }, worker));
  } finally {
    agent.destroy();
  }
  return statuses;
}

describe("hostile bodies", () => {
  it("are all answered, without a crash, a 500 or memory growth, and valid ones pass", async () => {
    await attack(WARM_UP, SEED);
    const before = await edge.metrics();
    const statuses = await attack(COUNT, SEED + 1);
    const after = await edge.metrics();

    expect([...statuses.values()].reduce((sum, count) => sum + count, 0)).toBe(COUNT);
    // Each kind of response occurred; otherwise the bodies are not what they are meant to be.
    for (const status of [200, 400, 413]) expect(statuses.get(status)).toBeGreaterThan(10);

    const grown = (name: string): number => seriesValue(after, name) - seriesValue(before, name);
    expect(grown("process_resident_memory_bytes")).toBeLessThan(GROWTH_BYTES_MAX);
    expect(grown("nodejs_external_memory_bytes")).toBeLessThan(GROWTH_BYTES_MAX);
    const requests = (outcome: string): number =>
      seriesValue(after, "touchdown_requests_total", { outcome });
    expect(requests("internal")).toBe(0);
    expect(requests("overloaded")).toBe(0);
    expect(seriesValue(after, "touchdown_requests_in_flight")).toBe(0);
    expect(seriesValue(after, "touchdown_decode_worker_restarts_total")).toBe(0);
    for (const reason of ["undecodable", "tip_missing", "signature_invalid", "parse_error"]) {
      expect(requests(reason)).toBeGreaterThan(50);
    }

    expect(edge.exitCode).toBeNull();
    expect(edge.output()).not.toMatch(/"level":"error"/);
    const { bytes } = network.tipped();
    expect(await edge.post(bytes)).toBe(200);
    await until("a good one at a leader", () => network.deliveriesOf(bytes) > 0);
  });
});
