/**
 * What sending one transaction to several leaders costs the calling thread with the native engine:
 * with one call for all leaders, and with one call each. The leaders are real QUIC servers on
 * loopback, which read what arrived while nothing is timed; the bytes are on the wire when a call
 * returns.
 */

import assert from "node:assert/strict";
import { Bench } from "tinybench";
import { systemClock } from "../../../../src/core/clock.ts";
import { EVENT_NUMBERS, type NativeSending } from "../../../../src/native/contract.ts";
import { loadNative } from "../../../../src/native/load.ts";
import { createSimulatedLeader } from "../../../../src/sandbox/leader.ts";
import { freshIdentity } from "../../../../src/send/identity.ts";

const BYTES = new Uint8Array(300).fill(7);
const LEADERS = 4;
const RECORDS = 256;
/** Fields of `peerStats`: the state, and admitted. */
const ADMITTED = 3;
const TTL_MS = 5_000;
let tx = 0;

interface Engine {
  readonly native: NativeSending;
  readonly handle: number;
  readonly peers: readonly number[];
}

async function start(stops: (() => Promise<void>)[]): Promise<Engine> {
  const found = loadNative();
  if (found.kind !== "loaded") throw new Error("the native engine is not built");
  const { native } = found;
  const records = new Float64Array(RECORDS * EVENT_NUMBERS);
  const handle: number = native.engineStart(
    {
      binds: ["127.0.0.1:0"],
      seed: freshIdentity().seed,
      queueMax: 1024,
      inFlightMax: 4096,
      admissionTimeoutMs: 4_000,
      idleTimeoutMs: 30_000,
      keepAliveMs: 1_000,
      busyPollUs: 0,
    },
    () => {
      while (native.eventsDrain(handle, records) === RECORDS);
    },
  );
  const peers: number[] = [];
  const stats = new Float64Array(1);
  for (let count = 0; count < LEADERS; count += 1) {
    const identity = freshIdentity();
    const leader = createSimulatedLeader({ clock: systemClock, identity });
    const peer = native.peerOpen(handle, (await leader.start()).address);
    stops.push(() => leader.stop());
    while (stats[0] !== ADMITTED) {
      await new Promise((resolve) => setTimeout(resolve, 5));
      native.peerStats(handle, peer, stats);
    }
    stats[0] = 0;
    peers.push(peer);
  }
  return { native, handle, peers };
}

/** Sends one to these and lets the leaders read it before the next: only the calls are timed. */
function timed(bench: Bench, name: string, engine: Engine, calls: readonly Uint32Array[]): void {
  bench.add(
    name,
    () => {
      tx += 1;
      const startNs = systemClock.nowNs();
      let taken = 0;
      for (const deliveries of calls) {
        if (engine.native.txSend(engine.handle, deliveries, BYTES, tx, TTL_MS, 0, 0) !== 0)
          taken += 1;
      }
      const tookNs = systemClock.nowNs() - startNs;
      assert.equal(taken, calls.length);
      return { overriddenDuration: tookNs / 1e6 };
    },
    { afterEach: () => new Promise((resolve) => setTimeout(resolve, 1)), async: false },
  );
}

export async function build(): Promise<Bench> {
  const stops: (() => Promise<void>)[] = [];
  const engine = await start(stops);
  const { peers } = engine;
  const each = peers.map((peer) => Uint32Array.of(peer, 0));
  const all = Uint32Array.from(peers.flatMap((peer) => [peer, 0]));
  const bench = new Bench({ name: "send/transport-native", time: 60, warmupTime: 20 });
  // Twice, so that the noise is visible next to the difference.
  for (const round of [1, 2]) {
    timed(bench, `1 leader, ${round}`, engine, each.slice(0, 1));
    timed(bench, `4 leaders, a call each, ${round}`, engine, each);
    timed(bench, `4 leaders, one call, ${round}`, engine, [all]);
  }
  bench.addEventListener("complete", () => {
    engine.native.engineStop(engine.handle, 0);
    for (const stop of stops) void stop();
  });
  return bench;
}
