/**
 * The edge sends transactions that can land first. It ends a transaction with an unknown blockhash
 * within seconds, and ranks later ones of that account below those of an account without history.
 */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SHARE_START, SHARE_WEIGHT } from "../../src/landing/landing-shares.ts";
import { type Flow, OTHER_KEY, startFlow, untilResponse, WIDE_KEY } from "../support/flow.ts";
import { whileAllArePlanned } from "../support/planned.ts";
import type { BuiltTransaction } from "../support/transactions.ts";
import { until } from "../support/wait.ts";

const LEADERS = 2;
const SLOW = 1;
const COUNT = 20;

let flow: Flow;
beforeEach(async () => {
  flow = await startFlow({
    leaderCount: LEADERS,
    edge: {
      send: { leaders: LEADERS, delivery_ttl: "60s", queue_per_leader: 1_024 },
      landing: { resends_per_second: 0 },
    },
  });
});
afterEach(() => flow?.stop());

/** Its blockhash is in no block of the cluster. */
async function post(lamports: number, key = WIDE_KEY): Promise<BuiltTransaction> {
  const built = flow.tipped({ tips: [{ to: flow.sandbox.tipAccount, lamports }] });
  expect((await flow.postRaw(built.bytes, key)).status).toBe(200);
  return built;
}

const receiptOf = async ({ signature }: BuiltTransaction, key = WIDE_KEY) =>
  (await flow.receipt(signature, key)).json;

interface Leaders {
  readonly peers: readonly { readonly address: string; readonly queued: number }[];
}

async function leaders(): Promise<Leaders> {
  const page = await fetch(`${flow.sandbox.adminUrl}/leaders`);
  // The edge's own admin page.
  return (await page.json()) as Leaders;
}

async function queuedAtSlow(): Promise<number> {
  const address = flow.sandbox.leaders[SLOW]?.address;
  return (await leaders()).peers.find((peer) => peer.address === address)?.queued ?? 0;
}

/** Posts with these keys and tips; again, until the plan had every leader while all arrived. */
const postToAll = (
  ...posts: readonly (readonly [lamports: number, key: string])[]
): Promise<readonly BuiltTransaction[]> =>
  whileAllArePlanned(flow, LEADERS, async () => {
    const list: BuiltTransaction[] = [];
    for (const [lamports, key] of posts) list.push(await post(lamports, key));
    return list;
  });

/** Posts with `WIDE_KEY` until so many ended without landing that it lowers the account's rank. */
async function endWithoutLanding(): Promise<void> {
  const list = await Promise.all(Array.from({ length: COUNT }, () => post(1_000_000)));
  for (const built of list) {
    const { state, landing } = await untilResponse(
      "its end",
      () => receiptOf(built),
      ({ state }) => state === "dropped",
    );
    expect({ state, landing }).toMatchObject({ landing: { reason: "blockhash_unknown" } });
  }
  const share = SHARE_START * (1 - SHARE_WEIGHT) ** COUNT;
  await untilResponse(
    "a rank by all ends",
    async () => receiptOf(await post(1_000_000)),
    (receipt) => Number(receipt["priority_lamports"]) <= Math.round(1_000_000 * share),
  );
}

describe("an account whose transactions cannot land", () => {
  it("starts with the share of a new account, and falls below it", async () => {
    const first = await post(1_000_000);
    expect(await receiptOf(first)).toMatchObject({ priority_lamports: 1_000_000 * SHARE_START });
    await endWithoutLanding();
  });

  it("gets a leader's scarce credit after a new account that offers less", async () => {
    await endWithoutLanding();
    flow.sandbox.leaders[SLOW]?.setBehaviour({ reading: "stalled" });
    await untilResponse(
      "a queue",
      async () => {
        for (let count = 0; count < 50; count += 1) await post(1_000_000);
        return queuedAtSlow();
      },
      (queued) => queued > 0,
    );
    const order = await postToAll(
      [3_000_000, WIDE_KEY],
      [3_100_000, WIDE_KEY],
      [2_900_000, OTHER_KEY],
    );
    expect(await queuedAtSlow()).toBeGreaterThan(order.length);
    flow.sandbox.leaders[SLOW]?.setBehaviour({ reading: "all" });
    const placeOf = ({ bytes }: BuiltTransaction): number => {
      const atSlow = flow.received.filter(({ leader }) => leader === SLOW);
      return atSlow.find((it) => it.bytes.equals(bytes))?.stream ?? -1;
    };
    await until("all at the slow one", () => order.every((built) => placeOf(built) >= 0));
    const [less, more, other] = order.map(placeOf);
    expect(other).toBeLessThan(more ?? 0);
    expect(more).toBeLessThan(less ?? 0);
  });
});
