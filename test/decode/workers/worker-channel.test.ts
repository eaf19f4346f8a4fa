import { describe, expect, it } from "vitest";
import type { ValidationResult } from "../../../src/core/flow.ts";
import {
  channelMemory,
  openChannel,
  REQUEST_HEAD_BYTES,
  readValidation,
  writeValidation,
} from "../../../src/decode/workers/worker-channel.ts";
import { fc } from "../../support/properties.ts";

const count = fc.nat({ max: 4096 });
const lamports = fc.maxSafeNat();
const anyValidation: fc.Arbitrary<ValidationResult> = fc.oneof(
  fc.record({
    kind: fc.constant("rejected" as const),
    errorCode: fc.nat({ max: 60 }),
    found: lamports,
    needed: lamports,
  }),
  fc.record({
    kind: fc.constant("accepted" as const),
    version: fc.constantFrom(-1 as const, 0 as const, 1 as const),
    signatureOffset: count,
    signatureCount: count,
    messageOffset: count,
    messageSize: count,
    keysOffset: count,
    blockhashOffset: count,
    durableNonce: fc.boolean(),
    tipLamports: lamports,
    priorityFeeLamports: fc.oneof(lamports, fc.double({ min: 0, noNaN: true })),
  }),
);

describe("a channel", () => {
  it("transfers every validation result unchanged, in reused slots", () => {
    const channel = openChannel(channelMemory(2), 2);
    fc.assert(
      fc.property(anyValidation, (validation) => {
        writeValidation(channel.numbers, channel.replies.claim(), validation);
        channel.replies.publish();
        const read = readValidation(channel.numbers, channel.replies.peek());
        channel.replies.release();
        expect(read).toEqual(validation);
        expect(Object.keys(read)).toEqual(Object.keys(validation));
      }),
    );
  });

  it("keeps its regions separate when all are full", () => {
    const memory = channelMemory(2);
    const { int32, counters, requests, replies, bytes, numbers } = openChannel(memory, 2);
    for (let i = 0; i < 2; i += 1) {
      const request = requests.claim();
      bytes.fill(0x11 * (i + 1), request, request + REQUEST_HEAD_BYTES + 4096);
      requests.publish();
      const reply = replies.claim();
      numbers.fill(i + 0.5, reply / 8, reply / 8 + 12);
      replies.publish();
    }
    int32.fill(7);
    counters.fill(9);
    expect([requests.depth, replies.depth]).toEqual([2, 2]);
    for (let i = 0; i < 2; i += 1) {
      const request = requests.peek();
      const whole = bytes.subarray(request, request + REQUEST_HEAD_BYTES + 4096);
      expect(whole.every((byte) => byte === 0x11 * (i + 1))).toBe(true);
      requests.release();
      const reply = replies.peek() / 8;
      expect(numbers.subarray(reply, reply + 12).every((n) => n === i + 0.5)).toBe(true);
      replies.release();
    }
    expect([...int32, ...counters]).toEqual([7, 7, 7, 9, 9, 9, 9, 9]);
  });
});
