/**
 * A real validator on loopback as a child process, with its own ledger that is deleted with it, and
 * the part of its RPC that a run needs.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../bench/load/children.ts";
import { systemClock } from "../../src/core/clock.ts";
import { untilResponse } from "../support/flow.ts";

export interface Validator {
  readonly rpcUrl: string;
  readonly wsUrl: string;
  /** Calls a method of its RPC; throws an Error with the response when that is an error. */
  rpc<Result>(method: string, ...params: readonly unknown[]): Promise<Result>;
  stop(): Promise<void>;
}

const START_MS = 120_000;
const STOP_MS = 20_000;
/** Ports that the validator uses for gossip, TPU and the rest. */
const PORT_SPAN = 40;

/** Starts the program, with further arguments, and waits until its RPC reports slots. */
export async function startValidator(
  program: string,
  more: readonly string[] = [],
): Promise<Validator> {
  const folder = mkdtempSync(join(tmpdir(), "touchdown-validator-"));
  const [rpcPort, faucetPort, gossipPort, firstPort] = await portsOf();
  const args = ["--reset", "--quiet", "--ledger", join(folder, "ledger")];
  args.push("--bind-address", "127.0.0.1", "--rpc-port", String(rpcPort));
  args.push("--faucet-port", String(faucetPort), "--gossip-port", String(gossipPort));
  args.push("--dynamic-port-range", `${firstPort}-${firstPort + PORT_SPAN}`);
  args.push(...more);
  const child = spawn(program, args, { cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  const hold = (chunk: Buffer): void => {
    output = (output + chunk.toString()).slice(-4000);
  };
  child.stdout.on("data", hold);
  child.stderr.on("data", hold);
  const rpcUrl = `http://127.0.0.1:${rpcPort}`;
  const validator: Validator = {
    rpcUrl,
    // The validator serves its WebSocket one port above its RPC.
    wsUrl: `ws://127.0.0.1:${rpcPort + 1}`,
    rpc: (method, ...params) => call(rpcUrl, method, params),
    stop: () => stop(child, folder),
  };
  try {
    await untilSlots(validator, child);
  } catch (cause) {
    const log = tail(join(folder, "ledger", "validator.log"));
    await stop(child, folder);
    throw new Error(`the validator did not start\n${output}\n${log}`, { cause });
  }
  return validator;
}

async function portsOf(): Promise<readonly [number, number, number, number]> {
  const [rpcPort, faucetPort, gossipPort] = [await freePort(), await freePort(), await freePort()];
  // The complete range must be free; few programs request ports that high by number.
  const firstPort = 50_000 + (process.pid % 200) * (PORT_SPAN + 1);
  return [rpcPort, faucetPort, gossipPort, firstPort];
}

async function untilSlots(validator: Validator, child: ChildProcess): Promise<void> {
  const ask = async (): Promise<number> => {
    if (child.exitCode !== null) throw new Error(`the validator ended with ${child.exitCode}`);
    return validator.rpc<number>("getSlot", { commitment: "processed" }).catch(() => 0);
  };
  await untilResponse("slots", ask, (slot) => slot > 2, START_MS);
}

async function call<Result>(
  url: string,
  method: string,
  params: readonly unknown[],
): Promise<Result> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  // The caller names the method's result type; a wrong one fails immediately in the run.
  const parsed = (await response.json()) as { result?: Result; error?: unknown };
  if (parsed.result === undefined) throw new Error(`${method}: ${JSON.stringify(parsed.error)}`);
  return parsed.result;
}

async function stop(child: ChildProcess, folder: string): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    const over = once(child, "exit");
    child.kill("SIGTERM");
    const last = systemClock.after(STOP_MS, () => child.kill("SIGKILL"));
    await over;
    last.cancel();
  }
  rmSync(folder, { recursive: true, force: true });
}

function tail(path: string): string {
  try {
    return readFileSync(path, "utf8").slice(-2000);
  } catch {
    // It ended before it had a log.
    return "";
  }
}
