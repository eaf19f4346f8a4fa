/** What a front counts is what the main thread reads. */

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { REFUSALS } from "../../src/core/errors.ts";
import { Desk } from "../../src/http/request-tracker.ts";
import {
  DESK_NAMES,
  frontFigures,
  frontFiguresMemory,
  REFUSAL_NAMES,
  RELAY_REASONS,
} from "../../src/native-ingress/thread-counters.ts";
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

  it("have the names and the order that the engine writes them in", () => {
    const path = new URL("../../native/src/submit/counters.rs", import.meta.url);
    const rust = readFileSync(path, "utf8");
    const numberOf = (name: string) =>
      Number(new RegExp(`^const ${name}: usize = (\\d+);$`, "m").exec(rust)?.[1]);
    expect([numberOf("DESK_NUMBERS"), numberOf("REFUSAL_NUMBERS")]).toEqual([
      DESK_NAMES.length,
      REFUSAL_NAMES.length,
    ]);
    const [, list = ""] = /pub enum Figure \{([\s\S]*?)\n\}/.exec(rust) ?? [];
    const variants = [...list.matchAll(/^ {4}(\w+)(?: = (\w+))?,$/gm)];
    const camel = (name: string) => name.charAt(0).toUpperCase() + name.slice(1);
    expect(variants.map(([, name]) => name)).toEqual([
      ...DESK_NAMES.map(camel),
      ...RELAY_REASONS.map((reason) => `Relayed${camel(reason)}`),
    ]);
    const starts = variants.flatMap(([, name, at]) => (at === undefined ? [] : [`${name} ${at}`]));
    expect(starts).toEqual(["Connections 0", "RelayedKey RELAYED_AT"]);
  });
});
