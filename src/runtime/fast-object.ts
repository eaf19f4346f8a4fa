/**
 * Records that the hot path uses.
 *
 * The surprise: V8 keeps an object whose literal holds a getter as a dictionary. Each use of it is
 * a search then, what it holds is never compiled into its user, and no later change mends that.
 * The same properties, defined one by one, make an ordinary object, but only the first of its kind:
 * getters belong to the shape that all of a kind share, and one that has others is kept as a
 * dictionary again. Shapes begin at the prototype, so each record has a prototype of its own.
 */

/** The same record, with its getters, in the form that is quick to use. The given one is let go. */
export function withFastProperties<T extends object>(literal: T): T {
  // All of its properties are defined, getters as getters.
  const descriptors = Object.getOwnPropertyDescriptors(literal);
  return Object.defineProperties(Object.create({}), descriptors) as T;
}
