/** Final states of transactions on the network, as their receipts show them. */

import { expect, it } from "vitest";
import { encodeSignature } from "../../src/core/encoding.ts";
import type { Accepted, FinalState, Packet } from "../../src/core/flow.ts";
import { createReceipts } from "../../src/receipts/receipts.ts";
import { createFakeClock } from "../support/fake-clock.ts";

// Only what a receipt shows matters here.
const ACCEPTED = { kind: "accepted", version: 0, signatureOffset: 0 } as Accepted;
const BYTES = new Uint8Array(64).fill(3);
const SIGNATURE = encodeSignature(BYTES);

function setup(slotThen: number | null = 390) {
  let slot = slotThen;
  const clock = createFakeClock();
  const receipts = createReceipts({ clock, slot: () => slot }, { keepMs: 60_000, entriesMax: 100 });
  const submit = (id: number, account = "acme"): void => {
    const receivedNs = clock.nowNs();
    const packet: Packet = {
      id,
      bytes: BYTES,
      account,
      receivedNs,
      maxRetries: null,
      offeredLamports: 0,
    };
    receipts.open(packet, ACCEPTED, receivedNs);
  };
  const outcome = (packetId: number, kind: "sent" | "acked" | "dropped"): void =>
    receipts.record({
      packetId,
      identity: "A",
      address: "a",
      slot: 391,
      kind,
      reason: null,
      atNs: clock.nowNs(),
      rttUs: 0,
      connectionAgeMs: 0,
      resend: 0,
    });
  const end = (packetId: number, kind: FinalState["kind"], more: Partial<FinalState> = {}): void =>
    receipts.end(
      {
        packetId,
        kind,
        slot: 0,
        slotDelta: null,
        error: null,
        reason: null,
        atNs: clock.nowNs(),
        ...more,
      },
      BYTES,
    );
  const processed = (slot: number, slotDelta: number | null = null): void =>
    receipts.processed({ slot, slotDelta, error: null, atNs: clock.nowNs() }, BYTES);
  const find = () => receipts.find(SIGNATURE, "acme");
  /** Sets the slot that announcements show from now on for any earlier time. */
  const show = (shown: number | null): void => {
    slot = shown;
  };
  const states = (account = "acme"): string[] => {
    const statesSeen: string[] = [];
    receipts.readChanges(account, 1, { states: null, stepsMax: 1000 }, (_, { state }) => {
      statesSeen.push(state);
      return true;
    });
    return statesSeen;
  };
  return { clock, receipts, submit, outcome, end, processed, find, show, states };
}

it("a receipt goes from accepted through processed to landed", () => {
  const { clock, submit, outcome, end, processed, find, states } = setup();
  submit(1);
  outcome(1, "sent");
  outcome(1, "acked");
  clock.advance(300);
  processed(391);
  expect(find()).toMatchObject({ state: "processed", landing: { slot: 391, slots: 1 } });
  clock.advance(500);
  end(1, "landed", { slot: 391, error: '{"InsufficientFundsForRent":{"account_index":0}}' });
  expect(find()).toMatchObject({
    state: "landed",
    received_slot: 390,
    landing: {
      state: "landed",
      slot: 391,
      slots: 1,
      error: { InsufficientFundsForRent: { account_index: 0 } },
      known_us: 800_000,
    },
  });
  expect(states()).toEqual(["accepted", "sent", "acknowledged", "processed", "landed"]);
});

it("a processed slot may change, and be rolled back", () => {
  const { receipts, clock, submit, outcome, end, processed, find, states } = setup();
  submit(1);
  outcome(1, "sent");
  processed(391);
  processed(393);
  expect(find()?.landing).toMatchObject({ slot: 393, slots: 3 });
  receipts.rolledBack(BYTES, clock.nowNs());
  expect(find()).toMatchObject({ state: "sent", landing: { state: "in_flight", slot: null } });
  end(1, "expired", { reason: "blockhash_expired" });
  processed(395);
  receipts.rolledBack(BYTES, clock.nowNs());
  expect(find()).toMatchObject({ state: "expired", landing: { reason: "blockhash_expired" } });
  expect(states()).toEqual(["accepted", "sent", "processed", "sent", "expired"]);
});

it("a processed block may be replaced by another one of its slot, with another error", () => {
  const { receipts, clock, submit, end, find, states } = setup();
  submit(1);
  const event = { slot: 391, slotDelta: 1, atNs: clock.nowNs() };
  receipts.processed({ ...event, error: '"AccountInUse"' }, BYTES);
  expect(find()?.landing).toMatchObject({ slot: 391, error: "AccountInUse" });
  receipts.processed({ ...event, error: null }, BYTES);
  expect(find()?.landing).toMatchObject({ state: "processed", slot: 391, error: null });
  receipts.processed({ ...event, error: '"AccountNotFound"' }, BYTES);
  receipts.rolledBack(BYTES, clock.nowNs());
  expect(find()).toMatchObject({ state: "accepted", landing: { slot: null, error: null } });
  receipts.processed({ ...event, error: '"AccountInUse"' }, BYTES);
  end(1, "landed", { slot: 391, slotDelta: 1 });
  expect(find()).toMatchObject({ state: "landed", landing: { slot: 391, error: null } });
  expect(states()).toEqual(["accepted", "processed", "accepted", "processed", "landed"]);
});

it("a transaction that expires in an unconfirmed block reports both", () => {
  const { receipts, clock, submit, end, find } = setup();
  submit(1);
  const error = '{"InstructionError":[0,"InvalidArgument"]}';
  const event = { slot: 391, slotDelta: 1, error, atNs: clock.nowNs() };
  receipts.processed(event, BYTES);
  end(1, "dropped", { reason: "unconfirmed", slot: 391 });
  expect(find()).toMatchObject({
    state: "dropped",
    landing: {
      state: "dropped",
      slot: 391,
      slots: 1,
      reason: "unconfirmed",
      error: { InstructionError: [0, "InvalidArgument"] },
    },
  });
});

it("a landing is never reported before the receipt", () => {
  const { submit, end, find } = setup();
  submit(1);
  end(1, "landed", { slot: 388, slotDelta: 0 });
  expect(find()?.landing).toMatchObject({ slot: 388, slots: 0 });
});

it.each(["sight", "end"] as const)("the slot at receipt is corrected (%s)", (how) => {
  const { submit, end, processed, find, show } = setup();
  submit(1);
  expect(find()?.received_slot).toBe(390);
  show(389);
  if (how === "sight") processed(389, 0);
  else end(1, "landed", { slot: 389, slotDelta: 0 });
  expect(find()).toMatchObject({ received_slot: 389, landing: { slot: 389, slots: 0 } });
});

it("the slot at receipt is not corrected to a later or an unknown one", () => {
  for (const shown of [391, null]) {
    const { submit, end, find, show } = setup();
    submit(1);
    show(shown);
    end(1, "landed", { slot: 392, slotDelta: 2 });
    expect(find()).toMatchObject({ received_slot: 390, landing: { slots: 2 } });
  }
});

it("a landing is not replaced by a later end", () => {
  const { submit, end, find, states } = setup();
  submit(1);
  end(1, "landed", { slot: 391 });
  submit(2);
  end(2, "dropped", { reason: "never_sent" });
  expect(find()).toMatchObject({ state: "landed", submissions: 2 });
  expect(states()).toEqual(["accepted", "landed"]);
});

it("a transaction whose earlier submission was sent is not reported as never sent", () => {
  for (const [kind, reason] of [
    ["sent", "tracking_ended"],
    ["dropped", "never_sent"],
  ] as const) {
    const { submit, outcome, end, find } = setup();
    submit(1);
    end(1, "dropped", { reason: "table_full" });
    submit(2);
    // The first copy waited for its leader meanwhile.
    outcome(1, kind);
    outcome(2, "dropped");
    end(2, "dropped", { reason: "never_sent" });
    expect(find()).toMatchObject({ state: "dropped", landing: { reason } });
  }
});

it("a landed transaction that is accepted again tells only those who wait for its end", () => {
  const { receipts, submit, end, states } = setup();
  submit(1);
  end(1, "landed", { slot: 391 });
  submit(2, "other");
  end(2, "landed", { slot: 391 });
  const seen: string[] = [];
  receipts.networkChanges(1, 100, 100, ({ account, state, slot }) => {
    seen.push(`${account} ${state} ${slot}`);
  });
  expect(seen).toEqual(["acme 5 391", "other 5 391", " 5 391"]);
  expect([states(), states("other")]).toEqual([
    ["accepted", "landed"],
    ["accepted", "landed"],
  ]);
  const broadcast: string[] = [];
  const wants = { wants: () => true, stepsMax: 100 };
  receipts.eachChange(1, wants, (_, state, account) => broadcast.push(`${account} ${state}`));
  expect(broadcast.filter((each) => each.endsWith("landed"))).toEqual([
    "acme landed",
    "other landed",
  ]);
});

it("a transaction that ended without landing is in flight when accepted again", () => {
  const { submit, outcome, end, find, states } = setup();
  submit(1);
  end(1, "dropped", { reason: "tracking_ended" });
  submit(2);
  expect(find()).toMatchObject({
    state: "accepted",
    landing: { state: "in_flight", reason: null },
  });
  outcome(2, "sent");
  end(2, "landed", { slot: 400 });
  expect(find()).toMatchObject({ state: "landed", landing: { slots: 10, reason: null } });
  expect(states()).toEqual(["accepted", "dropped", "accepted", "sent", "landed"]);
});

it("the error of an unconfirmed block is cleared when accepted again", () => {
  const { receipts, clock, submit, end, find } = setup();
  submit(1);
  const error = '{"InstructionError":[0,"InvalidArgument"]}';
  const event = { slot: 391, slotDelta: 1, error, atNs: clock.nowNs() };
  receipts.processed(event, BYTES);
  end(1, "dropped", { reason: "unconfirmed", slot: 391 });
  submit(2);
  expect(find()?.landing).toMatchObject({ state: "in_flight", slot: null, error: null });
});

it("an unknown slot at receipt is derived from the landing's difference", () => {
  const { submit, processed, find } = setup(null);
  submit(1);
  expect(find()?.received_slot).toBeNull();
  processed(391, 4);
  expect(find()).toMatchObject({ received_slot: 387, landing: { slots: 4 } });
});

it("what is in flight ends in its new receipt, if the first one was evicted", () => {
  const { receipts, clock, submit, end, processed, find } = setup();
  submit(1);
  clock.advance(61_000);
  submit(2);
  expect(receipts.counters.evictedExpired).toBe(1);
  // Landing goes on with the packet that it has tracked from the start.
  processed(391);
  expect(find()?.state).toBe("processed");
  receipts.rolledBack(BYTES, clock.nowNs());
  expect(find()?.state).toBe("accepted");
  end(1, "landed", { slot: 393 });
  expect(find()).toMatchObject({ state: "landed", landing: { slot: 393 } });
  expect(receipts.counters.untracked).toBe(0);
});

it("the end of a transaction without a receipt is counted", () => {
  const { receipts, end, processed } = setup();
  end(7, "landed", { slot: 1 });
  processed(1);
  receipts.rolledBack(BYTES, 0);
  expect(receipts.counters.untracked).toBe(1);
});

it("the memory of receipts is fixed", () => {
  const { receipts, submit } = setup();
  const { bytes } = receipts;
  submit(1);
  expect(receipts.bytes).toBe(bytes);
});
