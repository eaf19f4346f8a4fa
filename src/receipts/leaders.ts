/**
 * The leaders that copies went to, each under a number, so that a copy holds four bytes of them and
 * nothing for the garbage collector to follow. A leader is its identity and the address used.
 *
 * Numbers hold while a copy has them. Once there are twice as many as were in use at the last look,
 * the copies are looked through, and numbers that none of them has are given anew.
 *
 * Hot path: `numberOf` is one look-up for a leader that is known.
 */

import { NONE } from "./columns.ts";

/** Below this many nothing is looked through. */
const LEADERS_MIN = 4096;

export class ReceiptLeaders {
  readonly #identities: string[] = [];
  readonly #addresses: string[] = [];
  /** The newest number of each identity, and the one before of the same identity. */
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

  /** The leader's number; `used` are the numbers that copies have, where some may be given anew. */
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

  /** Frees every number that is not among those. */
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
