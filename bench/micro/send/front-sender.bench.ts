/** What a front does for a transaction beside the engine: the table, the streams, the call. */

import assert from "node:assert/strict";
import { Bench } from "tinybench";
import { systemClock } from "../../../src/core/clock.ts";
import { createFrontSender, newFrontSend } from "../../../src/send/front-sender.ts";
import { SHARED_ROUTES_BYTES, SharedRoutes } from "../../../src/send/shared-routes.ts";

const BYTES = new Uint8Array(300).fill(7);

export async function build(): Promise<Bench> {
  const bench = new Bench({ name: "send/front-sender", time: 100, warmupTime: 50 });
  for (const leaders of [1, 2, 4]) {
    const memory = new SharedArrayBuffer(SHARED_ROUTES_BYTES);
    const routes = new SharedRoutes(memory);
    routes.useEngine(1);
    const connections = Array.from({ length: leaders }, (_, index) => ({
      peer: 1 + index,
      cell: routes.takeCell(),
      streamBytesMax: 4096,
      crowded: false,
      adopt: () => false,
    }));
    routes.publish(connections, 800, 4096);
    routes.open(true);
    const taken = (): number => (1 << leaders) - 1;
    const native = { txSend: taken, txHold: taken, txRelease: () => 0 };
    const front = createFrontSender({ native, clock: systemClock, onHeldUp() {} }, memory);
    const into = newFrontSend();
    assert.equal(front.send(BYTES, into), true);
    bench.add(`send, ${leaders} leaders, an engine that does nothing`, () => {
      front.send(BYTES, into);
    });
  }
  return bench;
}
