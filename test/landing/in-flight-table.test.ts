import { describe, expect, it } from "vitest";
import type { Accepted, Packet } from "../../src/core/flow.ts";
import { createDecoder } from "../../src/decode/decoder.ts";
import { NONE } from "../../src/landing/byte-store.ts";
import { DURABLE, SENT, Watch } from "../../src/landing/in-flight-table.ts";
import { DECODER, newPacket } from "../support/packets.ts";

const decoder = createDecoder(DECODER);

function acceptedOf(packet: Packet): Accepted {
  const verdict = decoder.decode(packet.bytes);
  if (verdict.kind !== "accepted") throw new Error("the packet should be accepted");
  return verdict;
}

function open(watch: Watch, packet: Packet, over: Partial<Accepted> = {}): number {
  return watch.open(packet, { ...acceptedOf(packet), ...over });
}

/** Rows by age, as packets' ids. */
function idsOf(watch: Watch): number[] {
  const ids: number[] = [];
  for (let row = watch.oldest; row !== NONE; row = watch.newerThan(row)) {
    ids.push(watch.packetId[row] ?? NONE);
  }
  return ids;
}

describe("the table of transactions in flight", () => {
  it("finds a transaction by its packet and by its signature", () => {
    const watch = new Watch(8, 8192);
    const packets = [1, 2, 3].map((id) => newPacket(id));
    const rows = packets.map((packet) => open(watch, packet));
    for (const [index, packet] of packets.entries()) {
      expect(watch.findPacket(packet.id)).toBe(rows[index]);
      expect(watch.findSignature(packet.bytes, 1)).toBe(rows[index]);
    }
    expect(watch.findPacket(9)).toBe(NONE);
    expect(watch.findSignature(newPacket(9).bytes, 1)).toBe(NONE);
    expect(watch.findSignature(newPacket(1).bytes, -1)).toBe(NONE);
    expect(watch.findSignature(new Uint8Array(10), 1)).toBe(NONE);
  });

  it("tells apart signatures of which a signer used one half again", () => {
    const watch = new Watch(8, 8192);
    const first = newPacket(1);
    const second = { ...first, id: 2, bytes: Uint8Array.from(first.bytes) };
    second.bytes[64] = (second.bytes[64] ?? 0) ^ 1;
    const accepted = acceptedOf(first);
    const rows = [watch.open(first, accepted), watch.open(second, accepted)];
    expect(watch.findSignature(first.bytes, 1)).toBe(rows[0]);
    expect(watch.findSignature(second.bytes, 1)).toBe(rows[1]);
  });

  it("keeps the bytes, the signature and the blockhash after the lent view is gone", () => {
    const watch = new Watch(8, 8192);
    const packet = newPacket(1);
    const whole = Uint8Array.from(packet.bytes);
    const { blockhashOffset } = acceptedOf(packet);
    const row = open(watch, packet);
    packet.bytes.fill(0);
    expect(watch.bytes(row)).toEqual(whole);
    expect(Buffer.compare(watch.signatures([row]), whole.subarray(1, 65))).toBe(0);
    expect(watch.blockhash(row)).toEqual(whole.slice(blockhashOffset, blockhashOffset + 32));
  });

  it("keeps its rows by age, and uses a closed one again without anything of the old", () => {
    const watch = new Watch(3, 8192);
    const rows = [1, 2, 3].map((id) => open(watch, newPacket(id), { durableNonce: true }));
    expect(idsOf(watch)).toEqual([1, 2, 3]);
    const middle = rows[1] ?? NONE;
    watch.raise(middle, SENT);
    watch.close(middle);
    expect(idsOf(watch)).toEqual([1, 3]);
    expect(watch.holds(middle, 2)).toBe(false);

    const again = newPacket(4);
    expect(open(watch, again)).toBe(middle);
    expect(idsOf(watch)).toEqual([1, 3, 4]);
    expect([watch.is(middle, SENT), watch.is(middle, DURABLE)]).toEqual([false, false]);
    const both = Buffer.concat([again.bytes.subarray(1, 65), newPacket(1).bytes.subarray(1, 65)]);
    expect(Buffer.compare(watch.signatures([middle, rows[0] ?? NONE]), both)).toBe(0);
    expect(watch.findSignature(newPacket(2).bytes, 1)).toBe(NONE);
  });

  it("is full by count and by bytes", () => {
    const { length } = newPacket(1).bytes;
    const byCount = new Watch(2, 1 << 20);
    for (const id of [1, 2]) {
      expect(byCount.isFullFor(length)).toBe(false);
      open(byCount, newPacket(id));
    }
    expect(byCount.isFullFor(1)).toBe(true);
    byCount.close(byCount.oldest);
    expect(byCount.isFullFor(length)).toBe(false);

    const byBytes = new Watch(100, 1024);
    while (!byBytes.isFullFor(length)) open(byBytes, newPacket(byBytes.count + 1));
    expect(byBytes.count).toBe(Math.floor(2 / Math.ceil(length / 512)));
  });

  it("ranks by what is paid in all, four to a doubling", () => {
    const watch = new Watch(8, 8192);
    const rank = (tipLamports: number, priorityFeeLamports: number): number => {
      const row = open(watch, newPacket(watch.count + 1), { tipLamports, priorityFeeLamports });
      return watch.rank[row] ?? 0;
    };
    expect(rank(1_000_000, 0)).toBe(rank(0, 1_000_000));
    expect(rank(2_000_000, 0)).toBe(rank(1_000_000, 0) + 4);
    expect(rank(2 ** 53, 2 ** 53)).toBeLessThan(256);
    expect(rank(0, 0)).toBe(0);
  });

  it("takes the larger of two wishes for resends", () => {
    const watch = new Watch(8, 8192);
    const row = open(watch, { ...newPacket(1), maxRetries: 0 });
    expect(watch.retriesLeft[row]).toBe(0);
    watch.raiseRetries(row, 3);
    watch.raiseRetries(row, 1);
    expect(watch.retriesLeft[row]).toBe(3);
    watch.raiseRetries(row, null);
    expect(watch.retriesLeft[row]).toBeGreaterThan(1e9);
  });
});
