/** The layers that JavaScript can call: each function returns the time of one transaction in it. */

import { strict as assert } from "node:assert";
import { hash } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { createKeyTable } from "../../src/accounts/keys/table.ts";
import { systemClock } from "../../src/core/clock.ts";
import { decodeBase58 } from "../../src/core/encoding.ts";
import type { Decoder } from "../../src/decode/decoder.ts";
import { createNativeDecoder, type NativeDecoder } from "../../src/decode/native-decoder.ts";
import { type NativeEngine, VALIDATION_NUMBERS } from "../../src/native/contract.ts";
import { loadNative } from "../../src/native/load.ts";
import type { Quantiles } from "../compare/turn.ts";
import { requestOf } from "../load/transactions.ts";
import { startBareHttp } from "./http.ts";
import { openNotes } from "./notes.ts";

export interface Sample {
  readonly transactions: readonly Uint8Array[];
  readonly tipAccount: string;
}

const KEYS_MAX = 512;
const LAMPORTS_MIN = 1_000_000;
const NOTHING = new Uint8Array();
/** Receipts that fill the store before the clock starts. */
const NOTES_BEFORE = 70_000;

/** `native.decode` itself. */
export function addonLayer(sample: Sample): Quantiles {
  const { native, decoder } = openDecoder(sample);
  const out = new Float64Array(VALIDATION_NUMBERS);
  const took = timed(sample, (bytes) => {
    assert.equal(native.decode(decoder.handle, bytes, out, 0), 1);
  });
  decoder.close();
  return took;
}

export function decodeLayer(sample: Sample): Quantiles {
  const { decoder } = openDecoder(sample);
  const took = timed(sample, (bytes) => {
    assert.equal(decoder.decode(bytes).kind, "accepted");
  });
  decoder.close();
  return took;
}

/** The cost of receipts: on a transaction's path, and later for the outcomes of its deliveries. */
export function notesLayers({ transactions, ...sample }: Sample): readonly [Quantiles, Quantiles] {
  const { decoder } = openDecoder({ transactions, ...sample });
  const note = openNotes(decoder);
  const before = Array.from({ length: NOTES_BEFORE }, (_, id) => id);
  for (const id of before) note(transactions[id % transactions.length] ?? NOTHING, id + 1);
  const noted = transactions.map((bytes, index) => note(bytes, NOTES_BEFORE + index + 1));
  decoder.close();
  const followed = noted.map(({ followedNs }) => followedNs);
  return [quantilesOf(noted.map(({ openedNs }) => openedNs)), quantilesOf(followed)];
}

/** From the request's write to the response's arrival, one at a time on one connection. */
export async function httpLayer(sample: Sample): Promise<Quantiles> {
  const token = "td_0123456789abcdefghijklmn";
  const keys = createKeyTable([
    {
      sha256: hash("sha256", token, "buffer"),
      account: "bench",
      plan: { name: "Bench", ratePerSecond: 1e6, burst: 1e6, shared: false },
      label: null,
      keyId: "bench",
      policy: null,
      isDerived: false,
    },
  ]);
  const server = await startBareHttp(keys);
  const socket = connect(server.port, "127.0.0.1");
  socket.setNoDelay(true);
  await once(socket, "connect");
  const took: number[] = [];
  for (const [id, bytes] of sample.transactions.entries()) {
    const request = requestOf(Buffer.from(bytes), "raw", "127.0.0.1", token, id);
    const startedNs = systemClock.nowNs();
    socket.write(request);
    const [response] = await once(socket, "data");
    took.push(systemClock.nowNs() - startedNs);
    assert.match(String(response), /^HTTP\/1.1 200 /);
  }
  socket.destroy();
  await server.stop();
  return quantilesOf(took);
}

function openDecoder({ tipAccount, transactions }: Sample): {
  native: NativeEngine;
  decoder: NativeDecoder;
} {
  const found = loadNative();
  if (found.kind !== "loaded") throw new Error("the native engine is not built");
  const tip = decodeBase58(tipAccount, 32);
  if (tip === null) throw new Error("no tip account");
  const options = { tipAccounts: [tip], lamportsMin: LAMPORTS_MIN, verify: true };
  const decoder = createNativeDecoder(found.native, { ...options, keyCacheSize: KEYS_MAX });
  warm(decoder, transactions);
  return { native: found.native, decoder };
}

/** Until another thread has built the keys' tables, and V8 has compiled the code. */
function warm(decoder: Decoder, transactions: readonly Uint8Array[]): void {
  const untilNs = systemClock.nowNs() + 300e6;
  for (let index = 0; systemClock.nowNs() < untilNs; index += 1) {
    decoder.decode(transactions[index % transactions.length] ?? new Uint8Array());
  }
}

function timed({ transactions }: Sample, act: (bytes: Uint8Array) => void): Quantiles {
  const took = transactions.map((bytes) => {
    const startedNs = systemClock.nowNs();
    act(bytes);
    return systemClock.nowNs() - startedNs;
  });
  return quantilesOf(took);
}

function quantilesOf(tookNs: readonly number[]): Quantiles {
  const sorted = tookNs.toSorted((a, b) => a - b);
  const at = (share: number): number =>
    (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0) / 1000;
  return { p50: at(0.5), p99: at(0.99), p999: at(0.999), max: at(1) };
}
