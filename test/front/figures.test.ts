/** What a front counts is what the main thread reads. */

import { describe, expect, it } from "vitest";
import { REFUSALS } from "../../src/core/errors.ts";
import {
  DESK_NAMES,
  frontFigures,
  frontFiguresMemory,
  REFUSAL_NAMES,
} from "../../src/front/figures.ts";
import { Desk } from "../../src/ingress/desk.ts";
import { createFakeClock } from "../support/fake-clock.ts";

const QUIET = { info() {}, warn() {}, error() {} };

describe("a front's figures", () => {
  it("are all that a desk counts, and every reason to refuse", () => {
    const desk = new Desk(
      { clock: createFakeClock(), log: QUIET, latency: null },
      { requestDeadlineMs: 1000 },
    );
    expect([...DESK_NAMES].sort()).toEqual(Object.keys(desk.counters).sort());
    expect(REFUSAL_NAMES).toEqual(Object.keys(REFUSALS));
  });

  it("are read on the other side as they are counted, each by itself", () => {
    const memory = frontFiguresMemory();
    const [front, main] = [frontFigures(memory), frontFigures(memory)];
    for (const [index, name] of DESK_NAMES.entries()) front.counters[name] += index + 1;
    for (const [index, reason] of REFUSAL_NAMES.entries()) front.refusals[reason] = 100 + index;
    expect(DESK_NAMES.map((name) => main.counters[name])).toEqual(DESK_NAMES.map((_, i) => i + 1));
    expect(REFUSAL_NAMES.map((reason) => main.refusals[reason])).toEqual(
      REFUSAL_NAMES.map((_, i) => 100 + i),
    );
  });
});
