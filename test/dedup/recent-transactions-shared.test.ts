/** One dedup ring for many threads, with entries reserved before they are accepted. */

import { Worker } from "node:worker_threads";
import { describe, expect, it } from "vitest";
import {
  createDedupCache,
  dedupMemory,
  openDedupCache,
} from "../../src/dedup/recent-transactions.ts";
import { until } from "../support/wait.ts";

const MS = 1_000_000;

const tx = (n: number, size = 100): Uint8Array => {
  const bytes = new Uint8Array(size).fill(7);
  new DataView(bytes.buffer).setUint32(1, n);
  return bytes;
};

describe("a reservation", () => {
  it("is made once, and counts like an accepted transaction", () => {
    const dedup = createDedupCache();
    expect(dedup.reserve(tx(1), 1, 0)).toBe("new");
    dedup.commit(tx(1), 1);
    expect(dedup.reserve(tx(1), 1, 0)).toBe("duplicate");
    expect(dedup.query(tx(1), 1, 0)).toBe(true);
    expect(dedup.counters).toMatchObject({ hits: 2, entries: 1 });
  });

  it("reports no duplicate before its commit, and no other thread can reserve it", () => {
    const memory = dedupMemory();
    const [here, there] = [openDedupCache(memory), openDedupCache(memory)];
    here.reserve(tx(1), 1, 0);
    expect(there.query(tx(1), 1, 0)).toBe(false);
    expect(there.reserve(tx(1), 1, 0)).toBe("pending");
    here.commit(tx(1), 1);
    expect(there.reserve(tx(1), 1, 0)).toBe("duplicate");
    expect(there.counters).toMatchObject({ hits: 1, entries: 1 });
  });

  it("answers for nothing once it is retracted, and may be had again", () => {
    const dedup = createDedupCache();
    for (const n of [1, 2]) dedup.reserve(tx(n), 1, 0);
    dedup.commit(tx(2), 1);
    dedup.rollback(tx(1), 1);
    expect(dedup.query(tx(1), 1, 0)).toBe(false);
    expect(dedup.query(tx(2), 1, 0)).toBe(true);
    expect(dedup.reserve(tx(1), 1, 0)).toBe("new");
    dedup.commit(tx(1), 1);
    expect(dedup.query(tx(1), 1, 0)).toBe(true);
    dedup.commit(tx(3), 1);
    dedup.rollback(tx(3), 1);
  });

  it("goes out of the ring in its turn, retracted or not", () => {
    const dedup = createDedupCache({ entriesMax: 3, bytesMax: 350 });
    for (let n = 1; n <= 12; n += 1) {
      dedup.reserve(tx(n), 1, 0);
      if (n % 2 === 0) dedup.rollback(tx(n), 1);
      else if (n > 6) dedup.commit(tx(n), 1);
    }
    const known = Array.from({ length: 12 }, (_, index) => dedup.query(tx(index + 1), 1, 0));
    expect(known.map((is, index) => (is ? index + 1 : 0)).filter(Boolean)).toEqual([11]);
  });

  it("is always granted for bytes that are not a transaction", () => {
    const dedup = createDedupCache({ bytesMax: 50 });
    expect([dedup.reserve(tx(1), 1, 0), dedup.reserve(tx(1), 1, 0)]).toEqual(["new", "new"]);
    expect(dedup.reserve(new Uint8Array(3), 1, 0)).toBe("new");
    dedup.commit(new Uint8Array(3), 1);
    dedup.rollback(new Uint8Array(3), 1);
  });
});

describe("a ring that threads share", () => {
  it("knows what another one took", () => {
    const memory = dedupMemory();
    const [here, there] = [openDedupCache(memory), openDedupCache(memory)];
    here.insert(tx(1), 1, 0);
    expect(there.query(tx(1), 1, 0)).toBe(true);
    expect(there.reserve(tx(1), 1, 0)).toBe("duplicate");
    expect([here.counters.hits, there.counters.hits]).toEqual([0, 2]);
    expect(here.counters.entries).toBe(there.counters.entries);
  });

  it("is not renewed while another one sends it, or has sent it since", () => {
    const memory = dedupMemory({ keepMs: 10 });
    const [here, there] = [0, 1].map(() => openDedupCache(memory, { keepMs: 10 }));
    if (here === undefined || there === undefined) throw new Error("two are needed");
    here.insert(tx(1), 1, 0);
    expect(there.reserve(tx(1), 1, 11 * MS)).toBe("new");
    expect(here.renew(tx(1), 1, 0, 12 * MS)).toBe(false);
    there.commit(tx(1), 1);
    expect(here.renew(tx(1), 1, 0, 12 * MS)).toBe(false);
    expect(here.query(tx(1), 1, 21 * MS + 1)).toBe(false);
    // One that rolled back sent nothing.
    expect(there.reserve(tx(2), 1, 11 * MS)).toBe("new");
    there.rollback(tx(2), 1);
    expect(here.renew(tx(2), 1, 0, 12 * MS)).toBe(true);
    expect(there.reserve(tx(2), 1, 13 * MS)).toBe("duplicate");
  });

  it("gives each transaction to one of them, though all want it at the same moment", async () => {
    const transactions = Array.from({ length: 2_000 }, (_, n) => tx(n, 100 + (n % 900)));
    // No thread times out, however busy the machine is.
    const options = { entriesMax: 4_096, bytesMax: 4 * 1024 * 1024, lockMs: 60_000 };
    const memory = dedupMemory(options);
    const startFlag = new SharedArrayBuffer(8);
    const word = new Int32Array(startFlag);
    const entry = new URL("../support/dedup-thread.mjs", import.meta.url);
    const workerData = { memory, options, startFlag, transactions };
    const threads = Array.from({ length: 3 }, () => new Worker(entry, { workerData }));
    const responses = threads.map(
      (thread) => new Promise<boolean[]>((done) => thread.once("message", done)),
    );
    await until("all threads", () => Atomics.load(word, 1) === threads.length);
    Atomics.store(word, 0, 1);
    Atomics.notify(word, 0);
    const got = await Promise.all(responses);
    const winners = transactions.map((_, n) => got.filter((each) => each[n]).length);
    expect(winners.filter((many) => many !== 1)).toEqual([]);
    await Promise.all(threads.map((thread) => thread.terminate()));
  });

  it("goes without a lock that is never released", () => {
    const memory = dedupMemory();
    const dedup = openDedupCache(memory);
    dedup.insert(tx(1), 1, 0);
    new Int32Array(memory)[0] = 1;
    expect(dedup.query(tx(1), 1, 0)).toBe(false);
    expect(dedup.reserve(tx(1), 1, 0)).toBe("new");
    new Int32Array(memory)[0] = 0;
    expect(dedup.query(tx(1), 1, 0)).toBe(true);
  });
});
