/** The main thread reads exactly the counters of an ingress thread. */

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { REJECTION_NAMES } from "../../src/core/errors.ts";
import { RequestTracker } from "../../src/http/request-tracker.ts";
import {
  HANDSHAKE_RESULTS,
  HTTP_COUNTER_NAMES,
  ingressThreadCounters,
  ingressThreadCountersMemory,
  QUIC_COUNTERS,
  REQUEST_COUNTERS,
} from "../../src/native-ingress/thread-counters.ts";
import { createFakeClock } from "../support/fake-clock.ts";

const QUIET = { info() {}, warn() {}, error() {} };

describe("the counters of an ingress thread", () => {
  it("include all HTTP counters", () => {
    const tracker = new RequestTracker(
      { clock: createFakeClock(), log: QUIET, latency: null },
      { requestDeadlineMs: 1000 },
    );
    expect([...HTTP_COUNTER_NAMES].sort()).toEqual(Object.keys(tracker.counters).sort());
  });

  it("are read by the other side as they are counted, each separately", () => {
    const memory = ingressThreadCountersMemory();
    const [ingress, main] = [ingressThreadCounters(memory), ingressThreadCounters(memory)];
    for (const [index, name] of HTTP_COUNTER_NAMES.entries()) ingress.counters[name] += index + 1;
    for (const [index, reason] of REJECTION_NAMES.entries())
      ingress.rejections[reason] = 100 + index;
    expect(HTTP_COUNTER_NAMES.map((name) => main.counters[name])).toEqual(
      HTTP_COUNTER_NAMES.map((_, i) => i + 1),
    );
    expect(REJECTION_NAMES.map((reason) => main.rejections[reason])).toEqual(
      REJECTION_NAMES.map((_, i) => 100 + i),
    );
  });

  it("have the names and the order of the engine", () => {
    const path = new URL("../../native/src/submit/counters.rs", import.meta.url);
    const rust = readFileSync(path, "utf8");
    const numberOf = (name: string) =>
      Number(new RegExp(`^const ${name}: usize = (\\d+);$`, "m").exec(rust)?.[1]);
    const names = ["HTTP_COUNTERS", "REJECTION_NUMBERS", "REQUEST_COUNTERS", "QUIC_COUNTERS"];
    expect(names.map(numberOf)).toEqual([
      HTTP_COUNTER_NAMES.length,
      REJECTION_NAMES.length,
      REQUEST_COUNTERS.length,
      QUIC_COUNTERS.length,
    ]);
    const [, list = ""] = /pub enum Counter \{([\s\S]*?)\n\}/.exec(rust) ?? [];
    const variants = [...list.matchAll(/^ {4}(\w+)(?: = (\w+))?,$/gm)];
    const camel = (name: string) => name.charAt(0).toUpperCase() + name.slice(1);
    expect(variants.map(([, name]) => name)).toEqual([
      ...HTTP_COUNTER_NAMES.map(camel),
      ...REQUEST_COUNTERS.map(camel),
      ...HANDSHAKE_RESULTS.map((result) => `Handshakes${camel(result)}`),
      ...QUIC_COUNTERS.map((name) => `Quic${camel(name)}`),
    ]);
    const starts = variants.flatMap(([, name, at]) => (at === undefined ? [] : [`${name} ${at}`]));
    expect(starts).toEqual([
      "Connections 0",
      "Proxied REQUESTS_AT",
      "HandshakesFull HANDSHAKES_AT",
      "QuicConnections QUIC_AT",
    ]);
  });
});
