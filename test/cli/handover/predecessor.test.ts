import { EventEmitter } from "node:events";
import { describe, expect, it } from "vitest";
import { HANDOVER_VARIABLE } from "../../../src/cli/handover/messages.ts";
import { linkPredecessor, takeNote } from "../../../src/cli/handover/predecessor.ts";
import { SUCCESSOR_LOOK_MS } from "../../../src/cli/limits.ts";
import { createFakeClock } from "../../support/fake-clock.ts";

const LISTEN = "127.0.0.1:8080";
const TIMEOUT_MS = 60_000;
const STARTED = { startedUnixMs: 1_000, succeeded: 4, failed: 2 };
const QUIC = { host: "127.0.0.1", port: 8009 };
const QUIC_SOCKETS = { ...QUIC, places: [1, 0] };
const NOTE = { listen: LISTEN, port: 8080, socket: 4, quicSockets: QUIC_SOCKETS, ...STARTED };
const PORT = { port: 8080, quicPlaces: [1, 0], processNumber: 5 };

function setUp() {
  const emitter = new EventEmitter();
  const told: unknown[] = [];
  const env: Record<string, string | undefined> = {};
  const parent = Object.assign(emitter, {
    env,
    send: (message: unknown) => void told.push(message),
  });
  const clock = createFakeClock();
  const inherit = (socket: number): number | null => socket + 10;
  return {
    clock,
    parent,
    told,
    deps: { clock, parent, listen: LISTEN, quicListen: QUIC, inherit, timeoutMs: TIMEOUT_MS },
  };
}

const pause = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("the note of a predecessor", () => {
  it("is taken once, and only by a process with a channel", () => {
    const { parent } = setUp();
    expect(takeNote(parent)).toBeNull();
    parent.env[HANDOVER_VARIABLE] = JSON.stringify(NOTE);
    expect(takeNote(parent)).toEqual(NOTE);
    expect(takeNote(parent)).toBeNull();
    parent.env[HANDOVER_VARIABLE] = JSON.stringify({ ...NOTE, socket: null });
    expect(takeNote(parent)?.socket).toBeNull();
    for (const text of ["", "{", "{}", "[]", '{"listen":1,"port":2}']) {
      parent.env[HANDOVER_VARIABLE] = text;
      expect(takeNote(parent), text).toBeNull();
    }
    const env = { [HANDOVER_VARIABLE]: JSON.stringify(NOTE) };
    expect(takeNote({ env, on() {}, once() {} })).toBeNull();
    expect(env).toEqual({});
  });
});

describe("a successor", () => {
  it("inherits the socket, tells what it waits for, and listens with permission", async () => {
    const { clock, parent, told, deps } = setUp();
    const link = linkPredecessor(NOTE, deps);
    expect(link.listener).toEqual({ socket: 14, ...PORT });
    let missing: readonly string[] = ["slot", "live"];
    let mayListen = false;
    void link
      .takeOver(() => missing)
      .then(() => {
        mayListen = true;
      });
    clock.advance(3 * SUCCESSOR_LOOK_MS);
    missing = ["live"];
    clock.advance(SUCCESSOR_LOOK_MS);
    missing = [];
    clock.advance(SUCCESSOR_LOOK_MS);
    await pause();
    expect(told).toEqual([
      { kind: "waiting", missing: ["slot", "live"] },
      { kind: "waiting", missing: ["live"] },
      { kind: "ready" },
    ]);
    parent.emit("message", { kind: "other" });
    await pause();
    expect(mayListen).toBe(false);
    parent.emit("message", { kind: "takeOver" });
    await pause();
    expect(mayListen).toBe(true);
    link.serving();
    expect(told.at(-1)).toEqual({ kind: "serving" });
    expect(link.isGone).toBe(false);
    parent.emit("disconnect");
    expect(link.isGone).toBe(true);
    link.serving();
    expect(told).toHaveLength(4);
  });

  it("continues its predecessor's counts of upgrades", () => {
    const { clock, deps } = setUp();
    const startedUnixMs = clock.unixMs();
    const link = linkPredecessor({ ...NOTE, startedUnixMs }, deps);
    expect(link.counts).toEqual({ succeeded: 4, failed: 2, lastSeconds: Number.NaN });
    clock.advance(1_500);
    link.serving();
    expect(link.counts).toEqual({ succeeded: 5, failed: 2, lastSeconds: 1.5 });
  });

  it("reads the note of a version that names neither upgrades nor QUIC threads", () => {
    const { parent } = setUp();
    const { listen, port, socket } = NOTE;
    parent.env[HANDOVER_VARIABLE] = JSON.stringify({ listen, port, socket });
    const unsaid = { startedUnixMs: Number.NaN, succeeded: 0, failed: 0, quicSockets: null };
    expect(takeNote(parent)).toEqual({ ...NOTE, ...unsaid });
  });

  it("does not start when its predecessor ends before the permission, or gives none", async () => {
    for (const isReady of [false, true]) {
      const { clock, parent, deps } = setUp();
      const link = linkPredecessor(NOTE, deps);
      const taken = link.takeOver(() => (isReady ? [] : ["slot"]));
      const refused = expect(taken).rejects.toThrow("has ended before it handed over");
      clock.advance(SUCCESSOR_LOOK_MS);
      await pause();
      parent.emit("disconnect");
      await refused;
    }
    const { clock, deps } = setUp();
    const taken = linkPredecessor(NOTE, deps).takeOver(() => []);
    const refused = expect(taken).rejects.toThrow(`no permission to listen came within 60000 ms`);
    clock.advance(SUCCESSOR_LOOK_MS);
    await pause();
    clock.advance(TIMEOUT_MS);
    await refused;
  });

  it("waits for its predecessor's receipts for as long as an upgrade may take", async () => {
    const { clock, parent, deps } = setUp();
    const taken = linkPredecessor(NOTE, deps).takeOver(() => []);
    clock.advance(SUCCESSOR_LOOK_MS);
    await pause();
    clock.advance(TIMEOUT_MS - SUCCESSOR_LOOK_MS);
    parent.emit("message", { kind: "takeOver" });
    await taken;
  });

  it("finds no QUIC sockets before its own on another port, or where there are none", () => {
    const { deps } = setUp();
    for (const quicListen of [{ ...QUIC, port: 8010 }, { ...QUIC, host: "0.0.0.0" }, null]) {
      expect(linkPredecessor(NOTE, { ...deps, quicListen }).listener.quicPlaces).toEqual([]);
    }
    for (const quicListen of [QUIC, null]) {
      const { listener } = linkPredecessor({ ...NOTE, quicSockets: null }, { ...deps, quicListen });
      expect(listener.quicPlaces).toEqual([]);
    }
  });

  it("tells why it cannot listen where its predecessor does", () => {
    const { told, deps } = setUp();
    const other = { ...NOTE, listen: "0.0.0.0:80" };
    expect(() => linkPredecessor(other, deps)).toThrow("an upgrade keeps the address");
    const none = { ...deps, inherit: () => null };
    expect(() => linkPredecessor(NOTE, none)).toThrow("both need the native engine");
    expect(told.map((message) => (message as { kind: string }).kind)).toEqual(["failed", "failed"]);
    const own = linkPredecessor({ ...NOTE, socket: null }, none);
    expect(own.listener).toEqual({ socket: null, ...PORT });
    own.failed("no memory");
    expect(told.at(-1)).toEqual({ kind: "failed", reason: "no memory" });
  });
});
