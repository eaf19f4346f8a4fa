// Hot path: a figure is one element of an array; V8 inlines its accessors.
/**
 * Plain counters whose numbers lie in shared memory: one thread counts, another reads, and nobody
 * has to be asked. Each number is written by one thread alone; what another reads may be a moment
 * old, and is never half of a number where the processor stores doubles whole.
 */

/** Counters by name. */
export type Counters<Name extends string> = Record<Name, number>;

/** Fresh memory for so many figures. */
export function countersMemory(count: number): SharedArrayBuffer {
  return new SharedArrayBuffer(8 * count);
}

/** The figures of these names in `memory`, from number `first` on; all threads name them alike. */
export function sharedCounters<Name extends string>(
  names: readonly Name[],
  memory: SharedArrayBuffer,
  first = 0,
): Counters<Name> {
  const numbers = new Float64Array(memory, 8 * first, names.length);
  // Why a prototype of its own: core/quick.ts.
  const counters: object = Object.create({});
  for (const [index, name] of names.entries()) {
    Object.defineProperty(counters, name, {
      enumerable: true,
      get: () => numbers[index],
      set(value: number) {
        numbers[index] = value;
      },
    });
  }
  // Each name was given its accessors above.
  return counters as Counters<Name>;
}

/** The sums of figures over threads, read when they are asked for. */
export function sumOf<Name extends string>(
  names: readonly Name[],
  all: readonly Readonly<Counters<Name>>[],
): Readonly<Counters<Name>> {
  const sums: object = Object.create({});
  for (const name of names) {
    Object.defineProperty(sums, name, {
      enumerable: true,
      get: () => all.reduce((sum, counters) => sum + counters[name], 0),
    });
  }
  // Each name was given its getter above.
  return sums as Counters<Name>;
}
