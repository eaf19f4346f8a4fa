/**
 * The keys and rate limits in the native engine, which ingress threads and the main thread use
 * (`native/src/submit/key_table.rs`, `limit_registry.rs`). This follows the key table of the main
 * thread: a change of one key applies before the call that makes it returns, and a new set of keys
 * is built aside, in batches, and then replaces the old one.
 */

import { SetupError } from "../core/errors.ts";
import type { KeyPolicy, LimitedBy, Principal, RatePlan } from "../limits/access-control.ts";
import { KEY_TABLE_COUNTERS, KEYS_REPLACE, type NativeKeys } from "../native/contract.ts";
import { accountNumber } from "../send/native/account-number.ts";
import { CHARGED_LIMITS_PER_CALL, CHARGED_NAMES_BYTES, KEY_BATCH_BYTES } from "./limits.ts";

/** A key without the key itself. */
export interface EngineKey extends Principal {
  /** 32 bytes. */
  readonly sha256: Buffer;
}

/** The same, with digest and id in borrowed bytes. */
export interface LentEngineKey extends Omit<Principal, "keyId"> {
  readonly bytes: Buffer;
  readonly sha256At: number;
  readonly idAt: number;
}

/** A watched limit that all edges share. */
export interface EngineLimit {
  /** When its bucket is full. */
  fullNs: number;
  /** Requests charged, as a 32-bit integer that wraps around. */
  count: number;
  /** What one of them costs. */
  intervalNs: number;
}

export class EngineKeys {
  readonly #native: NativeKeys;
  /** The handle of the engine's table; 0 once it is closed. */
  #table: number;
  readonly #batch = Buffer.alloc(KEY_BATCH_BYTES);
  #size = 0;
  /** The name of each plan, by its number in the engine. */
  readonly #planNames: string[] = [];
  /** The number of each plan by name, and its terms in the engine. */
  readonly #plans = new Map<string, { readonly number: number; terms: RatePlan }>();
  /** Counts `startRebuild`, so that one that was given up changes nothing. */
  #rebuilds = 0;
  readonly #exceeded = new Float64Array(2);
  readonly #numbers = new Float64Array(3);
  readonly #slots = new Float64Array(CHARGED_LIMITS_PER_CALL);
  readonly #names = Buffer.alloc(CHARGED_NAMES_BYTES);
  readonly #limit: EngineLimit = { fullNs: 0.5, count: 0, intervalNs: 0.5 };

  /** @throws SetupError if the engine has too many tables */
  constructor(native: NativeKeys) {
    this.#native = native;
    this.#table = native.keyTableCreate();
    if (this.#table <= 0) {
      throw new SetupError(`the native engine has no room for a key table: ${this.#table}`);
    }
  }

  /** The engine's handle of the table. */
  get handle(): number {
    return this.#table;
  }

  /** Adds or changes a key. */
  put(key: EngineKey): void {
    // What a rebuild has written so far belongs to its set.
    this.#flush(true);
    this.#write(key.sha256, 0, Buffer.from(key.keyId, "hex"), 0, key);
    this.#flush(false);
  }

  /** Removes a key. Requests that ingress threads handle at this moment are still answered. */
  remove(sha256: Buffer): void {
    this.#native.keysRemove(this.#table, sha256);
  }

  /** Changes a plan for all its keys; does nothing for a plan without keys. */
  setPlan(plan: RatePlan): void {
    if (this.#plans.has(plan.name)) this.#planOf(plan);
  }

  /** The name of the plan with this number in the engine. */
  planName(number: number): string {
    return this.#planNames[number] ?? "";
  }

  /** A second set of keys, which replaces all keys when it is finished. */
  startRebuild() {
    this.#rebuilds += 1;
    const number = this.#rebuilds;
    this.#native.keysReplace(this.#table, KEYS_REPLACE.start);
    // What was left of another one.
    this.#size = 0;
    const isCurrent = () => number === this.#rebuilds;
    return {
      put: (key: EngineKey): void => {
        if (isCurrent()) this.#putNext(key.sha256, 0, Buffer.from(key.keyId, "hex"), 0, key);
      },
      putLent: (key: LentEngineKey): void => {
        if (isCurrent()) this.#putNext(key.bytes, key.sha256At, key.bytes, key.idAt, key);
      },
      finish: (): void => {
        if (!isCurrent()) return;
        this.#flush(true);
        this.#native.keysReplace(this.#table, KEYS_REPLACE.finish);
      },
    };
  }

  /** The limit that caused the last wait. */
  limitedBy: LimitedBy = "account";

  /** Charges one request of the key with this digest: 0, or the nanoseconds to wait. */
  charge(sha256: Buffer, nowNs: number): number {
    const exceeded = this.#exceeded;
    if (this.#native.keyCharge(this.#table, sha256, nowNs, exceeded) !== 1) return 0;
    this.limitedBy = exceeded[1] === 1 ? "key" : "account";
    return exceeded[0] ?? 0;
  }

  /** Limits with a state. */
  get size(): number {
    return this.#counter("limits");
  }

  /** Keys in the engine. */
  get keyCount(): number {
    return this.#counter("keys");
  }

  /** The number of edges that divide a shared limit, from 1 on. */
  setEdgeCount(count: number): void {
    this.#native.limitsShare(this.#table, count);
  }

  /** Up to `countMax` accounts whose shared limit was charged and is watched from now on. */
  takeCharged(countMax: number): readonly { account: string; limitSlot: number }[] {
    const slots = this.#slots.subarray(0, countMax);
    const names = this.#names;
    const count = this.#native.limitsWatch(this.#table, slots, names);
    let at = 0;
    return Array.from({ length: Math.max(0, count) }, (_, index) => {
      const start = at + 2;
      at = start + names.readUInt16LE(at);
      return { account: names.toString("utf8", start, at), limitSlot: slots[index] ?? 0 };
    });
  }

  /** A watched limit, valid until the next call. */
  read(limitSlot: number): EngineLimit {
    const [numbers, limit] = [this.#numbers, this.#limit];
    this.#native.limitRead(this.#table, limitSlot, numbers);
    limit.fullNs = numbers[0] ?? 0;
    limit.count = numbers[1] ?? 0;
    limit.intervalNs = numbers[2] ?? 0;
    return limit;
  }

  /** Replaces the bucket of a watched limit if it is still `wasNs`; returns whether it was. */
  replace(limitSlot: number, wasNs: number, fullNs: number): boolean {
    return this.#native.limitReplace(this.#table, limitSlot, wasNs, fullNs) !== 0;
  }

  /** Ends the watch of a limit whose count was last `count`. */
  release(limitSlot: number, count: number): void {
    this.#native.limitUnwatch(this.#table, limitSlot, count);
  }

  /** Releases the table; no ingress thread may use it any more. */
  close(): void {
    this.#native.keyTableClose(this.#table);
    this.#table = 0;
  }

  #counter(name: (typeof KEY_TABLE_COUNTERS)[number]): number {
    const numbers = new Float64Array(KEY_TABLE_COUNTERS.length);
    this.#native.keyTableCounters(this.#table, numbers);
    return numbers[KEY_TABLE_COUNTERS.indexOf(name)] ?? 0;
  }

  #putNext(sha256: Buffer, sha256At: number, id: Buffer, idAt: number, key: KeyLinks): void {
    this.#write(sha256, sha256At, id, idAt, key);
    if (this.#size > KEY_BATCH_BYTES / 2) this.#flush(true);
  }

  #flush(isNext: boolean): void {
    const batch = this.#batch.subarray(0, this.#size);
    this.#size = 0;
    if (batch.length > 0) this.#native.keysPut(this.#table, isNext, batch);
  }

  /** Appends a key to the batch, in the form of `native/src/submit/key_batch.rs`. */
  #write(sha256: Buffer, sha256At: number, id: Buffer, idAt: number, key: KeyLinks): void {
    const batch = this.#batch;
    const plan = this.#planOf(key.plan);
    const at = this.#size;
    sha256.copy(batch, at, sha256At, sha256At + DIGEST_BYTES);
    id.copy(batch, at + DIGEST_BYTES, idAt, idAt + ID_BYTES);
    batch.writeUInt32LE(plan, at + DIGEST_BYTES + ID_BYTES);
    this.#size = at + DIGEST_BYTES + ID_BYTES + 4;
    this.#writeText(key.account);
    this.#writeNumber(accountNumber(key.account));
    batch[this.#size] = key.policy === null ? 0 : 1;
    this.#size += 1;
    if (key.policy !== null) this.#writePolicy(key.policy);
  }

  #writePolicy({ expiresUnixMs, networks, limit }: KeyPolicy): void {
    this.#writeNumber(expiresUnixMs ?? Number.NaN);
    this.#writeText(expiresUnixMs === null ? "" : timeText(expiresUnixMs));
    this.#writeNumber(limit?.ratePerSecond ?? 0);
    this.#writeNumber(limit?.burst ?? 0);
    // Networks that cannot be parsed admit no address, there as here.
    this.#batch[this.#size] = networks === null ? 0 : 1;
    this.#size += 1;
    if (networks !== null) this.#writeText(rangesText(networks.ranges));
  }

  #writeNumber(number: number): void {
    this.#size = this.#batch.writeDoubleLE(number, this.#size);
  }

  /** A text that is too long is cut. */
  #writeText(text: string): void {
    const at = this.#size + 2;
    const size = this.#batch.write(text, at, TEXT_BYTES_MAX, "utf8");
    this.#batch.writeUInt16LE(size, this.#size);
    this.#size = at + size;
  }

  /** The plan's number in the engine, which has these terms from now on. */
  #planOf(plan: RatePlan): number {
    const known = this.#plans.get(plan.name);
    if (known?.terms === plan) return known.number;
    const number = known?.number ?? this.#plans.size;
    if (known === undefined || !isSame(known.terms, plan)) {
      const { ratePerSecond, burst, shared } = plan;
      const numbers = Float64Array.of(ratePerSecond, burst, shared ? 1 : 0);
      this.#native.planPut(this.#table, number, plan.name, numbers);
    }
    if (known === undefined) {
      this.#plans.set(plan.name, { number, terms: plan });
      this.#planNames.push(plan.name);
    } else known.terms = plan;
    return number;
  }
}

type KeyLinks = Pick<Principal, "account" | "plan" | "policy">;

function isSame(a: RatePlan, b: RatePlan): boolean {
  return a.ratePerSecond === b.ratePerSecond && a.burst === b.burst && a.shared === b.shared;
}

/** As many of the networks as a text has room for: a part of one could be a wider one. */
function rangesText(ranges: readonly string[]): string {
  const text = ranges.join(", ");
  return text.length <= TEXT_BYTES_MAX
    ? text
    : text.slice(0, text.lastIndexOf(", ", TEXT_BYTES_MAX));
}

/** As in the message of the main thread. */
function timeText(unixMs: number): string {
  const time = new Date(unixMs);
  return Number.isNaN(time.getTime()) ? "" : time.toISOString();
}

const DIGEST_BYTES = 32;
const ID_BYTES = 16;
/** Far more than any account or list of networks has. */
const TEXT_BYTES_MAX = 16_384;
