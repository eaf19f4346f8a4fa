/**
 * The state changes of all receipts, numbered from 1, in a ring that receipt streams read and can
 * resume from. A change is overwritten after as many later ones as the ring's capacity; a slower
 * reader detects that it missed some. Only 32 bits of a receipt's number are kept: the numbers in
 * one ring differ by less.
 *
 * Hot path: `add` is two writes.
 *
 * Decision: docs/decisions/0041-receipt-changes-are-a-log.md
 */

export class ReceiptChanges {
  /** Number of the next change. */
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

  /** Number of the oldest kept change. */
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

  /** The receipt of change `number`. */
  sequenceOf(number: number): number {
    const kept = this.#sequences[number % this.#capacity] ?? 0;
    return this.#newest - (((this.#newest >>> 0) - kept) >>> 0);
  }

  /** The new state in change `number`. */
  stateOf(number: number): number {
    return this.#states[number % this.#capacity] ?? 0;
  }
}
