/**
 * Compact leader schedules, as the cluster stage passes them to the router.
 */

/** An epoch whose windows are led by the letters of `order`, four slots each. */
export function epochOf(epoch: number, firstSlot: number, order: string) {
  const leaders = new Map<string, number[]>();
  [...order].forEach((identity, window) => {
    const indexes = leaders.get(identity) ?? [];
    for (let slot = 0; slot < 4; slot += 1) indexes.push(window * 4 + slot);
    leaders.set(identity, indexes);
  });
  return { epoch, firstSlot, slots: order.length * 4, leaders };
}
