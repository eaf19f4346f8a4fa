/**
 * The cluster thread's end of the messages to the main thread.
 *
 * Takes what the cluster client reports and sends it immediately, except for landings and
 * blockhashes, which it collects for the rest of the turn. Drops and counts what the main thread
 * does not read.
 */

import type { MessagePort, TransferListItem } from "node:worker_threads";
import type { Clock } from "../../core/clock.ts";
import { CONTACTS_MAX } from "../../core/limits.ts";
import type { Log } from "../../core/log.ts";
import type { ClusterCounters } from "../counters.ts";
import {
  BLOCKHASHES_KEPT,
  LANDINGS_PER_MESSAGE_MAX,
  REASON_CHARS_MAX,
  UPDATES_UNREAD_MAX,
} from "../limits.ts";
import type {
  ClusterSink,
  Consensus,
  Contact,
  EpochLeaders,
  SlotEventKind,
  SlotRange,
  SlotSource,
  StatusReporting,
} from "../ports.ts";
import { ContactChanges } from "./contact-changes.ts";
import { epochMessage } from "./epoch-message.ts";
import { type BlockhashesMessage, type FromClusterThread, READ } from "./messages.ts";
import { boundedError } from "./status-message.ts";
import { clipped, LINE_END, lineText } from "./text-lines.ts";

export interface OutboxDeps {
  readonly port: Pick<MessagePort, "postMessage">;
  readonly clock: Clock;
  readonly counters: Pick<ClusterCounters, "slotEventsLost" | "geyserLost">;
  /** The words of `messages.ts`. */
  readonly control: Int32Array;
}

interface Landing {
  /** Copied. */
  readonly signature: Uint8Array;
  readonly slot: number;
  readonly bank: number | null;
  readonly error: string | null;
}

export class Outbox implements ClusterSink {
  readonly #deps: OutboxDeps;
  readonly #contacts = new ContactChanges();
  /** Messages sent that may be dropped, modulo 2^32. */
  #sent = 0;
  #landings: Landing[] = [];
  #blockhashes: { readonly hash: Uint8Array; readonly lastValidHeight: number }[] = [];
  #isComplete = false;
  #blockhashesPending = false;
  /** Epochs that the main thread has not answered yet. */
  readonly #epochs = new Map<number, (isAccepted: boolean) => void>();
  #epochId = 0;
  /** The edge's identity, and the stakes; null until they are known. */
  #identity: string | null = null;
  #stakes: ReadonlyMap<string, number> | null = null;

  constructor(deps: OutboxDeps) {
    this.#deps = deps;
  }

  readonly log: Log = {
    info: (fields, message) => this.#log("info", fields, message),
    warn: (fields, message) => this.#log("warn", fields, message),
    error: (fields, message) => this.#log("error", fields, message),
  };

  /** Sends a message that must arrive. */
  send(message: FromClusterThread, transfer: readonly TransferListItem[] = []): void {
    this.#deps.port.postMessage(message, transfer);
  }

  slotEvent(event: SlotEventKind, slot: number, source: SlotSource): void {
    if (this.#offer({ kind: "slot", event, slot, source })) return;
    this.#deps.counters.slotEventsLost += 1;
  }

  slotTimeHint(slotTimeMs: number): void {
    this.send({ kind: "slotTime", slotTimeMs });
  }

  setEpoch(epoch: EpochLeaders): boolean | Promise<boolean> {
    const id = this.#epochId;
    this.#epochId += 1;
    const message = epochMessage(id, epoch);
    if (message === null) return false;
    return new Promise((resolve) => {
      this.#epochs.set(id, resolve);
      this.send(message, [message.counts.buffer, message.indexes.buffer] as ArrayBuffer[]);
    });
  }

  /** The main thread's answer to `setEpoch`. */
  epochResult(id: number, isAccepted: boolean): void {
    this.#epochs.get(id)?.(isAccepted);
    this.#epochs.delete(id);
  }

  forgetEpochs(): void {
    this.send({ kind: "forgetEpochs" });
  }

  setContacts(contacts: readonly Contact[]): void {
    this.send(this.#contacts.next(contacts, this.#deps.clock.nowNs()));
  }

  setDelinquent(identities: readonly string[]): void {
    const lines = identities.filter((each) => lineText(each) !== null).slice(0, CONTACTS_MAX);
    this.send({ kind: "delinquent", identities: lines.join(LINE_END) });
  }

  setStakes(stakes: ReadonlyMap<string, number>): void {
    this.#stakes = stakes;
    this.#sendStake();
  }

  /** From now on the stake of this identity is sent. */
  useIdentity(identity: string): void {
    this.#identity = identity;
    this.#sendStake();
  }

  setHeight(height: number, sinceNs: number): void {
    this.send({ kind: "height", height, sinceNs });
  }

  addBlockhash(blockhash: Uint8Array, lastValidHeight: number): void {
    this.#blockhashes.push({ hash: Uint8Array.from(blockhash), lastValidHeight });
    // The oldest is dropped, as by the main thread when it receives more.
    if (this.#blockhashes.length > 2 * BLOCKHASHES_KEPT) this.#cutBlockhashes();
    this.#flushBlockhashesSoon();
  }

  blockhashesRead(): void {
    this.#isComplete = true;
    this.#flushBlockhashesSoon();
  }

  setQuietRange(range: SlotRange): void {
    this.send({ kind: "quietRange", range });
  }

  setReporting(reporting: StatusReporting): void {
    this.send({ kind: "reporting", reporting });
  }

  setConsensus(consensus: Consensus): void {
    this.send({ kind: "consensus", consensus });
  }

  setConfirmationStalled(isStalled: boolean): void {
    this.send({ kind: "confirmationStalled", isStalled });
  }

  processed(signature: Uint8Array, slot: number, error: string | null, bank: number | null): void {
    if (this.#landings.length === 0) setImmediate(() => this.#flushLandings());
    const copy = Uint8Array.from(signature);
    const landing = { signature: copy, slot, bank, error: boundedError(error) };
    if (this.#landings.push(landing) === LANDINGS_PER_MESSAGE_MAX) this.#flushLandings();
  }

  confirmed(slot: number, bank: number | null): void {
    this.#flushLandings();
    if (!this.#offer({ kind: "confirmed", slot, bank })) this.#deps.counters.geyserLost += 1;
  }

  forgetBanks(): void {
    this.#flushLandings();
    this.send({ kind: "forgetBanks" });
  }

  /** Sends unless too much is unread; returns whether it did. */
  #offer(message: FromClusterThread): boolean {
    const unread = (this.#sent - Atomics.load(this.#deps.control, READ)) | 0;
    if (unread >= UPDATES_UNREAD_MAX) return false;
    this.#sent = (this.#sent + 1) | 0;
    this.send(message);
    return true;
  }

  /** Of all stakes the main thread needs this one. */
  #sendStake(): void {
    const [identity, stakes] = [this.#identity, this.#stakes];
    if (identity === null || stakes === null) return;
    this.send({ kind: "stake", identity, lamports: stakes.get(identity) ?? 0 });
  }

  #flushLandings(): void {
    const landings = this.#landings;
    if (landings.length === 0) return;
    this.#landings = [];
    const message: FromClusterThread = {
      kind: "processed",
      signatures: joined(landings.map(({ signature }) => signature)),
      slots: Float64Array.from(landings, ({ slot }) => slot),
      banks: Float64Array.from(landings, ({ bank }) => bank ?? -1),
      errors: landings.map(({ error }) => error),
    };
    if (!this.#offer(message)) this.#deps.counters.geyserLost += landings.length;
  }

  #cutBlockhashes(): void {
    this.#blockhashes = this.#blockhashes.slice(-BLOCKHASHES_KEPT);
  }

  #flushBlockhashesSoon(): void {
    if (this.#blockhashesPending) return;
    this.#blockhashesPending = true;
    queueMicrotask(() => this.#flushBlockhashes());
  }

  #flushBlockhashes(): void {
    this.#cutBlockhashes();
    const isComplete = this.#isComplete;
    const message: BlockhashesMessage = {
      kind: "blockhashes",
      hashes: joined(this.#blockhashes.map(({ hash }) => hash)),
      lastValidHeights: Float64Array.from(this.#blockhashes, (each) => each.lastValidHeight),
      isComplete,
    };
    this.#blockhashes = [];
    this.#isComplete = false;
    this.#blockhashesPending = false;
    if (isComplete) this.send(message);
    // One that is dropped is read with all others, once a transaction that has it waits.
    else this.#offer(message);
  }

  #log(level: keyof Log, fields: object, message: string): void {
    const entries = Object.entries(fields).map(([name, value]) => [
      name,
      typeof value === "string" ? clipped(value, REASON_CHARS_MAX) : value,
    ]);
    this.send({ kind: "log", level, fields: Object.fromEntries(entries), message });
  }
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const size = parts.reduce((sum, part) => sum + part.length, 0);
  const whole = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
