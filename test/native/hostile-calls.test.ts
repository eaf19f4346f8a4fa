import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { OK } from "../../src/native/contract.ts";
import { ADDON_PATH } from "../../src/native/load.ts";
import { ingressThreadCountersMemory } from "../../src/native-ingress/thread-counters.ts";
import { native } from "./addon.ts";

const contract = readFileSync(new URL("../../src/native/contract.ts", import.meta.url), "utf8");

/** Of `native/src/node/status_codes.rs`. */
const START_OPTIONS = -11;
const OPTIONS = {
  seed: new Uint8Array(32),
  queueMax: 64,
  inFlightMax: 64,
  admissionTimeoutMs: 1000,
  idleTimeoutMs: 1000,
  keepAliveMs: 1000,
  busyPollUs: 0,
};

/** Every function of the contract with the types of its parameters. */
const exported = [...contract.matchAll(/^ {2}(\w+)\(((?:[^()]|\(\))*)\): number;/gm)].map(
  ([, name = "", list = ""]) => ({
    name,
    types: [...list.matchAll(/\w+: ([^,\n]+),?/g)].map(([, type = ""]) => type),
  }),
);

interface Count {
  readonly answered: number;
  /** The handles of these, above 0. */
  readonly positive: number;
  readonly threw: number;
}
type CallCounts = Readonly<Record<string, Count>>;

/** What ingress threads require. */
const countersBytes = ingressThreadCountersMemory().byteLength;

/** Each thread's counts; throws with the process's output where it failed. */
function storm(options: object): readonly CallCounts[] {
  const script = fileURLToPath(new URL("../support/native-storm.mjs", import.meta.url));
  const given = JSON.stringify({ addon: ADDON_PATH, exports: exported, countersBytes, ...options });
  const ran = spawnSync(process.execPath, [script, given], { encoding: "utf8" });
  if (ran.status !== 0) throw new Error(`${ran.signal ?? ran.status}: ${ran.stderr.slice(-2000)}`);
  // The script belongs to this project and writes nothing else.
  return JSON.parse(ran.stdout) as readonly CallCounts[];
}

describe.skipIf(native === null)("an export called with arbitrary arguments", () => {
  it("is covered by the test", () => {
    const functions = Object.keys(native ?? {});
    expect(exported.map(({ name }) => name).sort()).toEqual(functions.sort());
  });

  it("allocates nothing for the claimed length of an array", () => {
    const binds = new Array<string>(2 ** 32 - 1);
    expect(native?.engineStart({ ...OPTIONS, binds }, () => undefined)).toBe(START_OPTIONS);
    const sixteen = Array.from({ length: 16 }, () => "127.0.0.1:0");
    expect(native?.engineStart({ ...OPTIONS, binds: [...sixteen, ""] }, () => undefined)).toBe(
      START_OPTIONS,
    );
    const handle = native?.engineStart({ ...OPTIONS, binds: sixteen }, () => undefined) ?? 0;
    expect(handle).toBeGreaterThan(0);
    expect(native?.engineStop(handle, 0)).toBe(OK);
  });

  it("returns a code or throws, before start, after stop, and never crashes", () => {
    const [own] = storm({ rounds: 20_000, seed: 1, workers: 0 });
    for (const { name, types } of exported) {
      expect(own?.[name]?.answered, name).toBeGreaterThan(0);
      if (types.length > 0) expect(own?.[name]?.threw, name).toBeGreaterThan(0);
    }
    for (const name of [
      "engineStart",
      "decoderCreate",
      "ingressThreadStart",
      "ingressThreadsListen",
      "submitPathOpen",
    ]) {
      expect(own?.[name]?.positive, name).toBeGreaterThan(0);
    }
  });

  it("does so on several threads, while engines and threads start and stop", () => {
    const counts = storm({ rounds: 6_000, seed: 7, workers: 3 });
    expect(counts).toHaveLength(4);
    for (const each of counts) expect(Object.keys(each)).toHaveLength(exported.length);
  });

  it("outlives threads that started engines and ingress threads and exited", () => {
    const [, ...counts] = storm({ rounds: 10_000, seed: 9, workers: 2, onlyWorkers: true });
    for (const each of counts) expect(each["engineStart"]?.answered).toBeGreaterThan(0);
    expect(counts.some((each) => (each["ingressThreadStart"]?.positive ?? 0) > 0)).toBe(true);
  });
});
