/**
 * Whether this edge can accept transactions: clients can connect, it knows the slot and its leader,
 * has the address of a leader, holds a live connection, has read keys, and is not draining.
 */

import type { KeyFeed } from "../accounts/keys/feed.ts";
import type { ClusterThread } from "../cluster/cluster-thread.ts";
import type { EngineChoice } from "../native/choose.ts";
import type { Router } from "../route/router.ts";
import type { SenderStatus } from "../send/sender.ts";
import type { Check, Readiness } from "../telemetry/admin.ts";

export interface ReadinessDeps {
  readonly router: Pick<Router, "status">;
  readonly sender: Pick<SenderStatus, "liveCount">;
  readonly cluster: Pick<ClusterThread, "statusReporting">;
  /** null for keys from a file, which are known from the start. */
  readonly feed: Pick<KeyFeed, "hasKeys"> | null;
  readonly engine: EngineChoice["name"];
}

/** The age of the last slot event above which slots count as stale, in milliseconds. */
const SLOT_AGE_MS_MAX = 5_000;

function keysCheck(ok: boolean): Check {
  return { name: "keys", ok, detail: ok ? "keys are known" : "no keys were read yet" };
}

/** Status reporting. Without it the edge sends all the same, so this check never fails. */
const STATUSES = {
  yes: "the node reports statuses",
  no: "the node reports no statuses: what landed cannot be learned from it",
  unknown: "whether the node reports statuses is not known yet",
} as const satisfies Record<ReturnType<ClusterThread["statusReporting"]>, string>;

/** An edge serves with either engine, so that this check never fails. */
const ENGINES = {
  native: "the native engine sends",
  portable: "the portable engine sends, which is for development only",
} as const satisfies Record<EngineChoice["name"], string>;

/** The lifecycle phase of an edge. */
const SERVING = {
  starting: "no client can connect yet",
  serving: "taking work",
  draining: "draining",
} as const;

export function createReadiness({ router, sender, cluster, feed, engine }: ReadinessDeps) {
  let phase: keyof typeof SERVING = "starting";

  function check(): Readiness {
    const { slot, slotAgeMs, scheduleCovers, contacts } = router.status();
    const fresh = slotAgeMs !== null && slotAgeMs <= SLOT_AGE_MS_MAX;
    const age = slotAgeMs === null ? "no event yet" : `last event ${Math.round(slotAgeMs)} ms ago`;
    // A node that hangs reports the same slot forever, which is no better than none.
    const stuck = slot === null && fresh ? " because the node reports no new one" : "";
    const checks: Check[] = [
      { name: "serving", ok: phase === "serving", detail: SERVING[phase] },
      {
        name: "slot",
        ok: slot !== null && fresh,
        detail: `slot ${slot ?? "unknown"}${stuck}, ${age}`,
      },
      {
        name: "schedule",
        ok: scheduleCovers,
        detail: scheduleCovers ? "the current leader is known" : "the current leader is unknown",
      },
      { name: "contacts", ok: contacts > 0, detail: `${contacts} leaders with an address` },
      { name: "live", ok: sender.liveCount > 0, detail: `${sender.liveCount} live connections` },
      { name: "statuses", ok: true, detail: STATUSES[cluster.statusReporting()] },
      { name: "engine", ok: true, detail: ENGINES[engine] },
    ];
    if (feed !== null) checks.push(keysCheck(feed.hasKeys));
    return { ok: checks.every(({ ok }) => ok), checks };
  }

  return {
    check,
    /** Clients can connect; they cannot while the ingress threads start. */
    serve(): void {
      if (phase === "starting") phase = "serving";
    },
    /** From now on not ready. */
    drain(): void {
      phase = "draining";
    },
    /** The names of the checks that fail. */
    failing: (): string[] =>
      check()
        .checks.filter(({ ok }) => !ok)
        .map(({ name }) => name),
    isDraining: (): boolean => phase === "draining",
  };
}
