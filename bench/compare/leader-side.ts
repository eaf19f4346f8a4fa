/** The Rust program as a generator with a leader, and a cluster that names that leader. */

import { systemClock } from "../../src/core/clock.ts";
import { encodeKey } from "../../src/core/encoding.ts";
import { createSimulatedCluster } from "../../src/sandbox/cluster.ts";
import { createBlindLedger } from "../../src/sandbox/ledger.ts";
import { freshIdentity } from "../../src/send/identity.ts";
import { startAgreeingRpc } from "./agreeing-rpc.ts";
import { type LineProcess, startLines } from "./program.ts";

export interface LeaderSide {
  /** Generator and leader. */
  readonly ends: LineProcess;
  /** "host:port" of the leader. */
  readonly leader: string;
  readonly tipAccount: string;
  readonly rpcUrl: string;
  readonly wsUrl: string;
}

export interface LeaderSideOptions {
  /** The public keys that have stake at the leader. */
  readonly staked: readonly string[];
  /** Whether the node reports every transaction as landed, or knows none of them. */
  readonly lands: boolean;
  /** Whether generator and leader run at real-time priority: as if on processors of their own. */
  readonly realtime: boolean;
}

/** Starts them; `stops` gets what ends each. */
export async function startLeaderSide(
  program: string,
  { staked, lands, realtime }: LeaderSideOptions,
  stops: (() => unknown)[],
): Promise<LeaderSide> {
  const args = ["path", ...staked];
  const ends = realtime
    ? startLines("chrt", ["--rr", "1", program, ...args])
    : startLines(program, args);
  stops.push(() => ends.stop());
  const [leader = "", tipAccount = ""] = (await ends.line()).split(" ");
  const cluster = await createSimulatedCluster({
    clock: systemClock,
    leaders: [{ identity: encodeKey(freshIdentity().publicKey), address: leader }],
    slotMs: SLOT_MS,
    skipShare: 0,
    ledger: createBlindLedger(),
  });
  const { rpcUrl, wsUrl } = await cluster.start();
  stops.push(() => cluster.stop());
  const rpc = await startAgreeingRpc(rpcUrl, () => cluster.currentSlot(), lands);
  stops.push(() => rpc.stop());
  return { ends, leader, tipAccount, rpcUrl: rpc.url, wsUrl };
}

const SLOT_MS = 400;
