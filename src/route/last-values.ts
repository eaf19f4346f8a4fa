/**
 * The last N numbers, kept sorted.
 *
 * A new number replaces the oldest and moves to its position, usually by a few steps. Sorting a
 * copy took a runtime call and two objects per slot event, on the thread that serves clients.
 */

export class LastValues {
  readonly #byAge: Float64Array;
  readonly #bySize: Float64Array;
  #count = 0;
  /** Index of the next number by age. */
  #next = 0;

  /** `max`: numbers kept, at least 1. */
  constructor(max: number) {
    this.#byAge = new Float64Array(max);
    this.#bySize = new Float64Array(max);
  }

  get count(): number {
    return this.#count;
  }

  get full(): boolean {
    return this.#count === this.#byAge.length;
  }

  /** Adds a finite number; replaces the oldest if full. */
  push(value: number): void {
    const bySize = this.#bySize;
    let place = this.#count;
    if (this.full) place = bySize.indexOf(this.#byAge[this.#next] ?? 0);
    else this.#count += 1;
    for (; place > 0 && this.at(place - 1) > value; place -= 1) bySize[place] = this.at(place - 1);
    const last = this.#count - 1;
    for (; place < last && this.at(place + 1) < value; place += 1) {
      bySize[place] = this.at(place + 1);
    }
    bySize[place] = value;
    this.#byAge[this.#next] = value;
    this.#next = (this.#next + 1) % this.#byAge.length;
  }

  clear(): void {
    this.#count = 0;
    this.#next = 0;
  }

  /** The number at an index in ascending order; -1 if absent. */
  at(place: number): number {
    return place < this.#count ? (this.#bySize[place] ?? -1) : -1;
  }

  /** The index of the median, the lower of two; -1 if empty. */
  get middle(): number {
    return (this.#count - 1) >> 1;
  }
}
