import { expect, it } from "vitest";
import { TARGETS_MAX } from "../../src/core/limits.ts";
import { NO_ROOM, OK } from "../../src/native/contract.ts";
import { native } from "./addon.ts";

/** Of `native/src/node/status_codes.rs`. */
const NOT_STARTED = -1;
const OPTIONS = {
  ...{ binds: ["127.0.0.1:0"], seed: new Uint8Array(32) },
  ...{ queueMax: 64, inFlightMax: 64, busyPollUs: 0 },
  ...{ admissionTimeoutMs: 1000, idleTimeoutMs: 1000, keepAliveMs: 1000 },
};

it.skipIf(native === null)("targets are lists of one length, of an engine that runs", () => {
  if (native === null) throw new Error("it is skipped without the addon");
  const { targetsSet } = native;
  const list = (length: number) => new Uint32Array(length).fill(1);
  const engine = native.engineStart(OPTIONS, () => {});
  expect(targetsSet(engine, list(0), list(0), 800)).toBe(OK);
  expect(targetsSet(engine, list(TARGETS_MAX), list(TARGETS_MAX), 800)).toBe(OK);
  expect(targetsSet(engine, list(TARGETS_MAX + 1), list(TARGETS_MAX + 1), 800)).toBe(NO_ROOM);
  expect(targetsSet(engine, list(2), list(1), 800)).toBe(NO_ROOM);
  native.engineStop(engine, 0);
  expect(targetsSet(engine, list(1), list(1), 800)).toBe(NOT_STARTED);
});
