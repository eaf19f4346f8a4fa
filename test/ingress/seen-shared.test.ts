/** One ring of repetitions for many threads, and what is claimed before it is accepted. */

import { Worker } from "node:worker_threads";
import { describe, expect, it } from "vitest";
import { createSeen, openSeen, seenMemory } from "../../src/dedup/recent-transactions.ts";
import { until } from "../support/wait.ts";

const tx = (n: number, size = 100): Uint8Array => {
  const bytes = new Uint8Array(size).fill(7);
  new DataView(bytes.buffer).setUint32(1, n);
  return bytes;
};

describe("a claim", () => {
  it("is had once, and stands like any that was accepted", () => {
    const seen = createSeen();
    expect(seen.claim(tx(1), 1, 0)).toBe("new");
    seen.confirm(tx(1), 1);
    expect(seen.claim(tx(1), 1, 0)).toBe("known");
    expect(seen.query(tx(1), 1, 0)).toBe(true);
    expect(seen.counters).toMatchObject({ hits: 2, entries: 1 });
  });

  it("answers for nothing before it is confirmed, and nobody else has it meanwhile", () => {
    const memory = seenMemory();
    const [here, there] = [openSeen(memory), openSeen(memory)];
    here.claim(tx(1), 1, 0);
    expect(there.query(tx(1), 1, 0)).toBe(false);
    expect(there.claim(tx(1), 1, 0)).toBe("undecided");
    here.confirm(tx(1), 1);
    expect(there.claim(tx(1), 1, 0)).toBe("known");
    expect(there.counters).toMatchObject({ hits: 1, entries: 1 });
  });

  it("answers for nothing once it is retracted, and may be had again", () => {
    const seen = createSeen();
    for (const n of [1, 2]) seen.claim(tx(n), 1, 0);
    seen.confirm(tx(2), 1);
    seen.retract(tx(1), 1);
    expect(seen.query(tx(1), 1, 0)).toBe(false);
    expect(seen.query(tx(2), 1, 0)).toBe(true);
    expect(seen.claim(tx(1), 1, 0)).toBe("new");
    seen.confirm(tx(1), 1);
    expect(seen.query(tx(1), 1, 0)).toBe(true);
    seen.confirm(tx(3), 1);
    seen.retract(tx(3), 1);
  });

  it("goes out of the ring in its turn, retracted or not", () => {
    const seen = createSeen({ entriesMax: 3, bytesMax: 350 });
    for (let n = 1; n <= 12; n += 1) {
      seen.claim(tx(n), 1, 0);
      if (n % 2 === 0) seen.retract(tx(n), 1);
      else if (n > 6) seen.confirm(tx(n), 1);
    }
    const known = Array.from({ length: 12 }, (_, index) => seen.query(tx(index + 1), 1, 0));
    expect(known.map((is, index) => (is ? index + 1 : 0)).filter(Boolean)).toEqual([11]);
  });

  it("is had by whoever brings no transaction at all", () => {
    const seen = createSeen({ bytesMax: 50 });
    expect([seen.claim(tx(1), 1, 0), seen.claim(tx(1), 1, 0)]).toEqual(["new", "new"]);
    expect(seen.claim(new Uint8Array(3), 1, 0)).toBe("new");
    seen.confirm(new Uint8Array(3), 1);
    seen.retract(new Uint8Array(3), 1);
  });
});

describe("a ring that threads share", () => {
  it("knows what another one took", () => {
    const memory = seenMemory();
    const [here, there] = [openSeen(memory), openSeen(memory)];
    here.insert(tx(1), 1, 0);
    expect(there.query(tx(1), 1, 0)).toBe(true);
    expect(there.claim(tx(1), 1, 0)).toBe("known");
    expect([here.counters.hits, there.counters.hits]).toEqual([0, 2]);
    expect(here.counters.entries).toBe(there.counters.entries);
  });

  it("gives each transaction to one of them, though all want it at the same moment", async () => {
    const transactions = Array.from({ length: 2_000 }, (_, n) => tx(n, 100 + (n % 900)));
    // None gives up, however busy the machine is.
    const options = { entriesMax: 4_096, bytesMax: 4 * 1024 * 1024, lockMs: 60_000 };
    const memory = seenMemory(options);
    const gate = new SharedArrayBuffer(8);
    const word = new Int32Array(gate);
    const entry = new URL("../support/seen-thread.mjs", import.meta.url);
    const workerData = { memory, options, gate, transactions };
    const threads = Array.from({ length: 3 }, () => new Worker(entry, { workerData }));
    const answers = threads.map(
      (thread) => new Promise<boolean[]>((done) => thread.once("message", done)),
    );
    await until("all threads", () => Atomics.load(word, 1) === threads.length);
    Atomics.store(word, 0, 1);
    Atomics.notify(word, 0);
    const got = await Promise.all(answers);
    const winners = transactions.map((_, n) => got.filter((each) => each[n]).length);
    expect(winners.filter((many) => many !== 1)).toEqual([]);
    await Promise.all(threads.map((thread) => thread.terminate()));
  });

  it("goes without where a lock is never given back", () => {
    const memory = seenMemory();
    const seen = openSeen(memory);
    seen.insert(tx(1), 1, 0);
    new Int32Array(memory)[0] = 1;
    expect(seen.query(tx(1), 1, 0)).toBe(false);
    expect(seen.claim(tx(1), 1, 0)).toBe("new");
    new Int32Array(memory)[0] = 0;
    expect(seen.query(tx(1), 1, 0)).toBe(true);
  });
});
