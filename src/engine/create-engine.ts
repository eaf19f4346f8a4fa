/**
 * Builds an engine of either kind. They differ below two interfaces: `Transport`, the connections
 * to leaders, and `Decoder`. With ingress threads the native engine also shares its
 * table of recent transactions and its targets with them.
 */

import type { Config } from "../config/config.ts";
import { formatListen } from "../config/value-types.ts";
import type { Clock } from "../core/clock.ts";
import { SetupError } from "../core/errors.ts";
import { createDedupCache, openDedupCache } from "../dedup/recent-transactions.ts";
import type { Identity } from "../send/identity.ts";
import type { LeaderStatsTable } from "../send/leader-stats.ts";
import { createSender, type SenderOptions } from "../send/sender.ts";
import { deliveryGateOf } from "./delivery-gate.ts";
import type { Engine, EngineEvents } from "./engine.ts";
import { createPipeline } from "./pipeline.ts";
import { type TransportDeps, transportOf } from "./transport.ts";
import { buildValidation } from "./validation.ts";

export interface EngineDeps extends TransportDeps {
  readonly identity: Identity;
  readonly events: EngineEvents;
  /** Leader statistics to update. */
  readonly leaderStats?: LeaderStatsTable;
  /** A leader that accepted deliveries no longer responds at its address. */
  readonly onLeaderUnreachable?: () => void;
  /** The clock of its timers; absent: `clock`. */
  readonly timers?: Clock;
  /** How many ingress threads send and validate too, and the table that they share; 0: none. */
  readonly ingressThreads: number;
  readonly dedupMemory: SharedArrayBuffer | null;
}

/** What it needs of the configuration. */
export type EngineConfig = Pick<Config, "host" | "send" | "decode" | "tip">;

/** @throws SetupError where this machine cannot do what the configuration asks for */
export function createEngine(
  config: EngineConfig,
  deps: EngineDeps,
  options: Partial<SenderOptions> = {},
): Engine {
  const { clock, log, events, targetTable, dedupMemory, identity } = deps;
  const { name } = deps.engine;
  const { send } = config;
  const dedup = dedupMemory === null ? createDedupCache() : openDedupCache(dedupMemory);
  const sender = createSender(
    {
      clock: deps.timers ?? clock,
      log,
      transport: transportOf(config, identity, deps),
      onOutcome: (outcome) => events.outcome(outcome),
      targetTable,
      ...(deps.leaderStats && { leaderStats: deps.leaderStats }),
      ...(deps.onLeaderUnreachable && { onLeaderUnreachable: deps.onLeaderUnreachable }),
    },
    {
      queuePerLeader: send.queuePerLeader,
      deliveryTtlMs: send.deliveryTtlMs,
      connectionsMax: send.connections,
      ...options,
    },
  );
  const validation = buildValidation(config, deps);
  const { dispatch, parser, signatureText } = validation;
  const reconcile = (): void => void targetTable?.beforeEvents();
  const submit = createPipeline({
    ...{ clock, dedup, dispatch, parser, sender, events, signatureText },
    reconcile: targetTable && reconcile,
  });
  return {
    name,
    submit,
    resend: sender.resend,
    recordSend: sender.recordSend,
    renew: deliveryGateOf(dedup).renew,
    usePlan: sender.usePlan,
    useLandedShares: sender.useLandedShares,
    useIdentity: sender.useIdentity,
    flushEvents: sender.flushEvents,
    reconcile,
    leaders: sender.leaders,
    get liveCount() {
      return sender.liveCount;
    },
    get sendableCount() {
      return sender.sendableCount;
    },
    get outdatedCount() {
      return sender.outdatedCount;
    },
    counters: sender.counters,
    losses: sender.losses,
    duplicates: dedup.counters,
    validation: dispatch,
    inlineVerifier: validation.inlineVerifier,
    decoderHandle: validation.decoderHandle,
    async start() {
      try {
        await sender.start();
      } catch (cause) {
        const why = cause instanceof Error ? cause.message : String(cause);
        const from = send.bind.map(formatListen).join(", ");
        throw new SetupError(`send.bind: cannot send from ${from}: ${why}`, { cause });
      }
    },
    startValidation: validation.start,
    stopValidation: validation.stop,
    stop: sender.stop,
  };
}
