/**
 * An edge with a leader that reads nothing, with either engine: what waits for it goes in order of
 * what it pays, the other leaders do not notice, and no request is proxied because of it.
 */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LEADER_STREAMS_MAX } from "../../src/sandbox/limits.ts";
import { ENGINE, type Flow, startFlow, THREADS, untilResponse } from "../support/flow.ts";
import { whileAllArePlanned } from "../support/planned.ts";
import { type Family, seriesValue } from "../support/prometheus.ts";
import type { BuiltTransaction } from "../support/transactions.ts";
import { until } from "../support/wait.ts";

const LEADERS = 3;
const SLOW = 1;
/** Its grant, and more: everything later waits. */
const FILLING = LEADER_STREAMS_MAX + 8;
const COUNT = 420;
const BEST_LAMPORTS = 50_000_000;

type Families = ReadonlyMap<string, Family>;
const one = (families: Families, name: string, labels: Readonly<Record<string, string>> = {}) =>
  seriesValue(families, `touchdown_${name}`, labels);
const all = (families: Families, name: string): number =>
  (families.get(`touchdown_${name}`)?.samples ?? []).reduce((sum, { value }) => sum + value, 0);
const saturated = (families: Families): number =>
  one(families, "deliveries_unacknowledged_total", { reason: "leader_saturated" });
const nameOf = ({ bytes }: { readonly bytes: Uint8Array }): string =>
  Buffer.from(bytes).toString("base64");

async function start(send: object): Promise<Flow> {
  return startFlow({
    leaderCount: LEADERS,
    edge: { send: { leaders: LEADERS, ...send }, landing: { resends_per_second: 0 } },
  });
}

const paying = (flow: Flow, lamports: number): BuiltTransaction =>
  flow.tipped({ tips: [{ to: flow.sandbox.tipAccount, lamports }] });

async function post(flow: Flow, built: BuiltTransaction): Promise<BuiltTransaction> {
  const { status } = await flow.postRaw(built.bytes);
  expect(status).toBe(200);
  return built;
}

/** What a leader has received, in the order in which it was sent. */
const had = (flow: Flow, leader: number): string[] =>
  flow.received
    .filter((it) => it.leader === leader)
    .sort((one, other) => one.stream - other.stream)
    .map(nameOf);

/** Sends what pays the minimum until that shows that deliveries wait for the slow leader. */
async function saturate(flow: Flow, shows: (families: Families) => boolean): Promise<void> {
  flow.sandbox.leaders[SLOW]?.setBehaviour({ reading: "stalled" });
  await untilResponse(
    "deliveries that wait",
    async () => {
      for (let count = 0; count < FILLING; count += 1) await post(flow, paying(flow, 1_000_000));
      return flow.metrics();
    },
    shows,
  );
}

interface LeadersPage {
  readonly peers: readonly { readonly queued: number }[];
}

/** The edge's own admin page. */
async function leadersOf(flow: Flow): Promise<LeadersPage> {
  const page = await fetch(`${flow.sandbox.adminUrl}/leaders`);
  return (await page.json()) as LeadersPage;
}

describe(`a leader that reads nothing (${ENGINE}, ${THREADS} threads)`, () => {
  let flow: Flow;
  beforeAll(async () => {
    flow = await start({ delivery_ttl: "60s", queue_per_leader: 16_384 });
    // While no leader is connected, ingress threads leave transactions to the main thread.
    await untilResponse(
      "a transaction that no ingress thread proxies",
      async () => {
        const before = all(await flow.metrics(), "ingress_requests_proxied_total");
        await Promise.all(Array.from({ length: 8 }, () => post(flow, paying(flow, 1_000_000))));
        return all(await flow.metrics(), "ingress_requests_proxied_total") - before;
      },
      (proxied) => proxied === 0,
    );
  });
  afterAll(() => flow?.stop());

  it("receives the best-paid of 420 first, though it came last, then others by rank", async () => {
    await saturate(flow, (families) => one(families, "deliveries_queued_total") >= 8);
    // 11 has no factor in common with their count, so each amount occurs once, unordered.
    const list = await whileAllArePlanned(flow, LEADERS, async () => {
      const before = await flow.metrics();
      const posted: BuiltTransaction[] = [];
      for (let n = 0; n < COUNT - 1; n += 1) {
        posted.push(await post(flow, paying(flow, 2_000_000 + ((11 * n) % (COUNT - 1)) * 1_000)));
      }
      posted.push(await post(flow, paying(flow, BEST_LAMPORTS)));
      const proxied = "ingress_requests_proxied_total";
      expect(all(await flow.metrics(), proxied)).toBe(all(before, proxied));
      return posted;
    });

    // The others have all of them while it has none.
    await until("all at the others", () =>
      [0, 2].every((leader) => {
        const names = new Set(had(flow, leader));
        return list.every((built) => names.has(nameOf(built)));
      }),
    );
    const names = new Set(list.map(nameOf));
    expect(had(flow, SLOW).filter((name) => names.has(name))).toEqual([]);

    flow.sandbox.leaders[SLOW]?.setBehaviour({ reading: "all" });
    const arrived = () => had(flow, SLOW).filter((name) => names.has(name));
    await until("all at the slow one", () => arrived().length === COUNT);
    const byRank = list
      .map((built, n) => ({ built, pays: n === COUNT - 1 ? COUNT : (11 * n) % (COUNT - 1) }))
      .sort((a, b) => b.pays - a.pays)
      .map(({ built }) => nameOf(built));
    expect(arrived()).toEqual(byRank);
    expect(saturated(await flow.metrics())).toBe(0);
  });
});

describe(`a full queue of a leader (${ENGINE}, ${THREADS} threads)`, () => {
  const QUEUE = 8;
  let flow: Flow;
  beforeAll(async () => {
    flow = await start({ delivery_ttl: "60s", queue_per_leader: QUEUE });
  });
  afterAll(() => flow?.stop());

  it("keeps the best-paid, and drops the others as leader_saturated", async () => {
    await saturate(flow, (families) => saturated(families) > 0);
    let lamports = 5_000_000;
    const { best, least } = await whileAllArePlanned(flow, LEADERS, async () => {
      const best: BuiltTransaction[] = [];
      for (let n = 0; n < QUEUE; n += 1) best.push(await post(flow, paying(flow, ++lamports)));
      return { best, least: await post(flow, paying(flow, 1_500_000)) };
    });
    const families = await untilResponse(
      "what was dropped",
      () => flow.metrics(),
      (now) => saturated(now) > QUEUE && one(now, "deliveries_evicted_total") > QUEUE,
    );
    // Each of an ingress thread that finds no place is offered once more, by the main thread.
    const evicted = one(families, "deliveries_evicted_total");
    expect(evicted).toBeGreaterThanOrEqual(saturated(families));
    expect(evicted).toBeLessThanOrEqual(2 * saturated(families));
    flow.sandbox.leaders[SLOW]?.setBehaviour({ reading: "all" });
    await until("the best at the slow one", () => {
      const names = had(flow, SLOW);
      return best.every((built) => names.includes(nameOf(built)));
    });
    const names = new Set(best.map(nameOf));
    const order = had(flow, SLOW).filter((name) => names.has(name));
    expect(order).toEqual(best.map(nameOf).reverse());
    expect(had(flow, SLOW)).not.toContain(nameOf(least));
    await until("it at the others", () =>
      [0, 2].every((leader) => had(flow, leader).includes(nameOf(least))),
    );
  });
});

describe(`a delivery that waits too long (${ENGINE}, ${THREADS} threads)`, () => {
  let flow: Flow;
  beforeAll(async () => {
    flow = await start({ delivery_ttl: "300ms", queue_per_leader: 2_048 });
  });
  afterAll(() => flow?.stop());

  it("is dropped as leader_saturated, and not sent later", async () => {
    await saturate(flow, (families) => saturated(families) > 0);
    const untilNothingWaits = () =>
      untilResponse(
        "the end of all that waits",
        () => leadersOf(flow),
        ({ peers }) => peers.every(({ queued }) => queued === 0),
      );
    // So that the next one alone waits.
    await untilNothingWaits();
    const late = await whileAllArePlanned(flow, LEADERS, () => post(flow, paying(flow, 9_000_000)));
    await until("it at the others", () =>
      [0, 2].every((leader) => had(flow, leader).includes(nameOf(late))),
    );
    await untilNothingWaits();
    expect(one(await flow.metrics(), "deliveries_evicted_total")).toBe(0);
    flow.sandbox.leaders[SLOW]?.setBehaviour({ reading: "all" });
    await untilResponse(
      "a later one at the slow one",
      async () => nameOf(await post(flow, paying(flow, 1_000_000))),
      () => had(flow, SLOW).length > LEADER_STREAMS_MAX,
    );
    expect(had(flow, SLOW)).not.toContain(nameOf(late));
  });
});
