/**
 * Keeps cluster data current: slots, leader schedules and addresses, blocks and votes.
 *
 * Each watcher runs and retries independently and survives a restart of the node. This module makes
 * no decisions: events go to the router, and their age can be queried. An edge runs it on a worker
 * thread (`worker.ts`), and its main thread uses `cluster-thread.ts`.
 */

import type { Clock } from "../core/clock.ts";
import { STATUSES_PER_REQUEST } from "../core/limits.ts";
import type { Log } from "../core/log.ts";
import { COALESCE_MS } from "../runtime/coalesced-timers.ts";
import type { BackOffOptions } from "./back-off.ts";
import { createBlockWatcher } from "./blocks/block-watcher.ts";
import { createBlocks } from "./blocks/blocks.ts";
import {
  type BlockContent,
  createQuietRange,
  type QuietRange,
  type SlotRange,
} from "./blocks/quiet-range.ts";
import { createConsensusWatcher } from "./consensus-watcher.ts";
import { ClusterCounters } from "./counters.ts";
import type { openGeyser } from "./geyser/stream.ts";
import {
  createGeyserWatcher,
  type GeyserWatcher,
  type GeyserWatcherDeps,
} from "./geyser/watcher.ts";
import { createContactWatcher } from "./leaders/contact-watcher.ts";
import { createScheduleWatcher } from "./leaders/schedule-watcher.ts";
import { createVoteWatcher } from "./leaders/vote-watcher.ts";
import { CONTACTS_GAP_MS } from "./limits.ts";
import type { PollLoopStatus } from "./polling-loop.ts";
import type {
  BlockhashCheck,
  BlockSink,
  ClusterSink,
  Consensus,
  GeyserSink,
  StatusReporting,
  StatusResponse,
} from "./ports.ts";
import { createRpc, type Rpc } from "./rpc/rpc.ts";
import {
  type ConfirmationWatcher,
  createConfirmationWatcher,
} from "./slots/confirmation-watcher.ts";
import { createSlotWatcher, type SlotWatcherStatus } from "./slots/slot-watcher.ts";
import { createStatusProof, type StatusProof } from "./status-proof.ts";

export interface ClusterClientDeps extends Partial<GeyserSink> {
  readonly clock: Clock;
  /** The clock for rare checks; `clock` if absent. */
  readonly coalescedClock?: Clock;
  readonly log: Log;
  readonly router: ClusterSink;
  /** Whether transactions are in flight, whose age matters; assumed true if absent. */
  readonly busy?: () => boolean;
  /** Receives heights and blockhashes as well, for a thread that cannot call this client. */
  readonly blockSink?: BlockSink;
  /** Called with the slots that are known to hold no transaction, when they change. */
  readonly onQuietRange?: (range: SlotRange) => void;
  /** Called when it changes whether the node reports statuses. Must not throw. */
  readonly onReporting?: (reporting: StatusReporting) => void;
  /** Called when the cluster's consensus becomes known, or changes. Must not throw. */
  readonly onConsensus?: (consensus: Consensus) => void;
  /**
   * Called when the confirmation stands still while slots pass, and when it no longer does. Must
   * not throw.
   */
  readonly onConfirmationStalled?: (isStalled: boolean) => void;
  /** Counters to use instead of new ones. */
  readonly counters?: ClusterCounters;
  /** Opens a gRPC stream; null without a URL for it, so that the gRPC library is not loaded. */
  readonly openGeyser: typeof openGeyser | null;
}

export interface ClusterClientOptions {
  readonly rpcUrl: string;
  readonly wsUrl: string;
  /** Yellowstone gRPC URL and its token; null for none. */
  readonly grpcUrl: string | null;
  readonly grpcToken: string | null;
  /** Base58: transactions that name one of them are reported over gRPC. */
  readonly accounts: readonly string[];
  /** A request fails if its response is not complete within this time. */
  readonly timeoutMs: number;
  /** After this long without a slot event, another source is used as well. */
  readonly silenceMs: number;
  /** After this long without a slot event, the WebSocket is reopened. */
  readonly reconnectMs: number;
  readonly pollMs: number;
  /** How often the slot is polled while events arrive. */
  readonly checkMs: number;
  /** How often the nodes' addresses are read. */
  readonly contactsMs: number;
  /** How often the delinquent leaders are read. */
  readonly votesMs: number;
  /** How often the block height is polled, with and without transactions in flight. */
  readonly heightMs: number;
  readonly idleHeightMs: number;
  /** How often blockhashes are requested while unknown ones are wanted. */
  readonly blockhashesMs: number;
  /** As `timeoutMs`, for data that is useless when late: blocks and statuses. */
  readonly statusTimeoutMs: number;
  /** Minimum and maximum time between two epoch checks. */
  readonly epochCheckMsMin: number;
  readonly epochCheckMsMax: number;
  readonly retryMsFirst: number;
  readonly retryMsMax: number;
  /** Maximum time until a gRPC stream that ended is reopened. */
  readonly grpcRetryMsMax: number;
  /** Returns a number in [0, 1) for retry jitter. */
  readonly random: () => number;
}

export interface ClusterClientStatus {
  readonly slots: SlotWatcherStatus;
  readonly schedule: PollLoopStatus;
  readonly contacts: PollLoopStatus;
  readonly votes: PollLoopStatus;
}

export interface ClusterClient {
  start(): void;
  /** Ends every timer, request and connection. */
  stop(): void;
  status(): ClusterClientStatus;
  /** Rereads the addresses soon, because a leader that worked is unreachable at its address. */
  pollContactsNow(): void;
  /** The highest confirmed block's height; null before it is known. */
  blockHeight(): number | null;
  /** `Clock.nowNs` of when that height became known. */
  blockHeightNs(): number;
  /** The last height at which 32 bytes are a valid blockhash; null for an unknown one. */
  lastValidHeight(blockhash: Uint8Array): number | null;
  /** Reads all valid blockhashes soon, as after a lookup of an unknown one. */
  wantBlockhashes(): void;
  /**
   * Reads the statuses of at most 256 signatures, 64 bytes each. They are read before this returns.
   *
   * @throws Error (the promise rejects) when the node does not respond in time or completely
   */
  fetchStatuses(signatures: Uint8Array): Promise<StatusResponse>;
  /**
   * Requests whether blockhashes of 32 bytes each are valid; null for one without a result.
   *
   * @throws Error (the promise rejects) when the node does not respond in time
   */
  checkBlockhashes(blockhashes: readonly Uint8Array[]): Promise<readonly (BlockhashCheck | null)[]>;
  /** Whether the node reports statuses, as proven by its responses. */
  statusReporting(): StatusReporting;
  /** Whether the confirmed blocks from one slot to another hold any transaction. */
  contentOf(fromSlot: number, toSlot: number): BlockContent;
  readonly counters: ClusterCounters;
}

const SIGNATURE_BYTES = 64;

const DEFAULTS: Omit<ClusterClientOptions, "rpcUrl" | "wsUrl"> = {
  grpcUrl: null,
  grpcToken: null,
  accounts: [],
  timeoutMs: 10_000,
  silenceMs: 2_500,
  reconnectMs: 20_000,
  pollMs: 400,
  checkMs: 2_000,
  contactsMs: 60_000,
  votesMs: 60_000,
  // Multiples of the coalescing interval, so that they share wake-ups with other requests.
  heightMs: 3 * COALESCE_MS,
  idleHeightMs: 8 * COALESCE_MS,
  blockhashesMs: 1_000,
  statusTimeoutMs: 2_000,
  epochCheckMsMin: 1_000,
  epochCheckMsMax: 300_000,
  retryMsFirst: 500,
  retryMsMax: 15_000,
  grpcRetryMsMax: 30_000,
  random: Math.random,
};

/** Opens no connection before `start`. */
export function createClusterClient(
  deps: ClusterClientDeps,
  given: Partial<ClusterClientOptions> & Pick<ClusterClientOptions, "rpcUrl" | "wsUrl">,
): ClusterClient {
  const options: ClusterClientOptions = { ...DEFAULTS, ...given };
  const { random, retryMsFirst: firstMs, retryMsMax: maxMs, epochCheckMsMin } = options;
  const backOff: BackOffOptions = { firstMs, maxMs, random };
  const { clock, log, counters = new ClusterCounters() } = deps;
  // Two clients, so that a rate limit on expensive requests does not block statuses and heights.
  const rpcDeps = { clock, counters };
  const rpc = createRpc(rpcDeps, options);
  const promptRpc = createRpc(rpcDeps, { ...options, timeoutMs: options.statusTimeoutMs });
  const migrationParts = { counters, backOff, rpc, promptRpc };
  const { consensus, confirmation } = createMigrationWatchers(deps, migrationParts);
  const sink = withSlots(deps.router, {
    slotEvent(kind, slot, source) {
      confirmation.slotEvent(kind, slot, source);
      slots.observe(slot, source);
    },
    forgetEpochs: consensus.forget,
  });
  const blocks = createBlocks(() => clock.nowNs(), counters, deps.blockSink);
  const { coalescedClock = clock } = deps;
  const parts = { clock, log, rpc, sink, counters, backOff };
  const rare = { ...parts, clock: coalescedClock };
  const contacts = createContactWatcher(rare, { intervalMs: options.contactsMs });
  const onOther = (): void => contacts.pollNow(CONTACTS_GAP_MS);
  const schedule = createScheduleWatcher({ ...rare, onOther }, scheduleOptionsOf(options));
  const onBack = (): void => schedule.pollNow(epochCheckMsMin);
  const slots = createSlotWatcher({ ...parts, coalescedClock, onBack }, options);
  const votes = createVoteWatcher(rare, { intervalMs: options.votesMs });
  const sinks = {
    onProcessed: deps.onProcessed ?? ignore,
    onConfirmed(slot: number, bank: number | null) {
      confirmation.confirmed(slot);
      deps.onConfirmed?.(slot, bank);
    },
    forgetBanks: deps.forgetBanks ?? ignore,
  };
  const geyser = createGeyser({ ...parts, blocks, ...sinks }, deps.openGeyser, options);
  const live = (): boolean => geyser?.blocksLive ?? false;
  const busy = deps.busy ?? always;
  const quietRange = createQuietRange(deps.onQuietRange);
  const { onReporting } = deps;
  const onChange = onReporting === undefined ? {} : { onChange: onReporting };
  const proof = createStatusProof({ clock, log, rpc, counters, quietRange, ...onChange });
  const needsCounts = (): boolean => proof.reporting !== "yes";
  const blockWatcher = createBlockWatcher(
    {
      ...{ ...rare, rpc: promptRpc, blocks, live, needsCounts, busy },
      quietRange: withConfirmation(quietRange, confirmation),
    },
    options,
  );
  const watchers: Watcher[] = [slots, schedule, contacts, votes, blockWatcher];
  watchers.push(confirmation, consensus);
  if (geyser !== null) watchers.push(geyser);

  return {
    start() {
      for (const watcher of watchers) watcher.start();
    },
    stop() {
      for (const watcher of watchers) watcher.stop();
      rpc.close();
      promptRpc.close();
    },
    status: () => ({
      slots: slots.status(),
      schedule: schedule.status(),
      contacts: contacts.status(),
      votes: votes.status(),
    }),
    pollContactsNow() {
      counters.contactsEarlyRefreshes += 1;
      contacts.pollNow(CONTACTS_GAP_MS);
    },
    blockHeight: blocks.height,
    blockHeightNs: blocks.heightNs,
    lastValidHeight: blocks.lastValidHeight,
    wantBlockhashes: blocks.want,
    fetchStatuses: createStatuses(promptRpc, proof, counters),
    checkBlockhashes: promptRpc.blockhashChecks,
    statusReporting: () => proof.reporting,
    contentOf: quietRange.contentOf,
    counters,
  };
}

interface Watcher {
  start(): void;
  stop(): void;
}

function ignore(): void {}

function scheduleOptionsOf(options: ClusterClientOptions) {
  const { epochCheckMsMin: checkMsMin, epochCheckMsMax: checkMsMax, retryMsMax } = options;
  return { checkMsMin, checkMsMax, nextRetryMs: Math.max(checkMsMin, retryMsMax) };
}

interface MigrationParts {
  readonly counters: ClusterCounters;
  readonly backOff: BackOffOptions;
  readonly rpc: Rpc;
  readonly promptRpc: Rpc;
}

/** What detects a migration to Alpenglow. */
function createMigrationWatchers(deps: ClusterClientDeps, parts: MigrationParts) {
  const { clock, coalescedClock = clock, log } = deps;
  const { counters, backOff, rpc, promptRpc } = parts;
  const consensus = createConsensusWatcher({
    ...{ clock: coalescedClock, log, rpc, counters, backOff },
    onChange: deps.onConsensus ?? ignore,
  });
  const confirmation = createConfirmationWatcher({
    ...{ clock, rpc: promptRpc, counters },
    onChange(isStalled) {
      deps.onConfirmationStalled?.(isStalled);
      consensus.pollNow();
    },
  });
  return { consensus, confirmation };
}

/** A range that also passes on the slots of confirmed blocks. */
function withConfirmation(
  quietRange: Pick<QuietRange, "observe">,
  confirmation: Pick<ConfirmationWatcher, "confirmed">,
): Pick<QuietRange, "observe"> {
  return {
    observe(slot, transactionCount) {
      confirmation.confirmed(slot);
      quietRange.observe(slot, transactionCount);
    },
  };
}

/** A sink that also passes on what concerns slots. */
function withSlots(
  sink: ClusterSink,
  also: Required<Pick<ClusterSink, "slotEvent" | "forgetEpochs">>,
): ClusterSink {
  return {
    slotEvent(kind, slot, source) {
      sink.slotEvent(kind, slot, source);
      also.slotEvent(kind, slot, source);
    },
    slotTimeHint: (slotTimeMs) => sink.slotTimeHint?.(slotTimeMs),
    setEpoch: (epoch) => sink.setEpoch(epoch),
    forgetEpochs() {
      sink.forgetEpochs?.();
      also.forgetEpochs();
    },
    setContacts: (contacts) => sink.setContacts(contacts),
    setDelinquent: (identities) => sink.setDelinquent?.(identities),
    setStakes: (stakes) => sink.setStakes?.(stakes),
  };
}

const always = (): boolean => true;

/** The gRPC watcher; null without a URL for it. */
function createGeyser(
  parts: Omit<GeyserWatcherDeps, "open">,
  openStream: ClusterClientDeps["openGeyser"],
  { grpcUrl: url, grpcToken: token, accounts, grpcRetryMsMax, ...times }: ClusterClientOptions,
): GeyserWatcher | null {
  if (url === null || openStream === null) return null;
  const backOff = { ...parts.backOff, maxMs: grpcRetryMsMax };
  const open: GeyserWatcherDeps["open"] = (events) => openStream({ url, token, accounts }, events);
  return createGeyserWatcher({ ...parts, open, backOff }, times);
}

function createStatuses(rpc: Pick<Rpc, "statuses">, proof: StatusProof, counters: ClusterCounters) {
  return async (signatures: Uint8Array): Promise<StatusResponse> => {
    const count = signatures.length / SIGNATURE_BYTES;
    if (count > STATUSES_PER_REQUEST) {
      throw new RangeError(`${count} signatures, at most ${STATUSES_PER_REQUEST}`);
    }
    counters.statusFetches += 1;
    try {
      const response = await rpc.statuses(signatures);
      proof.onResponse(response);
      return response;
    } catch (error) {
      proof.failed(error);
      counters.statusFailures += 1;
      throw error;
    }
  };
}
