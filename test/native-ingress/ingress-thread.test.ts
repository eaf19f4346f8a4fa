/** One ingress thread as the main thread manages it: its start options. */

import { describe, expect, it } from "vitest";
import { INGRESS_THREAD_OPTIONS, NO_PRIORITY } from "../../src/native/contract.ts";
import { ingressThreadCountersMemory } from "../../src/native-ingress/thread-counters.ts";
import { faultOf, fixture, KEY_TABLE, shared, UPSTREAM_PORT } from "./fixture.ts";

describe("an ingress thread that starts", () => {
  it("receives its options and its upstream port", () => {
    const { ingressThreads, threads } = fixture();
    ingressThreads.start(UPSTREAM_PORT);
    const common = {
      keylessResults: [],
      engine: 7,
      path: 9,
      decoder: 1,
      keys: KEY_TABLE,
      realtime: false,
      connectionsMax: 10,
      upstreamConnectionsMax: 5,
    };
    const bounds = {
      upstreamConnectionsPerAddress: 3,
      readTimeoutMs: 10_000,
      idleTimeoutMs: 75_000,
    };
    const options = {
      ...common,
      ...bounds,
      upstreamPort: UPSTREAM_PORT,
      forwardedHeader: "x-relayed",
    };
    expect(threads).toHaveLength(2);
    for (const thread of threads) expect(thread.options).toMatchObject(options);
  });

  it("receives the whole memory of its own counters", () => {
    const { ingressThreads, threads } = fixture();
    ingressThreads.start(UPSTREAM_PORT);
    for (const { counters } of threads) {
      expect(counters.length).toBe(shared(counters).byteLength);
      expect(counters.length).toBe(ingressThreadCountersMemory().byteLength);
    }
    expect(new Set(threads.map(({ counters }) => shared(counters))).size).toBe(2);
  });

  it.each([
    [NO_PRIORITY, /^host\.realtime: .*CAP_SYS_NICE.*LimitRTPRIO.*--ulimit rtprio/],
    [INGRESS_THREAD_OPTIONS, /^http\.threads: a thread could not be started, .* returned -80$/],
    [0, /^http\.threads: /],
  ])("reports what is required when the engine returns %d", (answer, words) => {
    const { engine, ingressThreads } = fixture(1);
    engine.startResults = [answer];
    expect(faultOf(() => ingressThreads.start(UPSTREAM_PORT)).message).toMatch(words);
  });
});
