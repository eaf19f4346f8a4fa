import { describe, expect, it } from "vitest";
import { buildValidation, workersOf } from "../../src/engine/validation.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { newKeypair } from "../support/transactions.ts";

const LOG = { info() {}, warn() {}, error() {} };

const decodeWith = (workers: number | null) =>
  ({ inline: "always", workers, verify: true }) as const;

function built(accounts: readonly string[]) {
  return buildValidation(
    {
      host: { busyPoll: false, realtime: false },
      decode: decodeWith(0),
      tip: { accounts, lamportsMin: 1_000 },
    },
    {
      clock: createFakeClock(),
      log: LOG,
      engine: { name: "portable", native: null },
      ingressThreads: 0,
    },
  );
}

describe("validation", () => {
  it("has the configured workers, by default one or more where no other thread validates", () => {
    expect([
      workersOf({ decode: decodeWith(3) }, 1),
      workersOf({ decode: decodeWith(0) }, 0),
    ]).toEqual([3, 0]);
    expect(workersOf({ decode: decodeWith(null) }, 0)).toBeGreaterThan(0);
    expect(workersOf({ decode: decodeWith(null) }, 1_000)).toBe(0);
  });

  it("needs tip accounts that are keys", () => {
    expect(() => built(["nobody"])).toThrow("tip.accounts: nobody is no account");
    const validation = built([newKeypair(1).address]);
    expect([validation.parser, validation.decoderHandle]).toEqual([null, null]);
  });
});
