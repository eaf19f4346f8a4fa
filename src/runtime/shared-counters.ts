// Hot path: a figure is one element of an array; V8 inlines its accessors.
/**
 * Plain counters whose numbers lie in shared memory: one thread counts, another reads, and nobody
 * has to be asked. Each number is written by one thread alone; what another reads may be a moment
 * old, and is never half of a number where the processor stores doubles whole.
 */

/** Counters by name. */
export type Figures<Name extends string> = Record<Name, number>;

/** Fresh memory for so many figures. */
export function figuresMemory(count: number): SharedArrayBuffer {
  return new SharedArrayBuffer(8 * count);
}

/** The figures of these names in `memory`, from number `first` on; all threads name them alike. */
export function sharedFigures<Name extends string>(
  names: readonly Name[],
  memory: SharedArrayBuffer,
  first = 0,
): Figures<Name> {
  const numbers = new Float64Array(memory, 8 * first, names.length);
  // Why a prototype of its own: core/quick.ts.
  const figures: object = Object.create({});
  for (const [index, name] of names.entries()) {
    Object.defineProperty(figures, name, {
      enumerable: true,
      get: () => numbers[index],
      set(value: number) {
        numbers[index] = value;
      },
    });
  }
  // Each name was given its accessors above.
  return figures as Figures<Name>;
}

/** The sums of figures over threads, read when they are asked for. */
export function sumOf<Name extends string>(
  names: readonly Name[],
  all: readonly Readonly<Figures<Name>>[],
): Readonly<Figures<Name>> {
  const sums: object = Object.create({});
  for (const name of names) {
    Object.defineProperty(sums, name, {
      enumerable: true,
      get: () => all.reduce((sum, figures) => sum + figures[name], 0),
    });
  }
  // Each name was given its getter above.
  return sums as Figures<Name>;
}
