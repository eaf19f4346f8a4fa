/** One end of a line between two threads; the test is the other one. */

import type { Port } from "../../src/core/port.ts";

export interface Line<Out, In> {
  /** The end under test. */
  readonly port: Port<readonly Out[], readonly In[]>;
  /** What it posted. */
  readonly posted: Out[];
  /** Tells it something. */
  tell(...items: In[]): void;
}

export function createLine<Out, In>(): Line<Out, In> {
  const posted: Out[] = [];
  let handle: (items: readonly In[]) => void = () => {};
  return {
    port: {
      post: (items) => void posted.push(...structuredClone(items)),
      onMessage(handler) {
        handle = handler;
      },
    },
    posted,
    tell: (...items) => handle(items),
  };
}
