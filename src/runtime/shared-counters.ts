// Hot path: a counter is one element of an array; V8 inlines its accessors.
/**
 * Plain counters in shared memory: one thread writes, others read without a request. Each number
 * has exactly one writing thread; a reader may see a slightly old value, but never a torn one where
 * the processor stores doubles atomically.
 */

/** Counters by name. */
export type Counters<Name extends string> = Record<Name, number>;

/** New memory for `count` counters. */
export function countersMemory(count: number): SharedArrayBuffer {
  return new SharedArrayBuffer(8 * count);
}

/**
 * The counters of these names in `memory`, from index `first` on; all threads must use the same
 * names.
 */
export function sharedCounters<Name extends string>(
  names: readonly Name[],
  memory: SharedArrayBuffer,
  first = 0,
): Counters<Name> {
  const numbers = new Float64Array(memory, 8 * first, names.length);
  // runtime/fast-object.ts explains why it has its own prototype.
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
  // Each name received its accessors above.
  return counters as Counters<Name>;
}

/** The sums of counters over threads, computed when read. */
export function sumOf<Name extends string>(
  names: readonly Name[],
  all: readonly Readonly<Counters<Name>>[],
): Readonly<Counters<Name>> {
  return computedCounters(names, (name) => all.reduce((sum, counters) => sum + counters[name], 0));
}

/** Counters that `compute` returns when they are read, by their name and its index. */
export function computedCounters<Name extends string>(
  names: readonly Name[],
  compute: (name: Name, index: number) => number,
): Readonly<Counters<Name>> {
  const counters: object = Object.create({});
  for (const [index, name] of names.entries()) {
    Object.defineProperty(counters, name, { enumerable: true, get: () => compute(name, index) });
  }
  // Each name received its getter above.
  return counters as Counters<Name>;
}
