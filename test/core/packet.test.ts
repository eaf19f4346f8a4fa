import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { createPacket } from "../../src/core/packet.ts";

const BYTES = Uint8Array.of(1);
/** Created before the packets with other numbers. */
const first = createPacket(1, BYTES, "acme", 2, null, 0);

it("gives a packet what it is given", () => {
  expect(createPacket(7, BYTES, "acme", 12.5, null, 5_000)).toEqual({
    id: 7,
    bytes: BYTES,
    account: "acme",
    receivedNs: 12.5,
    maxRetries: null,
    priorityLamports: 5_000,
  });
});

it("makes packets of one shape, whatever their numbers are", () => {
  setFlagsFromString("--allow-natives-syntax");
  const isAlike = runInNewContext("(one, other) => %HaveSameMap(one, other)");
  expect([isAlike([], []), isAlike([], {})]).toEqual([true, false]);
  setFlagsFromString("--no-allow-natives-syntax");
  const others = [
    createPacket(2 ** 40, BYTES, "acme", 1e15, null, 2 ** 50),
    createPacket(0.5, BYTES, "", 0.5, null, 0.5),
    createPacket(2, BYTES, "acme", 3, null, 1),
  ];
  for (const other of others) expect(isAlike(first, other)).toBe(true);
});
