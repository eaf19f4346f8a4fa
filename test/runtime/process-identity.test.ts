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

describe("a process's mark", () => {
  it("is alive as long as its process, whose it is by the time of its start too", () => {
    expect(own).toMatchObject({ pid: process.pid });
    expect([isAlive(own), hasEnded(own)]).toEqual([true, false]);
    const before = { ...own, start: "1" };
    expect([isAlive(before), hasEnded(before)]).toEqual([false, true]);
  });

  it("of a process that has ended is gone for certain, but for one of another space", async () => {
    const child = spawn(process.execPath, ["-e", ""]);
    await once(child, "exit");
    const ended = { ...own, pid: child.pid ?? 0 };
    expect([isAlive(ended), hasEnded(ended)]).toEqual([false, true]);
    expect(hasEnded({ ...ended, namespace: "pid:[1]" })).toBe(false);
    expect(hasEnded({ ...ended, namespace: null })).toBe(own.namespace === null);
  });

  it.each(["", "{", "null", "7", "{}", '{"pid":"7"}', '{"pid":0}', '{"pid":-1}', '{"pid":1.5}'])(
    "is none in %s",
    (text) => {
      expect(parseIdentity(text)).toBeNull();
    },
  );

  it("is one in what versions before wrote", () => {
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
