/**
 * The last so many numbers, in order of size at any time.
 *
 * A number takes the place of the oldest one and is moved to where it belongs, usually by a few
 * steps. Sorting a copy took a call into the runtime and two objects for each event of a slot, on
 * the thread that serves clients.
 */

export class LastValues {
  readonly #byAge: Float64Array;
  readonly #bySize: Float64Array;
  #count = 0;
  /** Where the next one goes by age. */
  #next = 0;

  /** `most`: how many are kept, one at least. */
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

  /** Takes in a finite number; the oldest one goes where there is no room. */
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

  /** The one at a place, counted from the smallest; -1 where there is none. */
  at(place: number): number {
    return place < this.#count ? (this.#bySize[place] ?? -1) : -1;
  }

  /** The place in the middle, the lower one of two; -1 for none. */
  get middle(): number {
    return (this.#count - 1) >> 1;
  }
}
