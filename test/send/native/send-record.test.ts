import { expect, it } from "vitest";
import { ROUTES_SHARED_MAX } from "../../../src/core/limits.ts";
import { newFrontSend } from "../../../src/send/native/send-record.ts";

it("is of nothing at first, with room for the streams of all routes, each its own", () => {
  const [one, other] = [newFrontSend(), newFrontSend()];
  expect(one).toMatchObject({ version: 0, count: 0, mask: 0, held: false });
  expect(one.streams).toHaveLength(ROUTES_SHARED_MAX);
  one.streams[0] = 1;
  expect(other.streams[0]).toBe(0);
});
