/**
 * Builds an engine of either kind. They have the sender in common, which holds connections to
 * leaders and makes resends, above one interface, `Transport`.
 */

import type { Config } from "../config/config.ts";
import { formatListen } from "../config/value-types.ts";
import type { Clock } from "../core/clock.ts";
import { SetupError } from "../core/errors.ts";
import { createNativeDecoder } from "../decode/native-decoder.ts";
import { createDedupCache } from "../dedup/recent-transactions.ts";
import type { NativeEngine } from "../native/contract.ts";
import type { Identity } from "../send/identity.ts";
import type { LeaderStatsTable } from "../send/leader-stats.ts";
import {
  SHARED_TARGET_TABLE_BYTES,
  SharedTargetTable,
} from "../send/native/shared-target-table.ts";
import { createSender, type Sender, type SenderOptions } from "../send/sender.ts";
import { deliveryGateOf } from "./delivery-gate.ts";
import type { Engine, EngineEvents } from "./engine.ts";
import { NATIVE_KEYS_MAX } from "./limits.ts";
import { NativeSubmit } from "./native-submit.ts";
import { createPipeline } from "./pipeline.ts";
import { Records } from "./records.ts";
import { type TransportDeps, transportOf } from "./transport.ts";
import { buildValidation, decoderOptionsOf } from "./validation.ts";

export interface EngineDeps extends Omit<TransportDeps, "targetTable"> {
  readonly identity: Identity;
  readonly events: EngineEvents;
  /** Leader statistics to update. */
  readonly leaderStats?: LeaderStatsTable;
  /** A leader that accepted deliveries no longer responds at its address. */
  readonly onLeaderUnreachable?: () => void;
  /** The clock of its timers; absent: `clock`. */
  readonly timers?: Clock;
  /** How many ingress threads the native engine has. */
  readonly ingressThreads: number;
  /** The name of the plan with this number in the native engine. */
  readonly planName: (number: number) => string;
}

/** What it needs of the configuration. */
export type EngineConfig = Pick<Config, "host" | "send" | "decode" | "tip">;

/** What differs between the two kinds. */
type Kind = Pick<
  Engine,
  | "submit"
  | "submitCall"
  | "renew"
  | "reconcile"
  | "duplicates"
  | "validation"
  | "inlineVerifier"
  | "records"
  | "ingress"
  | "startValidation"
  | "stopValidation"
> & {
  /** Accepts submissions, now that the sender runs. */
  open(): void;
};

/** @throws SetupError where this machine cannot do what the configuration asks for */
export function createEngine(
  config: EngineConfig,
  deps: EngineDeps,
  options: Partial<SenderOptions> = {},
): Engine {
  const { native } = deps.engine;
  const memory = new SharedArrayBuffer(native === null ? 0 : SHARED_TARGET_TABLE_BYTES);
  const targetTable = native === null ? null : new SharedTargetTable(memory);
  const sender = senderOf(config, deps, options, targetTable);
  const kind =
    native === null || targetTable === null
      ? portableKind(config, deps, sender)
      : nativeKind(config, deps, sender, native, { table: targetTable, memory });
  return {
    name: deps.engine.name,
    submit: kind.submit,
    submitCall: kind.submitCall,
    resend: sender.resend,
    renew: kind.renew,
    usePlan: sender.usePlan,
    useLandedShares: sender.useLandedShares,
    useIdentity: sender.useIdentity,
    flushEvents: sender.flushEvents,
    reconcile: kind.reconcile,
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
    duplicates: kind.duplicates,
    validation: kind.validation,
    inlineVerifier: kind.inlineVerifier,
    records: kind.records,
    ingress: kind.ingress,
    async start() {
      try {
        await sender.start();
      } catch (cause) {
        const why = cause instanceof Error ? cause.message : String(cause);
        const from = config.send.bind.map(formatListen).join(", ");
        throw new SetupError(`send.bind: cannot send from ${from}: ${why}`, { cause });
      }
      kind.open();
    },
    startValidation: kind.startValidation,
    stopValidation: kind.stopValidation,
    stop: sender.stop,
  };
}

function senderOf(
  config: EngineConfig,
  deps: EngineDeps,
  options: Partial<SenderOptions>,
  targetTable: SharedTargetTable | null,
): Sender {
  const { clock, log, events, identity } = deps;
  const { send } = config;
  return createSender(
    {
      clock: deps.timers ?? clock,
      log,
      transport: transportOf(config, identity, { ...deps, targetTable }),
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
}

/** Each step in TypeScript. */
function portableKind(config: EngineConfig, deps: EngineDeps, sender: Sender): Kind {
  const { clock, events } = deps;
  const dedup = createDedupCache();
  const { dispatch, inlineVerifier } = buildValidation(config, deps);
  return {
    submit: createPipeline({ clock, dedup, dispatch, sender, events }),
    submitCall: null,
    // Each submission is reported before it is answered.
    reconcile() {},
    renew: deliveryGateOf(dedup).renew,
    duplicates: dedup.counters,
    validation: dispatch,
    inlineVerifier,
    records: { ingress: 0, corked: 0 },
    ingress: null,
    open() {},
    startValidation: dispatch.start,
    stopValidation: dispatch.stop,
  };
}

/** One call for each transaction, on whatever thread. */
function nativeKind(
  config: EngineConfig,
  deps: EngineDeps,
  sender: Sender,
  native: NativeEngine,
  targets: { readonly table: SharedTargetTable; readonly memory: SharedArrayBuffer },
): Kind {
  const { events, planName } = deps;
  const options = decoderOptionsOf(config);
  const decoder = createNativeDecoder(native, { ...options, keyCacheSize: NATIVE_KEYS_MAX });
  const submitting = new NativeSubmit({ native, events, records: () => records });
  // Real-time threads already have priority; only other programs would gain from a yield.
  const isYielding = deps.ingressThreads > 0 && !config.host.realtime;
  const records: Records = new Records({
    ...{ events, sender, planName, ownSubmitter: submitting.submitterOf },
    yieldThread: isYielding ? () => native.threadYield() : () => {},
  });
  const { counters } = records;
  targets.table.beforeEvents = records.reconcile;
  targets.table.yieldThread = records.yieldThread;
  return {
    submit: submitting.submit,
    submitCall: submitting.submitCall,
    reconcile: records.reconcile,
    renew: submitting.renew,
    duplicates: {
      get hits() {
        return counters.duplicates;
      },
      get evicted() {
        return submitting.evicted;
      },
    },
    validation: {
      ...NO_WORKERS,
      counters: {
        ...NO_WORKERS.counters,
        get inline() {
          return counters.inline + submitting.refused;
        },
      },
    },
    inlineVerifier: decoder.counters,
    records: counters,
    ingress: {
      engineHandle: () => targets.table.engine,
      pathHandle: () => submitting.path,
      ...{ decoder: decoder.handle, records, targets: targets.memory },
    },
    open() {
      submitting.open(targets.table.engine, decoder.handle, {
        records: new Uint8Array(records.memory),
        targets: new Uint8Array(targets.memory),
      });
    },
    async startValidation() {},
    async stopValidation() {
      submitting.close();
      records.reconcile();
      decoder.close();
    },
  };
}

/** The native engine validates on the thread that accepted a transaction. */
const NO_WORKERS = {
  counters: { inline: 0, handed: 0, full: 0, failed: 0, lost: 0, deaths: 0 },
  verifierCounters: { verified: 0, invalid: 0, keysFound: 0, keysMade: 0, keysEvicted: 0 },
  depth: 0,
  workersUp: 0,
};
