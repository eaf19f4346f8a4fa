/**
 * What a wake-up costs a request: from a client's write to the handler, a hundred times a second,
 * while the thread sleeps in between and while it polls. Requires a spare processor; on a busy
 * machine the scheduler delays a polling thread, and only the fastest requests compare.
 */

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { Bench } from "tinybench";
import { systemClock } from "../../../src/core/clock.ts";
import { createPolling } from "../../../src/edge/busy-poll.ts";
import * as uws from "../../../src/http/uws.ts";

const CLIENT = join(import.meta.dirname, "support/stamping-client.ts");
const REQUESTS = 400;

/** Reports how long each request took to arrive, one after the other. */
async function listen(): Promise<{ arrival(): Promise<number>; stop(): void }> {
  let resolveLatency: (tookNs: number) => void = () => {};
  const app = uws.App();
  app.post("/*", (response) => {
    response.onAborted(() => undefined);
    response.onData((chunk) => {
      resolveLatency(systemClock.nowNs() - Number(Buffer.from(chunk).toString("latin1")));
      response.end();
    });
  });
  let client: ChildProcess | null = null;
  app.listen("127.0.0.1", 0, (socket) => {
    if (socket === false) throw new Error("no port");
    const port = String(uws.us_socket_local_port(socket));
    client = spawn(process.execPath, ["--import", "tsx", CLIENT, port], { stdio: "inherit" });
  });
  const arrival = () =>
    new Promise<number>((resolve) => {
      resolveLatency = resolve;
    });
  await arrival();
  return {
    arrival,
    stop() {
      client?.kill();
      app.close();
    },
  };
}

export async function build(): Promise<Bench> {
  const server = await listen();
  const polling = createPolling();
  const bench = new Bench({ name: "busy-poll", time: 0, iterations: REQUESTS, warmup: false });
  const arrive = async () => {
    const tookNs = await server.arrival();
    assert(tookNs > 0);
    return { overriddenDuration: tookNs / 1e6 };
  };
  // Twice, so that the noise is visible next to the difference.
  for (const round of [1, 2]) {
    bench.add(`request to handler, asleep before, ${round}`, arrive);
    const polls = { beforeAll: () => polling.start(), afterAll: () => polling.stop() };
    bench.add(`request to handler, polling, ${round}`, arrive, polls);
  }
  bench.addEventListener("complete", () => server.stop());
  return bench;
}
