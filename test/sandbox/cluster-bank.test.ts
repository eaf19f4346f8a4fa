import { randomBytes } from "node:crypto";
import { afterEach, describe, expect, it } from "vitest";
import { fromBase58 } from "../support/base58.ts";
import { buildTransaction } from "../support/transactions.ts";
import { endAll, LEADERS, leaderOfWindow, SLOT_MS, setUpByHand } from "./cluster-fixture.ts";

afterEach(endAll);

describe("a transaction", () => {
  it("lands immediately when it reaches the current leader", async () => {
    const { cluster, landed, transfer } = await setUpByHand();
    const { bytes, signature } = transfer();
    cluster.receive(leaderOfWindow(cluster, 0), bytes);
    const slot = cluster.currentSlot();
    const leader = cluster.leaderAt(slot);
    expect(cluster.statusOf(signature)).toMatchObject({ signature, slot, err: null, leader });
    expect(landed.map((each) => each.signature)).toEqual([signature]);
  });

  it("waits at a leader of the next two windows, and lands in its first slot", async () => {
    const { clock, cluster, transfer } = await setUpByHand({ seed: 3 });
    while (leaderOfWindow(cluster, 0) === leaderOfWindow(cluster, 1)) clock.advance(SLOT_MS * 4);
    const { bytes, signature } = transfer();
    const turn = (Math.floor(cluster.currentSlot() / 4) + 1) * 4;
    cluster.receive(leaderOfWindow(cluster, 1), bytes);
    expect(cluster.statusOf(signature)).toBeNull();
    while (cluster.currentSlot() < turn) clock.advance(SLOT_MS);
    expect(cluster.statusOf(signature)).toMatchObject({ slot: turn, err: null });
  });

  it("is lost at a leader with a later window", async () => {
    const { clock, cluster, transfer } = await setUpByHand();
    const far = () =>
      LEADERS.find(({ identity }) =>
        [0, 1, 2].every((ahead) => leaderOfWindow(cluster, ahead) !== identity),
      );
    while (far() === undefined) clock.advance(SLOT_MS * 4);
    const { bytes, signature } = transfer();
    cluster.receive(far()?.identity ?? "", bytes);
    clock.advance(SLOT_MS * 200);
    expect(cluster.statusOf(signature)).toBeNull();
    expect(cluster.counters.outOfTurn).toBe(1);
  });

  it("lands once when several leaders have it", async () => {
    const { clock, cluster, landed, transfer } = await setUpByHand();
    const { bytes } = transfer();
    for (const ahead of [0, 1, 2]) cluster.receive(leaderOfWindow(cluster, ahead), bytes);
    clock.advance(SLOT_MS * 12);
    expect(landed).toHaveLength(1);
    expect(cluster.counters).toMatchObject({ received: 3, landed: 1, duplicates: 2 });
  });

  it("is lost when all slots of its leader are skipped", async () => {
    const { clock, cluster, transfer } = await setUpByHand({ skipShare: 1 });
    cluster.receive(leaderOfWindow(cluster, 0), transfer().bytes);
    clock.advance(SLOT_MS * 64);
    expect(cluster.counters).toMatchObject({ landed: 0, heldLost: 1 });
  });

  it("does not land with a blockhash that is unknown or older than 150 blocks", async () => {
    const { clock, cluster, transfer, payer } = await setUpByHand();
    const tips = [{ to: randomBytes(32), lamports: 1_000_000 }];
    const unknown = buildTransaction({ payer, tips, blockhash: randomBytes(32) });
    cluster.receive(leaderOfWindow(cluster, 0), unknown.bytes);
    expect(cluster.counters.blockhashNotFound).toBe(1);
    const [oldest, older] = [transfer(), transfer()];
    clock.advance(SLOT_MS * 150);
    cluster.receive(leaderOfWindow(cluster, 0), oldest.bytes);
    expect(cluster.statusOf(oldest.signature)).not.toBeNull();
    clock.advance(SLOT_MS);
    cluster.receive(leaderOfWindow(cluster, 0), older.bytes);
    expect(cluster.statusOf(older.signature)).toBeNull();
    expect(cluster.counters.blockhashNotFound).toBe(2);
  });

  it("does not land when it cannot pay, and lands with an error when it fails", async () => {
    const { cluster, payer } = await setUpByHand();
    const blockhash = fromBase58(cluster.latestBlockhash());
    const to = randomBytes(32);
    const poor = buildTransaction({ blockhash, tips: [{ to, lamports: 1_000_000 }] });
    cluster.receive(leaderOfWindow(cluster, 0), poor.bytes);
    expect(cluster.counters.rejected).toBe(1);
    const greedy = buildTransaction({
      payer,
      blockhash,
      tips: [{ to, lamports: 90_000_000_000 }],
    });
    cluster.receive(leaderOfWindow(cluster, 0), greedy.bytes);
    expect(cluster.statusOf(greedy.signature)?.err).toEqual({
      InstructionError: [0, { Custom: 1 }],
    });
    expect(cluster.counters).toMatchObject({ landed: 1, landedFailed: 1 });
  });

  it("is ignored when its bytes do not decode", async () => {
    const { cluster } = await setUpByHand();
    for (const size of [0, 1, 300]) cluster.receive(leaderOfWindow(cluster, 0), randomBytes(size));
    expect(cluster.counters).toMatchObject({ received: 3, undecodable: 3, landed: 0 });
  });

  it("lands at the leader of its slot, even when the slot timer is late", async () => {
    const { clock, cluster, transfer } = await setUpByHand({ slotMs: 250.2, seed: 3 });
    const next = leaderOfWindow(cluster, 1);
    expect(next).not.toBe(leaderOfWindow(cluster, 0));
    const { bytes, signature } = transfer();
    // The fifth slot begins at 1000.8 ms; timers have whole milliseconds.
    clock.advance(1000.9);
    cluster.receive(next, bytes);
    expect(cluster.statusOf(signature)?.slot).toBe(cluster.currentSlot());
  });
});
