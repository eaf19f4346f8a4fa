import { once } from "node:events";
import { afterEach, describe, expect, it } from "vitest";
import { type ClusterWorker, createClusterWorker } from "../../src/cluster/cluster-worker.ts";
import { BEGUN, CONTROL_WORDS, type FromClusterThread } from "../../src/cluster/thread/messages.ts";

/** A node that is not there: the thread runs nevertheless. */
const OPTIONS = { rpcUrl: "http://127.0.0.1:9", wsUrl: "ws://127.0.0.1:9" };

const workers: ClusterWorker[] = [];
afterEach(async () => {
  for (const { worker } of workers.splice(0)) await worker.terminate();
});

function create(entry?: string): ClusterWorker {
  const made = createClusterWorker(OPTIONS, undefined, entry);
  workers.push(made);
  return made;
}

describe("a cluster thread that loads early", () => {
  it("sends nothing before it begins", async () => {
    const { worker, control, begin } = create();
    const messages: FromClusterThread[] = [];
    worker.on("message", (message: FromClusterThread) => messages.push(message));
    await once(worker, "online");
    expect([...control]).toEqual(new Array(CONTROL_WORDS).fill(0));
    expect(messages).toEqual([]);
    begin();
    expect(control[BEGUN]).toBe(1);
    while (!messages.some(({ kind }) => kind === "started")) await once(worker, "message");
  });

  it("can be ended while it waits", async () => {
    const { worker, ended } = create();
    await worker.terminate();
    expect(String(await ended)).toContain("ended by itself");
  });

  it("keeps the cause of a failed start for the one that begins it", async () => {
    const { ended } = create("/nowhere/worker.js");
    expect(String(await ended)).toContain("/nowhere/worker.js");
  });
});
