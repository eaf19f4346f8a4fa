// A decode worker that throws when it sees its first transaction.

import { openChannel, READY } from "../../dist/decode/workers/worker-channel.js";
import { wake } from "../../dist/runtime/wake-flag.js";

export function serve(task) {
  const channel = openChannel(task.channel, task.slots);
  Atomics.store(channel.int32, READY, 1);
  wake(new Int32Array(task.wakeFlag), 0);
  const pause = new Int32Array(new SharedArrayBuffer(4));
  while (channel.requests.depth === 0) Atomics.wait(pause, 0, 0, 1);
  throw new Error("the worker threw");
}
