/**
 * Has the main thread read a front's records: at once where one is urgent, when many wait, or when
 * one has for long. One of what is on the wire needs nobody to count the time: the engine has news
 * of it, and wakes the main thread for them in time. A timer for those would wake the front ten
 * times a second.
 *
 * At once is when this turn of the front's event loop is through, so that one wake, which costs a
 * front microseconds, is for all that came in together, and no answer waits for it.
 */

import { wake } from "../core/bell.ts";
import type { Clock } from "../core/clock.ts";
import { FRONT_RECORDS_WAKE, FRONT_RECORDS_WAKE_MS } from "../core/front-limits.ts";

/** To be told of each record once it is written. `bell` is the main thread's. */
export function createTeller(
  clock: Clock,
  records: { readonly depth: number },
  bell: SharedArrayBuffer,
): (isUrgent: boolean, isAwaited?: boolean) => void {
  const word = new Int32Array(bell);
  let isDue = false;
  let isTimed = false;
  const ring = (): void => {
    if (records.depth > 0) wake(word, 0);
  };
  const ringNow = (): void => {
    isDue = false;
    ring();
  };
  const ringLate = (): void => {
    isTimed = false;
    ring();
  };
  return (isUrgent, isAwaited = false) => {
    if (records.depth >= FRONT_RECORDS_WAKE) wake(word, 0);
    else if (isUrgent) {
      if (!isDue) clock.after(0, ringNow);
      isDue = true;
    } else if (!isTimed && !isAwaited) {
      isTimed = true;
      clock.after(FRONT_RECORDS_WAKE_MS, ringLate);
    }
  };
}
