/** When an edge can have ingress threads, and when it reports why not. */

import { describe, expect, it } from "vitest";
import type { Config } from "../../src/config/config.ts";
import { SetupError } from "../../src/core/errors.ts";
import {
  buildNativeIngress,
  createNativeIngressContext,
  type NativeIngressDeps,
} from "../../src/edge/native-ingress.ts";
import type { IngressResources } from "../../src/engine/engine.ts";
import type { EngineChoice } from "../../src/native/choose.ts";
import type { NativeEngine, NativeIngressThreadOptions } from "../../src/native/contract.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { stub } from "../support/stub.ts";

function configOf(
  threads: number | null,
  other: Partial<Config> = {},
  tls: Config["http"]["tls"] = null,
): Config {
  return stub<Config>({
    http: stub<Config["http"]>({ threads, tls }),
    quic: stub<Config["quic"]>({ listen: null }),
    host: { busyPoll: false, realtime: false },
    ...other,
  });
}

const portable = stub<EngineChoice>({ name: "portable", native: null });
/** The engine's handle of each key table. */
const KEY_TABLE = 11;
const withKeys = stub<NativeEngine>({ keyTableCreate: () => KEY_TABLE });
const native = stub<EngineChoice>({ name: "native", native: withKeys });
const POLLING = { host: { busyPoll: true, realtime: false } };
const REALTIME = { host: { busyPoll: false, realtime: true } };

describe("the context of ingress threads", () => {
  it("is null when none are configured, for any engine", () => {
    expect(createNativeIngressContext(configOf(0), portable, 8)).toBeNull();
  });

  it("is rejected for an engine that sends from one thread, naming the requirement", () => {
    expect(() => createNativeIngressContext(configOf(2), portable, 8)).toThrow(SetupError);
    expect(() => createNativeIngressContext(configOf(2), portable, 8)).toThrow(
      /http\.threads.*set 0, or run/,
    );
  });

  it("is rejected where no ingress thread can speak TLS, whatever the reason", () => {
    const tls = { certificate: "a.pem", key: "b.pem" };
    for (const [threads, engine, processors] of [
      [0, native, 8],
      [0, portable, 8],
      [null, portable, 8],
      [null, native, 1],
    ] as const) {
      expect(() =>
        createNativeIngressContext(configOf(threads, {}, tls), engine, processors),
      ).toThrow(/^http\.tls: the threads of http\.threads speak TLS, and there are none/);
    }
    expect(createNativeIngressContext(configOf(null, {}, tls), native, 2)?.count).toBe(2);
  });

  it("is rejected for QUIC clients without ingress threads", () => {
    const quic = stub<Config["quic"]>({ listen: { host: "127.0.0.1", port: 0 } });
    for (const [config, engine] of [
      [configOf(0, { quic }), native],
      [configOf(null, { quic }), portable],
    ] as const) {
      expect(() => createNativeIngressContext(config, engine, 8)).toThrow(
        /^quic\.listen: QUIC clients are served by the threads of http\.threads/,
      );
    }
    expect(createNativeIngressContext(configOf(1, { quic }), native, 8)?.count).toBe(1);
  });

  it("is rejected where no ingress thread can have real-time priority", () => {
    for (const engine of [native, portable]) {
      expect(() => createNativeIngressContext(configOf(0, REALTIME), engine, 8)).toThrow(
        SetupError,
      );
    }
    expect(() => createNativeIngressContext(configOf(null, REALTIME), native, 1)).toThrow(
      /host\.realtime/,
    );
    expect(createNativeIngressContext(configOf(null, REALTIME), native, 8)?.realtime).toBe(true);
    expect(createNativeIngressContext(configOf(null), native, 8)?.realtime).toBe(false);
  });

  it("is rejected where real-time threads would leave too few processors", () => {
    expect(() => createNativeIngressContext(configOf(5, REALTIME), native, 8)).toThrow(SetupError);
    expect(() => createNativeIngressContext(configOf(5, REALTIME), native, 8)).toThrow(
      /5 of 8 processors/,
    );
    expect(createNativeIngressContext(configOf(4, REALTIME), native, 8)?.count).toBe(4);
    expect(createNativeIngressContext(configOf(5), native, 8)?.count).toBe(5);
  });

  it.each([
    ["two with the native engine", native, 2, {}, 2],
    ["two below twelve processors", native, 11, {}, 2],
    ["one for each four processors", native, 15, {}, 3],
    ["a few on many", native, 64, {}, 4],
    ["none with the portable engine", portable, 8, {}, undefined],
    ["none on one processor", native, 1, {}, undefined],
    ["none where the main thread polls", native, 8, POLLING, undefined],
    ["one with real-time priority on two processors", native, 3, REALTIME, 1],
    ["two with real-time priority on four processors", native, 4, REALTIME, 2],
  ])("has the default of %s", (_, engine, processors, other, count) => {
    expect(createNativeIngressContext(configOf(null, other), engine, processors)?.count).toBe(
      count,
    );
  });
});

describe("ingress threads in their context", () => {
  const OPTIONS = {
    host: "127.0.0.1",
    port: 0,
    socket: null,
    connectionsMax: 10,
    connectionsPerAddress: 5,
    upstreamConnectionsMax: 8,
    readTimeoutMs: 10_000,
    idleTimeoutMs: 75_000,
    quic: null,
    forwardedHeader: "x-0a",
    keylessResults: [],
    certificates: [],
  };

  const engine = { handle: 0 };
  const RESOURCES: IngressResources = {
    engineHandle: () => engine.handle,
    pathHandle: () => engine.handle + 1,
    decoder: 1,
    takeUnreadBytesMax: () => 0,
  };

  function built(count: number, choice: EngineChoice) {
    const context = createNativeIngressContext(configOf(count), choice, 2);
    if (context === null) throw new Error("no context");
    const followers: unknown[] = [];
    const table = stub<NativeIngressDeps["keys"]["table"]>({
      follow: (follower) => void followers.push(follower),
    });
    const deps: NativeIngressDeps = {
      clock: createFakeClock(),
      log: stub({}),
      keys: { table, globalLimits: null },
      flushEvents: () => {},
      engine: RESOURCES,
    };
    return { context, followers, ingressThreads: buildNativeIngress(context, deps, OPTIONS) };
  }

  it("start with counters of their own, each with its share of all connections", () => {
    const listened: number[] = [];
    const starts: { options: NativeIngressThreadOptions; counters: Uint8Array }[] = [];
    const starting = stub<NativeEngine>({
      keyTableCreate: () => KEY_TABLE,
      ingressThreadStart: (options, counters) => starts.push({ options, counters }),
      socketListen: () => 3,
      ingressThreadsListen: (_threads, _descriptor, perAddress) => {
        listened.push(perAddress);
        return 8_899;
      },
    });
    const { context, followers, ingressThreads } = built(
      3,
      stub<EngineChoice>({ name: "native", native: starting }),
    );
    // The engine's keys follow those of the main thread.
    expect(followers).toEqual([context.keys]);
    // The engine runs once they start, and not before.
    engine.handle = 5;
    expect(ingressThreads.start(40_404)).toEqual({ port: 8_899, quicPort: null });
    const common = {
      engine: 5,
      path: 6,
      decoder: 1,
      keys: KEY_TABLE,
      realtime: false,
      connectionsMax: 4,
      upstreamConnectionsMax: 2,
    };
    // One address may have half of the connections, and so half of what each thread proxies.
    const bounds = {
      upstreamConnectionsPerAddress: 1,
      readTimeoutMs: 10_000,
      idleTimeoutMs: 75_000,
    };
    const options = { ...common, ...bounds, upstreamPort: 40_404, forwardedHeader: "x-0a" };
    expect(starts).toHaveLength(3);
    for (const start of starts) expect(start.options).toMatchObject(options);
    expect(new Set(starts.map(({ counters }) => counters.buffer)).size).toBe(3);
    expect(listened).toEqual([5]);
  });
});
