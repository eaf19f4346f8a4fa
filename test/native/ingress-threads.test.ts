/**
 * A complete edge with ingress threads on the native engine: clients see the same behaviour as
 * without, and everything done on ingress threads is accounted for.
 */

import { readdirSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Flow, startFlow, untilResponse } from "../support/flow.ts";
import { seriesValue } from "../support/prometheus.ts";
import type { BuiltTransaction } from "../support/transactions.ts";
import { until } from "../support/wait.ts";
import { native } from "./addon.ts";

const THREADS = 2;

describe.skipIf(native === null)(`an edge with ${THREADS} ingress threads`, () => {
  let flow: Flow;
  beforeAll(async () => {
    flow = await startFlow({
      edge: { http: { threads: THREADS }, send: { engine: "native", leaders: 1 } },
    });
  });
  afterAll(() => flow?.stop());

  const count = async (name: string, labels: Readonly<Record<string, string>> = {}) =>
    seriesValue(await flow.metrics(), `touchdown_${name}`, labels);

  /** Requests that ingress threads proxied so far, for any reason. */
  async function proxiedCount(): Promise<number> {
    const samples = (await flow.metrics()).get("touchdown_ingress_requests_proxied_total")?.samples;
    return (samples ?? []).reduce((sum, { value }) => sum + value, 0);
  }

  /** Until both have cached the key: from then on they accept it themselves. */
  async function warm(): Promise<void> {
    await untilResponse(
      "transactions that no ingress thread proxies",
      async () => {
        const before = await proxiedCount();
        await Promise.all(Array.from({ length: 8 }, () => flow.postRaw(flow.tipped().bytes)));
        return (await proxiedCount()) - before;
      },
      (proxied) => proxied === 0,
    );
  }

  it("accepts transactions on their threads, and reports their outcomes", async () => {
    await warm();
    const [proxied, decoded] = [
      await proxiedCount(),
      await count("decoded_total", { path: "ingress_thread" }),
    ];
    const list = Array.from({ length: 20 }, () => flow.tipped());
    const answers = await Promise.all(list.map(({ bytes }) => flow.postRaw(bytes)));
    expect(answers.map(({ json }) => json["signature"])).toEqual(list.map((it) => it.signature));
    await until("all at leaders", () => list.every(({ bytes }) => flow.deliveriesOf(bytes) > 0));
    expect(await count("decoded_total", { path: "ingress_thread" })).toBe(decoded + 20);
    expect(await proxiedCount()).toBe(proxied);
    // A receipt is available as soon as the response is.
    const last = flow.tipped();
    await flow.postRaw(last.bytes);
    const { status, json } = await flow.receipt(last.signature);
    expect(status).toBe(200);
    expect(json).toMatchObject({ signature: last.signature });
  });

  it("sends a transaction once that arrives at both simultaneously", async () => {
    await warm();
    const list = Array.from({ length: 10 }, () => flow.tipped());
    const posts = list.flatMap(({ bytes }) => Array.from({ length: 6 }, () => flow.postRaw(bytes)));
    for (const { status } of await Promise.all(posts)) expect(status).toBe(200);
    await until("all at leaders", () => list.every(({ bytes }) => flow.deliveriesOf(bytes) > 0));
    const last = flow.tipped();
    await flow.postRaw(last.bytes);
    await until("the last one", () => flow.deliveriesOf(last.bytes) > 0);
    const had = (built: BuiltTransaction): number[] =>
      flow.received.filter(({ bytes }) => bytes.equals(built.bytes)).map(({ leader }) => leader);
    for (const built of list) expect(had(built)).toEqual([...new Set(had(built))]);
  });

  it("counts each request once, on any thread", async () => {
    await warm();
    const outcome = async (name: string) => count("requests_total", { outcome: name });
    const before = {
      accepted: await outcome("accepted"),
      tip: await outcome("tip_missing"),
      unauthorized: await outcome("unauthorized"),
    };
    await Promise.all(Array.from({ length: 5 }, () => flow.postRaw(flow.tipped().bytes)));
    await flow.postRaw(flow.tipped({ tips: [] }).bytes);
    await flow.postRaw(flow.tipped().bytes, "a key that nobody has");
    expect(await outcome("accepted")).toBe(before.accepted + 5);
    expect(await outcome("tip_missing")).toBe(before.tip + 1);
    expect(await outcome("unauthorized")).toBe(before.unauthorized + 1);
    expect(await count("requests_in_flight")).toBe(0);
    expect(await count("ingress_threads")).toBe(THREADS);
  });
});

/** Threads of this process with a real-time priority; policies of proc(5) and sched(7). */
function realtimeThreads(): number {
  const SCHED_RR = "2";
  const stats = readdirSync("/proc/self/task").map((thread) =>
    readFileSync(`/proc/self/task/${thread}/stat`, "utf8"),
  );
  const policyOf = (stat: string) => stat.slice(stat.lastIndexOf(")") + 2).split(" ")[38];
  return stats.filter((stat) => policyOf(stat) === SCHED_RR).length;
}

const isPossible = process.platform === "linux" && availableParallelism() > 1;

describe.skipIf(native === null || !isPossible)("host.realtime", () => {
  it("gives ingress threads real-time priority, or reports what it requires", async () => {
    const edge = { http: { threads: 1 }, send: { engine: "native", leaders: 1 } } as const;
    expect(realtimeThreads()).toBe(0);
    const started = await startFlow({ edge: { ...edge, host: { realtime: true } } }).catch(String);
    if (typeof started === "string") {
      expect(started).toMatch(/host\.realtime.*CAP_SYS_NICE/);
      return;
    }
    expect(realtimeThreads()).toBe(1);
    const { status } = await started.postRaw(started.tipped().bytes);
    expect(status).toBe(200);
    await started.stop();
    expect(realtimeThreads()).toBe(0);
  });
});
