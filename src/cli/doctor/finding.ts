/** What a check of `doctor` found, and how it is written for people. */

export type Area = "start" | "host" | "tls" | "cluster" | "leaders" | "accounts" | "provider";

/** `unknown`: it could not be determined here, and `message` says why. */
export type Level = "ok" | "warning" | "error" | "unknown";

export interface Finding {
  readonly area: Area;
  /** A stable name for scripts, such as `udp_receive_buffer`. */
  readonly check: string;
  readonly level: Level;
  /** What is, or what is wrong. */
  readonly message: string;
  /** What it costs; null for `ok` and `unknown`. */
  readonly cost: string | null;
  /** The command or the setting that changes it, or that finds out; null where there is none. */
  readonly fix: string | null;
}

/** The findings of one area, by level. */
export function findingsOf(area: Area) {
  const make =
    (level: Level) =>
    (check: string, message: string, cost: string | null, fix: string | null): Finding => ({
      ...{ area, check, level, message, cost, fix },
    });
  const [ok, warning, error, unknown] = [
    make("ok"),
    make("warning"),
    make("error"),
    make("unknown"),
  ];
  return {
    ok: (check: string, message: string) => ok(check, message, null, null),
    warning,
    error,
    unknown: (check: string, message: string, fix: string | null = null) =>
      unknown(check, message, null, fix),
  };
}

/** One line for each finding, and one each for its cost and its fix. */
export function linesOf({ level, check, message, cost, fix }: Finding): readonly string[] {
  const indent = " ".repeat(LEVEL_WIDTH);
  return [
    `${level.padEnd(LEVEL_WIDTH)}${check}: ${message}`,
    ...(cost === null ? [] : [`${indent}costs: ${cost}`]),
    ...(fix === null ? [] : [`${indent}${level === "unknown" ? "find out" : "fix"}: ${fix}`]),
  ];
}

const LEVEL_WIDTH = 9;

/** How many findings have each level. */
export function countsOf(findings: readonly Finding[]): Readonly<Record<Level, number>> {
  const counts = { ok: 0, warning: 0, error: 0, unknown: 0 };
  for (const { level } of findings) counts[level] += 1;
  return counts;
}
