/** The cost of a JSON-RPC call besides the transaction itself. */

import assert from "node:assert/strict";
import { Bench } from "tinybench";
import { rawAccepted, rpcRejected, rpcResult } from "../../../../src/http/response.ts";
import { parseBody, readCall } from "../../../../src/http/submit/json-rpc-parse.ts";

export async function build(): Promise<Bench> {
  const transaction = Buffer.from(Uint8Array.from({ length: 1_232 }, (_, i) => (i * 7) % 256));
  const body = (id: string) =>
    Buffer.from(
      `{"jsonrpc":"2.0","id":${id},"method":"sendTransaction","params":` +
        `["${transaction.toString("base64")}",{"encoding":"base64","skipPreflight":true}]}`,
    );
  const read = (bytes: Uint8Array) => {
    const parsed = parseBody(bytes);
    assert.equal(parsed.kind, "single");
    return parsed.kind === "single" ? readCall(parsed.call, parsed.text, -1) : null;
  };
  const plain = body("1");
  const large = body("9007199254740993");
  const call = read(plain);
  assert.ok(call?.kind === "send" && Buffer.compare(call.bytes, transaction) === 0);
  assert.equal(read(large)?.id, "9007199254740993");
  const signature = "5".repeat(88);
  assert.equal(JSON.parse(rpcResult("1", signature)).result, signature);

  const bench = new Bench({ name: "ingress: JSON-RPC" });
  bench.add("parse and decode a call of 1,232 bytes", () => {
    read(plain);
  });
  bench.add("the same with an id beyond 2^53", () => {
    read(large);
  });
  bench.add("write a result", () => {
    rpcResult("1", signature);
  });
  bench.add("write a binary response", () => {
    rawAccepted(signature);
  });
  bench.add("write an error", () => {
    rpcRejected("1", { reason: "tip_missing", message: "no tip was found", data: { found: 0 } });
  });
  return bench;
}
