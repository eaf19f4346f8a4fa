/**
 * `npm run load`: an open-loop load on one edge, from signed transactions to the simulated leaders.
 *
 * The generator is this process. Edge and leaders are separate processes on the same machine, so on
 * few cores all three compete, which the numbers include. It appends one line to the results,
 * prints the table's row, and stops everything that it started.
 */

import { parseArgs } from "node:util";
import { newKeypair } from "../../test/support/transactions.ts";
import { cpuUs, rssMb } from "./children.ts";
import { type BenchFixture, foreignFixture, startFixture } from "./edge-process.ts";
import { generate } from "./generator.ts";
import type { Target } from "./http-connection.ts";
import { type LoadOptions, readOptions, USAGE } from "./options.ts";
import { wireTimes } from "./receipts.ts";
import { keep, type LoadResult, summarize } from "./results.ts";
import { drawMachine, drawTable } from "./table.ts";
import { requestOf, signTransactions } from "./transactions.ts";

const TIP_LAMPORTS = 1_000_000;
/** A byte of the first signature. */
const SIGNATURE_BYTE = 5;
/** How long deliveries may take to arrive after the last response. */
const SETTLE_MS = 500;

async function run(options: LoadOptions): Promise<LoadResult> {
  // The certificate of a run is signed by nobody; the requests of receipts verify none either.
  if (options.tls) process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";
  const first = options.rate * options.warmup;
  const count = first + options.rate * options.seconds;
  const tipAccount = options.url === null ? newKeypair().address : await tipAccountOf(options.url);
  const fixture =
    options.url === null || options.key === null
      ? await startFixture(options, count, tipAccount)
      : foreignFixture(options.url, options.key);
  const interrupted = (): void => {
    // No process and no folder of the run may outlive it.
    const exit = (): never => process.exit(130);
    fixture.stop().then(exit, exit);
  };
  process.once("SIGINT", interrupted).once("SIGTERM", interrupted);
  try {
    return await loadFixture(fixture, options, first, count, tipAccount);
  } finally {
    process.off("SIGINT", interrupted).off("SIGTERM", interrupted);
    await fixture.stop();
  }
}

async function loadFixture(
  fixture: BenchFixture,
  options: LoadOptions,
  first: number,
  count: number,
  tipAccount: string,
): Promise<LoadResult> {
  const url = new URL(fixture.url);
  console.error(`signing ${count} transactions`);
  const requests = signTransactions(count, options.payers, tipAccount, TIP_LAMPORTS).map(
    (bytes, id) => requestOf(bytes, options.endpoint, url.host, fixture.key, id),
  );
  console.error(`${options.rate} a second for ${options.warmup} + ${options.seconds} s`);
  const { edgePid } = fixture;
  const usedUs = (): number | null => (edgePid === null ? null : cpuUs(edgePid));
  const flood = floodOf(options, tipAccount, url, fixture.key);
  let cpuBefore = usedUs();
  let upgraded: Promise<void> = Promise.resolve();
  const shots = await generate(requests, {
    ...targetOf(url),
    ratePerSecond: options.rate,
    connections: options.connections,
    markAt: first,
    mark: () => {
      cpuBefore = usedUs();
      upgraded = upgradeEvenly(fixture, options);
      upgraded.catch(() => undefined);
    },
  });
  await upgraded;
  const cpuAfter = usedUs();
  const refused =
    (await flood)?.faults.filter((fault) => fault === "signature_invalid").length ?? 0;
  if (options.flood > 0) console.error(`${refused} requests of the flood were refused`);
  const edgeRssMb = edgePid === null ? null : rssMb(edgePid);
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  const arrivedNs = await fixture.arrivals();
  if (options.upgrades > 0) reportLost(shots.signatures, arrivedNs);
  const wireUs = await wireTimes(fixture.url, fixture.key, shots.signatures, first);
  const edgeCpuUs = cpuAfter === null || cpuBefore === null ? null : cpuAfter - cpuBefore;
  return summarize(shots, first, options, { arrivedNs, wireUs, edgeCpuUs, edgeRssMb });
}

/** Replaces the edge at even intervals of the measured time. */
async function upgradeEvenly(
  fixture: BenchFixture,
  { upgrades, seconds }: LoadOptions,
): Promise<void> {
  const startMs = Date.now();
  for (let number = 0; number < upgrades; number += 1) {
    const dueMs = startMs + (number * seconds * 1000) / upgrades;
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, dueMs - Date.now())));
    const fromMs = Date.now();
    await fixture.upgrade();
    console.error(`upgrade ${number + 1}: the successor serves after ${Date.now() - fromMs} ms`);
  }
}

/** Accepted transactions that reached no leader. */
function reportLost(signatures: readonly (string | null)[], arrivedNs: Float64Array | null): void {
  const lost = signatures.filter(
    (signature, index) => signature !== null && Number.isNaN(arrivedNs?.[index] ?? Number.NaN),
  );
  console.log(`${lost.length} accepted transactions reached no leader.`);
}

/** Sends requests with wrong signatures for as long as the measured ones; null for none. */
function floodOf(options: LoadOptions, tipAccount: string, url: URL, key: string) {
  if (options.flood === 0) return null;
  const count = options.flood * (options.warmup + options.seconds);
  const requests = signTransactions(count, options.payers, tipAccount, TIP_LAMPORTS).map(
    (bytes, id) => {
      bytes.writeUInt8(bytes.readUInt8(SIGNATURE_BYTE) ^ 1, SIGNATURE_BYTE);
      return requestOf(bytes, options.endpoint, url.host, key, id);
    },
  );
  return generate(requests, {
    ...targetOf(url),
    ratePerSecond: options.flood,
    connections: options.connections,
    markAt: 0,
    mark() {},
  });
}

function targetOf({ hostname, port, protocol }: URL): Target {
  const isTls = protocol === "https:";
  return { host: hostname, port: Number(port === "" ? (isTls ? 443 : 80) : port), isTls };
}

/** A tip account of an edge that this run did not start. */
async function tipAccountOf(url: string): Promise<string> {
  const response = await fetch(`${url}/api/v1/tip`);
  const body: unknown = await response.json();
  const accounts =
    typeof body === "object" && body !== null && "accounts" in body ? body.accounts : null;
  const account: unknown = Array.isArray(accounts) ? accounts[0] : null;
  if (typeof account !== "string") throw new Error(`${url}/api/v1/tip names no tip account`);
  return account;
}

function report(result: LoadResult): void {
  const { late_us: late, errors, machine } = result;
  console.log(drawTable(JSON.stringify(result)));
  console.log(`\n${drawMachine(result)}`);
  console.log(`Accepted ${result.accepted} of ${result.sent}; errors ${JSON.stringify(errors)}.`);
  if (machine.load_before > machine.cores / 2) {
    console.log(
      `The machine was busy (load ${machine.load_before}): these numbers are unreliable.`,
    );
  }
  if (late !== null) {
    console.log(`The generator was late by ${late.p50} us at p50, ${late.p99} us at p99.`);
  }
}

const args = process.argv.slice(2);
const { values } = parseArgs({
  args,
  options: { help: { type: "boolean", short: "h" } },
  strict: false,
});
if (values["help"] === true) {
  console.log(USAGE);
} else {
  try {
    const options = readOptions(args);
    const result = await run(options);
    if (options.results !== null) keep(result, options.results);
    report(result);
  } catch (cause) {
    console.error(cause instanceof Error ? cause.message : cause);
    process.exitCode = 1;
  }
}
