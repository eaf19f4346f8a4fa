/**
 * The main thread's handle of the cluster thread: starts it, applies what it sends to the router,
 * and keeps the heights and blockhashes that landing looks up.
 *
 *     start ─▶ up ─┬─ stop ─▶ ends by itself, or is ended after THREAD_STOP_MS_MAX
 *      ▲           │
 *      └── delay ◀─┴─ died: pending requests fail, the restart is counted
 *
 * A thread that dies is replaced after a delay that doubles each time, as a decode worker is: the
 * plan, the schedule, the addresses and the heights that are known here stay in use, so clients
 * notice nothing unless it takes long. Its heap has a limit, so that a response that needs more
 * memory ends the thread and not the process.
 *
 * Decision: docs/decisions/0049-cluster-thread.md
 */

import type { Worker } from "node:worker_threads";
import { type Clock, NS_PER_MS, type Timer } from "../core/clock.ts";
import { SetupError } from "../core/errors.ts";
import { STATUSES_PER_REQUEST } from "../core/limits.ts";
import type { Log } from "../core/log.ts";
import { countersMemory, sharedCounters } from "../runtime/shared-counters.ts";
import { createBlockhashes } from "./blocks/blockhashes.ts";
import { type BlockContent, contentOf } from "./blocks/quiet-range.ts";
import { type ClusterWorker, createClusterWorker } from "./cluster-worker.ts";
import { CLUSTER_COUNTERS, type ClusterCounters } from "./counters.ts";
import {
  REQUESTS_PENDING_MAX,
  THREAD_KILL_MS_MAX,
  THREAD_RESTART_MS_MAX,
  THREAD_RESTART_MS_MIN,
  THREAD_SETTLED_MS,
  THREAD_START_MS_MAX,
  THREAD_STOP_MS_MAX,
} from "./limits.ts";
import type {
  BlockhashCheck,
  Consensus,
  Contact,
  LandingSink,
  RouterSink,
  SlotRange,
  StatusReporting,
  StatusResponse,
} from "./ports.ts";
import { applyContactChanges } from "./thread/contact-changes.ts";
import { readEpochMessage } from "./thread/epoch-message.ts";
import {
  type BlockhashChecksMessage,
  type BlockhashesMessage,
  BUSY,
  type ClusterThreadOptions,
  type FromClusterThread,
  type ProcessedMessage,
  READ,
  type ToClusterThread,
} from "./thread/messages.ts";
import { readStatusesMessage, type StatusesMessage } from "./thread/status-message.ts";
import { linesOf } from "./thread/text-lines.ts";

export interface ClusterThreadDeps extends LandingSink {
  readonly clock: Clock;
  readonly log: Log;
  readonly router: RouterSink;
  /**
   * Called when the confirmation stands still while slots pass, and when it no longer does. Must
   * not throw.
   */
  readonly onConfirmationStalled: (isStalled: boolean) => void;
  /** Called with each consensus that the node reports. Must not throw. */
  readonly onConsensus: (consensus: Consensus) => void;
  /** Whether transactions are in flight, whose age matters. */
  readonly busy: () => boolean;
  /** The thread's file; by default the built worker.js. */
  readonly entry?: string;
  /** A thread of the same options that loads already; null or absent: none. */
  readonly worker?: ClusterWorker | null;
}

/** Starts no thread before `start`. */
export function createClusterThread(
  deps: ClusterThreadDeps,
  options: ClusterThreadOptions,
): ClusterThread {
  return new ClusterThread(deps, options);
}

/** A message about leaders, which only the router needs. */
type RouterMessage = Extract<
  FromClusterThread,
  { kind: "slotTime" | "epoch" | "forgetEpochs" | "contacts" | "delinquent" }
>;
type ThreadResponse = StatusesMessage | BlockhashChecksMessage;

/** A pending request. */
interface ThreadRequest {
  resolve(response: ThreadResponse): void;
  reject(reason: Error): void;
}

/** A running thread. */
interface Life {
  readonly worker: Worker;
  /** The words that it reads. */
  readonly control: Int32Array;
  /** Messages read in this turn that the thread counts; it is informed after the turn. */
  readInTurn: number;
  readonly startedNs: number;
  /** Resolves when it has ended. */
  readonly ended: Promise<void>;
}

const SIGNATURE_BYTES = 64;
const HASH_BYTES = 32;

/** What an edge needs of a cluster client; see `ClusterClient`. */
export class ClusterThread {
  readonly #deps: ClusterThreadDeps;
  readonly #options: ClusterThreadOptions;
  /** The first thread, until it begins. */
  #first: ClusterWorker | null;
  readonly #memory: SharedArrayBuffer;
  readonly counters: Readonly<ClusterCounters>;
  #life: Life | null = null;
  #stopped: Promise<void> | null = null;
  #restart: Timer | null = null;
  #deaths = 0;
  #deathsLately = 0;
  #requestsRefused = 0;
  /** Called when the thread is up, or with an error when it died first; null when not awaited. */
  #onStart: ((error: unknown) => void) | null = null;
  readonly #requests = new Map<number, ThreadRequest>();
  #requestId = 0;
  readonly #contacts = new Map<string, Contact>();
  #contactsNs: number | null = null;
  readonly #blockhashes = createBlockhashes();
  #blockhashesWanted = false;
  #height: number | null = null;
  #heightNs = 0;
  #reporting: StatusReporting = "unknown";
  #consensus: Consensus = "unknown";
  #isConfirmationStalled = false;
  #quietRange: SlotRange | null = null;
  #identity: string | null = null;
  #stakeLamports: number | null = null;

  constructor(deps: ClusterThreadDeps, options: ClusterThreadOptions) {
    this.#deps = deps;
    this.#options = options;
    this.#first = deps.worker ?? null;
    this.#memory = this.#first?.counters ?? countersMemory(CLUSTER_COUNTERS.length);
    this.counters = sharedCounters(CLUSTER_COUNTERS, this.#memory);
  }

  /** Deaths of the thread while it was not being stopped. */
  get deaths(): number {
    return this.#deaths;
  }

  /** Requests refused because too many were pending, or while there was no thread. */
  get requestsRefused(): number {
    return this.#requestsRefused;
  }

  /**
   * Resolves when the thread runs.
   *
   * @throws SetupError when it does not start
   */
  async start(): Promise<void> {
    const outcome = new Promise<unknown>((resolve) => {
      this.#onStart = resolve;
    });
    const late = new Error(`not up after ${THREAD_START_MS_MAX} ms`);
    const timer = this.#deps.clock.after(THREAD_START_MS_MAX, () => this.#onStart?.(late));
    this.#startThread();
    const cause = await outcome;
    timer.cancel();
    this.#onStart = null;
    if (cause === null) return;
    await this.stop();
    throw new SetupError("the cluster thread could not be started", { cause });
  }

  /** Ends the thread, and with it every request and connection, within a bounded time. */
  stop(): Promise<void> {
    this.#onStart?.(new Error("stopped before"));
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  /** Rereads the addresses soon, because a leader that worked is unreachable at its address. */
  pollContactsNow(): void {
    this.#post({ kind: "pollContactsNow" });
  }

  /** From now on `stakeLamports` is that of this identity, in base58. */
  useIdentity(identity: string): void {
    this.#identity = identity;
    this.#stakeLamports = null;
    this.#postIdentity();
  }

  /** A new thread does not know it yet. */
  #postIdentity(): void {
    if (this.#identity !== null) this.#post({ kind: "identity", identity: this.#identity });
  }

  /** The identity's activated stake; null before it was read. */
  stakeLamports(): number | null {
    return this.#stakeLamports;
  }

  /** The highest confirmed block's height; null before it is known. */
  blockHeight(): number | null {
    return this.#height;
  }

  /** `Clock.nowNs` of when that height became known. */
  blockHeightNs(): number {
    return this.#heightNs;
  }

  /**
   * The last height at which 32 bytes are a valid blockhash; null for an unknown one, and then all
   * valid ones are read.
   */
  lastValidHeight(blockhash: Uint8Array): number | null {
    const height = this.#blockhashes.lastValidHeight(blockhash);
    if (height === null && !this.#blockhashesWanted) {
      this.#blockhashesWanted = this.#post({ kind: "wantBlockhashes" });
    }
    return height;
  }

  /**
   * Reads the statuses of at most 256 signatures, 64 bytes each, which are copied before this
   * returns. The promise rejects when the node does not respond in time or completely.
   */
  async fetchStatuses(signatures: Uint8Array): Promise<StatusResponse> {
    const count = signatures.length / SIGNATURE_BYTES;
    if (count > STATUSES_PER_REQUEST) {
      throw new RangeError(`${count} signatures, at most ${STATUSES_PER_REQUEST}`);
    }
    // A copy of its own: a view would be sent with everything that its memory holds.
    const copy = Uint8Array.from(signatures);
    const response = await this.#request((id) => ({ kind: "statuses", id, signatures: copy }));
    if (response.kind !== "statuses") throw new TypeError("a response to another request");
    return readStatusesMessage(response);
  }

  /** Requests whether blockhashes of 32 bytes each are valid; null for one without a result. */
  async checkBlockhashes(
    blockhashes: readonly Uint8Array[],
  ): Promise<readonly (BlockhashCheck | null)[]> {
    // Copies of their own, as for statuses.
    const copies = blockhashes.map((each) => Uint8Array.from(each));
    const response = await this.#request((id) => ({
      kind: "blockhashChecks",
      id,
      blockhashes: copies,
    }));
    if (response.kind !== "blockhashChecks") throw new TypeError("a response to another request");
    return response.checks;
  }

  /** Whether the confirmed blocks from one slot to another hold any transaction. */
  contentOf(fromSlot: number, toSlot: number): BlockContent {
    return contentOf(this.#quietRange, fromSlot, toSlot);
  }

  async #request(messageOf: (id: number) => ToClusterThread): Promise<ThreadResponse> {
    const id = this.#requestId;
    const isRoom = this.#requests.size < REQUESTS_PENDING_MAX;
    if (!isRoom || !this.#post(messageOf(id))) {
      this.#requestsRefused += 1;
      throw new Error(isRoom ? "the cluster thread does not run" : "too many requests are pending");
    }
    this.#requestId += 1;
    return await new Promise((resolve, reject) => this.#requests.set(id, { resolve, reject }));
  }

  /** Whether the node reports statuses, as proven by its responses. */
  statusReporting(): StatusReporting {
    return this.#reporting;
  }

  /** The cluster's consensus, as far as the node reports it. */
  consensus(): Consensus {
    return this.#consensus;
  }

  /** Whether the confirmation stands still while slots pass. */
  get isConfirmationStalled(): boolean {
    return this.#isConfirmationStalled;
  }

  /** Time since the nodes' addresses were read, in milliseconds; null before the first time. */
  contactsAgeMs(): number | null {
    if (this.#contactsNs === null) return null;
    return (this.#deps.clock.nowNs() - this.#contactsNs) / NS_PER_MS;
  }

  /** Returns whether there is a thread that receives it. */
  #post(message: ToClusterThread): boolean {
    if (this.#life === null || this.#stopped !== null) return false;
    this.#setBusy(this.#life);
    this.#life.worker.postMessage(message);
    return true;
  }

  #setBusy({ control }: Life): void {
    Atomics.store(control, BUSY, this.#deps.busy() ? 1 : 0);
  }

  #startThread(): void {
    const { clock, entry } = this.#deps;
    const height = this.#height;
    // Without it the new thread would accept any two first heights that are close to each other.
    const knownHeight = height === null ? null : { height, sinceNs: this.#heightNs };
    const options = { ...this.#options, knownHeight };
    const made = this.#first ?? createClusterWorker(options, this.#memory, entry);
    this.#first = null;
    const { worker, control } = made;
    worker.on("message", (message: FromClusterThread) => this.#receive(worker, message));
    const ended = made.ended.then((cause) => this.#died(worker, cause));
    this.#restart = null;
    this.#life = { worker, control, readInTurn: 0, startedNs: clock.nowNs(), ended };
    this.#postIdentity();
    made.begin();
  }

  #died(worker: Worker, cause: unknown): void {
    const life = this.#life;
    if (life?.worker !== worker) return;
    this.#life = null;
    this.#blockhashesWanted = false;
    this.#rejectAll("the cluster thread ended");
    // Its replacement reports it anew.
    this.#setConfirmationStalled(false);
    if (this.#stopped !== null) return;
    this.#deaths += 1;
    if (this.#onStart !== null) {
      this.#onStart(cause);
      return;
    }
    const { clock, log } = this.#deps;
    if (clock.nowNs() - life.startedNs > THREAD_SETTLED_MS * NS_PER_MS) this.#deathsLately = 0;
    const restartMs = Math.min(
      THREAD_RESTART_MS_MIN * 2 ** this.#deathsLately,
      THREAD_RESTART_MS_MAX,
    );
    this.#deathsLately += 1;
    this.#restart = clock.after(restartMs, () => this.#startThread());
    log.error(
      { error: String(cause), restartMs },
      "the cluster thread died; a replacement starts after the delay",
    );
  }

  async #stop(): Promise<void> {
    this.#restart?.cancel();
    this.#rejectAll("the cluster thread was stopped");
    const life = this.#life;
    if (life === null) return;
    const { clock, log } = this.#deps;
    // Otherwise the process could end while it is awaited.
    life.worker.ref();
    const stop: ToClusterThread = { kind: "stop" };
    life.worker.postMessage(stop);
    if (await endsWithin(clock, life, THREAD_STOP_MS_MAX)) return;
    void life.worker.terminate();
    // One that parses a response is ended after that.
    if (await endsWithin(clock, life, THREAD_KILL_MS_MAX)) return;
    life.worker.unref();
    log.warn({}, "the cluster thread is still busy with a response; it is left behind");
  }

  #receive(worker: Worker, message: FromClusterThread): void {
    const life = this.#life;
    if (life?.worker !== worker || this.#stopped !== null) return;
    this.#setBusy(life);
    const { log, router } = this.#deps;
    switch (message.kind) {
      case "started":
        // It does not keep the process alive, as no other part of an edge's work does.
        worker.unref();
        this.#onStart?.(null);
        break;
      case "log":
        log[message.level](message.fields, message.message);
        break;
      case "slot":
        this.#countRead(life);
        router.slotEvent(message.event, message.slot, message.source);
        break;
      case "slotTime":
      case "epoch":
      case "forgetEpochs":
      case "contacts":
      case "delinquent":
        this.#updateRouter(message);
        break;
      case "stake":
        if (message.identity === this.#identity) this.#stakeLamports = message.lamports;
        break;
      case "height":
        this.#height = message.height;
        this.#heightNs = message.sinceNs;
        break;
      case "blockhashes":
        this.#addBlockhashes(life, message);
        break;
      case "reporting":
        this.#reporting = message.reporting;
        break;
      case "consensus":
        this.#consensus = message.consensus;
        this.#deps.onConsensus(message.consensus);
        break;
      case "confirmationStalled":
        this.#setConfirmationStalled(message.isStalled);
        break;
      case "quietRange":
        this.#quietRange = message.range;
        break;
      case "statuses":
      case "blockhashChecks":
        this.#take(message.id)?.resolve(message);
        break;
      case "requestFailed":
        this.#take(message.id)?.reject(new Error(message.reason));
        break;
      case "processed":
        this.#countRead(life);
        this.#processed(message);
        break;
      case "confirmed":
        this.#countRead(life);
        this.#deps.confirmed(message.slot, message.bank);
        break;
      case "forgetBanks":
        this.#deps.forgetBanks();
        break;
      default:
        message satisfies never;
    }
  }

  #updateRouter(message: RouterMessage): void {
    const { router } = this.#deps;
    switch (message.kind) {
      case "slotTime":
        router.slotTimeHint(message.slotTimeMs);
        break;
      case "epoch":
        this.#post({
          kind: "epochResult",
          id: message.id,
          isAccepted: router.setEpoch(readEpochMessage(message)),
        });
        break;
      case "forgetEpochs":
        router.forgetEpochs();
        break;
      case "contacts":
        this.#contactsNs = message.atNs;
        if (applyContactChanges(this.#contacts, message)) {
          router.setContacts([...this.#contacts.values()]);
        }
        break;
      case "delinquent":
        router.setDelinquent(linesOf(message.identities));
        break;
      default:
        message satisfies never;
    }
  }

  #setConfirmationStalled(isStalled: boolean): void {
    if (isStalled === this.#isConfirmationStalled) return;
    this.#isConfirmationStalled = isStalled;
    this.#deps.onConfirmationStalled(isStalled);
  }

  #rejectAll(reason: string): void {
    for (const { reject } of this.#requests.values()) reject(new Error(reason));
    this.#requests.clear();
  }

  #take(id: number): ThreadRequest | undefined {
    const request = this.#requests.get(id);
    this.#requests.delete(id);
    return request;
  }

  #addBlockhashes(life: Life, { hashes, lastValidHeights, isComplete }: BlockhashesMessage): void {
    if (isComplete) this.#blockhashesWanted = false;
    else this.#countRead(life);
    for (const [index, height] of lastValidHeights.entries()) {
      const start = index * HASH_BYTES;
      this.#blockhashes.add(hashes.subarray(start, start + HASH_BYTES), height);
    }
  }

  #processed({ signatures, slots, banks, errors }: ProcessedMessage): void {
    for (const [index, slot] of slots.entries()) {
      const start = index * SIGNATURE_BYTES;
      const signature = signatures.subarray(start, start + SIGNATURE_BYTES);
      const bank = banks[index] ?? -1;
      this.#deps.processed(signature, slot, errors[index] ?? null, bank === -1 ? null : bank);
    }
  }

  /** Lets the thread send more after this turn, so that it cannot hold one up. */
  #countRead(life: Life): void {
    life.readInTurn += 1;
    if (life.readInTurn > 1) return;
    setImmediate(() => {
      Atomics.add(life.control, READ, life.readInTurn);
      life.readInTurn = 0;
    });
  }
}

/** Whether the thread ends within that time. */
async function endsWithin(clock: Clock, { ended }: Life, waitMs: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const timer = clock.after(waitMs, () => resolve(false));
    void ended.then(() => {
      timer.cancel();
      resolve(true);
    });
  });
}
