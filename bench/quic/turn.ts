/** One turn of the load: the generator's measurements, and what the edge decided meanwhile. */

import type { Turn as Measured, Quantiles } from "../compare/turn.ts";
import type { BenchAccount, Stage } from "./stage.ts";

export interface Group {
  /** Transactions a second of all its accounts together. */
  readonly rate: number;
  readonly accounts: readonly BenchAccount[];
  /** Connections of each account. */
  readonly connections: number;
  /** Whether its signatures are wrong. */
  readonly isForged?: boolean;
  /** Over QUIC: whether its connections are to a server that takes nothing, not to the edge. */
  readonly isElsewhere?: boolean;
}

export interface GroupResult {
  readonly count: number;
  /** Never at the leader, for whatever reason. */
  readonly missing: number;
  readonly last_arrival_ns: number;
  readonly one_way_us: Quantiles;
  readonly from_due_us: Quantiles;
}

export interface Turn extends Measured {
  readonly groups: readonly GroupResult[];
  readonly ends: {
    /** QUIC: written nowhere, because the edge granted no stream for 2 s. */
    readonly unsent: number;
    /** QUIC: on connections that ended before the acknowledgement. */
    readonly cut: number;
    readonly closed: number;
    readonly first_closed_ns: number;
    readonly last_closed_ns: number;
  };
  /** Decisions of the edge by outcome, the warm-up included. */
  readonly outcomes: Readonly<Record<string, number>>;
}

/** The others are over HTTP. */
export type Transport = "quic" | "raw" | "json" | "reqwest" | "reqwest-json" | "tpu" | "touchdown";

const OVER_QUIC: ReadonlySet<Transport> = new Set(["quic", "tpu", "touchdown"]);
const WARM_SECONDS = 0.4;
let lastRun = 0;

/** @throws Error when the generator could not finish */
export async function takeTurn(
  stage: Stage,
  transport: Transport,
  groups: readonly Group[],
  seconds: number,
): Promise<Turn> {
  lastRun += 1;
  const rate = groups.reduce((sum, group) => sum + group.rate, 0);
  const warm = Math.ceil(rate * WARM_SECONDS);
  const before = await stage.outcomes();
  stage.ends.say(
    JSON.stringify({
      run: lastRun,
      address: OVER_QUIC.has(transport) ? stage.quicAddress : stage.httpAddress,
      transport,
      groups: groups.map(({ accounts, isForged = false, isElsewhere = false, ...group }) => ({
        ...group,
        is_forged: isForged,
        is_elsewhere: isElsewhere,
        accounts: accounts.map(({ key, identity }) => ({ key, seed: [...identity.seed] })),
      })),
      count: warm + rate * seconds,
      warm,
      pid: stage.edgePid,
      certificate: stage.certificate,
      // As acknowledgements do over QUIC.
      responses_wake: true,
    }),
  );
  // The Rust program writes it.
  const turn = JSON.parse(await stage.ends.line()) as Turn | { readonly failed: string };
  if ("failed" in turn) throw new Error(`${transport} at ${rate}/s: ${turn.failed}`);
  const outcomes: Record<string, number> = {};
  for (const [outcome, count] of Object.entries(await stage.outcomes())) {
    const more = count - (before[outcome] ?? 0);
    if (more > 0) outcomes[outcome] = more;
  }
  return { ...turn, outcomes };
}
