import type { Readable } from "node:stream";
import { afterEach, describe, expect, it } from "vitest";
import { createEventStreams } from "../../src/control/event-stream.ts";
import {
  EVENT_STREAM_PERIOD_MS,
  EVENT_STREAMS_MAX,
  EVENT_STREAMS_PER_ACCOUNT_MAX,
} from "../../src/control/limits.ts";
import type { Actor } from "../../src/control/store/contract.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createTestStore, type TestStore } from "../support/store-on-postgres.ts";

const ACTOR: Actor = { kind: "account", accountId: null, address: null, userAgent: null };

const undo: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const act of undo.splice(0)) await act();
});

async function setup() {
  // Starts at the start of a minute: the period of the numbers moves with each minute.
  const clock = createFakeClock(undefined, Math.ceil(Date.now() / 60_000) * 60_000);
  const store = await createTestStore(clock);
  undo.push(() => store.stop());
  const { underWay, hold, usage, sessions, apiTokens } = watched(store);
  const warned: string[] = [];
  const note = (_: object, message: string): void => void warned.push(message);
  const live = createEventStreams({
    store: { usage, sessions, apiTokens },
    clock,
    log: { info: note, warn: note, error: note },
  });
  const identity = { issuer: "i", subject: "s", email: null, name: null };
  const registered = await store.accounts.register(identity, ACTOR);
  if (registered.kind === "refused") throw new Error(registered.detail);
  const { account } = registered.value;
  const at = { authenticatedAtMs: clock.unixMs() };
  const login = { accountId: account.id, issuer: "i", subject: "s", ...at };
  const opened = await store.sessions.open(login, ACTOR);
  if (opened.kind === "refused") throw new Error(opened.detail);
  const { session, secret } = opened.value;
  const caller = { account, session, token: null, actor: ACTOR };
  const look = async (): Promise<void> => {
    clock.advance(EVENT_STREAM_PERIOD_MS);
    await settled();
  };
  const settled = async (): Promise<void> => {
    for (let still = 0; still < 5; still = underWay() > 0 ? 0 : still + 1) {
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  /** Withholds responses; returns the function that releases them. */
  const held = () => {
    const give = hold();
    return async (): Promise<void> => {
      give();
      await settled();
    };
  };
  return { clock, store, live, caller, secret, look, warned, hold: held };
}

/** Counts the queries of a live stream to the store, and those without a response yet. */
function watched(store: TestStore) {
  let asked = 0;
  let free = Promise.resolve();
  let isHeld = false;
  async function counted<T>(question: Promise<T>): Promise<T> {
    asked += 1;
    return await question.finally(() => {
      asked -= 1;
    });
  }
  function hold(): () => void {
    let give = (): void => undefined;
    isHeld = true;
    free = new Promise((resolve) => {
      give = resolve;
    });
    return () => {
      isHeld = false;
      give();
    };
  }
  const { usage, sessions, apiTokens } = store;
  return {
    underWay: () => (isHeld ? 0 : asked),
    hold,
    usage: {
      ...usage,
      overview: (...args: Parameters<typeof usage.overview>) =>
        counted(free.then(() => usage.overview(...args))),
    },
    sessions: { ...sessions, list: (id: string) => counted(sessions.list(id)) },
    apiTokens: { ...apiTokens, list: (id: string) => counted(apiTokens.list(id)) },
  };
}

function textOf(stream: Readable): { text: string } {
  const got = { text: "" };
  stream.on("data", (chunk: Buffer) => {
    got.text += chunk.toString();
  });
  return got;
}

describe("live numbers", () => {
  it("come immediately, again after a change, with a comment during a long silence", async () => {
    const { live, caller, look } = await setup();
    const got = textOf(live.open(caller));
    await look();
    expect(got.text).toMatch(/^: live\n\nevent: usage\ndata: \{"range":"hour"/);
    for (let count = 0; count < 9; count += 1) await look();
    expect(got.text.match(/event: usage/g)).toHaveLength(1);
    expect(got.text).toContain(": still here");
  });

  it("end with the session, which they do not keep alive", async () => {
    const { live, caller, clock, look } = await setup();
    const stream = live.open(caller);
    const got = textOf(stream);
    clock.advance(31 * 60_000);
    await look();
    await look();
    expect(got.text).toMatch(/event: ended\ndata: \{\}\n\n$/);
    expect(stream.readableEnded).toBe(true);
    expect([live.count(), clock.pending]).toEqual([0, 0]);
  });

  it("are bounded in number for each account", async () => {
    const { live, caller } = await setup();
    const streams = Array.from({ length: EVENT_STREAMS_PER_ACCOUNT_MAX }, () => live.open(caller));
    expect(() => live.open(caller)).toThrow(/too many/);
    expect(live.counters.rejected).toBe(1);
    streams[0]?.destroy();
    await new Promise((resolve) => setImmediate(resolve));
    expect(() => live.open(caller)).not.toThrow();
  });

  it("leave nothing behind where one more is one too many", async () => {
    const { live, caller, clock } = await setup();
    const streams = Array.from({ length: EVENT_STREAMS_MAX }, (_, index) =>
      live.open({ ...caller, account: { ...caller.account, id: `account ${index >> 2}` } }),
    );
    const timers = clock.pending;
    expect(() => live.open(caller)).toThrow(/too many/);
    expect(clock.pending).toBe(timers);
    for (const stream of streams) stream.destroy();
    await new Promise((resolve) => setImmediate(resolve));
    expect([live.count(), clock.pending]).toEqual([0, 0]);
  });

  it("resume after the database was unavailable", async () => {
    const { live, caller, store, look, warned } = await setup();
    const got = textOf(live.open(caller));
    store.gone = true;
    await look();
    expect(warned.length).toBeGreaterThan(0);
    store.gone = false;
    await look();
    expect(got.text).toContain("event: usage");
  });

  it("report since when the database is unavailable, also to later subscribers", async () => {
    const { live, caller, clock, store, look } = await setup();
    const got = textOf(live.open(caller));
    await look();
    const since = new Date(clock.unixMs()).toISOString();
    store.gone = true;
    await look();
    const stale = `event: stale\ndata: {"since":"${since}"}\n\n`;
    expect(got.text.endsWith(stale)).toBe(true);
    for (let count = 0; count < 20; count += 1) await look();
    expect(got.text.match(/event: stale/g)).toHaveLength(1);
    const late = textOf(live.open(caller));
    await look();
    expect(late.text).toMatch(/^: live\n\nevent: usage\n.*\n\nevent: stale\n/);
    expect(late.text.endsWith(stale)).toBe(true);
    // Available again, and reported so although the numbers are unchanged.
    store.gone = false;
    await look();
    for (const { text } of [got, late]) expect(text).toMatch(/event: usage\ndata: .*\n\n$/);
    expect(got.text.match(/event: usage/g)).toHaveLength(2);
  });

  it("report that no numbers were ever available", async () => {
    const { live, caller, store, look } = await setup();
    store.gone = true;
    const got = textOf(live.open(caller));
    await look();
    expect(got.text).toBe(': live\n\nevent: stale\ndata: {"since":null}\n\n');
  });

  it("report that the database accepts a query and does not respond", async () => {
    const { live, caller, look, hold } = await setup();
    const got = textOf(live.open(caller));
    await look();
    const response = hold();
    await look();
    await look();
    expect(got.text).not.toContain("event: stale");
    await look();
    expect(got.text).toMatch(/event: stale\ndata: \{"since":"[^"]+"\}\n\n$/);
    await response();
    expect(got.text).toMatch(/event: usage\ndata: .*\n\n$/);
  });

  it("cut off who does not read, and end when the process stops", async () => {
    const { live, caller, look } = await setup();
    const deaf = live.open(caller);
    deaf.push("x".repeat(300 * 1024));
    const other = live.open(caller);
    const got = textOf(other);
    await look();
    expect(deaf.destroyed).toBe(true);
    expect(live.counters.cutOff).toBe(1);
    live.stop();
    await look();
    expect(got.text).toContain("event: stopping");
    expect(live.count()).toBe(0);
  });
});
