import { expect, it } from "vitest";
import type { Outcome } from "../../src/core/flow.ts";
import { createOutcomeBuffer } from "../../src/edge/outcome-buffer.ts";

const outcome = (packetId: number): Outcome => ({
  packetId,
  identity: "Leader",
  address: "127.0.0.1:8009",
  slot: 1,
  kind: "sent",
  reason: null,
  atNs: 1,
  rttUs: 0,
  connectionAgeMs: 1,
  resend: 0,
});

it("reports outcomes immediately between packets, and afterwards during a send", () => {
  const reported: number[] = [];
  const buffer = createOutcomeBuffer(({ packetId }) => reported.push(packetId));
  buffer.push(outcome(1));
  expect(reported).toEqual([1]);
  buffer.suspend();
  buffer.push(outcome(2));
  buffer.push(outcome(3));
  expect(reported).toEqual([1]);
  buffer.flush();
  expect(reported).toEqual([1, 2, 3]);
  buffer.push(outcome(4));
  expect(reported).toEqual([1, 2, 3, 4]);
  buffer.suspend();
  buffer.flush();
  expect(reported).toEqual([1, 2, 3, 4]);
});
