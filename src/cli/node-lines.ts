/**
 * The end-of-life dates of Node release lines, and the warning of a service that runs on an ended
 * line. A line missing from the table, newer or older, causes no warning.
 */

/**
 * The last day on which a line gets fixes: `end` in schedule.json of the Node project's repository
 * nodejs/Release, checked 2026-11-24. The project may move an end, so check it when adding a line.
 */
const LAST_DAYS: ReadonlyMap<number, string> = new Map([
  [20, "2026-04-30"],
  [21, "2024-06-01"],
  [22, "2027-04-30"],
  [23, "2025-06-01"],
  [24, "2028-04-30"],
  [25, "2026-06-01"],
  [26, "2029-04-30"],
]);

/**
 * The warning for a Node version such as `20.20.2`, at a time in Unix milliseconds; null if its
 * line is maintained or unknown.
 */
export function endedLine(version: string, unixMs: number): string | null {
  const line = Number.parseInt(version, 10);
  const lastDay = LAST_DAYS.get(line);
  if (lastDay === undefined || !isOver(lastDay, unixMs)) return null;
  const maintained = [...LAST_DAYS].flatMap(([other, day]) => (isOver(day, unixMs) ? [] : [other]));
  const use = maintained.length === 0 ? "a newer line" : `Node ${maintained.join(" or ")}`;
  return `Node ${line} has had no security fixes since ${lastDay}: use ${use}`;
}

function isOver(day: string, unixMs: number): boolean {
  return unixMs >= Date.parse(day) + DAY_MS;
}

const DAY_MS = 86_400_000;
