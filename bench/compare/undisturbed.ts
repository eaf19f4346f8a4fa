/**
 * Turns that the host left alone. A rented machine shares its processors with strangers: where they
 * took more than a little of them, a turn's p99 is theirs, whichever path had it. Such a turn is
 * taken again, a few times at most, and the one they disturbed least counts; how many were is told,
 * and what was lost or refused in any of them stays in the sums.
 */

import type { Turn } from "./turn.ts";

/** Of all processors' time. With 2 % and more taken, p99 at 1,000 tx/s was 2.5 to 6 times. */
export const STOLEN_MAX = 0.005;
const TRIES = 5;

export interface KeptTurn extends Turn {
  /** How often it was taken. */
  readonly taken: number;
}

/** @throws Error whatever `take` throws */
export async function undisturbed(take: () => Promise<Turn>): Promise<KeptTurn> {
  let kept = await take();
  let { lost, refused } = kept;
  let taken = 1;
  for (; taken < TRIES && kept.stolen > STOLEN_MAX; taken += 1) {
    const turn = await take();
    lost += turn.lost;
    refused += turn.refused;
    if (turn.stolen < kept.stolen) kept = turn;
  }
  return { ...kept, lost, refused, taken };
}

/** What a table says of its turns. */
export function disturbance(turns: readonly KeptTurn[]): string {
  const again = turns.reduce((all, { taken }) => all + taken - 1, 0);
  const left = turns.filter(({ stolen }) => stolen > STOLEN_MAX).length;
  const share = `${STOLEN_MAX * 100} %`;
  return (
    `${turns.length} turns. ${again} more were taken again because the host kept over ${share} ` +
    `of the processors' time to itself, as it did in ${left} of those that count.`
  );
}
