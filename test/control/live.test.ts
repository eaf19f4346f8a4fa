import type { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { createLive } from "../../src/control/live.ts";
import type { Actor } from "../../src/control/store/contract.ts";
import { LIVE_PERIOD_MS, LIVE_STREAMS_PER_ACCOUNT_MAX } from "../../src/core/limits-control.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createMemoryStore } from "../support/memory-store.ts";

const ACTOR: Actor = { kind: "account", accountId: null, address: null, userAgent: null };

async function setup() {
  const clock = createFakeClock();
  const store = createMemoryStore(clock);
  const warned: string[] = [];
  const note = (_: object, message: string): void => void warned.push(message);
  const live = createLive({ store, clock, log: { info: note, warn: note, error: note } });
  const identity = { issuer: "i", subject: "s", email: null, name: null };
  const registered = await store.accounts.register(identity, ACTOR);
  if (registered.kind === "refused") throw new Error(registered.detail);
  const { account } = registered.value;
  const login = { accountId: account.id, issuer: "i", subject: "s", authenticatedAtMs: 0 };
  const opened = await store.sessions.open(login, ACTOR);
  if (opened.kind === "refused") throw new Error(opened.detail);
  const { session, secret } = opened.value;
  const caller = { account, session, token: null, actor: ACTOR };
  const look = async (): Promise<void> => {
    clock.advance(LIVE_PERIOD_MS);
    for (let turn = 0; turn < 5; turn += 1) await new Promise((r) => setImmediate(r));
  };
  return { clock, store, live, caller, secret, look, warned };
}

function textOf(stream: Readable): { text: string } {
  const got = { text: "" };
  stream.on("data", (chunk: Buffer) => {
    got.text += chunk.toString();
  });
  return got;
}

describe("live numbers", () => {
  it("come at once, again when they changed, with a comment in a long silence", async () => {
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

  it("are so many streams an account", async () => {
    const { live, caller } = await setup();
    const streams = Array.from({ length: LIVE_STREAMS_PER_ACCOUNT_MAX }, () => live.open(caller));
    expect(() => live.open(caller)).toThrow(/too many/);
    expect(live.counters.refused).toBe(1);
    streams[0]?.destroy();
    await new Promise((resolve) => setImmediate(resolve));
    expect(() => live.open(caller)).not.toThrow();
  });

  it("go on after the database was away", async () => {
    const { live, caller, store, look, warned } = await setup();
    const got = textOf(live.open(caller));
    store.gone = true;
    await look();
    expect(warned.length).toBeGreaterThan(0);
    store.gone = false;
    await look();
    expect(got.text).toContain("event: usage");
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
