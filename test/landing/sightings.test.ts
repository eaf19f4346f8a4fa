import { describe, expect, it } from "vitest";
import type { Landing } from "../../src/landing/landing.ts";
import { PASSED_OVER_MS, SLOTS_CONFIRMED_KEPT } from "../../src/landing/limits.ts";
import type { TxStatus } from "../../src/landing/ports.ts";
import { expectBalance } from "../support/landing-balance.ts";
import { bytesOf, startFixture } from "./fixture.ts";

const SLOT = 5_001;
const FAILED = '{"InstructionError":[0,{"Custom":1}]}';

/** A transaction in flight for each id, and what a watcher reports of them. */
function inFlight(...ids: readonly number[]) {
  const fixture = startFixture();
  fixture.landing.start();
  fixture.plan("a");
  for (const id of ids) fixture.track(id);
  const status = (error: string | null): TxStatus => ({ slot: SLOT, confirmed: false, error });
  const see = (id: number, bank: number | null, error: string | null = null): void =>
    fixture.landing.seen(bytesOf(id).subarray(1, 65), status(error), bank);
  /** Of each report of a processed block, the transaction and the error. */
  const seen = (): unknown[] =>
    fixture.processedEvents.map(({ packetId, error }) => [packetId, error]);
  /** Of each end, the transaction, how it ended and the error. */
  const ends = (): unknown[] =>
    fixture.finalStates.map(({ packetId, kind, error }) => [packetId, kind, error]);
  return { ...fixture, see, seen, ends };
}

describe("a transaction in two banks of one slot", () => {
  it.each([
    ["first", 10, FAILED],
    ["second", 11, null],
  ] as const)("lands with the error of the confirmed one: the %s", (_, bank, error) => {
    const { landing, see, seen, ends, finalStates, rolledBack } = inFlight(1);
    see(1, 10, FAILED);
    see(1, 11, null);
    expect(seen()).toEqual([
      [1, FAILED],
      [1, null],
    ]);
    landing.confirmed(SLOT, bank);
    expect(ends()).toEqual([[1, "landed", error]]);
    expect(finalStates[0]).toMatchObject({ slot: SLOT, slotDelta: 1 });
    expect(rolledBack).toEqual([]);
    expect(landing.counters).toMatchObject({ processed: 2, rolledBack: 0, sightingsOmitted: 0 });
    expectBalance(landing);
  });

  it("lands in either if it has the same error in both", () => {
    const { landing, see, ends } = inFlight(1, 2);
    see(1, 10, FAILED);
    see(1, 11, FAILED);
    landing.confirmed(SLOT, 10);
    expect(ends()).toEqual([[1, "landed", FAILED]]);
    see(2, 10, FAILED);
    see(2, 11, FAILED);
    landing.confirmed(SLOT, 11);
    expect(ends()).toHaveLength(2);
  });

  it("is in neither once a block of another slot holds it", () => {
    const { landing, see, ends, rolledBack } = inFlight(1);
    see(1, null, FAILED);
    see(1, 10);
    const next = { slot: SLOT + 1, confirmed: false, error: null };
    landing.seen(bytesOf(1).subarray(1, 65), next, 12);
    landing.confirmed(SLOT, 10);
    landing.confirmed(SLOT + 1, 13);
    expect([ends(), rolledBack]).toEqual([[], [1]]);
  });

  it("is reported once for each of them, however often it is seen", () => {
    const { see, seen } = inFlight(1);
    for (const bank of [10, 11, 10, 11]) see(1, bank, bank === 10 ? FAILED : null);
    expect(seen()).toEqual([
      [1, FAILED],
      [1, null],
    ]);
  });

  it("keeps the newest two of more, and counts the others", () => {
    const { landing, see, ends, rolledBack } = inFlight(1, 2, 3);
    for (const id of [1, 2, 3]) {
      for (const bank of [10, 11, 12]) see(id, bank, `"error in ${bank}"`);
    }
    expect(landing.counters.sightingsOmitted).toBe(3);
    landing.confirmed(SLOT, 11);
    expect(ends().map((end) => end)).toEqual(
      [1, 2, 3].map((id) => [id, "landed", '"error in 11"']),
    );
    const omitted = inFlight(1);
    for (const bank of [10, 11, 12]) omitted.see(1, bank);
    omitted.landing.confirmed(SLOT, 10);
    expect([omitted.ends(), omitted.rolledBack, rolledBack]).toEqual([[], [1], []]);
  });
});

describe("a transaction only in a bank that is given up", () => {
  it("is in flight again once another bank of the slot is confirmed, and is sent again", () => {
    const { landing, see, ends, rolledBack, plan, clock, resent } = inFlight(1, 2);
    see(1, 10);
    see(2, 11);
    landing.confirmed(SLOT, 11);
    expect([ends(), rolledBack]).toEqual([[[2, "landed", null]], [1]]);
    expect(landing.counters).toMatchObject({ landed: 1, rolledBack: 1 });
    clock.advance(600);
    plan("b");
    clock.advance(20);
    expect(resent).toMatchObject([{ id: 1, address: "b:8009" }]);
    const next = { slot: SLOT + 1, confirmed: false, error: FAILED };
    landing.seen(bytesOf(1).subarray(1, 65), next, 12);
    landing.confirmed(SLOT + 1, 12);
    expect(ends()).toEqual([
      [2, "landed", null],
      [1, "landed", FAILED],
    ]);
    expectBalance(landing);
  });

  it("does not keep its error for the next block that holds it", () => {
    const { landing, see, ends, clock, cluster } = inFlight(1);
    cluster.reporting = "no";
    see(1, 10, FAILED);
    see(1, 11, FAILED);
    landing.confirmed(SLOT, 12);
    see(1, null);
    landing.confirmed(SLOT, 10);
    clock.advance(10);
    expect(ends()).toEqual([[1, "landed", null]]);
  });

  it("stays as it is while the confirmed bank is of another slot", () => {
    const { landing, see, ends, rolledBack } = inFlight(1);
    see(1, 10);
    landing.confirmed(SLOT + 1, 11);
    expect([ends(), rolledBack]).toEqual([[], []]);
  });
});

describe("a transaction seen without a bank", () => {
  it("lands with any confirmation of its slot if the node reports no statuses", () => {
    const { landing, see, ends, cluster } = inFlight(1);
    cluster.reporting = "no";
    see(1, null, FAILED);
    landing.confirmed(SLOT, 11);
    expect(ends()).toEqual([[1, "landed", FAILED]]);
  });

  it("waits for its status if the node reports statuses, whichever bank is confirmed", async () => {
    const { landing, see, ends, rolledBack, slots, answerAll } = inFlight(1, 2);
    for (const id of [1, 2]) see(id, null, FAILED);
    landing.confirmed(SLOT, 11);
    expect([ends(), rolledBack]).toEqual([[], []]);
    slots(2);
    // The confirmed bank holds the second one alone, without an error.
    await answerAll(new Map([[2, { slot: SLOT, confirmed: true, error: null }]]));
    expect([ends(), rolledBack]).toEqual([[[2, "landed", null]], [1]]);
    expectBalance(landing);
  });

  it("lands with a confirmation without a bank", () => {
    const { landing, see, ends } = inFlight(1);
    see(1, null, FAILED);
    landing.confirmed(SLOT);
    expect(ends()).toEqual([[1, "landed", FAILED]]);
  });

  it("lands with the first error when it is seen without a bank again", () => {
    const { landing, see, seen, ends } = inFlight(1);
    see(1, null, FAILED);
    see(1, null, null);
    expect(seen()).toEqual([[1, FAILED]]);
    landing.confirmed(SLOT);
    expect(ends()).toEqual([[1, "landed", FAILED]]);
  });

  it("is in the bank of a later sighting with the same error", () => {
    const { landing, see, seen, ends, rolledBack } = inFlight(1);
    see(1, null);
    see(1, 10);
    expect(seen()).toEqual([[1, null]]);
    landing.confirmed(SLOT, 11);
    expect([ends(), rolledBack]).toEqual([[], [1]]);
  });

  it("is in another block than a later sighting with another error", () => {
    const { landing, see, seen, ends, cluster } = inFlight(1, 2);
    cluster.reporting = "no";
    for (const id of [1, 2]) {
      see(id, null, FAILED);
      see(id, 10);
    }
    expect(seen()).toHaveLength(4);
    landing.confirmed(SLOT, 11);
    expect(ends()).toEqual([1, 2].map((id) => [id, "landed", FAILED]));
  });

  it("does not replace one with a bank", () => {
    const { landing, see, seen, ends, rolledBack } = inFlight(1);
    see(1, 10);
    see(1, null, FAILED);
    expect(seen()).toEqual([[1, null]]);
    landing.confirmed(SLOT, 11);
    expect([ends(), rolledBack]).toEqual([[], [1]]);
  });
});

describe("a confirmation without a bank", () => {
  it("ends the transactions of all banks of its slot, with the newest error", () => {
    const { landing, see, ends } = inFlight(1, 2);
    see(1, 10, FAILED);
    see(1, 11);
    see(2, 10, FAILED);
    landing.confirmed(SLOT);
    expect(ends()).toEqual([
      [1, "landed", null],
      [2, "landed", FAILED],
    ]);
  });
});

describe("a sighting that comes after the confirmation of its slot", () => {
  it("lands if it is in the confirmed bank, and is in flight again if it is in another", () => {
    const { landing, see, seen, ends, rolledBack, cluster } = inFlight(1, 2, 3);
    cluster.reporting = "no";
    landing.confirmed(SLOT, 11);
    see(1, 11, FAILED);
    see(2, 10);
    see(3, null);
    expect(seen()).toEqual([
      [1, FAILED],
      [2, null],
      [3, null],
    ]);
    expect(ends()).toEqual([
      [1, "landed", FAILED],
      [3, "landed", null],
    ]);
    expect(rolledBack).toEqual([2]);
    expectBalance(landing);
  });

  it("lands if the slot was confirmed without a bank, before or since", () => {
    const { landing, see, ends } = inFlight(1, 2);
    landing.confirmed(SLOT);
    see(1, 10);
    landing.confirmed(SLOT, 11);
    landing.confirmed(SLOT);
    see(2, 10);
    expect(ends()).toEqual([[1, "landed", null]]);
  });

  it.each([
    ["the slot went back", (landing: Landing) => landing.slotWentBack()],
    ["the ids of banks are forgotten", (landing: Landing) => landing.forgetBanks()],
    [
      "many slots more are confirmed",
      (landing: Landing) => {
        for (let at = 1; at <= SLOTS_CONFIRMED_KEPT; at += 1) landing.confirmed(SLOT + at, at);
      },
    ],
  ])("waits for another confirmation once %s", (_, act) => {
    const { landing, see, ends } = inFlight(1);
    landing.confirmed(SLOT, 10);
    act(landing);
    see(1, 10);
    expect(ends()).toEqual([]);
    landing.confirmed(SLOT, 10);
    expect(ends()).toEqual([[1, "landed", null]]);
  });

  it("waits for its stream or a confirmed status if it is from a status", async () => {
    const { landing, see, seen, ends, slots, answerAll } = inFlight(1);
    landing.confirmed(SLOT, 11);
    slots(2);
    await answerAll(new Map([[1, { slot: SLOT, confirmed: false, error: null }]]));
    expect([seen(), ends()]).toEqual([[[1, null]], []]);
    see(1, 11);
    expect(ends()).toEqual([[1, "landed", null]]);
  });
});

describe("when the ids of banks are forgotten", () => {
  it("earlier sightings fit each confirmation of their slot, and later ones their own", () => {
    const { landing, see, ends, rolledBack, cluster } = inFlight(1, 2, 3);
    cluster.reporting = "no";
    see(1, 10, FAILED);
    see(2, 10, FAILED);
    see(2, 11);
    landing.forgetBanks();
    see(3, 11);
    // By chance the id of another bank of the node before.
    landing.confirmed(SLOT, 10);
    expect([ends(), rolledBack]).toEqual([
      [
        [1, "landed", FAILED],
        [2, "landed", null],
      ],
      [3],
    ]);
  });

  it("a sighting over the new stream is that of before, if its error is the same", () => {
    const { landing, see, seen, ends } = inFlight(1);
    see(1, 10);
    landing.forgetBanks();
    see(1, 20);
    expect(seen()).toEqual([[1, null]]);
    landing.confirmed(SLOT, 20);
    expect(ends()).toEqual([[1, "landed", null]]);
  });
});

describe("a transaction in a block that the cluster gave up, without a status", () => {
  /** Confirms as many slots as are kept, from one on. */
  const confirmFrom = (landing: Landing, first: number): void => {
    for (let slot = first; slot <= first + SLOTS_CONFIRMED_KEPT; slot += 1) {
      landing.confirmed(slot, slot);
    }
  };

  it.each(["no", "unknown", "yes"] as const)(
    "is in flight again once later slots alone are confirmed, and is sent again (%s)",
    (reporting) => {
      const { landing, see, ends, rolledBack, cluster, clock, plan, resent } = inFlight(1);
      cluster.reporting = reporting;
      see(1, 10);
      landing.confirmed(SLOT - 1, 9);
      clock.advance(PASSED_OVER_MS + 400);
      expect(rolledBack).toEqual([]);
      confirmFrom(landing, SLOT + 1);
      // Once, however often it is checked.
      clock.advance(2_000);
      expect([rolledBack, ends()]).toEqual([[1], []]);
      plan("b");
      clock.advance(20);
      expect(resent).toMatchObject([{ id: 1, address: "b:8009" }]);
      landing.seen(bytesOf(1).subarray(1, 65), { slot: 5_090, confirmed: false, error: null }, 99);
      landing.confirmed(5_090, 99);
      expect(ends()).toEqual([[1, "landed", null]]);
      expectBalance(landing);
    },
  );

  it("stays as it is before that time, and while earlier slots are confirmed", () => {
    const { landing, see, rolledBack, cluster, clock } = inFlight(1, 2);
    cluster.reporting = "no";
    see(1, 10);
    confirmFrom(landing, SLOT + 1);
    clock.advance(PASSED_OVER_MS - 800);
    expect(rolledBack).toEqual([]);
    // Final, after all later ones were confirmed.
    landing.confirmed(SLOT - 1, null);
    clock.advance(2_000);
    expect(rolledBack).toEqual([]);
  });

  it("waits for 32 slots of a new stream", () => {
    const { landing, see, rolledBack, clock } = inFlight(1);
    landing.confirmed(SLOT - 1, 9);
    see(1, 10);
    confirmFrom(landing, SLOT + 1);
    clock.advance(PASSED_OVER_MS - 800);
    landing.forgetBanks();
    // Final, so the block's slot would be final next.
    landing.confirmed(SLOT - 1, 9);
    clock.advance(1_200);
    expect(rolledBack).toEqual([]);
    confirmFrom(landing, SLOT + 1);
    clock.advance(400);
    expect(rolledBack).toEqual([1]);
  });

  it("stays as it is if a new stream began so late that its block may be final before", () => {
    const { landing, see, rolledBack, cluster, clock } = inFlight(1);
    cluster.reporting = "no";
    landing.confirmed(SLOT - 1, 9);
    see(1, 10);
    landing.forgetBanks();
    confirmFrom(landing, SLOT + 60);
    clock.advance(PASSED_OVER_MS + 400);
    expect(rolledBack).toEqual([]);
  });
});
