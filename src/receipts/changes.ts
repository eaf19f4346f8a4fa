/**
 * The state changes of all receipts, numbered from 1, in a ring that receipt streams read and can
 * resume from; while a successor follows, all other changes too, which streams skip. A change is
 * overwritten after as many later ones as the ring's capacity; a slower reader detects that it
 * missed some. Only 32 bits of a receipt's number are kept: the numbers in one ring differ by less.
 *
 * Hot path: `add` is two writes.
 *
 * Decision: docs/decisions/0041-receipt-changes-are-a-log.md
 */

export class ReceiptChanges {
  /** Number of the next change. */
  next = 1;
  /** Whether a successor follows: it must learn also what changes no state. */
  isFollowed = false;
  readonly #capacity: number;
  readonly #sequences: Uint32Array;
  readonly #states: Uint8Array;
  /** The highest receipt so far. */
  #newest = 0;
  /** Number of the first change of this process. */
  #start = 1;
  /**
   * The last change that the replaced process told its streams; null: not known yet; Infinity: it
   * ended without saying.
   */
  #lastOfOther: number | null = null;

  /** Names the numbers: those of the same name continue each other. */
  epoch: string;

  /** @param capacity changes that are kept */
  constructor(capacity: number, epoch = "0") {
    this.epoch = epoch;
    this.#capacity = capacity;
    this.#sequences = new Uint32Array(capacity);
    this.#states = new Uint8Array(capacity);
  }

  get bytes(): number {
    return this.#sequences.byteLength + this.#states.byteLength;
  }

  /** Number of the oldest kept change. */
  get first(): number {
    return Math.max(this.#start, this.next - this.#capacity);
  }

  /** Continues the numbers of another process, which uses some more of them, before the first. */
  continueFrom(epoch: string, next: number): void {
    this.epoch = epoch;
    this.#start = next + NUMBERS_OF_OTHER;
    this.next = this.#start;
  }

  /**
   * That process uses no further numbers: its streams have been told all changes up to `last`;
   * Infinity: it ended without saying.
   */
  otherEnded(last: number): void {
    this.#lastOfOther = last;
  }

  /** The number of the change after that one. */
  after(number: number): number {
    const isTold = this.#lastOfOther !== null && number >= this.#lastOfOther;
    return isTold && number < this.#start ? this.#start : number + 1;
  }

  /** Whether `after` of that number can no longer change. */
  isAfterKnown(number: number): boolean {
    return number + 1 >= this.#start || this.#lastOfOther !== null;
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

/** More changes than a process makes while its successor starts. */
const NUMBERS_OF_OTHER = 1_000_000_000;
