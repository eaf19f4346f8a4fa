import { randomBytes } from "node:crypto";
import { afterEach, describe, expect, it } from "vitest";
import { createBank } from "../../src/sandbox/cluster-bank.ts";
import { createCalendar } from "../../src/sandbox/cluster-slots.ts";
import { ALPENGLOW_DEFAULTS, createTimeline } from "../../src/sandbox/cluster-timeline.ts";
import { createBlindLedger } from "../../src/sandbox/ledger.ts";
import { fromBase58 } from "../support/base58.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { buildTransaction } from "../support/transactions.ts";
import {
  alpenglow,
  endAll,
  LEADERS,
  leaderOfWindow,
  SLOT_MS,
  setUpByHand,
} from "./cluster-fixture.ts";

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

describe("a transaction with Alpenglow", () => {
  it("lands again in another bank when its own is given up, and pays once", async () => {
    const { clock, cluster, landed, transfer, payer } = await setUpByHand(
      alpenglow({ twoBanksShare: 1 }),
    );
    clock.advance(SLOT_MS * 4);
    const before = cluster.balance(payer.address);
    const { bytes, signature } = transfer("confirmed");
    const slot = cluster.currentSlot();
    cluster.receive(leaderOfWindow(cluster, 0), bytes);
    expect(cluster.statusOf(signature)?.slot).toBe(slot);
    clock.advance(SLOT_MS / 2);
    expect(cluster.currentSlot()).toBe(slot);
    expect(cluster.statusOf(signature)).toBeNull();
    expect(cluster.balance(payer.address)).toBe(before);
    cluster.receive(leaderOfWindow(cluster, 0), bytes);
    expect(cluster.statusOf(signature)?.slot).toBe(slot);
    const [first, second] = landed;
    expect([first?.slot, second?.slot]).toEqual([slot, slot]);
    expect(first?.bankId).not.toBe(second?.bankId);
    if (cluster.executes) expect(cluster.balance(payer.address)).toBe(before - 1_005_000n);
    expect(cluster.counters).toMatchObject({ landed: 2, landedGivenUp: 1, blocksGivenUp: 2 });
  });

  it("is not valid with the blockhash of a block that was given up", async () => {
    const { clock, cluster, transfer } = await setUpByHand(alpenglow({ twoBanksShare: 1 }));
    const { bytes } = transfer();
    clock.advance(SLOT_MS / 2);
    cluster.receive(leaderOfWindow(cluster, 0), bytes);
    expect(cluster.counters).toMatchObject({ landed: 0, blockhashNotFound: 1 });
  });

  it("does not land in a stall, and lands in the first slot after it", async () => {
    const { clock, cluster, transfer } = await setUpByHand(alpenglow({ stallShare: 1 }));
    const isSame = () => leaderOfWindow(cluster, 0) === leaderOfWindow(cluster, 1);
    for (let stalls = 0; stalls === 0 || isSame(); ) {
      stalls = cluster.counters.stalls;
      while (cluster.counters.stalls === stalls) clock.advance(SLOT_MS);
    }
    const slot = cluster.currentSlot();
    const [own, next] = [transfer(), transfer()];
    cluster.receive(leaderOfWindow(cluster, 0), own.bytes);
    cluster.receive(leaderOfWindow(cluster, 1), next.bytes);
    clock.advance(2_999);
    expect(cluster.currentSlot()).toBe(slot);
    expect(cluster.statusOf(own.signature)).toBeNull();
    expect(cluster.statusOf(next.signature)).toBeNull();
    clock.advance(1);
    expect(cluster.currentSlot()).toBe(slot + 1);
    expect(cluster.statusOf(next.signature)).toMatchObject({ slot: slot + 1, err: null });
  });

  it("is lost when it reaches a leader while blocks hold votes only", async () => {
    const migration = { afterSlots: 8, voteOnlySlots: 8 };
    const { clock, cluster, transfer } = await setUpByHand(alpenglow({ migration }));
    const first = cluster.currentSlot();
    clock.advance(SLOT_MS * 7);
    const held = transfer();
    cluster.receive(leaderOfWindow(cluster, 1), held.bytes);
    const landed = transfer();
    cluster.receive(leaderOfWindow(cluster, 0), landed.bytes);
    clock.advance(SLOT_MS);
    const lost = transfer();
    cluster.receive(leaderOfWindow(cluster, 0), lost.bytes);
    const isSame = leaderOfWindow(cluster, -1) === leaderOfWindow(cluster, 0);
    expect(cluster.counters.voteOnlyLost).toBe(isSame ? 1 : 2);
    clock.advance(SLOT_MS * 8);
    expect(cluster.currentSlot()).toBe(first + 8);
    clock.advance(SLOT_MS * 20);
    expect(cluster.statusOf(landed.signature)?.slot).toBe(first + 7);
    expect(cluster.statusOf(lost.signature)).toBeNull();
    // The blockhash of a block that was deleted, and of one before those.
    cluster.receive(leaderOfWindow(cluster, 0), lost.bytes);
    expect(cluster.counters.blockhashNotFound).toBe(1);
    cluster.receive(leaderOfWindow(cluster, 0), held.bytes);
    expect(cluster.statusOf(held.signature)).not.toBeNull();
  });
});

describe("the blocks", () => {
  const bankOf = async (options: Parameters<typeof setUpByHand>[0]) => {
    const clock = createFakeClock();
    const settings = { slotMs: SLOT_MS, skipShare: 0, epochSlots: 64, seed: 1 };
    const identities = LEADERS.map(({ identity }) => identity);
    const calendar = createCalendar(clock, { ...settings, identities });
    const { consensus = "tower_bft", alpenglow: events = ALPENGLOW_DEFAULTS } = options ?? {};
    const timeline = createTimeline({ ...settings, consensus, alpenglow: events, calendar });
    const ledger = createBlindLedger();
    const bank = createBank({ calendar, ledger, onLanded: () => {}, blockhashAgeMax: 150 });
    const slots = (count: number): void => {
      for (let taken = 0; taken < count; taken += 1) {
        const step = timeline.take();
        if (step.kind === "slot") bank.enter(step);
        else if (step.kind === "second_bank") bank.beginAgain();
        else if (step.kind === "migration") bank.migrate(step.genesisSlot);
        else bank.stall();
      }
    };
    const reached = () => ({
      processed: bank.block("processed").slot - calendar.firstSlot,
      confirmed: bank.block("confirmed").slot - calendar.firstSlot,
      finalized: bank.block("finalized").slot - calendar.firstSlot,
    });
    return { bank, slots, reached };
  };

  it("with Tower BFT are confirmed after one, finalized after 31, and hold a vote", async () => {
    const { bank, slots, reached } = await bankOf({});
    slots(40);
    expect(reached()).toEqual({ processed: 39, confirmed: 38, finalized: 8 });
    expect(bank.contentOf(bank.block("confirmed").slot)?.signatures).toHaveLength(1);
    const [confirmed, processed] = [bank.block("confirmed"), bank.block("processed")];
    expect(bank.transactionsUpTo(processed) - bank.transactionsUpTo(confirmed)).toBe(1);
  });

  it("are finalized after one with Alpenglow, and hold nothing without transactions", async () => {
    const { bank, slots, reached } = await bankOf(alpenglow());
    slots(40);
    expect(reached()).toEqual({ processed: 39, confirmed: 38, finalized: 38 });
    expect(bank.contentOf(bank.block("confirmed").slot)?.signatures).toEqual([]);
    const before = bank.transactionsUpTo(bank.block("processed"));
    bank.airdrop(LEADERS[0]?.identity ?? "", 1_000_000n);
    expect(bank.transactionsUpTo(bank.block("confirmed"))).toBe(before);
    expect(bank.transactionsUpTo(bank.block("processed"))).toBe(before + 1);
    slots(1);
    expect(bank.contentOf(bank.block("confirmed").slot)?.signatures).toHaveLength(1);
    slots(20);
    expect(bank.transactionsUpTo(bank.block("confirmed"))).toBe(before + 1);
  });

  it("are not confirmed while they hold votes only, and are deleted afterwards", async () => {
    const { bank, slots, reached } = await bankOf(
      alpenglow({ migration: { afterSlots: 40, voteOnlySlots: 20 } }),
    );
    slots(40);
    const { blockhash } = bank.block("processed");
    slots(20);
    expect(reached()).toEqual({ processed: 59, confirmed: 38, finalized: 8 });
    expect(bank.genesisSlot).toBeNull();
    const deleted = bank.block("processed");
    expect(bank.isBlockhashValid(deleted.blockhash)).toBe(true);
    slots(1);
    expect(reached()).toEqual({ processed: 39, confirmed: 39, finalized: 39 });
    expect(bank.isBlockhashValid(deleted.blockhash)).toBe(false);
    expect(bank.isBlockhashValid(blockhash)).toBe(true);
    const genesisSlot = bank.slot;
    slots(1);
    expect(bank.genesisSlot).toBe(genesisSlot);
    expect(reached()).toEqual({ processed: 40, confirmed: 39, finalized: 39 });
    expect(bank.block("processed").height).toBe(deleted.height - 19);
    expect(bank.block("processed").blockhash).not.toBe(deleted.blockhash);
  });

  it("are reported as processed below the confirmed one now and then", async () => {
    const { bank, slots } = await bankOf(alpenglow({ behindShare: 0.5 }));
    slots(20);
    let behind = 0;
    for (let count = 0; count < 20; count += 1) {
      const signature = bank.airdrop(LEADERS[0]?.identity ?? "", 1_000_000n);
      if (typeof signature !== "string") throw new Error("the airdrop failed");
      slots(1);
      const difference = bank.reported("confirmed").slot - bank.reported("processed").slot;
      expect([1, -1]).toContain(difference);
      expect(bank.reported("confirmed")).toBe(bank.block("confirmed"));
      const status = bank.reportedStatusOf(signature);
      if (difference > 0) expect(status).toBeNull();
      else expect(status).toBe(bank.statusOf(signature));
      if (difference > 0) behind += 1;
    }
    expect(behind).toBeGreaterThan(4);
    expect(behind).toBeLessThan(16);
    expect(bank.counters.behind).toBeGreaterThanOrEqual(behind);
  });
});
