/**
 * What the sender itself takes for a transaction, over an engine that does nothing, and how long
 * the last leader of a plan waits for its copy over real connections of the portable engine: alone,
 * behind three healthy leaders, and behind a dead, a stalled and an evicting one. The bytes are on
 * the wire when `accept` returns, so its time is the wait.
 */

import assert from "node:assert/strict";
import { Bench } from "tinybench";
import { systemClock } from "../../../src/core/clock.ts";
import type { Plan } from "../../../src/core/flow.ts";
import { createSimulatedLeader, type LeaderBehaviour } from "../../../src/sandbox/leader.ts";
import { freshIdentity } from "../../../src/send/identity.ts";
import { createSender, type Sender } from "../../../src/send/sender.ts";
import { ACKED, type Connection, type Transport } from "../../../src/send/transport.ts";
import { createQuicTransport } from "../../../src/send/transport-quic.ts";
import { QUIC_TRANSPORT_DEFAULTS } from "../../../src/send/transport-quic-options.ts";

const BYTES = new Uint8Array(300).fill(7);
const log = { info() {}, warn() {}, error() {} };
/** What is open until all is measured. */
const stops: (() => Promise<void>)[] = [];
let lastId = 0;

function send(sender: Sender): number {
  lastId += 1;
  const account = "acme";
  const priorityLamports = lastId;
  const packet = { id: lastId, bytes: BYTES, account, receivedNs: 0, maxRetries: null };
  return sender.accept({ ...packet, priorityLamports });
}

function planOf(addresses: readonly string[]): Plan {
  const targets = addresses.map((address) => ({ identity: address, address, slot: 1 }));
  return { slot: 1, send: targets, warm: targets };
}

/** Takes everything and has it acknowledged at the next look. */
function nullTransport(): Transport {
  let streams = 0;
  const connection: Connection = {
    established: true,
    admitted: true,
    rttUs: 1_000,
    retried: false,
    streamsLeft: 128,
    heard: -1,
    keepsAlive: false,
    endNs: 0,
    send: () => ++streams,
    fate: () => ACKED,
    ping() {},
    close() {},
  };
  return {
    counters: {},
    async start() {},
    async stop() {},
    useIdentity() {},
    connect(_, events) {
      setInterval(() => events.progress(), 0).unref();
      return connection;
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

/** A sender whose last leader is healthy, and those before it as told. */
async function realSender(before: readonly Partial<LeaderBehaviour>[]): Promise<Sender> {
  const addresses: string[] = [];
  for (const behaviour of [...before, {}]) {
    const leader = createSimulatedLeader({
      clock: systemClock,
      identity: freshIdentity(),
      behaviour,
    });
    addresses.push((await leader.start()).address);
    stops.push(() => leader.stop());
  }
  const options = { ...QUIC_TRANSPORT_DEFAULTS, bindIpv4: "127.0.0.1", bindIpv6: null };
  const transport = createQuicTransport({ clock: systemClock, identity: freshIdentity() }, options);
  const sender = createSender({ clock: systemClock, transport, onOutcome() {}, log });
  await sender.start();
  stops.push(() => sender.stop());
  sender.usePlan(planOf(addresses));
  const last = addresses.at(-1);
  await until(() => sender.peers().some((it) => it.address === last && it.state === "live"));
  assert(send(sender) > 0);
  return sender;
}

/** Sends one, and lets the leaders take it before the next: what is timed is `accept` alone. */
function timed(bench: Bench, name: string, sender: Sender): void {
  bench.add(
    name,
    () => {
      const startNs = systemClock.nowNs();
      assert(send(sender) > 0);
      return { overriddenDuration: (systemClock.nowNs() - startNs) / 1e6 };
    },
    { afterEach: () => new Promise((resolve) => setTimeout(resolve, 1)), async: false },
  );
}

export async function build(): Promise<Bench> {
  const bench = new Bench({ name: "send/sender", time: 100, warmupTime: 50 });
  for (const leaders of [1, 2, 4]) {
    const sender = await nullSender(leaders);
    bench.add(`accept, ${leaders} leaders, an engine that does nothing`, () => {
      send(sender);
    });
  }
  const evicting = { closeNew: { code: 1, reason: "dropped" } };
  const bad = [{ admission: "silent" }, { reading: "stalled" }, evicting] as const;
  const alone = await realSender([]);
  const healthy = await realSender([{}, {}, {}]);
  const among = await realSender(bad);
  // Twice, so that the noise shows beside the difference.
  for (const round of [1, 2]) {
    timed(bench, `healthy leader, alone, ${round}`, alone);
    timed(bench, `healthy leader, behind three healthy ones, ${round}`, healthy);
    timed(bench, `healthy leader, behind a dead, a stalled, an evicting one, ${round}`, among);
  }
  bench.addEventListener("complete", () => {
    for (const stop of stops) void stop();
  });
  return bench;
}
