/** The thread of a front as its starter sees it: told, heard, and how it ended. */

import { MessageChannel } from "node:worker_threads";
import { afterEach, describe, expect, it } from "vitest";
import type { FromThread, FrontTask } from "../../src/front/messages.ts";
import { type FrontThread, startFrontThread } from "../../src/front/threads.ts";

const threads: FrontThread[] = [];
afterEach(async () => {
  for (const thread of threads.splice(0)) {
    thread.kill();
    await thread.ended;
  }
});

function start(code: string): FrontThread {
  const memory = new SharedArrayBuffer(8);
  const task: FrontTask = {
    ...{ bell: memory, records: memory, figures: memory, routes: memory, seen: memory },
    ...{ passes: memory, decoder: 1, realtime: false, moved: new MessageChannel().port1 },
    http: { requestDeadlineMs: 1, connectionsMax: 1 },
  };
  const header = 'import { parentPort as port, workerData } from "node:worker_threads";\n';
  const url = `data:text/javascript,${encodeURIComponent(header + code)}`;
  const thread = startFrontThread(task, new URL(url));
  threads.push(thread);
  return thread;
}

describe("the thread of a front", () => {
  it("has what it was started with, hears what it is told, and is heard", async () => {
    const thread = start(
      'port.on("message", ({ kind }) => port.postMessage({ kind, decoder: workerData.decoder }));',
    );
    const heard = new Promise<FromThread>((resolve) => thread.port.onMessage(resolve));
    thread.port.post({ kind: "drain" });
    expect(await heard).toEqual({ kind: "drain", decoder: 1 });
  });

  it("has ended well when it ran out of work", async () => {
    expect(await start("").ended).toBeNull();
  });

  it("has ended with what it threw, or with its code", async () => {
    const thrown = await start('throw new RangeError("no engine");').ended;
    expect(thrown).toMatchObject({ message: "no engine" });
    expect(await start("process.exit(3);").ended).toMatchObject({ message: "it exited with 3" });
  });

  it("is ended at once when it has to be", async () => {
    const thread = start('port.on("message", () => {}); port.postMessage({ kind: "stopped" });');
    await new Promise<FromThread>((resolve) => thread.port.onMessage(resolve));
    thread.kill();
    expect(await thread.ended).not.toBeNull();
  });

  it("is told to end once it may have connections, so that it closes them first", async () => {
    const thread = start(
      'port.on("message", ({ kind }) => process.exit(kind === "end" ? 7 : 8));' +
        'port.postMessage({ kind: "stopped" });',
    );
    await new Promise<FromThread>((resolve) => thread.port.onMessage(resolve));
    thread.kill();
    expect(await thread.ended).toMatchObject({ message: "it exited with 7" });
  });
});
