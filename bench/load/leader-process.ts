/**
 * The other end of a run, in a separate process: a simulated cluster whose leaders record the first
 * arrival of each numbered transaction. They execute nothing, as that is not part of the path.
 *
 * It reports its addresses to its parent, responds to "collect" with the arrivals, and ends with
 * its parent. Timestamps come from the machine's monotonic clock, which all processes share.
 */

import { monitorEventLoopDelay } from "node:perf_hooks";
import { NS_PER_MS, systemClock } from "../../src/core/clock.ts";
import { encodeKey } from "../../src/core/encoding.ts";
import { createSimulatedCluster } from "../../src/sandbox/cluster.ts";
import { createSimulatedLeader } from "../../src/sandbox/leader.ts";
import { createBlindLedger } from "../../src/sandbox/ledger.ts";
import { freshIdentity } from "../../src/send/identity.ts";
import { numberOf } from "./transactions.ts";

/** Messages to the parent. */
export type LeaderMessage =
  | { readonly kind: "ready"; readonly rpcUrl: string; readonly wsUrl: string }
  | {
      readonly kind: "arrivals";
      /** First arrival by transaction, NaN for none. */
      readonly arrivedNs: Float64Array;
      /** All arrivals, counting each delivery. */
      readonly deliveries: number;
      /** The longest time in which this process read nothing. */
      readonly stallMs: number;
    };

/** No skipped slots, so that runs are alike. */
const SLOT_MS = 400;

const [leaderCount = 4, transactionCount = 0, slotMs = SLOT_MS] = process.argv.slice(2).map(Number);
const stalls = monitorEventLoopDelay({ resolution: 5 });
const arrivedNs = new Float64Array(transactionCount).fill(Number.NaN);
let deliveries = 0;

function note(bytes: Uint8Array, atNs: number): void {
  // Not before: the start of this process stands still too.
  if (deliveries === 0) stalls.enable();
  deliveries += 1;
  const number = numberOf(bytes);
  if (Number.isNaN(arrivedNs[number])) arrivedNs[number] = atNs;
}

function sendMessage(message: LeaderMessage): void {
  process.send?.(message);
}

async function startLeaders(): Promise<readonly { identity: string; address: string }[]> {
  const started = Array.from({ length: leaderCount }, async () => {
    const identity = freshIdentity();
    const leader = createSimulatedLeader({ clock: systemClock, identity });
    leader.onTransaction((bytes, { atNs }) => note(bytes, atNs));
    const { address } = await leader.start();
    return { identity: encodeKey(identity.publicKey), address };
  });
  return Promise.all(started);
}

const cluster = await createSimulatedCluster({
  clock: systemClock,
  leaders: await startLeaders(),
  slotMs,
  skipShare: 0,
  ledger: createBlindLedger(),
});
const urls = await cluster.start();

process.on("message", () => {
  sendMessage({ kind: "arrivals", arrivedNs, deliveries, stallMs: stalls.max / NS_PER_MS });
});
process.on("disconnect", () => process.exit(0));
process.on("SIGTERM", () => process.exit(0));
// The simulation's clocks do not keep the process alive.
setInterval(() => undefined, 60_000);
sendMessage({ kind: "ready", ...urls });
