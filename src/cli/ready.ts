/**
 * `ready`: waits until a configuration's edge or control process is ready. For container health
 * checks and for scripts that start one and then use it.
 */

import { parseDuration } from "../config/durations.ts";
import { loadConfig, loadControl, serviceOf } from "../config/load.ts";
import { formatListen, type ListenAddress } from "../config/value-types.ts";
import { type Clock, NS_PER_MS, sleep, withTimeout } from "../core/clock.ts";
import { fetchReasonOf, SetupError } from "../core/errors.ts";
import type { ServiceName } from "../telemetry/admin.ts";
import { type Command, noPositionals, optionalText, requiredText, UsageError } from "./command.ts";
import { READY_POLL_MS, READY_PROBE_MS_MAX } from "./limits.ts";

export const readyCommand: Command = {
  name: "ready",
  summary: "exits with 0 once what that configuration is of serves, with 1 when the time is up",
  usage: ["ready --config FILE [--timeout 30s]"],
  options: { config: { type: "string" }, timeout: { type: "string" } },
  detail: `
Asks /readyz of admin.listen until it answers 200. Prints the last reason when it does not, or
when another service answers there. A file with a table [control] is the control process's, any
other an edge's.

  --timeout TIME   how long to wait, 30s when not given
`,
  async run(given, positionals, io) {
    noPositionals(positionals);
    const timeoutText = optionalText(given, "timeout") ?? "30s";
    const timeoutMs = parseDuration(timeoutText);
    if (timeoutMs === null) throw new UsageError('--timeout must be a duration, like "30s"');
    const file = requiredText(given, "config");
    const { admin, wanted } = wantedOf(file);
    const url = readyUrl(admin.listen);
    const reason = await waitUntilReady({ url, wanted }, timeoutMs, io.clock);
    if (reason === null) {
      io.out("ready");
      return 0;
    }
    io.err(`not ready within ${timeoutText}: ${reason}`);
    return 1;
  },
};

/** The service of a file. An edge without a name has that of its host, which may be a container. */
function wantedOf(file: string) {
  if (serviceOf(file) === "control") {
    const { admin } = loadControl(file);
    return { admin, wanted: { service: "control" } satisfies ServiceName };
  }
  const { admin, region, name } = loadConfig(file);
  const named = name === null ? {} : { name };
  return { admin, wanted: { service: "edge", region, ...named } satisfies ServiceName };
}

/** Who answered, if it is another service than the wanted one; null: that one, or not stated. */
function otherIn(answer: string, wanted: ServiceName): string | null {
  const { service, region, name } = parsed(answer);
  const found: Readonly<Record<string, unknown>> = { service, region, name };
  const isOther = Object.entries(wanted).some(([key, value]) => found[key] !== value);
  if (service === undefined || !isOther) return null;
  return service === "edge" ? `edge ${name} of region ${region}` : "a control process";
}

function parsed(text: string): Partial<ServiceName> {
  try {
    return Object(JSON.parse(text));
  } catch {
    // Another program's answer.
    return {};
  }
}

/** The URL to poll. */
export function readyUrl(admin: ListenAddress): string {
  return adminUrl(admin, "/readyz");
}

/** The URL of a path of the admin listener; a wildcard address is reached on loopback. */
export function adminUrl(admin: ListenAddress, path: string): string {
  if (admin.port === 0) {
    throw new SetupError("admin.listen has port 0, so its port is not known here; give it one");
  }
  return `http://${formatListen(localAddress(admin))}${path}`;
}

/** Where this machine reaches a listener: at a wildcard address on loopback. */
export function localAddress({ host, port }: ListenAddress): ListenAddress {
  const loopback: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" };
  return { host: loopback[host] ?? host, port };
}

interface Target {
  readonly url: string;
  readonly wanted: ServiceName;
}

/** Polls until the status is 200 and returns null; otherwise returns the last reason. */
async function waitUntilReady(
  target: Target,
  timeoutMs: number,
  clock: Clock,
): Promise<string | null> {
  const deadlineNs = clock.nowNs() + timeoutMs * NS_PER_MS;
  for (;;) {
    const leftMs = (deadlineNs - clock.nowNs()) / NS_PER_MS;
    const reason = await probe(target, Math.max(1, Math.min(leftMs, READY_PROBE_MS_MAX)), clock);
    if (reason === null) return null;
    if (clock.nowNs() + READY_POLL_MS * NS_PER_MS >= deadlineNs) return reason;
    await sleep(clock, READY_POLL_MS);
  }
}

/** One poll; null for a 200, otherwise the reason. */
async function probe(
  { url, wanted }: Target,
  timeoutMs: number,
  clock: Clock,
): Promise<string | null> {
  try {
    return await withTimeout(clock, timeoutMs, async (signal) => {
      const response = await fetch(url, { signal });
      const answer = await response.text();
      const other = otherIn(answer, wanted);
      if (other !== null) return `${other} answers at ${url}`;
      const body = answer.trim().slice(0, REASON_CHARACTERS_MAX);
      return response.status === 200 ? null : `${url} answers ${response.status} ${body}`.trimEnd();
    });
  } catch (error) {
    return `${url} cannot be reached (${fetchReasonOf(error)})`;
  }
}

/** Maximum length of the response text in a message. */
const REASON_CHARACTERS_MAX = 500;
