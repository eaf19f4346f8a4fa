import { describe, expect, it } from "vitest";
import { buildValidation, workersOf } from "../../src/engine/validation.ts";
import { createFakeClock } from "../support/fake-clock.ts";

const LOG = { info() {}, warn() {}, error() {} };

const decodeWith = (workers: number | null) =>
  ({ inline: "always", workers, verify: true }) as const;

describe("the portable engine's validation", () => {
  it("has the configured workers, by default one or more", () => {
    expect([3, 0].map((count) => workersOf({ decode: decodeWith(count) }))).toEqual([3, 0]);
    expect(workersOf({ decode: decodeWith(null) })).toBeGreaterThan(0);
  });

  it("needs tip accounts that are keys", () => {
    const config = { decode: decodeWith(0), tip: { accounts: ["no-address"], lamportsMin: 1_000 } };
    expect(() => buildValidation(config, { clock: createFakeClock(), log: LOG })).toThrow(
      "tip.accounts: no-address is no account",
    );
  });
});
