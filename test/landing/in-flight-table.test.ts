import { describe, expect, it } from "vitest";
import type { Accepted, Packet } from "../../src/core/flow.ts";
import { createDecoder } from "../../src/decode/decoder.ts";
import { NONE } from "../../src/landing/byte-store.ts";
import { DURABLE, InFlightTable, SENT } from "../../src/landing/in-flight-table.ts";
import { DECODER, newPacket } from "../support/packets.ts";

const decoder = createDecoder(DECODER);

function acceptedOf(packet: Packet): Accepted {
  const validation = decoder.decode(packet.bytes);
  if (validation.kind !== "accepted") throw new Error("the packet should be accepted");
  return validation;
}

function open(table: InFlightTable, packet: Packet, over: Partial<Accepted> = {}): number {
  return table.open(packet, { ...acceptedOf(packet), ...over });
}

/** Rows by age, as packet ids. */
function idsOf(table: InFlightTable): number[] {
  const ids: number[] = [];
  for (let row = table.oldest; row !== NONE; row = table.newerThan(row)) {
    ids.push(table.packetId[row] ?? NONE);
  }
  return ids;
}

describe("the table of transactions in flight", () => {
  it("finds a transaction by its packet and by its signature", () => {
    const table = new InFlightTable(8, 8192);
    const packets = [1, 2, 3].map((id) => newPacket(id));
    const rows = packets.map((packet) => open(table, packet));
    for (const [index, packet] of packets.entries()) {
      expect(table.findPacket(packet.id)).toBe(rows[index]);
      expect(table.findSignature(packet.bytes, 1)).toBe(rows[index]);
    }
    expect(table.findPacket(9)).toBe(NONE);
    expect(table.findSignature(newPacket(9).bytes, 1)).toBe(NONE);
    expect(table.findSignature(newPacket(1).bytes, -1)).toBe(NONE);
    expect(table.findSignature(new Uint8Array(10), 1)).toBe(NONE);
  });

  it("distinguishes signatures that share one half", () => {
    const table = new InFlightTable(8, 8192);
    const first = newPacket(1);
    const second = { ...first, id: 2, bytes: Uint8Array.from(first.bytes) };
    second.bytes[64] = (second.bytes[64] ?? 0) ^ 1;
    const accepted = acceptedOf(first);
    const rows = [table.open(first, accepted), table.open(second, accepted)];
    expect(table.findSignature(first.bytes, 1)).toBe(rows[0]);
    expect(table.findSignature(second.bytes, 1)).toBe(rows[1]);
  });

  it("keeps the bytes, the signature and the blockhash after the lent view is gone", () => {
    const table = new InFlightTable(8, 8192);
    const packet = newPacket(1);
    const whole = Uint8Array.from(packet.bytes);
    const { blockhashOffset } = acceptedOf(packet);
    const row = open(table, packet);
    packet.bytes.fill(0);
    expect(table.bytes(row)).toEqual(whole);
    expect(Buffer.compare(table.signatures([row]), whole.subarray(1, 65))).toBe(0);
    expect(table.blockhash(row)).toEqual(whole.slice(blockhashOffset, blockhashOffset + 32));
  });

  it("keeps its rows by age, and uses a closed one again without anything of the old", () => {
    const table = new InFlightTable(3, 8192);
    const rows = [1, 2, 3].map((id) => open(table, newPacket(id), { durableNonce: true }));
    expect(idsOf(table)).toEqual([1, 2, 3]);
    const middle = rows[1] ?? NONE;
    table.raise(middle, SENT);
    table.close(middle);
    expect(idsOf(table)).toEqual([1, 3]);
    expect(table.holds(middle, 2)).toBe(false);

    const again = newPacket(4);
    expect(open(table, again)).toBe(middle);
    expect(idsOf(table)).toEqual([1, 3, 4]);
    expect([table.is(middle, SENT), table.is(middle, DURABLE)]).toEqual([false, false]);
    const both = Buffer.concat([again.bytes.subarray(1, 65), newPacket(1).bytes.subarray(1, 65)]);
    expect(Buffer.compare(table.signatures([middle, rows[0] ?? NONE]), both)).toBe(0);
    expect(table.findSignature(newPacket(2).bytes, 1)).toBe(NONE);
  });

  it("is full by count and by bytes", () => {
    const { length } = newPacket(1).bytes;
    const byCount = new InFlightTable(2, 1 << 20);
    for (const id of [1, 2]) {
      expect(byCount.isFullFor(length)).toBe(false);
      open(byCount, newPacket(id));
    }
    expect(byCount.isFullFor(1)).toBe(true);
    byCount.close(byCount.oldest);
    expect(byCount.isFullFor(length)).toBe(false);

    const byBytes = new InFlightTable(100, 1024);
    while (!byBytes.isFullFor(length)) open(byBytes, newPacket(byBytes.count + 1));
    expect(byBytes.count).toBe(Math.floor(2 / Math.ceil(length / 512)));
  });

  it("keeps what is offered, and the account that offers it", () => {
    const table = new InFlightTable(8, 8192);
    const row = open(table, { ...newPacket(1), account: "acme", offeredLamports: 1_000_000 });
    expect([table.offeredLamports[row], table.accountOf(row)]).toEqual([1_000_000, "acme"]);
  });

  it("uses the larger of two resend limits", () => {
    const table = new InFlightTable(8, 8192);
    const row = open(table, { ...newPacket(1), maxRetries: 0 });
    expect(table.retriesLeft[row]).toBe(0);
    table.raiseRetries(row, 3);
    table.raiseRetries(row, 1);
    expect(table.retriesLeft[row]).toBe(3);
    table.raiseRetries(row, null);
    expect(table.retriesLeft[row]).toBeGreaterThan(1e9);
  });

  it("counts the copies that wait, of each transaction alone", () => {
    const table = new InFlightTable(1, 8192);
    const row = open(table, newPacket(1));
    table.copyWaits(row);
    table.copyWaits(row);
    table.countedResend[row] = 7;
    table.copyEnded(row);
    expect(table.copiesWaiting[row]).toBe(1);
    table.close(row);
    expect(open(table, newPacket(2))).toBe(row);
    expect([table.copiesWaiting[row], table.countedResend[row]]).toEqual([0, 0]);
    table.copyEnded(row);
    expect(table.copiesWaiting[row]).toBe(0);
  });
});
