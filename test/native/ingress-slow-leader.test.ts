/**
 * A complete edge with ingress threads, one of whose leaders grants no more streams: ingress
 * threads continue with all, and what waits for that leader is queued in the engine, highest
 * priority first.
 */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LEADER_STREAMS_MAX } from "../../src/sandbox/limits.ts";
import { type Flow, startFlow, untilResponse } from "../support/flow.ts";
import { whileAllArePlanned } from "../support/planned.ts";
import { type Family, seriesValue } from "../support/prometheus.ts";
import type { BuiltTransaction } from "../support/transactions.ts";
import { until } from "../support/wait.ts";
import { native } from "./addon.ts";

const LEADERS = 3;
const SLOW = 1;
/** Its grant, and more: everything later is queued on the edge. */
const FILLING = LEADER_STREAMS_MAX + 32;
const COUNT = 40;

type Families = ReadonlyMap<string, Family>;
const one = (families: Families, name: string, labels: Readonly<Record<string, string>> = {}) =>
  seriesValue(families, `touchdown_${name}`, labels);
const all = (families: Families, name: string): number =>
  (families.get(`touchdown_${name}`)?.samples ?? []).reduce((sum, { value }) => sum + value, 0);
const ended = (families: Families): number =>
  ["acked", "failed", "dropped"].reduce(
    (sum, outcome) => sum + one(families, "deliveries_ended_total", { outcome }),
    0,
  );

describe.skipIf(native === null)(
  "an edge with ingress threads and a leader that reads nothing",
  () => {
    let flow: Flow;
    const sent: BuiltTransaction[] = [];
    beforeAll(async () => {
      flow = await startFlow({
        leaderCount: LEADERS,
        edge: {
          http: { threads: 2 },
          send: {
            engine: "native",
            leaders: LEADERS,
            delivery_ttl: "60s",
            queue_per_leader: 1_024,
          },
          landing: { resends_per_second: 0 },
        },
      });
    });
    afterAll(() => flow?.stop());

    async function post(built: BuiltTransaction): Promise<void> {
      sent.push(built);
      const { status } = await flow.postRaw(built.bytes);
      expect(status).toBe(200);
    }

    const paying = (lamports: number): BuiltTransaction =>
      flow.tipped({ tips: [{ to: flow.sandbox.tipAccount, lamports }] });
    const had = (leader: number): string[] =>
      flow.received
        .filter((it) => it.leader === leader)
        .sort((one, other) => one.stream - other.stream)
        .map(({ bytes }) => bytes.toString("base64"));
    const nameOf = ({ bytes }: BuiltTransaction): string => Buffer.from(bytes).toString("base64");

    interface Leaders {
      readonly peers: readonly { readonly queued: number; readonly inFlight: number }[];
    }

    const leaders = async (): Promise<Leaders> => {
      const page = await fetch(`${flow.sandbox.adminUrl}/leaders`);
      // The edge's own admin page.
      return (await page.json()) as Leaders;
    };

    it("sends to the others from ingress threads, and to that one in priority order", async () => {
      await untilResponse(
        "transactions that no ingress thread proxies",
        async () => {
          const before = all(await flow.metrics(), "ingress_requests_proxied_total");
          await Promise.all(Array.from({ length: 8 }, () => post(paying(1_000_000))));
          return all(await flow.metrics(), "ingress_requests_proxied_total") - before;
        },
        (proxied) => proxied === 0,
      );
      flow.sandbox.leaders[SLOW]?.setBehaviour({ reading: "stalled" });
      await untilResponse(
        "deliveries that wait for the slow one",
        async () => {
          await whileAllArePlanned(flow, LEADERS, async () => {
            for (let count = 0; count < FILLING; count += 1) await post(paying(1_000_000));
          });
          return flow.metrics();
        },
        (families) => one(families, "deliveries_queued_total") >= 32,
      );
      // 7 has no factor in common with their count, so each occurs once, unordered.
      const pays = Array.from({ length: COUNT }, (_, n) => 2_000_000 + ((7 * n) % COUNT));
      const { before, list, after } = await whileAllArePlanned(flow, LEADERS, async () => {
        const list = pays.map(paying);
        const before = await flow.metrics();
        for (const built of list) await post(built);
        return { before, list, after: await flow.metrics() };
      });
      const path = { path: "ingress_thread" };
      expect(one(after, "decoded_total", path)).toBe(one(before, "decoded_total", path) + COUNT);
      const proxied = "ingress_requests_proxied_total";
      expect(all(after, proxied)).toBe(all(before, proxied));
      await until("all at the others", () =>
        [0, 2].every((leader) => list.every((built) => had(leader).includes(nameOf(built)))),
      );
      expect(list.filter((built) => had(SLOW).includes(nameOf(built)))).toEqual([]);

      flow.sandbox.leaders[SLOW]?.setBehaviour({ reading: "all" });
      await until("all at the slow one", () =>
        list.every((built) => had(SLOW).includes(nameOf(built))),
      );
      const names = new Set(list.map(nameOf));
      const byPay = list.map((_, n) => list.findLast((__, m) => (7 * m) % COUNT === COUNT - 1 - n));
      expect(had(SLOW).filter((name) => names.has(name))).toEqual(
        byPay.map((built) => (built === undefined ? "" : nameOf(built))),
      );
    });

    it("sends it each once, and every delivery has an end", async () => {
      await untilResponse("every end", leaders, ({ peers }) =>
        peers.every(({ queued, inFlight }) => queued === 0 && inFlight === 0),
      );
      const families = await flow.metrics();
      expect(ended(families)).toBe(one(families, "deliveries_sent_total"));
      expect(one(families, "deliveries_ended_total", { outcome: "acked" })).toBe(
        flow.received.length,
      );
      for (let leader = 0; leader < LEADERS; leader += 1) {
        expect(new Set(had(leader)).size).toBe(had(leader).length);
      }
      const anywhere = new Set(flow.received.map(({ bytes }) => bytes.toString("base64")));
      expect(sent.filter((built) => !anywhere.has(nameOf(built)))).toEqual([]);
    });
  },
);
