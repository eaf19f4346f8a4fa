/**
 * A stub for a large interface of which one test reads a few fields.
 */

/** An object with the fields given; reading any other one throws, naming it. */
export function stub<Whole extends object>(known: Partial<Whole>): Whole {
  const response = new Proxy(known, {
    get(target, field, receiver) {
      if (Reflect.has(target, field)) return Reflect.get(target, field, receiver);
      throw new Error(`this test gives no ${String(field)}`);
    },
  });
  // A missing field throws instead of reading as undefined.
  return response as Whole;
}
