/** The report at the end of a simulation: lines that are the same for the same seed. */

import { quantile, type SimulationResult } from "./simulate.ts";

const PERCENT = 100;

export function report(result: SimulationResult): readonly string[] {
  const { options, deltas, floor, accepted, refused, landed } = result;
  const submitted = accepted + refused;
  const hours = (options.slots * options.slotMs) / 3_600_000;
  const slotsOf = (counts: typeof deltas): string => {
    const [p50, p99, p999] = [0.5, 0.99, 0.999].map((part) => quantile(counts, part));
    return `p50 ${p50}  p99 ${p99}  p99.9 ${p999}  max ${quantile(counts, 1)}`;
  };
  return [
    `seed ${options.seed}: ${options.leaders} leaders, ${share(options.dead)} dead, ` +
      `${share(options.saturated)} saturated; ${options.slots} slots of ${options.slotMs} ms ` +
      `(${hours.toFixed(2)} h), ${share(options.skip)} skipped`,
    `network: ${options.rttMs} ms round trip, ${share(options.loss)} of packets lost ` +
      `(measured ${share(result.lostShare)})`,
    `landed       ${landed} of ${submitted} (${share(landed / submitted)}), ${refused} rejected`,
    `slot delta   ${slotsOf(deltas)}`,
    `minimum      ${slotsOf(floor)}`,
    `deliveries   ${(result.deliveries / accepted).toFixed(3)} a transaction, ` +
      `${result.resends} resends`,
    `ends         landed ${landed}, expired ${result.expired}, dropped ${result.dropped}, ` +
      `in flight ${result.inFlight}${named(result.reasons)}`,
    `undelivered  ${named(result.deliveryReasons).trim() || "none"}; out of window ` +
      `${result.outOfTurn}, with a skipped window ${result.heldLost}`,
    `connections  ${result.connections} started, ${result.ignored} unanswered; ` +
      `${result.forked} transactions rolled back by a fork`,
  ];
}

function share(value: number): string {
  return `${(value * PERCENT).toFixed(2)} %`;
}

function named(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([name, count]) => ` ${name} ${count}`)
    .join(",");
}
