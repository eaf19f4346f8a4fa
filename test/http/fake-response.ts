/** A response that, like the real one, throws once it has ended, and takes back chunks. */

import type { UwsResponse } from "../../src/http/request-context.ts";
import {
  type LatencySink,
  RequestTracker,
  type RequestTrackerDeps,
} from "../../src/http/request-tracker.ts";
import type { FakeClock } from "../support/fake-clock.ts";

export interface FakeResponse extends UwsResponse {
  readonly calls: string[];
  abort(): void;
  /** From now on the client reads nothing, until `drain`: of `bytes` bytes, or of all. */
  stall(): void;
  drain(bytes?: number): void;
  chunk(bytes: Uint8Array, isLast: boolean): void;
}

export function fakeResponse(): FakeResponse {
  const calls: string[] = [];
  let onAborted = (): void => {};
  let onData: (chunk: ArrayBuffer, isLast: boolean) => void = () => {};
  let onWritable: (offset: number) => boolean = () => true;
  let offset = 0;
  let takesIn = true;
  let isOver = false;
  let hasStatus = false;
  const use = (name: string): void => {
    if (isOver) throw new Error(`${name} after the end`);
    calls.push(name);
  };
  return {
    calls,
    onAborted(handler) {
      use("onAborted");
      onAborted = handler;
    },
    onData(handler) {
      use("onData");
      onData = handler;
    },
    cork(act) {
      use("cork");
      act();
    },
    writeStatus(status) {
      hasStatus = true;
      use(`status ${status}`);
    },
    writeHeader(key, value) {
      // The real response does the same.
      if (!hasStatus) use("status 200 OK");
      hasStatus = true;
      use(`${key}: ${value.slice(0, 40)}`);
    },
    write(chunk) {
      use(`write ${chunk}`);
      return takesIn;
    },
    onWritable(handler) {
      use("onWritable");
      onWritable = handler;
    },
    stall() {
      takesIn = false;
    },
    drain(bytes = 0) {
      takesIn = bytes === 0;
      offset += bytes;
      onWritable(offset);
    },
    end(body, close) {
      use(`end ${body}${close ? " and close" : ""}`);
      isOver = true;
    },
    tryEnd(body) {
      if (!takesIn) {
        use("tryEnd");
        return [false, false];
      }
      use(`end ${Buffer.from(body).toString()}`);
      isOver = true;
      return [true, true];
    },
    pause: () => use("pause"),
    getRemoteAddressAsText: () => new TextEncoder().encode("127.0.0.1").buffer,
    endWithoutBody() {
      use("end");
      isOver = true;
    },
    close() {
      use("close");
      isOver = true;
      onAborted();
    },
    abort() {
      isOver = true;
      onAborted();
    },
    chunk(bytes, isLast) {
      const chunk = bytes.slice().buffer;
      onData(chunk, isLast);
      structuredClone(chunk, { transfer: [chunk] });
    },
  };
}

export function trackerOn(
  clock: FakeClock,
  errors: object[] = [],
  latency: LatencySink | null = null,
  rejected: RequestTrackerDeps["rejected"] = undefined,
): RequestTracker {
  const log = { info: () => {}, warn: () => {}, error: (fields: object) => errors.push(fields) };
  return new RequestTracker({ clock, log, latency, rejected }, { requestDeadlineMs: 100 });
}
