import { expect, it } from "vitest";
import { TARGETS_MAX } from "../../../src/core/limits.ts";
import { newSendRecord } from "../../../src/send/native/send-record.ts";

it("starts empty, with room for all targets, each record its own", () => {
  const [one, other] = [newSendRecord(), newSendRecord()];
  expect(one).toMatchObject({ number: 0, count: 0, status: 0, corked: false });
  expect(one.peers).toHaveLength(TARGETS_MAX);
  one.peers[0] = 1;
  expect(other.peers[0]).toBe(0);
});
