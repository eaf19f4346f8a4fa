/**
 * Numbers for the leaders of deliveries, so that a delivery stores four bytes and no object for the
 * garbage collector to trace. A leader is its identity and the address used.
 *
 * A number is valid while a delivery uses it. At twice the count in use after the last scan, the
 * deliveries are scanned and unused numbers are freed.
 *
 * Hot path: `numberOf` is one look-up for a known leader.
 */

import { NONE } from "./columns.ts";

/** Minimum count for a scan. */
const LEADERS_MIN = 4096;

export class ReceiptLeaders {
  readonly #identities: string[] = [];
  readonly #addresses: string[] = [];
  /** The newest number of each identity, and the previous one of the same identity. */
  readonly #newest = new Map<string, number>();
  readonly #older: number[] = [];
  #free: number[] = [];
  #lookAt: number;

  constructor(leadersMin = LEADERS_MIN) {
    this.#lookAt = leadersMin;
  }

  /** Leaders that have a number. */
  get count(): number {
    return this.#identities.length - this.#free.length;
  }

  identityOf(number: number): string {
    return this.#identities[number] ?? "";
  }

  addressOf(number: number): string {
    return this.#addresses[number] ?? "";
  }

  /**
   * The leader's number; `used` holds the deliveries' numbers, in case unused ones must be freed.
   */
  numberOf(identity: string, address: string, used: Uint32Array): number {
    const newest = this.#newest.get(identity) ?? NONE;
    for (let number = newest; number !== NONE; number = this.#older[number] ?? NONE) {
      if (this.#addresses[number] === address) return number;
    }
    if (this.count < this.#lookAt) return this.#enter(identity, address);
    this.#forget(used);
    this.#lookAt = Math.max(this.#lookAt, 2 * this.count);
    return this.#enter(identity, address);
  }

  #enter(identity: string, address: string): number {
    const number = this.#free.pop() ?? this.#identities.length;
    this.#identities[number] = identity;
    this.#addresses[number] = address;
    this.#older[number] = this.#newest.get(identity) ?? NONE;
    this.#newest.set(identity, number);
    return number;
  }

  /** Frees every number that is not in `used`. */
  #forget(used: Uint32Array): void {
    const isUsed = new Uint8Array(this.#identities.length);
    for (const number of used) isUsed[number] = 1;
    this.#newest.clear();
    this.#free = [];
    for (const [number, identity] of this.#identities.entries()) {
      if (isUsed[number] === 1) {
        this.#older[number] = this.#newest.get(identity) ?? NONE;
        this.#newest.set(identity, number);
      } else {
        this.#identities[number] = "";
        this.#addresses[number] = "";
        this.#free.push(number);
      }
    }
  }
}
