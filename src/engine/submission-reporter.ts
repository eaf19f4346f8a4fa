// Hot path: everything here runs for each transaction.
/**
 * Reports what the submissions among the native engine's events tell: what ingress threads accepted
 * and refused, and what the main thread's own submissions became.
 */

import type { Accepted, ValidationResult } from "../core/flow.ts";
import { createPacket } from "../core/packet.ts";
import type { Sender } from "../send/sender.ts";
import type { EngineEvents, Submitter } from "./engine.ts";
import { SUBMITTERS_MAX } from "./limits.ts";
import { DUPLICATE, REJECTED, type RingRecord, SENT } from "./submission-record.ts";

export interface SubmissionReporterDeps {
  readonly events: EngineEvents;
  /** Reports the deliveries of what was sent. */
  readonly sender: Pick<Sender, "recordSend">;
  /** The name of the plan with this number in the engine. */
  readonly planName: (number: number) => string;
  /** Whose is the main thread's submission with this number. */
  readonly ownSubmitter: (number: number) => Submitter;
}

export interface RecordCounters {
  /** Transactions that the main thread decoded, and those that ingress threads did. */
  inline: number;
  ingress: number;
  /** Submissions of a transaction that was accepted recently. */
  duplicates: number;
  /** Transactions corked, to send them together with others. */
  corked: number;
}

export class SubmissionReporter {
  readonly counters: RecordCounters = { inline: 0, ingress: 0, duplicates: 0, corked: 0 };
  readonly #deps: SubmissionReporterDeps;
  /** By key id, so that receipts of one account share its name. */
  readonly #submitters = new Map<string, Submitter>();

  constructor(deps: SubmissionReporterDeps) {
    this.#deps = deps;
  }

  /** Reports one record. */
  readonly report = (record: RingRecord): void => {
    const { kind, isOwn, validation } = record;
    const { events, ownSubmitter } = this.#deps;
    const submitter = isOwn ? ownSubmitter(record.planNumber) : this.#submitterOf(record);
    // The HTTP server of the main thread counts its own requests.
    if (!isOwn) events.answered(record, submitter);
    if (kind === SENT && validation.kind === "accepted") this.#sent(record, submitter, validation);
    else if (kind === DUPLICATE) this.#duplicate(record, submitter);
    else if (kind === REJECTED) this.#refused(validation);
  };

  #refused(validation: ValidationResult): void {
    // Refused before it was decoded.
    if (validation.kind === "rejected" && validation.errorCode < 0) return;
    this.counters.ingress += 1;
    if (validation.kind === "accepted") this.#deps.events.valid();
    else this.#deps.events.invalid(validation.errorCode);
  }

  #submitterOf({ keyId, account, planNumber }: RingRecord): Submitter {
    const plan = this.#deps.planName(planNumber);
    const known = this.#submitters.get(keyId);
    if (known?.account === account && known.plan === plan) return known;
    if (this.#submitters.size >= SUBMITTERS_MAX) this.#submitters.clear();
    const submitter = { keyId, account, plan };
    this.#submitters.set(keyId, submitter);
    return submitter;
  }

  #sent(record: RingRecord, { account, keyId, plan }: Submitter, accepted: Accepted): void {
    const { counters } = this;
    const { events, sender } = this.#deps;
    const { bytes, receivedNs, decodedNs, maxRetries, send } = record;
    if (record.isOwn) counters.inline += 1;
    else counters.ingress += 1;
    if (send.corked) counters.corked += 1;
    events.valid();
    const offeredLamports = accepted.priorityFeeLamports + accepted.tipLamports;
    const id = events.nextId;
    const packet = createPacket(id, bytes, account, receivedNs, maxRetries, offeredLamports);
    events.opened(packet, accepted, keyId, plan, decodedNs);
    sender.recordSend(packet, send, record.sentNs);
  }

  #duplicate({ bytes, maxRetries, offset }: RingRecord, { account }: Submitter): void {
    this.counters.duplicates += 1;
    this.#deps.events.duplicate({ bytes, account, maxRetries }, offset);
  }
}
