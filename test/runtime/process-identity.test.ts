import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import {
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
