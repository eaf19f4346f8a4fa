import { fileURLToPath } from "node:url";
import { loadSync } from "@grpc/proto-loader";
import { describe, expect, it } from "vitest";
import { decodeUpdate, encodePing, encodeSubscribe } from "../../../src/cluster/geyser/codec.ts";
import { toBase58 } from "../../support/base58.ts";
import { fc } from "../../support/properties.ts";

/** The protocol's .proto file, independent of the codec under test. */
const description = loadSync(
  fileURLToPath(new URL("../../support/geyser.proto", import.meta.url)),
  {
    keepCase: true,
    longs: Number,
    oneofs: true,
  },
);

function subscribe() {
  const service = description["geyser.Geyser"];
  const method = service !== undefined && "Subscribe" in service ? service["Subscribe"] : null;
  if (typeof method !== "object" || method === null) throw new Error("no such method");
  return method;
}

const update = (fields: object): Buffer => subscribe().responseSerialize(fields);
const requestOf = (bytes: Uint8Array): unknown =>
  subscribe().requestDeserialize(Buffer.from(bytes));

const SIGNATURE = Buffer.alloc(64, 7);

describe("gRPC request encoding", () => {
  it("subscribes to all slot stages, non-vote transactions of the accounts, and blocks", () => {
    expect(requestOf(encodeSubscribe(["A", "B"]))).toEqual({
      slots: {
        edge: expect.objectContaining({ filter_by_commitment: false, interslot_updates: true }),
      },
      transactions_status: {
        edge: expect.objectContaining({ vote: false, account_include: ["A", "B"] }),
      },
      blocks_meta: { edge: {} },
      commitment: 0,
      _commitment: "commitment",
    });
    const filter = JSON.stringify(requestOf(encodeSubscribe(["A"])));
    expect(filter).not.toContain("failed");
  });

  it("encodes the maximum of 64 configured accounts", () => {
    const accounts = Array.from({ length: 64 }, (_, index) =>
      toBase58(Buffer.alloc(32, index + 1)),
    );
    expect(requestOf(encodeSubscribe(accounts))).toMatchObject({
      transactions_status: { edge: { account_include: accounts } },
    });
  });

  it("encodes a ping with its id", () => {
    expect(requestOf(encodePing(1))).toMatchObject({ ping: { id: 1 } });
  });
});

describe("gRPC update decoding", () => {
  it("decodes the stage of a slot and ignores all other fields", () => {
    const stages = [
      "processed",
      "confirmed",
      "finalized",
      "firstShred",
      "completed",
      "created",
      "other",
    ];
    for (const [status, stage] of [...stages, "other"].entries()) {
      const bytes = update({
        filters: ["edge"],
        slot: { slot: 384_480_123, parent: 384_480_122, status, dead_error: "x" },
        created_at: { seconds: 1_790_000_000, nanos: 5 },
      });
      expect(decodeUpdate(bytes)).toEqual({ kind: "slot", slot: 384_480_123, stage, bank: null });
    }
  });

  it("decodes a landing and its transaction error", () => {
    const status = { slot: 5, signature: SIGNATURE, index: 3 };
    expect(decodeUpdate(update({ transaction_status: status }))).toEqual({
      kind: "status",
      slot: 5,
      signature: SIGNATURE,
      error: null,
      bank: null,
    });
    const err = { err: Buffer.from([8, 0, 0, 0, 1, 25, 0, 0, 0, 1, 0, 0, 0]) };
    expect(decodeUpdate(update({ transaction_status: { ...status, err } }))).toMatchObject({
      error: '{"InstructionError":[1,{"Custom":1}]}',
    });
  });

  it("decodes a block's hash and height, with null for a missing height", () => {
    const block_meta = { slot: 9, blockhash: "abc", parent_slot: 8, parent_blockhash: "x" };
    const block = { kind: "block", slot: 9, blockhash: "abc", bank: null };
    expect(decodeUpdate(update({ block_meta }))).toEqual({ ...block, height: null });
    const withHeight = { ...block_meta, block_height: { block_height: 300_000_000_000 } };
    expect(decodeUpdate(update({ block_meta: withHeight }))).toEqual({
      ...block,
      height: 300_000_000_000,
    });
  });

  it("decodes the bank of a slot, of a landing and of a block", () => {
    const bank_id = 2 ** 53 - 1;
    const bank = bank_id;
    const block_meta = { slot: 9, blockhash: "abc", bank_id };
    const status = { slot: 9, signature: SIGNATURE, bank_id };
    for (const fields of [
      { slot: { slot: 9, status: 1, bank_id } },
      { transaction_status: status },
      { block_meta },
    ]) {
      expect(decodeUpdate(update(fields))).toMatchObject({ slot: 9, bank });
    }
    // Where the field is not optional, 0 cannot be distinguished from none.
    expect(decodeUpdate(update({ slot: { slot: 9, bank_id: 0 } }))).toMatchObject({ bank: null });
  });

  it("takes a number above 2^53 as absent, and rejects a varint of more than 10 bytes", () => {
    const varint = (size: number) => [...new Array(size - 1).fill(0x80), 0x01];
    const slotUpdate = (...fields: readonly number[]) =>
      Buffer.from([0x1a, fields.length, ...fields]);
    const slot = { kind: "slot", slot: 9, stage: "processed", bank: null };
    // 2^49, the largest power of two in 8 bytes, and 2^56.
    expect(decodeUpdate(slotUpdate(0x08, 9, 0x28, ...varint(8)))).toEqual({
      ...slot,
      bank: 2 ** 49,
    });
    for (const size of [9, 10]) {
      expect(decodeUpdate(slotUpdate(0x08, 9, 0x28, ...varint(size)))).toEqual(slot);
      expect(decodeUpdate(slotUpdate(0x08, ...varint(size)))).toBeNull();
    }
    expect(decodeUpdate(slotUpdate(0x08, 9, 0x28, ...varint(11)))).toBeNull();
    // As a size or a tag it is malformed.
    expect(decodeUpdate(Buffer.from([0x1a, ...varint(10)]))).toBeNull();
    expect(decodeUpdate(Buffer.from([...varint(10), 1]))).toBeNull();
  });

  it("decodes a ping, and any other kind as other", () => {
    expect(decodeUpdate(update({ ping: {} }))).toEqual({ kind: "ping" });
    expect(decodeUpdate(update({ pong: { id: 1 } }))).toEqual({ kind: "other" });
  });

  it("returns null for empty, truncated or incomplete updates", () => {
    const complete = update({ transaction_status: { slot: 5, signature: SIGNATURE } });
    for (let size = 0; size < complete.length; size += 1) {
      expect(decodeUpdate(complete.subarray(0, size))).toBeNull();
    }
    for (const malformed of [
      update({ transaction_status: { slot: 5, signature: SIGNATURE.subarray(1) } }),
      update({ transaction_status: { signature: SIGNATURE } }),
      update({ slot: { status: 3 } }),
      update({ block_meta: { slot: 9 } }),
      Buffer.from([0x1a, 0x0b, 0x08, ...new Array(9).fill(0xff), 0x7f]),
      Buffer.from([0x03]),
      Buffer.from([0x00, 0x00]),
    ]) {
      expect(decodeUpdate(malformed)).toBeNull();
    }
  });

  it("never throws on arbitrary bytes", () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => void decodeUpdate(bytes)));
  });
});
