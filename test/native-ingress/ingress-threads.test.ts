/** The ingress threads as the main thread manages them: their accounting, turns and end. */

import { fstatSync, openSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { REJECTION_NAMES } from "../../src/core/errors.ts";
import {
  INGRESS_THREAD_COMMANDS,
  INGRESS_THREAD_FULL,
  INGRESS_THREAD_LISTEN,
  INGRESS_THREAD_STATES,
  INGRESS_THREAD_TLS,
} from "../../src/native/contract.ts";
import type { CertificateSource } from "../../src/native-ingress/ingress-threads.ts";
import {
  INGRESS_THREAD_EXIT_MS_MAX,
  INGRESS_THREADS_STOP_MS_MAX,
  QUIC_PREDECESSOR_MS_MAX,
} from "../../src/native-ingress/limits.ts";
import { HTTP_COUNTER_NAMES, REQUEST_COUNTERS } from "../../src/native-ingress/thread-counters.ts";
import { faultOf, fixture, PUBLIC_PORT, shared, started, UPSTREAM_PORT } from "./fixture.ts";

const QUIC = {
  ...{ host: "127.0.0.1", port: 8_009, streamTimeoutMs: 10_000 },
  ...{ predecessorPlaces: [], processNumber: 0 },
  ...{ connectionsMax: 9, connectionsPerAddress: 3, connectionsPerAccount: 4 },
  drainTo: "",
};

describe("ingress threads that start", () => {
  it("listen together on the public address, and report the port", () => {
    const { engine, ingressThreads, threads } = fixture();
    expect(ingressThreads.start(UPSTREAM_PORT)).toEqual({ port: PUBLIC_PORT, quicPort: null });
    expect(threads).toHaveLength(2);
    expect(engine.sockets).toEqual([{ host: "127.0.0.1", port: 0 }]);
    const descriptor = ingressThreads.socket ?? 0;
    expect(descriptor).toBeGreaterThan(0);
    expect(engine.listens).toEqual([{ threads: [256, 257], descriptor, perAddress: 6 }]);
  });

  it("take the connections of a socket that was passed on", () => {
    const inherited = openSync("/dev/null", "r");
    const { engine, ingressThreads } = fixture(2, inherited);
    expect(ingressThreads.start(UPSTREAM_PORT)).toEqual({ port: PUBLIC_PORT, quicPort: null });
    expect(engine.sockets).toEqual([]);
    expect(engine.listens.map(({ descriptor }) => descriptor)).toEqual([inherited]);
    expect(ingressThreads.socket).toBe(inherited);
    void ingressThreads.stop();
    expect(ingressThreads.socket).toBeNull();
    expect(() => fstatSync(inherited)).toThrow("EBADF");
  });

  it("present a certificate before they listen, and another one later", () => {
    const pem = (text: string): CertificateSource => ({
      current: { certificate: Buffer.from(text), key: Buffer.from("key") },
      protocols: ["http", "quic"],
    });
    const { engine, ingressThreads } = fixture(2, null, [pem("first")]);
    engine.tlsResult = INGRESS_THREAD_TLS;
    expect(faultOf(() => ingressThreads.start(UPSTREAM_PORT)).message).toMatch(/^http\.tls: /);
    // A connection without TLS must not be possible.
    expect(engine.listens).toEqual([]);
    const second = fixture(2, null, [pem("first")]);
    second.ingressThreads.start(UPSTREAM_PORT);
    second.ingressThreads.present({ ...pem("second"), protocols: ["quic"] });
    const threads = [256, 257];
    expect(second.engine.certificates).toEqual([
      { threads, certificate: "first", key: "key", quic: false },
      { threads, certificate: "first", key: "key", quic: true },
      { threads, certificate: "second", key: "key", quic: true },
    ]);
    expect(second.engine.listens).toHaveLength(1);
  });

  it("present none without TLS", () => {
    expect(started().engine.certificates).toEqual([]);
  });

  it("serve QUIC clients by all of them, or say why not", () => {
    const quic = QUIC;
    const serving = fixture(2, null, [], quic);
    expect(serving.ingressThreads.start(UPSTREAM_PORT)).toEqual({
      port: PUBLIC_PORT,
      quicPort: 8_009,
    });
    expect(serving.engine.quicListens).toEqual([{ threads: [256, 257], options: quic }]);
    const sockets = { host: "127.0.0.1", port: 8_009, places: [0, 1] };
    expect(serving.ingressThreads.quicSockets).toEqual(sockets);
    expect(started().ingressThreads.quicSockets).toBeNull();
    const later = fixture(2, null, [], { ...quic, predecessorPlaces: [1] });
    later.ingressThreads.start(UPSTREAM_PORT);
    expect(later.ingressThreads.quicSockets?.places).toEqual([1, 0]);

    const taken = fixture(2, null, [], quic);
    taken.engine.quicResult = INGRESS_THREAD_LISTEN;
    expect(faultOf(() => taken.ingressThreads.start(UPSTREAM_PORT)).message).toMatch(
      /^quic\.listen: cannot listen on 127\.0\.0\.1:8009; either the port is in use/,
    );
    expect(taken.threads.map(({ commands }) => commands)).toEqual([
      [INGRESS_THREAD_COMMANDS.exit],
      [INGRESS_THREAD_COMMANDS.exit],
    ]);
  });

  it("know how long the process before may have QUIC sockets", () => {
    const waits = [[], [0, 1]].map((predecessorPlaces) => {
      const { clock, ingressThreads } = fixture(2, null, [], { ...QUIC, predecessorPlaces });
      ingressThreads.start(UPSTREAM_PORT);
      const first = ingressThreads.quicAloneInMs;
      clock.advance(QUIC_PREDECESSOR_MS_MAX - 1);
      const last = ingressThreads.quicAloneInMs;
      clock.advance(1);
      return [first, last, ingressThreads.quicAloneInMs];
    });
    expect(waits).toEqual([
      [0, 0, 0],
      [QUIC_PREDECESSOR_MS_MAX, 1, 0],
    ]);
  });

  it("pass receipts on to all that serve QUIC clients", () => {
    const { engine, ingressThreads } = started();
    expect(ingressThreads.sendReceipts(Uint8Array.of(1, 2))).toBe(true);
    expect(engine.receipts).toEqual([{ threads: [256, 257], batch: Buffer.of(1, 2) }]);
    engine.receiptsResult = 0;
    expect(ingressThreads.sendReceipts(Uint8Array.of(3))).toBe(false);
  });

  it.each(["disableKeepAlive", "retire", "takeBack"] as const)("%s together", (command) => {
    const { ingressThreads, threads } = started();
    ingressThreads[command]();
    const each = [INGRESS_THREAD_COMMANDS[command]];
    expect(threads.map(({ commands }) => commands)).toEqual([each, each]);
  });

  it("are all stopped when one of them does not start", () => {
    const { clock, deaths, engine, ingressThreads, threads } = fixture(3);
    engine.startResults = [INGRESS_THREAD_FULL, null, null];
    expect(faultOf(() => ingressThreads.start(UPSTREAM_PORT)).message).toMatch(/^http\.threads: /);
    expect(engine.listens).toEqual([]);
    expect(threads.map(({ commands }) => commands)).toEqual([
      [INGRESS_THREAD_COMMANDS.exit],
      [INGRESS_THREAD_COMMANDS.exit],
    ]);
    for (const { wake } of threads) wake();
    clock.advance(INGRESS_THREAD_EXIT_MS_MAX);
    expect(threads.map(({ closes }) => closes)).toEqual([1, 1]);
    expect(deaths).toEqual([]);
  });

  it("are all stopped when they cannot listen, with the address and a likely reason", () => {
    const { engine, ingressThreads, threads } = fixture();
    engine.listenResult = INGRESS_THREAD_LISTEN;
    expect(faultOf(() => ingressThreads.start(UPSTREAM_PORT)).message).toMatch(
      /^http\.listen: cannot listen on 127\.0\.0\.1:0; either the port is in use/,
    );
    expect(threads.map(({ commands }) => commands)).toEqual([
      [INGRESS_THREAD_COMMANDS.exit],
      [INGRESS_THREAD_COMMANDS.exit],
    ]);
  });
});

describe("the records of ingress threads", () => {
  it("are read with the engine's events when a thread reports some", async () => {
    const { ingressThreads, thread, accounting, settled } = started(1);
    thread(0).note(10);
    thread(0).wake();
    expect([accounting, settled]).toEqual([[10], [0]]);
    await ingressThreads.stop();
  });

  it("are read after all wake flags, so that later ones wake again", async () => {
    const { ingressThreads, threads, thread, settled } = started();
    const looks: (readonly number[])[] = [];
    settled.push = (...items) => {
      looks.push(threads.map((thread) => thread.looks));
      return items.length;
    };
    thread(0).wake();
    expect(looks).toEqual([[1, 1]]);
    await ingressThreads.stop();
  });

  it("are read completely when the threads stop", async () => {
    const { ingressThreads, thread, accounting, keys } = started(1);
    thread(0).note(10);
    await ingressThreads.stop();
    expect([accounting, keys.closes]).toEqual([[10], 1]);
  });

  it("are reported with the counters: those of requests in total, and each thread's", async () => {
    const { ingressThreads, thread } = started();
    const first = HTTP_COUNTER_NAMES.length + REJECTION_NAMES.length;
    for (const [number, counts] of [
      [0, [1, 2]],
      [1, [10, 20]],
    ] as const) {
      const numbers = new Float64Array(shared(thread(number).counters));
      numbers.set(counts, first);
      numbers[HTTP_COUNTER_NAMES.indexOf("accepted")] = 100 + number;
    }
    expect(REQUEST_COUNTERS.map((name) => ingressThreads.requests[name])).toEqual([11, 22]);
    expect(ingressThreads.stats.map(({ counters }) => counters.accepted)).toEqual([100, 101]);
    await ingressThreads.stop();
  });
});

describe("ingress threads that end", () => {
  it("leave new requests to the main thread while the edge drains", async () => {
    const { ingressThreads, threads } = started();
    ingressThreads.rejectNewWork();
    expect(threads.map(({ commands }) => commands)).toEqual([
      [INGRESS_THREAD_COMMANDS.drain],
      [INGRESS_THREAD_COMMANDS.drain],
    ]);
    await ingressThreads.stop();
  });

  it("are stopped and closed, and release their memory", async () => {
    const { ingressThreads, threads, deaths } = started();
    await ingressThreads.stop();
    const stopCommands = [INGRESS_THREAD_COMMANDS.stop, INGRESS_THREAD_COMMANDS.exit];
    expect(threads.map((thread) => thread.commands)).toEqual([stopCommands, stopCommands]);
    expect(threads.map(({ closes }) => closes)).toEqual([1, 1]);
    expect(deaths).toEqual([]);
    // No thread is left to notify.
    ingressThreads.rejectNewWork();
    await ingressThreads.stop();
    expect(threads.map((thread) => thread.commands)).toEqual([stopCommands, stopCommands]);
  });

  it("close no connection while any of them has pending requests", async () => {
    const { ingressThreads, threads, thread, accounting } = started();
    thread(0).isDeaf = true;
    let isStopped = false;
    const stopping = ingressThreads.stop().then(() => {
      isStopped = true;
    });
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
    thread(0).wake();
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
    expect(threads.map(({ commands }) => commands)).toEqual([
      [INGRESS_THREAD_COMMANDS.stop],
      [INGRESS_THREAD_COMMANDS.stop],
    ]);
    expect(isStopped).toBe(false);
    thread(0).note(10);
    thread(0).isDeaf = false;
    thread(0).become(INGRESS_THREAD_STATES.idle);
    await stopping;
    expect(threads.map(({ closes }) => closes)).toEqual([1, 1]);
    expect(accounting).toEqual([10]);
  });

  it.each([
    ["fails", INGRESS_THREAD_STATES.panicked, "an ingress thread panicked"],
    ["ends", INGRESS_THREAD_STATES.exited, "an ingress thread ended"],
  ])("report a thread that %s unexpectedly, once", async (_, state, message) => {
    const { ingressThreads, thread, deaths, accounting } = started();
    thread(0).note(10);
    thread(0).become(state);
    expect(deaths).toMatchObject([{ message }]);
    expect([accounting, thread(0).closes]).toEqual([[10], 1]);
    thread(1).wake();
    // Whether that fails again does not matter: the process ends because of it.
    await Promise.allSettled([ingressThreads.stop()]);
    expect(deaths).toHaveLength(1);
    expect([thread(0).commands, thread(1).closes]).toEqual([[], 1]);
  });

  it("fail to stop when one of them fails meanwhile, after all have ended", async () => {
    const { ingressThreads, threads, thread, deaths, accounting } = started();
    thread(1).isDeaf = true;
    const stopping = ingressThreads.stop();
    thread(0).become(INGRESS_THREAD_STATES.panicked);
    thread(1).note(10);
    thread(1).isDeaf = false;
    thread(1).become(INGRESS_THREAD_STATES.idle);
    await expect(stopping).rejects.toThrow("an ingress thread panicked");
    expect(threads.map(({ closes }) => closes)).toEqual([1, 1]);
    expect([accounting, deaths]).toEqual([[10], []]);
  });

  it("fail to stop when one of them fails to close its connections", async () => {
    const { ingressThreads, threads, thread, deaths } = started();
    const stopping = ingressThreads.stop();
    const { command } = thread(0);
    thread(0).command = (what) => {
      thread(0).isDeaf = true;
      command.call(thread(0), what);
      thread(0).become(INGRESS_THREAD_STATES.panicked);
    };
    await expect(stopping).rejects.toThrow("an ingress thread panicked");
    expect([threads.map(({ closes }) => closes), deaths]).toEqual([[1, 1], []]);
  });

  it("are terminated when they do not stop in time", async () => {
    const { clock, ingressThreads, thread } = started(1);
    thread(0).isDeaf = true;
    const stopping = ingressThreads.stop();
    clock.advance(INGRESS_THREADS_STOP_MS_MAX - 1);
    expect(thread(0).commands).toEqual([INGRESS_THREAD_COMMANDS.stop]);
    clock.advance(1);
    expect(thread(0).commands).toEqual([
      INGRESS_THREAD_COMMANDS.stop,
      INGRESS_THREAD_COMMANDS.exit,
    ]);
    thread(0).become(INGRESS_THREAD_STATES.exited);
    await stopping;
    clock.advance(INGRESS_THREAD_EXIT_MS_MAX);
    expect(thread(0).closes).toBe(1);
  });

  it("are abandoned when they do not even terminate", async () => {
    const { clock, ingressThreads, thread, accounting } = started(1);
    thread(0).isDeaf = true;
    const stopping = ingressThreads.stop();
    thread(0).note(10);
    clock.advance(INGRESS_THREADS_STOP_MS_MAX + INGRESS_THREAD_EXIT_MS_MAX);
    await expect(stopping).rejects.toThrow("an ingress thread did not end");
    // It is not waited for either, as closing it would do.
    expect([accounting, thread(0).closes]).toEqual([[10], 0]);
  });
});
