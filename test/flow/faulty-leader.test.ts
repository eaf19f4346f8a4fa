/**
 * One leader of four misbehaves, in every known way: a complete edge over real sockets reacts as
 * `src/send/close-policy.ts` specifies, the others receive everything immediately, and each
 * delivery and each transaction has exactly one end with the right reason.
 */

import { afterEach, describe, expect, it } from "vitest";
import { NS_PER_MS, systemClock } from "../../src/core/clock.ts";
import type { LeaderBehaviour } from "../../src/sandbox/leader.ts";
import { CLOSE_POLICIES, type CloseReason } from "../../src/send/close-policy.ts";
import { type Flow, startFlow, untilResponse } from "../support/flow.ts";
import { expectScrapedBalance } from "../support/landing-balance.ts";
import { seriesValue } from "../support/prometheus.ts";
import { until } from "../support/wait.ts";

interface LeaderFault {
  readonly name: string;
  readonly behaviour: Partial<LeaderBehaviour>;
  /** How its connections end; null: they do not end. */
  readonly end: CloseReason | null;
  /** Reasons with which deliveries to it may end, other than acknowledged. */
  readonly reasons: readonly string[];
}

const ROUND_NS = 50 * NS_PER_MS;
/** The last: it had not granted a stream yet when the time of a delivery was over. */
const AWAY = ["not_connected", "connection_lost", "expired", "leader_saturated"];
const close = (code: number): Partial<LeaderBehaviour> => ({ closeNew: { code, reason: "no" } });

const LEADER_FAULTS: readonly LeaderFault[] = [
  { name: "is silent", behaviour: { admission: "silent" }, end: "unanswered", reasons: AWAY },
  { name: "refuses", behaviour: { admission: "refuse" }, end: "refused", reasons: AWAY },
  {
    name: "never grants a stream",
    behaviour: { streamsMax: 0 },
    end: null,
    reasons: AWAY,
  },
  {
    name: "stops reading",
    behaviour: { streamsMax: 4, reading: "stalled" },
    end: null,
    reasons: AWAY,
  },
  { name: "evicts", behaviour: { evictAfterMs: 200 }, end: "evicted", reasons: AWAY },
  { name: "closes with code 1", behaviour: close(1), end: "evicted", reasons: AWAY },
  { name: "closes with code 2", behaviour: close(2), end: "disallowed", reasons: AWAY },
  { name: "closes with code 4", behaviour: close(4), end: "too_many", reasons: AWAY },
  { name: "closes with code 5", behaviour: close(5), end: "invalid_stream", reasons: AWAY },
  { name: "wants a token first", behaviour: { retry: true }, end: null, reasons: AWAY },
  {
    name: "idles six seconds at most",
    behaviour: { idleTimeoutMs: 6_000 },
    end: null,
    reasons: AWAY,
  },
  { name: "loses first datagrams", behaviour: { dropFirst: 1 }, end: null, reasons: AWAY },
  { name: "loses late fragments", behaviour: { fragmentMs: 0 }, end: null, reasons: AWAY },
];

interface Delivery {
  readonly identity: string;
  readonly address: string;
  readonly state: string;
  readonly reason: string | null;
}

interface LeaderStats {
  readonly address: string;
  readonly ends: Readonly<Record<string, number>>;
  readonly attempts: number;
}

let flow: Flow | null = null;
afterEach(async () => {
  await flow?.stop();
  flow = null;
});

async function statsOf({ sandbox }: Flow, address: string): Promise<LeaderStats> {
  const response = await fetch(`${sandbox.adminUrl}/leaders/stats`);
  // Its shape is tested with the module that creates it.
  const { leaders } = (await response.json()) as { readonly leaders: readonly LeaderStats[] };
  const stats = leaders.find((it) => it.address === address);
  if (stats === undefined) throw new Error(`no card of ${address}`);
  return stats;
}

async function deliveriesOf(running: Flow, signature: string): Promise<readonly Delivery[]> {
  const ended = (deliveries: readonly Delivery[]) =>
    deliveries.every(({ state }) => ["acked", "failed", "dropped"].includes(state));
  // Its shape is tested with the module that creates it.
  const listed = (json: Readonly<Record<string, unknown>>) =>
    json["leaders"] as readonly Delivery[];
  const receipt = await untilResponse(
    "every delivery to end",
    () => running.receipt(signature),
    ({ json }) => ended(listed(json)),
  );
  return listed(receipt.json);
}

/** Posts transactions, a few at a time, until `done`; returns those that were accepted. */
async function postUntil(running: Flow, done: () => Promise<boolean>): Promise<readonly string[]> {
  const signatures: string[] = [];
  for (let round = 0; round < 1_000; round += 1) {
    if (round >= 20 && (await done())) return signatures;
    const built = Array.from({ length: 2 }, () => running.tipped());
    const responses = await Promise.all(built.map(({ bytes }) => running.postRaw(bytes)));
    for (const { status, json } of responses) {
      expect({ status, json }).toMatchObject({ status: 200 });
      signatures.push(String(json["signature"]));
    }
    const nextNs = systemClock.nowNs() + ROUND_NS;
    await until("the next round", () => systemClock.nowNs() >= nextNs);
  }
  throw new Error("waited in vain for the reaction");
}

async function expectBalance(running: Flow, accepted: number): Promise<void> {
  const metrics = await running.metrics();
  expect(expectScrapedBalance(metrics).accepted).toBe(accepted);
  const deliveries = (outcome: string) =>
    seriesValue(metrics, "touchdown_deliveries_ended_total", { outcome });
  expect(seriesValue(metrics, "touchdown_deliveries_sent_total")).toBe(
    deliveries("acked") + deliveries("failed"),
  );
}

describe("a leader that", () => {
  it.each(LEADER_FAULTS)("$name affects no other", async ({ behaviour, end, reasons }) => {
    const running = await startFlow({
      // Nothing is resent automatically, so that deliveries can be counted.
      edge: { landing: { resends_per_second: 0 }, send: { leaders: 4, delivery_ttl: "300ms" } },
    });
    flow = running;
    const [vicious] = running.sandbox.leaders;
    if (vicious === undefined) throw new Error("no leader");
    const { address } = vicious;
    vicious.setBehaviour(behaviour);
    vicious.closeAll(0, "again");
    const { attempts } = await statsOf(running, address);
    const signatures = await postUntil(running, async () => {
      const stats = await statsOf(running, address);
      return end === null ? stats.attempts > attempts : (stats.ends[end] ?? 0) > 0;
    });

    for (const signature of signatures) {
      for (const delivery of await deliveriesOf(running, signature)) {
        if (delivery.address === address && delivery.state !== "acked") {
          expect(reasons).toContain(delivery.reason);
        } else expect(delivery).toMatchObject({ state: "acked", reason: null });
      }
    }
    await expectBalance(running, signatures.length);
    const { ends } = await statsOf(running, address);
    const names = Object.keys(ends).filter((name) => name !== "closed");
    expect(names).toEqual(end === null ? [] : [end]);
    if (end !== null) expect(CLOSE_POLICIES).toHaveProperty(end);
  });
});

describe("leaders that no longer read", () => {
  it("are reported as overloaded once their queues are full, not as no_leader", async () => {
    const send = { queue_per_leader: 3, delivery_ttl: "60s" };
    flow = await startFlow({ leaderCount: 1, edge: { send } });
    const { sandbox, postRaw, postRpc, tipped, metrics } = flow;
    sandbox.leaders[0]?.setBehaviour({ reading: "stalled" });
    const refused = await untilResponse(
      "a leader that is full",
      () => postRaw(tipped().bytes),
      ({ status }) => status !== 200,
    );
    const json = { success: false, reason: "overloaded" };
    expect(refused).toMatchObject({ status: 503, retryAfter: "1", json });
    expect(await postRpc([tipped().base64])).toMatchObject({
      status: 503,
      json: { error: { code: -32603, data: { reason: "overloaded", retryable: true } } },
    });
    const families = await metrics();
    expect(seriesValue(families, "touchdown_connections_live")).toBe(1);
    expect(seriesValue(families, "touchdown_requests_total", { outcome: "overloaded" })).toBe(2);
  });
});
