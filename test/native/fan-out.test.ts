/**
 * One transaction for several leaders, which the main thread accepts, is one call of the native
 * engine, parsed and verified once: measured by the counters of its decoder and by the calls that
 * the edge makes.
 */

import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { encodeBase64 } from "../../src/core/encoding.ts";
import { DECODER_COUNTERS, type NativeEngine } from "../../src/native/contract.ts";
import { type Flow, startFlow, untilResponse } from "../support/flow.ts";
import { until } from "../support/wait.ts";
import { native } from "./addon.ts";

const LEADERS = 4;
/** A random schedule usually has four different leaders in the next windows. */
const SEARCH_MS = 60_000;

describe.skipIf(native === null)("one transaction for several leaders", () => {
  let flow: Flow;
  const calls = native === null ? null : spied(native);
  beforeAll(async () => {
    flow = await startFlow({
      leaderCount: LEADERS,
      edge: {
        landing: { resends_per_second: 0 },
        send: { leaders: LEADERS, engine: "native" },
      },
    });
  });
  afterAll(async () => {
    await flow?.stop();
    vi.restoreAllMocks();
  });

  /** Submits one transaction; returns its leader count. */
  async function postOne(isRaw: boolean): Promise<number> {
    if (calls === null) throw new Error("the native engine is not built");
    const before = calls.verified();
    calls.submit.mockClear();
    const { bytes, signature } = flow.tipped();
    expect((await (isRaw ? flow.postRaw(bytes) : flow.postRpc([encodeBase64(bytes)]))).status).toBe(
      200,
    );
    const { json } = await untilResponse(
      "its acknowledgements",
      () => flow.receipt(signature),
      (receipt) => deliveriesOf(receipt.json).every(({ state }) => state === "acked"),
    );
    const leaders = deliveriesOf(json).map(({ identity }) => identity);
    await until("every delivery", () => flow.deliveriesOf(bytes) === leaders.length);
    const had = flow.received.filter((it) => it.bytes.equals(bytes)).map(({ leader }) => leader);
    expect(new Set(had).size).toBe(leaders.length);

    expect(calls.submit).toHaveBeenCalledTimes(1);
    for (const other of [calls.decode, calls.txSend]) expect(other).not.toHaveBeenCalled();
    // Its one signature is verified once.
    expect(calls.verified() - before).toBe(1);
    return leaders.length;
  }

  it.each([
    ["as bytes", true],
    ["as a JSON-RPC call", false],
  ])("is one call, verified once: %s", async (_, isRaw) => {
    const endNs = systemClock.nowNs() + SEARCH_MS * 1e6;
    while ((await postOne(isRaw)) < LEADERS) {
      if (systemClock.nowNs() > endNs) throw new Error("no plan named four leaders");
    }
  });
});

/** The addon's calls, and what the next decoder that is created has verified. */
function spied(addon: NativeEngine) {
  const decoderCreate = vi.spyOn(addon, "decoderCreate");
  const counters = new Float64Array(DECODER_COUNTERS);
  return {
    submit: vi.spyOn(addon, "submit"),
    decode: vi.spyOn(addon, "decode"),
    txSend: vi.spyOn(addon, "txSend"),
    verified(): number {
      addon.decoderCounters(decoderCreate.mock.results[0]?.value, counters);
      return counters[0] ?? Number.NaN;
    },
  };
}

function deliveriesOf(json: Readonly<Record<string, unknown>>) {
  // The receipt's format is tested where it is defined.
  return json["leaders"] as readonly { readonly identity: string; readonly state: string }[];
}
