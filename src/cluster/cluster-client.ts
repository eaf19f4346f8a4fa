/**
 * Keeps cluster data current: slots, leader schedules and addresses, blocks and votes.
 *
 * Each watcher runs and retries independently and survives a restart of the node. This module makes
 * no decisions and answers no look-ups: what it learns goes to a sink. An edge runs it on a worker
 * thread (`worker.ts`), and its main thread uses `cluster-thread.ts`.
 */

import type { Clock } from "../core/clock.ts";
import type { Log } from "../core/log.ts";
import { COALESCE_MS } from "../runtime/coalesced-timers.ts";
import type { BackOffOptions } from "./back-off.ts";
import { createBlockWatcher } from "./blocks/block-watcher.ts";
import { createBlocks } from "./blocks/blocks.ts";
import type { KnownHeight } from "./blocks/height.ts";
import { createQuietRange } from "./blocks/quiet-range.ts";
import { createConsensusWatcher } from "./consensus-watcher.ts";
import type { ClusterCounters } from "./counters.ts";
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
import type {
  BlockhashCheck,
  ClusterSink,
  EpochLeaders,
  LandingSink,
  SlotEventKind,
  SlotSource,
  StatusReporting,
  StatusResponse,
} from "./ports.ts";
import { createRpc, type Rpc } from "./rpc/rpc.ts";
import { createConfirmationWatcher } from "./slots/confirmation-watcher.ts";
import { createSlotWatcher } from "./slots/slot-watcher.ts";
import { createStatusProof, type StatusProof } from "./status-proof.ts";

export interface ClusterClientDeps {
  readonly clock: Clock;
  /** The clock for rare checks. */
  readonly coalescedClock: Clock;
  readonly log: Log;
  readonly sink: ClusterSink;
  /** Whether transactions are in flight, whose age matters. */
  readonly busy: () => boolean;
  readonly counters: ClusterCounters;
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
  /** The height that was known before a restart of the thread; null for none. */
  readonly knownHeight: KnownHeight | null;
  /** Maximum time until a gRPC stream that ended is reopened. */
  readonly grpcRetryMsMax: number;
  /** Returns a number in [0, 1) for retry jitter. */
  readonly random: () => number;
}

export interface ClusterClient {
  start(): void;
  /** Ends every timer, request and connection. */
  stop(): void;
  /** Rereads the addresses soon, because a leader that worked is unreachable at its address. */
  pollContactsNow(): void;
  /** Reads all valid blockhashes soon, because an unknown one was looked up. */
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
}

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
  knownHeight: null,
  grpcRetryMsMax: 30_000,
  random: Math.random,
};

/** Opens no connection before `start`. */
export function createClusterClient(
  deps: ClusterClientDeps,
  given: Partial<ClusterClientOptions> & Pick<ClusterClientOptions, "rpcUrl" | "wsUrl">,
): ClusterClient {
  const options: ClusterClientOptions = { ...DEFAULTS, ...given };
  const parts = partsOf(deps, options);
  const { sink, counters, busy, rpc, promptRpc } = parts;
  const rare = { ...parts, clock: parts.coalescedClock };
  const { consensus, confirmation } = createMigrationWatchers(parts);
  const { contacts, schedule, votes } = createLeaderWatchers(rare, consensus.forget, options);
  const slotSink = {
    slotEvent(kind: SlotEventKind, slot: number, source: SlotSource) {
      sink.slotEvent(kind, slot, source);
      confirmation.slotEvent(kind, slot, source);
      slots.observe(slot, source);
    },
    slotTimeHint: (slotTimeMs: number) => sink.slotTimeHint(slotTimeMs),
  };
  const onBack = (): void => schedule.pollNow(options.epochCheckMsMin);
  const slots = createSlotWatcher({ ...parts, sink: slotSink, onBack }, options);
  const blocks = createBlocks(() => parts.clock.nowNs(), counters, sink, options.knownHeight);
  const landingSink: LandingSink = {
    processed: (signature, slot, error, bank) => sink.processed(signature, slot, error, bank),
    confirmed(slot, bank) {
      confirmation.confirmed(slot);
      sink.confirmed(slot, bank);
    },
    forgetBanks: () => sink.forgetBanks(),
  };
  const geyser = createGeyser(
    { ...parts, sink: { ...slotSink, ...landingSink }, blocks },
    deps.openGeyser,
    options,
  );
  const quietRange = createQuietRange((range) => sink.setQuietRange(range));
  const onChange = (reporting: StatusReporting): void => sink.setReporting(reporting);
  const proof = createStatusProof({ ...parts, quietRange, onChange });
  const blockWatcher = createBlockWatcher(
    {
      ...{ ...rare, rpc: promptRpc, blocks, busy },
      live: () => geyser?.blocksLive ?? false,
      needsCounts: () => proof.reporting !== "yes",
      quietRange: {
        observe(slot, transactionCount) {
          confirmation.confirmed(slot);
          quietRange.observe(slot, transactionCount);
        },
      },
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
    pollContactsNow() {
      counters.contactsEarlyRefreshes += 1;
      contacts.pollNow(CONTACTS_GAP_MS);
    },
    wantBlockhashes: blocks.want,
    fetchStatuses: createStatuses(promptRpc, proof, counters),
    checkBlockhashes: promptRpc.blockhashChecks,
  };
}

interface Watcher {
  start(): void;
  stop(): void;
}

interface Parts extends ClusterClientDeps {
  readonly rpc: Rpc;
  /** For data that is useless when late. */
  readonly promptRpc: Rpc;
  readonly backOff: BackOffOptions;
}

function partsOf(deps: ClusterClientDeps, options: ClusterClientOptions): Parts {
  const { random, retryMsFirst: firstMs, retryMsMax: maxMs, statusTimeoutMs } = options;
  // Two clients, so that a rate limit on expensive requests does not block statuses and heights.
  const rpc = createRpc(deps, options);
  const promptRpc = createRpc(deps, { ...options, timeoutMs: statusTimeoutMs });
  return { ...deps, rpc, promptRpc, backOff: { firstMs, maxMs, random } };
}

/** What detects a migration to Alpenglow. */
function createMigrationWatchers(parts: Parts) {
  const { coalescedClock, sink, promptRpc } = parts;
  const consensus = createConsensusWatcher({
    ...{ ...parts, clock: coalescedClock },
    onChange: (now) => sink.setConsensus(now),
  });
  const confirmation = createConfirmationWatcher({
    ...{ ...parts, rpc: promptRpc },
    onChange(isStalled) {
      sink.setConfirmationStalled(isStalled);
      consensus.pollNow();
    },
  });
  return { consensus, confirmation };
}

/** `onOther` is called when the node is of another cluster than before. */
function createLeaderWatchers(
  parts: Parts,
  onOther: () => void,
  { contactsMs, votesMs, epochCheckMsMin, epochCheckMsMax, retryMsMax }: ClusterClientOptions,
) {
  const { sink } = parts;
  const contacts = createContactWatcher(parts, { intervalMs: contactsMs });
  const votes = createVoteWatcher(parts, { intervalMs: votesMs });
  const scheduleSink = {
    setEpoch: (epoch: EpochLeaders) => sink.setEpoch(epoch),
    forgetEpochs() {
      sink.forgetEpochs();
      onOther();
      contacts.forget();
    },
  };
  const schedule = createScheduleWatcher(
    { ...parts, sink: scheduleSink },
    {
      checkMsMin: epochCheckMsMin,
      checkMsMax: epochCheckMsMax,
      nextRetryMs: Math.max(epochCheckMsMin, retryMsMax),
    },
  );
  return { contacts, schedule, votes };
}

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
