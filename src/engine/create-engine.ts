/**
 * Builds an engine of either kind. They have the sender in common, which holds connections to
 * leaders and makes resends, above one interface, `Transport`.
 */

import type { Config } from "../config/config.ts";
import { formatListen } from "../config/value-types.ts";
import type { Clock } from "../core/clock.ts";
import { messageOf, SetupError } from "../core/errors.ts";
import { createNativeDecoder } from "../decode/native-decoder.ts";
import { createDedupCache } from "../dedup/recent-transactions.ts";
import { EVENT_NUMBERS, type NativeEngine } from "../native/contract.ts";
import type { Identity } from "../send/identity.ts";
import type { LeaderStatsTable } from "../send/leader-stats.ts";
import { TargetTable } from "../send/native/target-table.ts";
import { BATCH_NUMBERS } from "../send/native/transport-native.ts";
import { createSender, type Sender, type SenderOptions } from "../send/sender.ts";
import { deliveryGateOf } from "./delivery-gate.ts";
import type { Engine, EngineEvents } from "./engine.ts";
import { NATIVE_KEYS_MAX } from "./limits.ts";
import { NativeSubmit } from "./native-submit.ts";
import { createPipeline } from "./pipeline.ts";
import { type RingRecord, SubmissionRecords } from "./submission-record.ts";
import { SubmissionReporter } from "./submission-reporter.ts";
import { type TransportDeps, transportOf } from "./transport.ts";
import { buildValidation, decoderOptionsOf } from "./validation.ts";

export interface EngineDeps extends Omit<TransportDeps, "shared"> {
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
  | "forget"
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
  const shared = native === null ? null : sharedOf(config, deps, native);
  const sender = senderOf(config, deps, options, shared);
  const kind =
    native === null || shared === null
      ? portableKind(config, deps, sender)
      : nativeKind(config, deps, sender, native, shared);
  return {
    name: deps.engine.name,
    submit: kind.submit,
    submitCall: kind.submitCall,
    resend: sender.resend,
    roomFor: sender.roomFor,
    renew: kind.renew,
    forget: kind.forget,
    usePlan: sender.usePlan,
    useLandedShares: sender.useLandedShares,
    useIdentity: sender.useIdentity,
    flushEvents: sender.flushEvents,
    sender,
    duplicates: kind.duplicates,
    validation: kind.validation,
    inlineVerifier: kind.inlineVerifier,
    records: kind.records,
    ingress: kind.ingress,
    async start() {
      try {
        await sender.start();
      } catch (cause) {
        const why = messageOf(cause);
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

/** What the native engine and the sender above it share. */
function sharedOf({ host }: EngineConfig, { ingressThreads }: EngineDeps, native: NativeEngine) {
  // Real-time threads already have priority; only other programs would gain from a yield.
  const isYielding = ingressThreads > 0 && !host.realtime;
  const batch = new Float64Array(BATCH_NUMBERS);
  const reader = new SubmissionRecords(batch);
  const submissions = {
    batch,
    /** Set before the engine runs. */
    report: (_: RingRecord): void => {},
    take(at: number): number {
      this.report(reader.read(at));
      return reader.sizeOf(at);
    },
    unreadUnitsMax: 0,
    noteUnread(units: number): void {
      this.unreadUnitsMax = Math.max(this.unreadUnitsMax, units);
    },
    yieldThread: isYielding ? () => native.threadYield() : () => {},
  };
  return { targetTable: new TargetTable(native), submissions };
}

function senderOf(
  config: EngineConfig,
  deps: EngineDeps,
  options: Partial<SenderOptions>,
  shared: ReturnType<typeof sharedOf> | null,
): Sender {
  const { clock, log, events, identity } = deps;
  const { send } = config;
  return createSender(
    {
      clock: deps.timers ?? clock,
      log,
      transport: transportOf(config, identity, { ...deps, shared }),
      onOutcome: (outcome) => events.outcome(outcome),
      targetTable: shared?.targetTable ?? null,
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
    ...deliveryGateOf(dedup),
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
  { targetTable, submissions }: ReturnType<typeof sharedOf>,
): Kind {
  const { events, planName } = deps;
  const options = decoderOptionsOf(config);
  const decoder = createNativeDecoder(native, { ...options, keyCacheSize: NATIVE_KEYS_MAX });
  const submitting = new NativeSubmit({ native, events, flushEvents: sender.flushEvents });
  const ownSubmitter = submitting.submitterOf;
  const reporter = new SubmissionReporter({ events, sender, planName, ownSubmitter });
  const { counters } = reporter;
  submissions.report = reporter.report;
  return {
    submit: submitting.submit,
    submitCall: submitting.submitCall,
    renew: submitting.renew,
    forget: submitting.forget,
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
      engineHandle: () => targetTable.engine,
      pathHandle: () => submitting.path,
      decoder: decoder.handle,
      takeUnreadBytesMax() {
        const units = submissions.unreadUnitsMax;
        submissions.unreadUnitsMax = 0;
        return units * EVENT_NUMBERS * Float64Array.BYTES_PER_ELEMENT;
      },
    },
    open() {
      submitting.open(targetTable.engine, decoder.handle);
    },
    async startValidation() {},
    async stopValidation() {
      submitting.close();
      sender.flushEvents();
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
