import { expect, it } from "vitest";
import { TargetTable } from "../../../src/send/native/target-table.ts";
import { TestTargets } from "../../support/target-table.ts";

it("sets the targets of the engine that runs", () => {
  const targets = new TestTargets();
  const table = new TargetTable(targets);
  table.engine = 3;
  table.set([2 ** 32 - 1, 8], [1232, 4096], 800);
  const { engine, peers, bytesMax, ttlMs } = targets;
  expect({ engine, peers, bytesMax, ttlMs }).toEqual({
    engine: 3,
    peers: [2 ** 32 - 1, 8],
    bytesMax: [1232, 4096],
    ttlMs: 800,
  });
});

it("sets none where no engine runs", () => {
  const targets = new TestTargets();
  new TargetTable(targets).set([1], [1232], 800);
  expect(targets.peers).toEqual([]);
});
