import { once } from "node:events";
import { getPriority } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { describe, expect, it } from "vitest";
import { ROOT } from "../support/source-tree.ts";

describe("a lower priority", () => {
  it("applies to the calling thread only, and ends at the lowest there is", async () => {
    const file = pathToFileURL(join(ROOT, "dist/runtime/thread-priority.js")).href;
    const code = `
      const { parentPort, workerData } = require("node:worker_threads");
      const { getPriority } = require("node:os");
      import(workerData).then(({ lowerPriority }) => {
        parentPort.postMessage([1, 2, 3].map(() => (lowerPriority(), getPriority())));
      });
    `;
    const before = getPriority();
    const worker = new Worker(code, { eval: true, workerData: file });
    const [values] = await once(worker, "message");
    expect(values).toEqual([10, 20, 30].map((steps) => Math.min(19, before + steps)));
    expect(getPriority()).toBe(before);
    await worker.terminate();
  });
});
