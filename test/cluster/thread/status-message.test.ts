import { describe, expect, it } from "vitest";
import { STATUS_ERROR_CHARS_MAX } from "../../../src/cluster/limits.ts";
import type { TxStatus } from "../../../src/cluster/ports.ts";
import {
  readStatusesMessage,
  statusesMessage,
} from "../../../src/cluster/thread/status-message.ts";
import { fc } from "../../support/properties.ts";

const status = (slot: number, confirmed = true, error: string | null = null): TxStatus => ({
  slot,
  confirmed,
  error,
});

describe("a message with statuses", () => {
  it("is read as the statuses that it was made of", () => {
    const either = fc.option(
      fc.record({
        slot: fc.maxSafeNat(),
        confirmed: fc.boolean(),
        error: fc.option(
          fc.constantFrom('"AccountInUse"', '{"InstructionError":[0,{"Custom":1}]}'),
        ),
      }),
    );
    fc.assert(
      fc.property(fc.maxSafeNat(), fc.array(either, { maxLength: 256 }), (slot, statuses) => {
        const message = statusesMessage(3, { slot, statuses });
        expect(message.id).toBe(3);
        expect(readStatusesMessage(structuredClone(message))).toEqual({ slot, statuses });
      }),
    );
  });

  it("shares one record between transactions of one block", () => {
    const statuses = [status(5), status(5), status(5, false), null, status(5, false)];
    const read = readStatusesMessage(statusesMessage(0, { slot: 9, statuses })).statuses;
    expect(read).toEqual(statuses);
    expect(read[0]).toBe(read[1]);
    expect(read[2]).toBe(read[4]);
  });

  it("replaces an error above STATUS_ERROR_CHARS_MAX by a fixed one", () => {
    const errors = [0, 1].map((more) => "x".repeat(STATUS_ERROR_CHARS_MAX + more));
    const statuses = errors.map((error) => status(1, true, error));
    const read = readStatusesMessage(statusesMessage(0, { slot: 9, statuses })).statuses;
    expect(read[0]?.error).toBe(errors[0]);
    expect(JSON.parse(read[1]?.error ?? "")).toContain("too long");
  });
});
