/** Acts on an edge while its plan has every leader, for tests of what each leader receives. */

import { type Flow, untilResponse } from "./flow.ts";

const TRIES_MAX = 20;

interface LeadersPage {
  readonly plan: { readonly slot: number; readonly send: readonly object[] };
}

/**
 * The result of `act` from a time when each plan had `count` leaders, from its start to its end:
 * acts again where one had fewer, or where a slot passed between two looks, so that its plan was
 * not seen.
 */
export async function whileAllArePlanned<T>(
  flow: Flow,
  count: number,
  act: () => Promise<T>,
): Promise<T> {
  /** The slot of the plan, if that has every leader. */
  const plannedSlot = async (): Promise<number | null> => {
    const page = await fetch(`${flow.sandbox.adminUrl}/leaders`);
    // The edge's own admin page.
    const { plan } = (await page.json()) as LeadersPage;
    return plan.send.length === count ? plan.slot : null;
  };
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    let seen = await untilResponse("every leader in the plan", plannedSlot, (it) => it !== null);
    const look = async (): Promise<void> => {
      const next = await plannedSlot();
      seen = next !== null && seen !== null && Math.abs(next - seen) <= 1 ? next : null;
    };
    let hasEnded = false;
    const end = (): void => {
      hasEnded = true;
    };
    const acting = act();
    acting.then(end, end);
    while (!hasEnded && seen !== null) await look();
    const result = await acting;
    if (seen !== null) await look();
    if (seen !== null) return result;
  }
  throw new Error("the plan never had every leader for long enough");
}
