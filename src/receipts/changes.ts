/**
 * The changes of state of all receipts, numbered from 1, in a ring: what a stream of receipts is
 * made from, and what it can go back to. A change is written over once as many others came as the
 * ring has places; who reads more slowly than that sees that it missed some. Of a receipt's number
 * 32 bits are kept: those of one ring lie closer together.
 *
 * Hot path: `add` is two writes.
 *
 * Decision: docs/decisions/0041-receipt-changes-are-a-log.md
 */

export class ReceiptChanges {
  /** The number that the next change gets. */
  next = 1;
  readonly #capacity: number;
  readonly #sequences: Uint32Array;
  readonly #states: Uint8Array;
  /** The highest receipt so far. */
  #newest = 0;

  /** @param capacity changes that are kept */
  constructor(capacity: number) {
    this.#capacity = capacity;
    this.#sequences = new Uint32Array(capacity);
    this.#states = new Uint8Array(capacity);
  }

  get bytes(): number {
    return this.#sequences.byteLength + this.#states.byteLength;
  }

  /** The number of the oldest change that is kept. */
  get first(): number {
    return Math.max(1, this.next - this.#capacity);
  }

  add(sequence: number, state: number): void {
    const place = this.next % this.#capacity;
    this.#sequences[place] = sequence;
    if (sequence > this.#newest) this.#newest = sequence;
    this.#states[place] = state;
    this.next += 1;
  }

  /** The receipt that change `number` is of. */
  sequenceOf(number: number): number {
    const kept = this.#sequences[number % this.#capacity] ?? 0;
    return this.#newest - (((this.#newest >>> 0) - kept) >>> 0);
  }

  /** The state that it changed to. */
  stateOf(number: number): number {
    return this.#states[number % this.#capacity] ?? 0;
  }
}
