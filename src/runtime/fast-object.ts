/**
 * Fast objects for records that the hot path uses.
 *
 * Note: V8 keeps an object whose literal holds a getter as a dictionary. Each use is then a search,
 * V8 never inlines what it holds, and no later change repairs it. Defining the same properties one
 * by one makes an ordinary object, but only for the first of its kind: getters belong to the shape
 * that all of a kind share, and an object with other getters becomes a dictionary again. Shapes
 * begin at the prototype, so each record has its own prototype.
 */

/** The same record, with its getters, as a fast object. Do not use the given one afterwards. */
export function withFastProperties<T extends object>(literal: T): T {
  // Defines all of its properties, getters as getters.
  const descriptors = Object.getOwnPropertyDescriptors(literal);
  return Object.defineProperties(Object.create({}), descriptors) as T;
}
