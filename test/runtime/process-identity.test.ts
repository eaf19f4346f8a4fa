import { spawn } from "node:child_process";
import { once } from "node:events";
import { constants } from "node:os";
import { describe, expect, it } from "vitest";
import {
  catchesSignal,
  hasEnded,
  isAlive,
  ownIdentity,
  parseIdentity,
} from "../../src/runtime/process-identity.ts";

const own = parseIdentity(ownIdentity());
if (own === null) throw new Error("a mark that cannot be read");

describe("a process identity", () => {
  it("is alive while its process is, also identified by its start time", () => {
    expect(own).toMatchObject({ pid: process.pid });
    expect([isAlive(own), hasEnded(own)]).toEqual([true, false]);
    const before = { ...own, start: "1" };
    expect([isAlive(before), hasEnded(before)]).toEqual([false, true]);
  });

  it("of an ended process is reported dead, except from another namespace", async () => {
    const child = spawn(process.execPath, ["-e", ""]);
    await once(child, "exit");
    const ended = { ...own, pid: child.pid ?? 0 };
    expect([isAlive(ended), hasEnded(ended)]).toEqual([false, true]);
    expect(hasEnded({ ...ended, namespace: "pid:[1]" })).toBe(false);
    expect(hasEnded({ ...ended, namespace: null })).toBe(own.namespace === null);
  });

  it.each(["", "{", "null", "7", "{}", '{"pid":"7"}', '{"pid":0}', '{"pid":-1}', '{"pid":1.5}'])(
    "is null in %s",
    (text) => {
      expect(parseIdentity(text)).toBeNull();
    },
  );

  it("tells whether its process has a handler for a signal", async () => {
    const { SIGUSR1, SIGUSR2, SIGURG } = constants.signals;
    const script = 'process.on("SIGUSR2", () => {}); console.log("on"); setInterval(() => {}, 1e6)';
    const child = spawn(process.execPath, ["-e", script]);
    await once(child.stdout, "data");
    const pid = child.pid ?? 0;
    // Node has one for SIGUSR1.
    const caught = [SIGUSR1, SIGUSR2, SIGURG].map((signal) => catchesSignal(pid, signal));
    child.kill("SIGKILL");
    await once(child, "exit");
    expect([caught, catchesSignal(pid, SIGUSR2)]).toEqual([[true, true, false], false]);
  });

  it("is read from the format of earlier versions", () => {
    expect(parseIdentity('{"pid":7,"start":"42"}')).toEqual({
      pid: 7,
      start: "42",
      namespace: null,
    });
    expect(parseIdentity('{"pid":7,"start":null}')).toEqual({
      pid: 7,
      start: null,
      namespace: null,
    });
  });
});
