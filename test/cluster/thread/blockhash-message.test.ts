import { describe, expect, it } from "vitest";
import {
  blockhashChecksMessage,
  blockhashesOf,
  joinedBlockhashes,
  readBlockhashChecksMessage,
} from "../../../src/cluster/thread/blockhash-message.ts";

describe("messages about blockhashes", () => {
  it("have the blockhashes of the request, in order", () => {
    const blockhashes = [1, 2, 3].map((fill) => new Uint8Array(32).fill(fill));
    expect(blockhashesOf(joinedBlockhashes(blockhashes))).toEqual(blockhashes);
    expect(blockhashesOf(joinedBlockhashes([]))).toEqual([]);
  });

  it("have each result, also where the node gave none", () => {
    const checks = [{ slot: 5, isValid: true }, null, { slot: 0, isValid: false }];
    const message = blockhashChecksMessage(8, checks);
    expect(message.id).toBe(8);
    expect(readBlockhashChecksMessage(message)).toEqual(checks);
  });
});
