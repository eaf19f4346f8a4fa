/**
 * A node that replays one slot twice, in two banks: over gRPC an edge sees transactions in both,
 * and only what is in the confirmed bank has landed.
 */

import { expect, it } from "vitest";
import { decodeBase58 } from "../../src/core/encoding.ts";
import { startFakeGeyser } from "../support/fake-geyser.ts";
import { untilResponse } from "../support/flow.ts";
import { expectScrapedBalance } from "../support/landing-balance.ts";
import { type Landed, useLanding } from "../support/landing-fixture.ts";
import { seriesValue } from "../support/prometheus.ts";
import { until } from "../support/wait.ts";

/** `SlotStatus` in Yellowstone's description. */
const [CONFIRMED, FINALIZED] = [1, 2];
/** The ids of the banks: two of one slot, and that of a later one. */
const [GIVEN_UP, KEPT, LATER] = [1_000, 1_001, 1_002];
/** `InsufficientFundsForFee` in the network's own encoding. */
const FAILED = Buffer.from([4, 0, 0, 0]);

const fixture = useLanding();

/** An edge that learns only over gRPC what landed. */
async function start() {
  const geyser = await startFakeGeyser();
  const landed = new Map<string, number>();
  const network = await fixture.network({
    cluster: {
      blockhashAgeMax: 5_000,
      onLanded: ({ signature, slot }) => void landed.set(signature, slot),
    },
  });
  network.cluster.behave({ statuses: "unsupported" });
  const running = await fixture.edge({ cluster: { grpc_url: geyser.url } }, network);
  await until("its stream", () => geyser.requests.length > 0);
  const see = (signature: string, slot: number, bank_id: number, err?: Buffer): void => {
    const bytes = Buffer.from(decodeBase58(signature, 64) ?? []);
    const error = err === undefined ? {} : { err: { err } };
    geyser.say({ transaction_status: { slot, signature: bytes, bank_id, ...error } });
  };
  return { geyser, landed, network, running, see };
}

/** The receipt, once its landing has this state and error. */
const receiptWith = (running: Landed, signature: string, state: string, error: unknown = null) =>
  untilResponse(
    `a receipt that is ${state}`,
    () => running.receipt(signature),
    ({ landing }) => landing["state"] === state && landing["error"] === error,
  );

it("only what the confirmed bank of a slot holds has landed", async () => {
  const { geyser, landed, network, running, see } = await start();
  try {
    const [both, one] = [network.tipped(), network.tipped()];
    for (const { bytes } of [both, one]) expect(await running.post(bytes)).toBe(200);
    await until(
      "blocks that hold them",
      () => landed.has(both.signature) && landed.has(one.signature),
    );
    const slot = Math.max(...landed.values());

    see(both.signature, slot, GIVEN_UP, FAILED);
    see(one.signature, slot, GIVEN_UP);
    await receiptWith(running, both.signature, "processed", "InsufficientFundsForFee");
    await receiptWith(running, one.signature, "processed");
    see(both.signature, slot, KEPT);
    await receiptWith(running, both.signature, "processed");

    const before = network.deliveriesOf(one.bytes);
    geyser.say({ slot: { slot, status: CONFIRMED, bank_id: KEPT } });
    expect(await running.ended(both.signature)).toMatchObject({
      state: "landed",
      landing: { slot, error: null },
    });
    const { landing } = await receiptWith(running, one.signature, "in_flight");
    expect(landing).toMatchObject({ slot: null });
    await until("a resend", () => network.deliveriesOf(one.bytes) > before);

    // Its later slot is finalized without ever being announced as confirmed.
    see(one.signature, slot + 4, LATER, FAILED);
    await receiptWith(running, one.signature, "processed", "InsufficientFundsForFee");
    geyser.say({ slot: { slot: slot + 4, status: FINALIZED, bank_id: LATER } });
    expect(await running.ended(one.signature)).toMatchObject({
      state: "landed",
      landing: { slot: slot + 4, error: "InsufficientFundsForFee" },
    });
    const metrics = await running.metrics();
    const rolledBack = { result: "rolled_back" };
    expect(seriesValue(metrics, "touchdown_processed_total", rolledBack)).toBe(1);
    expectScrapedBalance(metrics);
  } finally {
    geyser.stop();
  }
});

it("what was seen over an earlier stream lands with any confirmation of its slot", async () => {
  const { geyser, landed, network, running, see } = await start();
  try {
    const { bytes, signature } = network.tipped();
    expect(await running.post(bytes)).toBe(200);
    await until("a block that holds it", () => landed.has(signature));
    const slot = landed.get(signature) ?? 0;
    see(signature, slot, GIVEN_UP);
    await receiptWith(running, signature, "processed");
    geyser.cut();
    await until("the next stream", () => geyser.requests.length > 1 && geyser.streams === 1);
    // Another node's id of the same bank.
    geyser.say({ slot: { slot, status: CONFIRMED, bank_id: KEPT } });
    expect(await running.ended(signature)).toMatchObject({ state: "landed", landing: { slot } });
    expectScrapedBalance(await running.metrics());
  } finally {
    geyser.stop();
  }
});
