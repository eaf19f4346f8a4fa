import { describe, expect, it } from "vitest";
import { createClusterCounters } from "../../src/cluster/counters.ts";
import type { StatusResponse, TxStatus } from "../../src/cluster/ports.ts";
import { RpcError } from "../../src/cluster/rpc/json-rpc.ts";
import { createStatusProof } from "../../src/cluster/status-proof.ts";
import { encodeSignature, encodeSignatures } from "../../src/core/encoding.ts";
import { createFakeClock } from "../support/fake-clock.ts";

const TOLD: TxStatus = { slot: 990, confirmed: true, error: null };
const nothing = (slot = 1_000): StatusResponse => ({ slot, statuses: [null, null] });

function nameOf(fill: number): string {
  return encodeSignature(new Uint8Array(64).fill(fill));
}

function setUp() {
  const clock = createFakeClock();
  const counters = createClusterCounters();
  const lines: string[] = [];
  const asked: unknown[] = [];
  const node = {
    /** Signatures by slot; null: a slot without a block. */
    block: (_slot: number): readonly string[] | null => [1, 2, 3, 4, 5].map(nameOf),
    status: null as TxStatus | null,
    slot: 1_000,
  };
  const proof = createStatusProof({
    clock,
    counters,
    log: {
      info: (_fields, text) => void lines.push(text),
      warn: (_fields, text) => void lines.push(text),
      error: () => undefined,
    },
    rpc: {
      async blockSignatures(slot) {
        asked.push(slot);
        return node.block(slot);
      },
      async statuses(signatures) {
        const names = encodeSignatures(signatures);
        asked.push(names);
        return { slot: node.slot, statuses: names.map(() => node.status) };
      },
    },
  });
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
  };
  return { clock, counters, lines, asked, node, proof, settle };
}

describe("whether a node tells statuses", () => {
  it("is not known before it answered, and proven by one status, without a probe", async () => {
    const { proof, asked, settle } = setUp();
    expect(proof.reporting).toBe("unknown");
    proof.onResponse({ slot: 1_000, statuses: [null, TOLD] });
    proof.onResponse(nothing());
    await settle();
    expect(proof.reporting).toBe("yes");
    expect(asked).toEqual([]);
  });

  it("is found out with signatures of a block of its own when all answers are null", async () => {
    const { proof, asked, node, lines, settle } = setUp();
    node.status = TOLD;
    proof.onResponse(nothing());
    await settle();
    expect(proof.reporting).toBe("yes");
    expect(asked).toEqual([960, [1, 2, 3, 4].map(nameOf)]);
    expect(lines).toEqual([]);
  });

  it("is denied by a null for what is in its own block, and said once", async () => {
    const { proof, clock, lines, node, settle } = setUp();
    for (let round = 0; round < 3; round += 1) {
      proof.onResponse(nothing());
      await settle();
      clock.advance(10_000);
    }
    expect(proof.reporting).toBe("no");
    expect(lines).toEqual(["the node reports no statuses: what landed cannot be learned from it"]);
    node.status = TOLD;
    proof.onResponse(nothing());
    await settle();
    expect(proof.reporting).toBe("yes");
    expect(lines.at(-1)).toBe("the node reports statuses again");
  });

  it("is denied by the word that there is no such method, and by no other failure", () => {
    const { proof } = setUp();
    proof.failed(new Error("no answer in 2000 ms"));
    proof.failed(new RpcError(-32005, "getSignatureStatuses: node is behind"));
    expect(proof.reporting).toBe("unknown");
    proof.failed(new RpcError(-32601, "getSignatureStatuses: Method not found"));
    expect(proof.reporting).toBe("no");
  });

  it("passes over slots without a block, a bounded number", async () => {
    const { proof, asked, node, counters, settle } = setUp();
    node.block = (slot) => (slot > 957 ? null : [nameOf(1)]);
    node.status = TOLD;
    proof.onResponse(nothing());
    await settle();
    expect(asked).toEqual([960, 959, 958, 957, [nameOf(1)]]);
    expect(proof.reporting).toBe("yes");
    expect(counters).toMatchObject({ statusProbes: 1, statusProbeFailures: 0 });

    const barren = setUp();
    barren.node.block = () => null;
    barren.proof.onResponse(nothing());
    await barren.settle();
    expect(barren.asked).toHaveLength(4);
    expect(barren.proof.reporting).toBe("unknown");
  });

  it("stays as it was where the node keeps no blocks or answers from before one", async () => {
    const { proof, node, counters, clock, settle } = setUp();
    node.block = () => {
      throw new RpcError(-32011, "Transaction history is not available from this node");
    };
    proof.onResponse(nothing());
    await settle();
    expect(proof.reporting).toBe("unknown");
    expect(counters.statusProbeFailures).toBe(1);
    node.block = () => [nameOf(1)];
    node.slot = 960;
    clock.advance(10_000);
    proof.onResponse(nothing());
    await settle();
    expect(proof.reporting).toBe("unknown");
  });

  it("is tried every ten seconds at most, and once a minute after a proof", async () => {
    const { proof, counters, clock, node, settle } = setUp();
    const during = async (seconds: number): Promise<number> => {
      const before = counters.statusProbes;
      for (let second = 0; second < seconds; second += 1) {
        proof.onResponse(nothing());
        await settle();
        clock.advance(1_000);
      }
      return counters.statusProbes - before;
    };
    node.block = () => null;
    expect(await during(30)).toBe(3);
    proof.onResponse({ slot: 1_000, statuses: [TOLD] });
    expect(await during(60)).toBe(0);
    node.block = () => [nameOf(1)];
    node.status = TOLD;
    expect(await during(120)).toBe(2);
  });
});
