/** The sender's own time for a transaction, on an engine that does nothing. */

import assert from "node:assert/strict";
import { Bench } from "tinybench";
import { systemClock } from "../../../src/core/clock.ts";
import type { Plan } from "../../../src/core/flow.ts";
import { createSender, type Sender } from "../../../src/send/sender.ts";
import { ACKED, type EngineConnection, type Transport } from "../../../src/send/transport.ts";

const BYTES = new Uint8Array(300).fill(7);
const log = { info() {}, warn() {}, error() {} };
let lastId = 0;

function send(sender: Sender): number {
  lastId += 1;
  const account = "acme";
  const offeredLamports = lastId;
  const fields = { id: lastId, bytes: BYTES, account, receivedNs: 0, maxRetries: null };
  const packet = { ...fields, offeredLamports };
  const taken = sender.accept(packet);
  if (taken > 0) sender.report(packet);
  return taken;
}

function planOf(addresses: readonly string[]): Plan {
  const targets = addresses.map((address) => ({ identity: address, address, slot: 1 }));
  return { slot: 1, send: targets, warm: targets };
}

/** Accepts everything, and acknowledges it at the next drain. */
function nullTransport(): Transport {
  const connectionWith = (send: () => number): EngineConnection => ({
    peer: 0,
    streamBytesMax: 4_096,
    idleTimeoutMs: Number.POSITIVE_INFINITY,
    established: true,
    admitted: true,
    rttUs: 1_000,
    isDegraded: false,
    retried: false,
    streamsLeft: 128,
    datagramsReceived: -1,
    keepsAlive: false,
    waits: false,
    send,
    ping() {},
    close() {},
  });
  return {
    counters: {},
    async start() {},
    async stop() {},
    useIdentity() {},
    connect(_, events) {
      let [sent, acked] = [0, 0];
      setInterval(() => {
        const nowNs = systemClock.nowNs();
        for (; acked < sent; acked += 1) events.result(acked + 1, ACKED, nowNs);
        events.progress();
      }, 0).unref();
      return connectionWith(() => {
        sent += 1;
        return sent;
      });
    },
  };
}

async function nullSender(leaders: number): Promise<Sender> {
  const transport = nullTransport();
  const sender = createSender({ clock: systemClock, transport, onOutcome() {}, log });
  await sender.start();
  sender.usePlan(planOf(Array.from({ length: leaders }, (_, index) => `10.0.0.${index}:1`)));
  await until(() => sender.sendableCount === leaders);
  assert.equal(send(sender), leaders);
  return sender;
}

async function until(done: () => boolean): Promise<void> {
  while (!done()) await new Promise((resolve) => setTimeout(resolve, 5));
}

export async function build(): Promise<Bench> {
  const bench = new Bench({ name: "send/sender", time: 100, warmupTime: 50 });
  for (const leaders of [1, 2, 4]) {
    const sender = await nullSender(leaders);
    bench.add(`accept, ${leaders} leaders, an engine that does nothing`, () => {
      send(sender);
    });
  }
  return bench;
}
