/**
 * `npm run load`: an open-loop load on one edge, from signed transactions to the simulated leaders.
 *
 * The generator is this process. Edge and leaders are separate processes on the same machine, so on
 * few cores all three compete, which the numbers include. It appends one line to the results,
 * prints the table's row, and stops everything that it started.
 */

import { parseArgs } from "node:util";
import { NS_PER_MS, systemClock } from "../../src/core/clock.ts";
import { newKeypair } from "../../test/support/transactions.ts";
import { cpuUs, rssMb } from "./children.ts";
import { type BenchFixture, foreignFixture, startFixture } from "./edge-process.ts";
import { generate, type Shots } from "./generator.ts";
import { type IdleConnections, openIdle } from "./idle-connections.ts";
import { type LoadOptions, readOptions, USAGE } from "./options.ts";
import { endsOf, wireTimes } from "./receipts.ts";
import { keep, type LoadResult, summarize } from "./results.ts";
import { drawMachine, drawTable } from "./table.ts";
import { requestOf, signTransactions } from "./transactions.ts";

const TIP_LAMPORTS = 1_000_000;
/** A byte of the first signature. */
const SIGNATURE_BYTE = 5;
/** How long deliveries may take to arrive after the last response. */
const SETTLE_MS = 500;

async function run(options: LoadOptions): Promise<LoadResult> {
  // For the requests of receipts: a run signs its own certificate.
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
  const idle = await openIdleOf(options, url, edgePid);
  const usedUs = (): number | null => (edgePid === null ? null : cpuUs(edgePid));
  const flood = floodOf(options, tipAccount, url, fixture);
  let cpuBefore = usedUs();
  let disturbed: Promise<readonly Disturbance[]> = Promise.resolve([]);
  const shots = await generate(requests, {
    host: url.hostname,
    port: Number(url.port === "" ? 80 : url.port),
    certificate: fixture.certificate,
    ratePerSecond: options.rate,
    connections: options.connections,
    markAt: first,
    mark: () => {
      cpuBefore = usedUs();
      disturbed = disturbEvenly(fixture, options);
      disturbed.catch(() => undefined);
    },
  });
  reportRefusals(await disturbed, shots);
  if (idle !== null) console.log(`${idle.open} of ${options.idle} idle connections are open.`);
  idle?.close();
  const cpuAfter = usedUs();
  const refused =
    (await flood)?.faults.filter((fault) => fault === "signature_invalid").length ?? 0;
  if (options.flood > 0) console.error(`${refused} requests of the flood were refused`);
  const edgeRssMb = edgePid === null ? null : rssMb(edgePid);
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  const seen = await fixture.arrivals();
  const arrivedNs = seen?.arrivedNs ?? null;
  if (seen !== null) {
    console.log(`The leaders read nothing for up to ${Math.round(seen.stallMs)} ms.`);
  }
  if (arrivedNs !== null && options.proxy === null) {
    await reportLost(fixture, shots.signatures, arrivedNs);
  }
  // Two edges have half of the receipts each.
  const wireUs =
    options.proxy === null
      ? await wireTimes(fixture.url, fixture.key, shots.signatures, first)
      : null;
  const edgeCpuUs = cpuAfter === null || cpuBefore === null ? null : cpuAfter - cpuBefore;
  return summarize(shots, first, options, { arrivedNs, wireUs, edgeCpuUs, edgeRssMb });
}

/** Opens the idle connections, and prints what they cost the edge; null for none. */
async function openIdleOf(
  { idle }: LoadOptions,
  url: URL,
  edgePid: number | null,
): Promise<IdleConnections | null> {
  if (idle === 0 || edgePid === null) return null;
  const beforeMb = rssMb(edgePid) ?? Number.NaN;
  const opened = await openIdle(url.hostname, Number(url.port), idle);
  const bytes = (((rssMb(edgePid) ?? Number.NaN) - beforeMb) * 1e6) / idle;
  console.log(`${idle} idle connections cost the edge ${Math.round(bytes)} bytes each.`);
  return opened;
}

interface Disturbance {
  readonly name: string;
  readonly fromNs: number;
  readonly overNs: number;
}

/** Replaces edges at even intervals of the measured time. */
async function disturbEvenly(
  fixture: BenchFixture,
  options: LoadOptions,
): Promise<readonly Disturbance[]> {
  const { upgrades, restarts, kills, seconds } = options;
  const acts = [
    ...Array.from({ length: upgrades }, () => ["upgrade", () => fixture.upgrade()] as const),
    ...Array.from({ length: restarts }, () => ["restart", () => fixture.restart()] as const),
    ...Array.from({ length: kills }, () => ["kill", () => fixture.kill()] as const),
  ];
  const done: Disturbance[] = [];
  const startNs = systemClock.nowNs();
  for (const [number, [name, act]] of acts.entries()) {
    const dueMs = sinceMs(systemClock.nowNs(), startNs) - (number * seconds * 1000) / acts.length;
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, -dueMs)));
    const fromNs = systemClock.nowNs();
    await act();
    const overNs = systemClock.nowNs();
    done.push({ name: `${name} ${number + 1}`, fromNs, overNs });
    console.error(`${name} ${number + 1}: over after ${sinceMs(overNs, fromNs)} ms`);
  }
  const lateMs = sinceMs(systemClock.nowNs(), startNs) - seconds * 1000;
  if (lateMs > 0) console.error(`the last one was over ${lateMs} ms after the load`);
  return done;
}

/** When requests failed: with each replacement, from its begin on. */
function reportRefusals(disturbances: readonly Disturbance[], { dueNs, faults }: Shots): void {
  for (const [index, { name, fromNs, overNs }] of disturbances.entries()) {
    const untilNs = disturbances[index + 1]?.fromNs ?? Number.POSITIVE_INFINITY;
    const failedNs = dueNs.filter(
      (atNs, request) => faults[request] !== "" && atNs >= fromNs && atNs < untilNs,
    );
    const [firstNs, lastNs] = [failedNs.at(0), failedNs.at(-1)];
    if (firstNs === undefined || lastNs === undefined) continue;
    const [first, last] = [sinceMs(firstNs, fromNs), sinceMs(lastNs, fromNs)];
    const over = sinceMs(overNs, fromNs);
    console.log(
      `${name}, over after ${over} ms: ${failedNs.length} failed at ${first} to ${last} ms`,
    );
  }
}

function sinceMs(laterNs: number, earlierNs: number): number {
  return Math.round((laterNs - earlierNs) / NS_PER_MS);
}

/** Accepted transactions that reached no leader, with what their receipts say. */
async function reportLost(
  { url, key }: BenchFixture,
  signatures: readonly (string | null)[],
  arrivedNs: Float64Array,
): Promise<void> {
  const lost = signatures.filter(
    (signature, index): signature is string =>
      signature !== null && Number.isNaN(arrivedNs[index] ?? Number.NaN),
  );
  console.log(`${lost.length} accepted transactions reached no leader.`);
  if (lost.length === 0) return;
  for (const [end, count] of Object.entries(await endsOf(url, key, lost))) {
    console.log(`  ${count} ${end}`);
  }
}

/** Sends requests with wrong signatures for as long as the measured ones; null for none. */
function floodOf(options: LoadOptions, tipAccount: string, url: URL, fixture: BenchFixture) {
  if (options.flood === 0) return null;
  const count = options.flood * (options.warmup + options.seconds);
  const requests = signTransactions(count, options.payers, tipAccount, TIP_LAMPORTS).map(
    (bytes, id) => {
      bytes.writeUInt8(bytes.readUInt8(SIGNATURE_BYTE) ^ 1, SIGNATURE_BYTE);
      return requestOf(bytes, options.endpoint, url.host, fixture.key, id);
    },
  );
  return generate(requests, {
    host: url.hostname,
    port: Number(url.port === "" ? 80 : url.port),
    certificate: fixture.certificate,
    ratePerSecond: options.flood,
    connections: options.connections,
    markAt: 0,
    mark() {},
  });
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
try {
  if (args.includes("--quic")) {
    const { runQuicLoad } = await import("../quic/main.ts");
    await runQuicLoad(args);
  } else if (values["help"] === true) {
    console.log(USAGE);
  } else {
    const options = readOptions(args);
    const result = await run(options);
    if (options.results !== null) keep(result, options.results);
    report(result);
  }
} catch (cause) {
  console.error(cause instanceof Error ? cause.message : cause);
  process.exitCode = 1;
}
