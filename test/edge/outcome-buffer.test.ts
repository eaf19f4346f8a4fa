import { expect, it } from "vitest";
import type { Outcome } from "../../src/core/flow.ts";
import { createOutcomeRelay } from "../../src/edge/outcome-buffer.ts";

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

it("tells at once what comes between packets, and later what comes while one is offered", () => {
  const heard: number[] = [];
  const relay = createOutcomeRelay(({ packetId }) => heard.push(packetId));
  relay.tell(outcome(1));
  expect(heard).toEqual([1]);
  relay.hold();
  relay.tell(outcome(2));
  relay.tell(outcome(3));
  expect(heard).toEqual([1]);
  relay.release();
  expect(heard).toEqual([1, 2, 3]);
  relay.tell(outcome(4));
  expect(heard).toEqual([1, 2, 3, 4]);
  relay.hold();
  relay.release();
  expect(heard).toEqual([1, 2, 3, 4]);
});
