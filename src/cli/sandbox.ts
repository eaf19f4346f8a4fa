/**
 * `sandbox`: a complete service on one machine, on loopback, until a signal ends it. `npm start`
 * runs it. Prints on standard output what it started and a command line that submits a transaction.
 */

import { requireSandboxPackages } from "../sandbox/sandbox-packages.ts";
import { type Command, noPositionals, optionalText, UsageError } from "./command.ts";
import { untilStopped } from "./signals.ts";

export const sandboxCommand: Command = {
  name: "sandbox",
  summary: "runs an edge and a simulated cluster on this machine; `npm start` is this",
  usage: ["sandbox [--port PORT] [--faults] [--alpenglow]"],
  options: {
    port: { type: "string" },
    faults: { type: "boolean" },
    alpenglow: { type: "boolean" },
  },
  detail: `
Prints every address, a working key and a curl line that succeeds as pasted. Everything
listens on loopback only, and nothing is kept when it stops.

  --port PORT   where the edge listens, 0 for any free port
  --faults      six leaders, of which one stalls, one evicts, one wants a token and
                forgets the idle, and one is behind a network that loses and delays
  --alpenglow   the cluster's consensus is Alpenglow: windows are skipped together,
                now and then no slot passes for seconds, or a slot has two banks
`,
  warnsOfEndedNode: true,
  async run(given, positionals, io) {
    noPositionals(positionals);
    const port = portOf(optionalText(given, "port"));
    requireSandboxPackages();
    const { startSandbox } = await import("../sandbox/sandbox.ts");
    const print = (line: string): void => io.out(line);
    const sandbox = await startSandbox({
      print,
      dashboard: true,
      faults: given["faults"] === true,
      alpenglow: given["alpenglow"] === true,
      ...(port === null ? {} : { port }),
    });
    const stopped = untilStopped({
      io,
      service: { drain: () => {}, stop: () => sandbox.stop() },
      graceMs: 0,
      reload: null,
    });
    for (const line of sandbox.lines) io.out(line);
    sandbox.dashboard?.then(
      ({ url }) => io.out(dashboardLines(url)),
      () => io.err("the dashboard could not be started, the edge serves without it"),
    );
    return await stopped;
  },
};

/** Users who log in have their own key: the one above is another account's until it is linked. */
function dashboardLines(url: string): string {
  return [
    `The dashboard: ${url}`,
    "  Log in as Grace, or as Ada, an operator; no password is needed. Each has a key there.",
    "  To see what the key above sends, link it to your account: Keys, Link a key.",
    "",
  ].join("\n");
}

function portOf(text: string | null): number | null {
  if (text === null) return null;
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (port <= 65_535) return port;
  throw new UsageError(`--port must be a number from 0 to 65535, is ${JSON.stringify(text)}`);
}
