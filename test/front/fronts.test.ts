/** The fronts as the main thread has them, with threads of the tests' own. */

import { describe, expect, it } from "vitest";
import { wake } from "../../src/core/bell.ts";
import type { Packet } from "../../src/core/flow.ts";
import {
  FRONT_RECORDS_A_TURN,
  FRONT_RECORDS_BEHIND,
  FRONTS_START_MS_MAX,
} from "../../src/core/front-limits.ts";
import { createFronts, type Fronts } from "../../src/front/fronts.ts";
import type { FromThread, FrontTask, ToThread } from "../../src/front/messages.ts";
import { createRecordWriter } from "../../src/front/records.ts";
import type { FrontThread } from "../../src/front/threads.ts";
import type { Pass } from "../../src/ingress/pass.ts";
import type { PassHolder } from "../../src/ingress/passes.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { until } from "../support/wait.ts";

const QUIET = { info() {}, warn() {}, error() {} };
const PASS: Pass = {
  token: "t",
  keyId: "k",
  account: "acme",
  plan: { name: "P", ratePerSecond: 1, burst: 1, shared: false },
  expiresUnixMs: null,
  ranges: null,
  limit: null,
  isShared: false,
  accountCell: 0,
  keyCell: -1,
  place: 3,
};

/** A thread as far as the main thread sees it. */
class FakeThread implements FrontThread {
  readonly told: ToThread[] = [];
  readonly writer;
  readonly ended: Promise<unknown>;
  killed = false;
  end: (cause: unknown) => void = () => {};
  say: (message: FromThread) => void = () => {};
  readonly port = {
    post: (message: ToThread) => {
      this.told.push(message);
      if (message.kind !== "stop" || this.isDeaf) return;
      this.say({ kind: "stopped" });
      this.end(null);
    },
    onMessage: (handler: (message: FromThread) => void) => {
      this.say = handler;
    },
  };
  isDeaf = false;

  readonly task: FrontTask;

  constructor(task: FrontTask) {
    this.task = task;
    this.writer = createRecordWriter(task.records);
    this.ended = new Promise((resolve) => {
      this.end = resolve;
    });
  }

  kill(): void {
    this.killed = true;
    this.end(new Error("killed"));
  }

  /** Notes one repetition of these bytes. */
  note(...bytes: number[]): void {
    const note = { receivedNs: 1, decodedNs: 2, sentNs: 2, bodyBytes: 1, maxRetries: null };
    this.writer.repeated({ bytes: Uint8Array.from(bytes), place: PASS.place, ...note }, 1);
  }
}

function rig(count = 2) {
  const clock = createFakeClock();
  const threads: FakeThread[] = [];
  const descriptors: number[] = [];
  const books: string[] = [];
  const deaths: unknown[] = [];
  /** How many repetitions were in the books each time that it gave way. */
  const ways: number[] = [];
  /** And each time that everything was to be taken in. */
  const settled: number[] = [];
  const holders: { post: (news: never) => void; returned: number[]; left: boolean }[] = [];
  const fronts: Fronts = createFronts(
    {
      clock,
      log: QUIET,
      giveWay: () => void ways.push(books.length),
      settle() {
        settled.push(books.length);
        fronts.adopt();
      },
      books: {
        adopt: () => {},
        repeated: ({ bytes, account }: Pick<Packet, "bytes" | "account">) =>
          books.push(`${account} ${bytes[0]}`),
        refused: () => {},
      },
      latency: { record() {} },
      refused() {},
      usage: null,
      http: {
        addFront: (descriptor) => void descriptors.push(descriptor),
        removeFront: (descriptor) => void descriptors.splice(descriptors.indexOf(descriptor), 1),
        takeMoved: () => {},
      },
      passes: {
        join(port) {
          const holder = { post: port.post, returned: [] as number[], left: false };
          holders.push(holder);
          const told: PassHolder = {
            grant: () => {},
            take: ({ place }) => void holder.returned.push(place),
            leave() {
              holder.left = true;
            },
          };
          return told;
        },
        stop() {},
        counters: { passes: 0, granted: 0, revoked: 0, evicted: 0, declined: 0 },
      },
      startThread(task) {
        const thread = new FakeThread(task);
        threads.push(thread);
        return thread;
      },
      onDeath: (cause) => deaths.push(cause),
    },
    {
      count,
      decoder: 1,
      realtime: false,
      routes: new SharedArrayBuffer(8),
      passes: new SharedArrayBuffer(8),
      seen: new SharedArrayBuffer(8),
      http: { requestDeadlineMs: 1000, connectionsMax: 10 },
    },
  );
  const up = (): void => {
    for (const [index, thread] of threads.entries()) thread.say({ kind: "up", descriptor: index });
  };
  return { clock, threads, descriptors, books, deaths, holders, ways, settled, fronts, up };
}

async function started(count = 2) {
  const all = rig(count);
  const starting = all.fronts.start();
  all.up();
  await starting;
  for (const { post } of all.holders) post({ kind: "pass", pass: PASS } as never);
  return all;
}

describe("fronts", () => {
  it("get connections once they are up, and none once they have stopped", async () => {
    const { descriptors, fronts, threads, holders } = await started();
    expect(descriptors).toEqual([0, 1]);
    await fronts.stop();
    expect(descriptors).toEqual([]);
    expect(threads.every(({ killed }) => !killed)).toBe(true);
    expect(holders.every(({ left }) => left)).toBe(true);
  });

  it("fail to start as a whole when one does not come up in time", async () => {
    const { clock, fronts, threads } = rig();
    const starting = fronts.start();
    threads[0]?.say({ kind: "up", descriptor: 0 });
    clock.advance(FRONTS_START_MS_MAX);
    await expect(starting).rejects.toThrow("http.threads");
    expect(threads.map(({ killed }) => killed)).toEqual([true, true]);
  });

  it("fail to start when one ends before it is up, with why", async () => {
    const { fronts, threads, deaths } = rig();
    const starting = fronts.start();
    const cause = new Error("no engine here");
    threads[1]?.end(cause);
    await expect(starting).rejects.toMatchObject({ cause });
    await expect(starting).rejects.toThrow("no engine here");
    expect(deaths).toEqual([]);
  });

  it("have their turn after every few of a ring's records", async () => {
    const { fronts, threads, ways } = await started();
    for (let n = 0; n < 2 * FRONT_RECORDS_A_TURN + 1; n += 1) threads[0]?.note(n);
    threads[1]?.note(1);
    fronts.adopt();
    expect(ways).toEqual([FRONT_RECORDS_A_TURN, 2 * FRONT_RECORDS_A_TURN]);
    await fronts.stop();
  });

  it("wait while so many of a ring's records are left that it could fill up", async () => {
    const { fronts, threads, books, ways } = await started();
    const few = 3 * FRONT_RECORDS_A_TURN;
    for (let n = 0; n < FRONT_RECORDS_BEHIND + few; n += 1) threads[0]?.note(1);
    fronts.adopt();
    expect(ways[0]).toBe(few + FRONT_RECORDS_A_TURN);
    expect(books).toHaveLength(FRONT_RECORDS_BEHIND + few);
    for (let n = 0; n < FRONT_RECORDS_BEHIND; n += 1) threads[1]?.note(1);
    const before = ways.length;
    fronts.giveWay();
    expect(ways).toHaveLength(before);
    await fronts.stop();
  });

  it("cannot keep the main thread at their books by what they do meanwhile", async () => {
    const { fronts, threads, books, ways } = await started();
    const note = (count: number): void => {
      for (let n = 0; n < count; n += 1) threads[0]?.note(n);
    };
    note(FRONT_RECORDS_A_TURN);
    ways.push = (...items) => {
      note(FRONT_RECORDS_A_TURN);
      return items.length;
    };
    fronts.adopt();
    expect(books).toHaveLength(FRONT_RECORDS_A_TURN);
    fronts.adopt();
    expect(books).toHaveLength(2 * FRONT_RECORDS_A_TURN);
    await fronts.stop();
  });

  it("have what they did taken in when asked for, each under its owner", async () => {
    const { fronts, threads, books } = await started();
    threads[0]?.note(10);
    threads[1]?.note(20);
    threads[0]?.note(11);
    fronts.adopt();
    expect(books.sort()).toEqual(["acme 10", "acme 11", "acme 20"]);
    await fronts.stop();
  });

  it("have it taken in with the engine's news when they ring", async () => {
    const { fronts, threads, books, settled } = await started(1);
    const before = settled.length;
    threads[0]?.note(10);
    wake(new Int32Array(threads[0]?.task.bell ?? new SharedArrayBuffer(4)), 0);
    await until("the books", () => books.length === 1);
    expect(settled.length).toBeGreaterThan(before);
    await fronts.stop();
  });

  it("are counted by why they move a request", async () => {
    const { fronts, threads } = await started();
    const request = { kind: "request", door: "raw", isPaid: false, token: "", bodySize: 0 };
    for (const [index, why] of (["key", "limit", "key"] as const).entries()) {
      threads[index % 2]?.task.moved.postMessage([{ ...request, number: 1, why, body: null }]);
    }
    await until("the requests", () => fronts.moves.key + fronts.moves.limit === 3);
    expect(fronts.moves).toEqual({ key: 2, limit: 1, leaders: 0, books: 0, other: 0 });
    await fronts.stop();
  });

  it("have it taken in before a pass that let it in is given up", async () => {
    const { fronts, threads, books, holders } = await started(1);
    threads[0]?.note(10);
    threads[0]?.say({ kind: "passReturned", place: PASS.place });
    expect(books).toEqual(["acme 10"]);
    expect(holders[0]?.returned).toEqual([PASS.place]);
    await fronts.stop();
  });

  it("have the last of it taken in when they stop", async () => {
    const { fronts, threads, books } = await started(1);
    threads[0]?.note(10);
    await fronts.stop();
    expect(books).toEqual(["acme 10"]);
  });

  it("are told of a death that nobody asked for, and of no other", async () => {
    const { fronts, threads, deaths, descriptors } = await started();
    const cause = new Error("out of memory");
    threads[0]?.end(cause);
    await until("the news", () => deaths.length === 1);
    expect(deaths).toEqual([cause]);
    expect(descriptors).toEqual([1]);
    await fronts.stop();
    expect(deaths).toHaveLength(1);
  });

  it("are told of one that failed and stays until it is ended, once", async () => {
    const { fronts, threads, deaths, descriptors } = await started();
    threads[0]?.say({ kind: "died", error: "RangeError: made up" });
    threads[0]?.say({ kind: "died", error: "RangeError: the next" });
    expect(deaths).toEqual(["RangeError: made up"]);
    expect(descriptors).toEqual([1]);
    await fronts.stop();
    expect(deaths).toHaveLength(1);
  });

  it("are ended where they fail while they stop, which fails once all are through", async () => {
    const { fronts, threads, deaths, books } = await started();
    for (const thread of threads) thread.isDeaf = true;
    const stopping = fronts.stop();
    threads[0]?.say({ kind: "died", error: "RangeError: made up" });
    threads[1]?.note(10);
    threads[1]?.end(null);
    await expect(stopping).rejects.toThrow("a front died while it stopped");
    expect(threads.map(({ killed }) => killed)).toEqual([true, false]);
    expect([books, deaths]).toEqual([["acme 10"], []]);
  });

  it("are ended at last where they do not stop by themselves", async () => {
    const { clock, fronts, threads } = await started(1);
    for (const thread of threads) thread.isDeaf = true;
    const stopping = fronts.stop();
    clock.advance(60_000);
    await stopping;
    expect(threads[0]?.killed).toBe(true);
  });
});
