import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { createPacket } from "../../src/core/packet.ts";

const BYTES = Uint8Array.of(1);
/** Created before the packets with other numbers. */
const first = createPacket(1, BYTES, "acme", 2, null, 0);

it("creates a packet with the given fields", () => {
  expect(createPacket(7, BYTES, "acme", 12.5, null, 5_000)).toEqual({
    id: 7,
    bytes: BYTES,
    account: "acme",
    receivedNs: 12.5,
    maxRetries: null,
    offeredLamports: 5_000,
  });
});

it("creates packets with one hidden class for any numbers", () => {
  setFlagsFromString("--allow-natives-syntax");
  const haveSameMap = runInNewContext("(one, other) => %HaveSameMap(one, other)");
  expect([haveSameMap([], []), haveSameMap([], {})]).toEqual([true, false]);
  setFlagsFromString("--no-allow-natives-syntax");
  const others = [
    createPacket(2 ** 40, BYTES, "acme", 1e15, null, 2 ** 50),
    createPacket(0.5, BYTES, "", 0.5, null, 0.5),
    createPacket(2, BYTES, "acme", 3, null, 1),
  ];
  for (const other of others) expect(haveSameMap(first, other)).toBe(true);
});
