import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freePort, startChild, untilReady } from "../../bench/load/children.ts";
import { systemClock } from "../../src/core/clock.ts";
import { fromBase58 } from "../support/base58.ts";
import { untilResponse } from "../support/flow.ts";
import { parsePrometheus, seriesValue } from "../support/prometheus.ts";
import { buildTransaction, type Keypair, newKeypair, u64 } from "../support/transactions.ts";
import { until } from "../support/wait.ts";
import { validatorProgram } from "./build.ts";
import { startValidator, type Validator } from "./validator.ts";

/** The number of transfers, and the rate per second. */
const COUNT = Number(process.env["VALIDATOR_TRANSFERS"] ?? 1000);
const PER_SECOND = Number(process.env["VALIDATOR_RATE"] ?? 50);
const KEY = "td_validator_run_0000000000";
const PAYERS = 20;
const TIP_LAMPORTS = 1_000_000;
const FUNDS_LAMPORTS = 20_000_000_000;
const READY_MS = 60_000;
/** Longer than a blockhash lives. */
const SETTLE_MS = 240_000;

interface Mode {
  readonly name: string;
  /** Further arguments of the validator. */
  readonly args: readonly string[];
  /** Whether every block holds votes. */
  readonly votes: boolean;
}

/** Alpenglow runs from the genesis block on. */
const MODES: readonly Mode[] = [
  { name: "Tower BFT", args: [], votes: true },
  { name: "Alpenglow", args: ["--alpenglow"], votes: false },
];

interface Status {
  readonly slot: number;
  readonly err: unknown;
}

/** The fields that the test reads of a receipt. */
interface ReceiptJson {
  readonly state: string;
  readonly received_slot: number | null;
  readonly landing: { readonly slot: number | null; readonly slots: number | null };
}

interface Sent {
  readonly signature: string;
  readonly receipt: ReceiptJson;
  /** From the send of the transaction until its receipt says landed. */
  readonly receiptMs: number;
}

const undo: (() => unknown)[] = [];
let validator: Validator;
let url = "";
let adminUrl = "";
let tip: Keypair;
let payers: readonly Keypair[] = [];
/** The results of both modes, printed together at the end. */
const rows: (readonly string[])[] = [
  ["", "landed", "slots p50", "p99", "most", "receipt ms p50", "p99", "most"],
];

afterAll(() => {
  const widths = rows[0]?.map((_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  const lines = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths?.[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
  process.stdout.write(
    `${lines.join("\n")}\n${PER_SECOND} a second; slots from receipt to block; ms from the send ` +
      "until the receipt says landed\n",
  );
});

describe.each(MODES)("$name", ({ name, args, votes }) => {
  beforeAll(async () => {
    validator = await startValidator(validatorProgram(), args);
    undo.push(() => validator.stop());
    tip = newKeypair();
    payers = Array.from({ length: PAYERS }, () => newKeypair());
    await fund([tip, ...payers]);
    ({ url, adminUrl } = await startEdge());
    // What arrives before the edge has read blocks ends with `status_unknown` on a quiet cluster.
    await untilResponse(
      "two blocks that the edge has read",
      () => metric("touchdown_block_heights_total", { result: "accepted" }),
      (accepted) => accepted >= 2,
    );
  });
  afterAll(async () => {
    for (const act of undo.splice(0).toReversed()) await act();
  });

  /** Nothing has landed here yet, so the edge can test only the validator's own blocks. */
  it("drops an unknown blockhash, and a transaction of an unfunded payer expires", async () => {
    const [payer] = payers;
    if (payer === undefined) throw new Error("a payer");
    const tips = [{ to: tip.address, lamports: TIP_LAMPORTS }];
    const unknown = { payer, tips, blockhash: new Uint8Array(32).fill(9) };
    const unfunded = { payer: newKeypair(), tips, blockhash: await newestBlockhash() };
    const signatures = await Promise.all(
      [unknown, unfunded].map((spec) => submit(buildTransaction(spec).bytes)),
    );
    const [dropped, expired] = await Promise.all(signatures.map(receiptOf));
    expect(dropped).toMatchObject({ state: "dropped", landing: { reason: "blockhash_unknown" } });
    expect(expired).toMatchObject({ state: "expired", landing: { reason: "blockhash_expired" } });
    // With Alpenglow no block shows that the node keeps statuses.
    if (!votes) return;
    expect(await metric("touchdown_node_reports_statuses")).toBe(1);
  });

  it(`lands ${COUNT} tipped transfers, and the receipts agree with the validator`, async () => {
    const sent = await sendAll();
    const statuses = await settled(sent.map(({ signature }) => signature));
    const landed = statuses.filter((status) => status !== null);
    rows.push(rowOf(name, landed.length, sent));
    expect(landed.filter(({ err }) => err !== null)).toEqual([]);
    expect(landed.length).toBeGreaterThanOrEqual(0.99 * COUNT);
    for (const [index, status] of statuses.entries()) {
      const { state, landing } = sent[index]?.receipt ?? { state: "none", landing: null };
      if (status === null) expect(state).not.toBe("landed");
      else expect([state, landing?.slot]).toEqual(["landed", status.slot]);
    }
    // Every transaction arrived here before it landed.
    expect(
      Math.min(...sent.map(({ receipt }) => slotsBetween(receipt) ?? 0)),
    ).toBeGreaterThanOrEqual(0);
  });
});

/** From the slot in progress at the arrival to that of the block; null for one without a block. */
function slotsBetween({ received_slot: received, landing }: ReceiptJson): number | null {
  return landing.slot === null || received === null ? null : landing.slot - received;
}

/** A row of the table that is printed at the end. */
function rowOf(name: string, landed: number, sent: readonly Sent[]): readonly string[] {
  const slots = sent.flatMap(({ receipt }) => receipt.landing.slots ?? []);
  const times = sent.flatMap(({ receipt, receiptMs }) =>
    receipt.state === "landed" ? receiptMs : [],
  );
  return [name, `${landed} of ${COUNT}`, ...quantilesOf(slots), ...quantilesOf(times)];
}

function quantilesOf(values: readonly number[]): readonly string[] {
  const ascending = values.toSorted((a, b) => a - b);
  const at = (share: number) => ascending[Math.floor((ascending.length - 1) * share)] ?? Number.NaN;
  return [0.5, 0.99, 1].map((share) => at(share).toFixed(0));
}

async function fund(keypairs: readonly Keypair[]): Promise<void> {
  const balanceOf = async ({ address }: Keypair): Promise<number> => {
    const commitment = { commitment: "confirmed" };
    return (await validator.rpc<{ value: number }>("getBalance", address, commitment)).value;
  };
  for (const { address } of keypairs) {
    await validator.rpc("requestAirdrop", address, FUNDS_LAMPORTS);
  }
  for (const keypair of keypairs) {
    await untilResponse(
      "funds",
      () => balanceOf(keypair),
      (value) => value >= FUNDS_LAMPORTS,
      60_000,
    );
  }
}

async function startEdge() {
  const folder = mkdtempSync(join(tmpdir(), "touchdown-validator-edge-"));
  undo.push(() => rmSync(folder, { recursive: true, force: true }));
  const [http, admin] = [await freePort(), await freePort()];
  writeFileSync(
    join(folder, "keys.toml"),
    "[plans.Run]\nrate_per_second = 100000\nburst = 100000\n\n[[keys]]\n" +
      `token = "${KEY}"\naccount = "run"\nplan = "Run"\n`,
  );
  const config = join(folder, "edge.toml");
  writeFileSync(
    config,
    `region = "validator"\n[http]\nlisten = "127.0.0.1:${http}"\ndrain_grace = "0s"\n` +
      `[admin]\nlisten = "127.0.0.1:${admin}"\n[cluster]\nrpc_url = "${validator.rpcUrl}"\n` +
      `ws_url = "${validator.wsUrl}"\n[tip]\naccounts = ["${tip.address}"]\n` +
      '[accounts]\nkeys_file = "keys.toml"\n[send]\nleaders = 1\n[landing]\ntrack_for = "4m"\n',
  );
  const child = startChild(["dist/main.js", "edge", "--config", config]);
  undo.push(() => child.stop());
  await untilReady(child, `http://127.0.0.1:${admin}/readyz`, READY_MS);
  return { url: `http://127.0.0.1:${http}`, adminUrl: `http://127.0.0.1:${admin}` };
}

/** Sends at an even pace, with the newest blockhash of each second; returns the receipts. */
async function sendAll(): Promise<readonly Sent[]> {
  const startNs = systemClock.nowNs();
  const sent: Promise<Sent>[] = [];
  let blockhash = await newestBlockhash();
  for (let number = 0; number < COUNT; number += 1) {
    if (number % PER_SECOND === 0) blockhash = await newestBlockhash();
    const payer = payers[number % PAYERS] ?? tip;
    const tips = [{ to: tip.address, lamports: TIP_LAMPORTS, trailing: u64(number) }];
    const { bytes } = buildTransaction({ payer, tips, blockhash });
    const dueNs = startNs + (number / PER_SECOND) * 1e9;
    await until("the next is due", () => systemClock.nowNs() >= dueNs);
    sent.push(sendOne(bytes));
  }
  return Promise.all(sent);
}

async function sendOne(bytes: Uint8Array): Promise<Sent> {
  const sentNs = systemClock.nowNs();
  const signature = await submit(bytes);
  const receipt = await receiptOf(signature);
  return { signature, receipt, receiptMs: (systemClock.nowNs() - sentNs) / 1e6 };
}

async function metric(name: string, labels: Readonly<Record<string, string>> = {}) {
  const page = await (await fetch(`${adminUrl}/metrics`)).text();
  return seriesValue(parsePrometheus(page), name, labels);
}

async function submit(bytes: Uint8Array): Promise<string> {
  const response = await fetch(`${url}/api/v1/sendRawTransaction`, {
    method: "POST",
    headers: { "api-x-token": KEY, "content-type": "application/octet-stream" },
    body: Buffer.from(bytes),
  });
  // The binary endpoint's response, as the README shows it.
  const body = (await response.json()) as { signature?: string; error?: string };
  if (body.signature === undefined) throw new Error(`refused: ${body.error}`);
  return body.signature;
}

async function newestBlockhash(): Promise<Uint8Array> {
  const { value } = await validator.rpc<{ value: { blockhash: string } }>("getLatestBlockhash", {
    commitment: "confirmed",
  });
  return fromBase58(value.blockhash);
}

async function settled(sent: readonly string[]): Promise<readonly (Status | null)[]> {
  const ask = async (): Promise<readonly (Status | null)[]> => {
    const statuses: (Status | null)[] = [];
    for (let start = 0; start < sent.length; start += 256) {
      const { value } = await validator.rpc<{ value: (Status | null)[] }>(
        "getSignatureStatuses",
        sent.slice(start, start + 256),
        { searchTransactionHistory: true },
      );
      statuses.push(...value);
    }
    return statuses;
  };
  const endNs = systemClock.nowNs() + SETTLE_MS * 1e6;
  // The test itself decides what never lands, after a blockhash's lifetime.
  const over = (statuses: readonly (Status | null)[]): boolean =>
    statuses.every((status) => status !== null) || systemClock.nowNs() > endNs;
  return untilResponse("every status", ask, over, SETTLE_MS + 10_000);
}

async function receiptOf(signature: string): Promise<ReceiptJson> {
  const ask = async (): Promise<ReceiptJson> => {
    const path = `/api/v1/transactions/${signature}?wait=landed&timeout=10s`;
    const response = await fetch(url + path, { headers: { "api-x-token": KEY } });
    // The receipt, as docs/api.md shows it.
    return (await response.json()) as ReceiptJson;
  };
  const ends = ["landed", "expired", "dropped"];
  return untilResponse("its end", ask, ({ state }) => ends.includes(state), SETTLE_MS);
}
