/** Whom a front turns away, as its main thread hears of it. */

import { expect, it } from "vitest";
import type { RefusalReason } from "../../src/core/errors.ts";
import { FRONT_RECORDS } from "../../src/core/front-limits.ts";
import {
  createRecordWriter,
  RecordReader,
  recordsMemory,
  TURNED_AWAY,
} from "../../src/front/records.ts";
import { createTurnedAway } from "../../src/front/turned-away.ts";
import { keyOwner } from "../support/owners.ts";

const OWNER = keyOwner("acme", { name: "P", ratePerSecond: 1, burst: 1, shared: false });
const SLOTS = FRONT_RECORDS;

function rig() {
  const memory = recordsMemory(SLOTS);
  const reader = new RecordReader(memory, SLOTS);
  const state = { place: 3, rung: 0 };
  const refused = createTurnedAway({
    records: createRecordWriter(memory, SLOTS),
    placeOf: () => state.place,
    onRecord() {
      state.rung += 1;
    },
  });
  const told: unknown[] = [];
  return {
    state,
    refuse: (reason: RefusalReason, bytes = 9) =>
      refused(OWNER, { reason, sentence: "", data: {} }, bytes),
    read() {
      while (
        reader.read(({ kind, place, bodyBytes, hadNoRoom }) => {
          told.push([kind, place, bodyBytes, hadNoRoom]);
        })
      );
      return told.splice(0);
    },
  };
}

it("is told of whose place it was, how large, and why", () => {
  const { state, refuse, read } = rig();
  refuse("overloaded");
  refuse("internal", 0);
  expect(read()).toEqual([
    [TURNED_AWAY, 3, 9, true],
    [TURNED_AWAY, 3, 0, false],
  ]);
  expect(state.rung).toBe(2);
});

it("is not told of what was judged, of nobody's, nor where half of the ring is full", () => {
  const { state, refuse, read } = rig();
  for (const reason of ["signature_invalid", "tip_missing", "undecodable"] as const) refuse(reason);
  state.place = -1;
  refuse("overloaded");
  expect([read(), state.rung]).toEqual([[], 0]);
  state.place = 3;
  for (let times = 0; times < SLOTS + 3; times += 1) refuse("overloaded");
  expect([read().length, state.rung]).toEqual([SLOTS / 2, SLOTS / 2]);
});
