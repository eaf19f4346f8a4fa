import { describe, expect, it } from "vitest";
import type { Clock } from "../../src/core/clock.ts";
import { Confirmations } from "../../src/landing/confirmations.ts";
import { type InFlightTable, PROCESSED } from "../../src/landing/in-flight-table.ts";
import { CHECKS_PER_SLICE, LANDINGS_PER_SLICE } from "../../src/landing/limits.ts";
import { expectBalance } from "../support/landing-balance.ts";
import { stub } from "../support/stub.ts";
import { bytesOf, startFixture } from "./fixture.ts";

const COUNT = 3 * LANDINGS_PER_SLICE + 5;

/** Transactions 1 to COUNT, processed in slot 5,001 where `isSeen`, else in 5,002. */
function seen(isSeen: (id: number) => boolean = () => true) {
  const fixture = startFixture({ countMax: 2 * COUNT });
  fixture.landing.start();
  fixture.plan("a");
  for (let id = 1; id <= COUNT; id += 1) {
    fixture.track(id);
    const slot = isSeen(id) ? 5_001 : 5_002;
    fixture.landing.seen(bytesOf(id).subarray(1), { slot, confirmed: false, error: null });
  }
  const ids = (): number[] => fixture.finalStates.map(({ packetId }) => packetId);
  return { ...fixture, ids };
}

const upTo = (last: number): number[] => Array.from({ length: last }, (_, index) => index + 1);

describe("what a confirmed block holds", () => {
  /** `rows` rows, processed in slot 5,001 where `isSighted`; the test runs the turns one by one. */
  function startWith(rows: number, isSighted: (row: number) => boolean) {
    const turns: (() => void)[] = [];
    const landed: number[] = [];
    const looks: number[] = [];
    const flags = Uint8Array.from({ length: rows }, (_, row) => (isSighted(row) ? PROCESSED : 0));
    const confirmations = new Confirmations({
      clock: stub<Clock>({
        after(_, turn) {
          turns.push(turn);
          return { cancel() {} };
        },
      }),
      table: stub<InFlightTable>({
        rowsUsed: rows,
        processedSlot: new Float64Array(rows).fill(5_001),
        processedNs: new Float64Array(rows),
        is(row: number, flag: number) {
          looks[looks.length - 1] = (looks.at(-1) ?? 0) + 1;
          return flags[row] === flag;
        },
      }),
      onConfirmed(row) {
        landed.push(row + 1);
        flags[row] = 0;
      },
    });
    const next = (): void => {
      looks.push(0);
      for (const turn of turns.splice(0)) turn();
    };
    return { confirmations, landed, looks, turns, next };
  }

  it("ends a few a turn, each once", () => {
    const { confirmations, landed, turns, next } = startWith(COUNT, () => true);
    confirmations.confirm(5_001);
    confirmations.confirm(5_001);
    for (let turn = 1; turn <= 4; turn += 1) {
      expect(landed).toEqual(upTo(Math.min(COUNT, turn * LANDINGS_PER_SLICE)));
      next();
    }
    next();
    expect([landed.length, turns.length]).toEqual([COUNT, 0]);
  });

  it("is looked for in all that is in flight, a part of it a turn", () => {
    const rows = 2 * CHECKS_PER_SLICE + 1;
    const { confirmations, landed, looks, turns, next } = startWith(
      rows,
      (row) => row + 1 === rows,
    );
    looks.push(0);
    confirmations.confirm(5_001);
    expect(landed).toEqual([]);
    while (turns.length > 0) next();
    expect(looks).toEqual([CHECKS_PER_SLICE, CHECKS_PER_SLICE, 1]);
    expect(landed).toEqual([rows]);
  });

  it("neither delays nor replaces the confirmation of the next slot", () => {
    const { landing, clock, ids, finalStates } = seen((id) => id % 2 === 0);
    landing.confirmed(5_001);
    landing.confirmed(5_002);
    clock.advance(10);
    expect(ids().sort((a, b) => a - b)).toEqual(upTo(COUNT));
    for (const { packetId, slot } of finalStates)
      expect(slot).toBe(packetId % 2 === 0 ? 5_001 : 5_002);
  });

  it("is skipped if it was processed in another block, or ended, before its turn", () => {
    const { landing, clock, ids, finalStates, track } = seen();
    landing.confirmed(5_001);
    const [moved, ended] = [COUNT, COUNT - 1];
    const at = (slot: number, confirmed: boolean) => ({ slot, confirmed, error: null });
    landing.seen(bytesOf(moved).subarray(1), at(5_003, false));
    landing.seen(bytesOf(ended).subarray(1), at(5_002, true));
    // Its row now belongs to another transaction.
    track(COUNT + 1);
    landing.seen(bytesOf(COUNT + 1).subarray(1), at(5_003, false));
    clock.advance(10);
    expect(ids()).not.toContain(moved);
    expect(ids()).not.toContain(COUNT + 1);
    expect(finalStates.filter(({ packetId }) => packetId === ended)).toMatchObject([
      { slot: 5_002 },
    ]);
    expect(landing.inFlight).toBe(2);
    expectBalance(landing);
  });

  it("counts as landed although the edge stops before its turn", () => {
    const { landing, clock, finalStates } = seen();
    landing.confirmed(5_001);
    landing.stop();
    expect(finalStates.filter(({ kind }) => kind === "landed")).toHaveLength(COUNT);
    expect(clock.pending).toBe(0);
  });

  it("ends before a new one finds no room", () => {
    const { landing, finalStates, track } = seen();
    landing.confirmed(5_001);
    const enough = 2 * COUNT + LANDINGS_PER_SLICE + 1;
    for (let id = COUNT + 1; id <= enough; id += 1) track(id);
    expect(finalStates).toHaveLength(COUNT);
    for (const { kind } of finalStates) expect(kind).toBe("landed");
    expectBalance(landing);
  });

  it("ends if it was processed late and its slot is reported again", () => {
    const { landing, clock, finalStates, track } = seen();
    landing.confirmed(5_001);
    track(COUNT + 1);
    const at = { slot: 5_001, confirmed: false, error: null };
    landing.seen(bytesOf(COUNT + 1).subarray(1), at);
    landing.confirmed(5_001);
    clock.advance(10);
    // It need not wait for its turn.
    const ids = finalStates.map(({ packetId }) => packetId);
    expect(ids.toSorted((a, b) => a - b)).toEqual(upTo(COUNT + 1));
  });

  it("is ended by its slot's number only if it was seen after the slot last went back", () => {
    const { landing, clock, ids } = seen((id) => id <= 2);
    landing.confirmed(5_001);
    clock.advance(10);
    landing.slotWentBack();
    landing.confirmed(5_002);
    clock.advance(10);
    expect(ids()).toEqual([1, 2]);
    // The block is reported again: its slot was used again.
    const at = { slot: 5_002, confirmed: false, error: null };
    landing.seen(bytesOf(3).subarray(1), at);
    landing.confirmed(5_002);
    clock.advance(10);
    expect(ids()).toEqual([1, 2, 3]);
  });
});

describe("the bank of a confirmed block", () => {
  it("decides in every slice, also where its slot was reported without one meanwhile", () => {
    const fixture = startFixture({ countMax: 2 * COUNT });
    const { landing, clock, finalStates, rolledBack } = fixture;
    landing.start();
    fixture.plan("a");
    const status = { confirmed: false, error: null };
    for (let id = 1; id <= 2 * COUNT; id += 1) {
      fixture.track(id);
      const slot = id > COUNT ? 5_000 : 5_001;
      landing.seen(bytesOf(id).subarray(1), { ...status, slot }, id % 2 === 0 ? 10 : 11);
    }
    // The scan for this one still runs while the others arrive.
    landing.confirmed(5_000);
    expect(finalStates).toHaveLength(LANDINGS_PER_SLICE);
    for (const bank of [null, 10, null]) landing.confirmed(5_001, bank);
    clock.advance(10);
    expect(finalStates.slice(COUNT).map(({ packetId }) => packetId)).toEqual(
      upTo(COUNT).filter((id) => id % 2 === 0),
    );
    expect(rolledBack).toEqual(upTo(COUNT).filter((id) => id % 2 === 1));
    expectBalance(landing);
  });

  it("has decided before the ids of banks are forgotten", () => {
    const { landing, finalStates, rolledBack, track, clock, cluster } = seen();
    // Else those without a bank wait for their status.
    cluster.reporting = "no";
    for (let id = COUNT + 1; id <= 2 * COUNT; id += 1) {
      track(id);
      const status = { slot: 5_001, confirmed: false, error: null };
      landing.seen(bytesOf(id).subarray(1), status, 10);
    }
    landing.confirmed(5_001, 11);
    landing.forgetBanks();
    expect([finalStates.length, rolledBack.length]).toEqual([COUNT, COUNT]);
    clock.advance(10);
    expect(landing.inFlight).toBe(COUNT);
  });
});
