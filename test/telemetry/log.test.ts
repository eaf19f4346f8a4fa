import { describe, expect, it } from "vitest";
import { createLog, type LogLevel } from "../../src/telemetry/log.ts";
import { HIDDEN, redactFields } from "../../src/telemetry/redact.ts";
import { fc } from "../support/properties.ts";

const CANARY = "td_C4naryC4naryC4naryC4nary_0-9";

function capture(level: LogLevel = "debug") {
  const lines: string[] = [];
  const log = createLog({
    level,
    base: { region: "test" },
    destination: { write: (line) => void lines.push(line) },
  });
  return { log, lines };
}

/** The only line, parsed; fails when it is not one JSON object on one line. */
function only(lines: readonly string[]): Record<string, unknown> {
  expect(lines).toHaveLength(1);
  const line = lines[0] ?? "";
  expect(line.endsWith("\n")).toBe(true);
  expect(line.trimEnd()).not.toContain("\n");
  // The log writes objects; anything else fails the assertions that follow.
  return JSON.parse(line) as Record<string, unknown>;
}

describe("the log", () => {
  it("writes one JSON object per line, with level, time, base fields and message", () => {
    const { log, lines } = capture();
    log.info({ slot: 5, leader: "abc" }, "a line\nwith a break");
    const line = only(lines);
    expect(line).toMatchObject({
      level: "info",
      region: "test",
      slot: 5,
      leader: "abc",
      msg: "a line\nwith a break",
    });
    expect(new Date(String(line["time"])).toISOString()).toBe(line["time"]);
  });

  it("omits what is below its level", () => {
    const { log, lines } = capture("warn");
    log.debug({}, "no");
    log.info({}, "no");
    log.warn({}, "yes");
    log.error({}, "yes");
    expect(lines).toHaveLength(2);
  });

  const circular: Record<string, unknown> = { note: CANARY };
  circular["self"] = circular;
  const error = new Error(`refused ${CANARY}`, { cause: new Error(`because ${CANARY}`) });
  Object.assign(error, { token: "short and secret", detail: { headers: [`x ${CANARY}`] } });

  const positions: readonly [string, object][] = [
    ["a plain field", { note: CANARY }],
    ["a field's name", { [CANARY]: 1 }],
    ["the middle of a text", { note: `key=${CANARY}, end` }],
    ["a nested field", { a: { b: { c: { d: CANARY } } } }],
    ["an array", { list: [1, [CANARY], { x: CANARY }] }],
    ["a map", { map: new Map([[CANARY, { CANARY }]]) }],
    ["a set", { set: new Set([CANARY]) }],
    ["an error", { error }],
    ["an error as the fields", error],
    ["several errors", { error: new AggregateError([error], CANARY) }],
    ["a URL", { url: new URL(`http://host/?x=${CANARY}`) }],
    ["bytes", { bytes: Buffer.from(CANARY) }],
    ["a cycle", circular],
    ["a text too long", { note: "x ".repeat(4090) + CANARY + "y".repeat(20_000) }],
    ["what has a toJSON", { odd: { toJSON: () => CANARY } }],
    ["below the depth that is followed", { a: { b: { c: { d: { e: { f: { g: CANARY } } } } } } }],
  ];

  it.each(positions)("never shows a key in %s", (_name, fields) => {
    const { log, lines } = capture();
    log.error(fields, `said ${CANARY} twice ${CANARY}`);
    only(lines);
    expect(lines.join("")).not.toContain("C4nary");
  });

  it.each([
    "api-x-token",
    "API-X-TOKEN",
    "apiXToken",
    "token",
    "key",
    "password",
    "authorization",
    "secret_key",
  ])("hides the value of a field named %s, whatever its content", (name) => {
    const clean = redactFields({ headers: { [name]: "plain" }, list: [{ [name]: ["plain"] }] });
    expect(JSON.stringify(clean)).not.toContain("plain");
  });

  it("redacts a header's value, a password in a URL and a key in a query", () => {
    const clean = redactFields({
      a: "api-x-token: any!visible$text",
      b: "postgres://user:p4ss@host/db",
      c: "https://rpc.example/?api-key=0123-4567&x=1",
      d: "Authorization: Bearer abcdef",
    });
    expect(clean).toEqual({
      a: `api-x-token: ${HIDDEN}`,
      b: `postgres://user:${HIDDEN}@host/db`,
      c: `https://rpc.example/?api-key=${HIDDEN}&x=1`,
      d: `Authorization: Bearer ${HIDDEN}`,
    });
  });

  it("keeps an error's type, message, stack, code and cause", () => {
    const fault = Object.assign(new TypeError("bad"), { code: "E_BAD", cause: new Error("root") });
    const clean = redactFields({ fault });
    expect(clean["fault"]).toMatchObject({
      type: "TypeError",
      message: "bad",
      code: "E_BAD",
      cause: { message: "root" },
    });
  });

  it("does not change its arguments", () => {
    const fields = Object.freeze({ token: "x", deep: Object.freeze({ note: CANARY }) });
    redactFields(fields);
    expect(fields).toEqual({ token: "x", deep: { note: CANARY } });
  });

  it("writes a line for any arguments, and never throws", () => {
    fc.assert(
      fc.property(fc.object({ withBigInt: true, withDate: true, withMap: true }), (fields) => {
        const { log, lines } = capture();
        log.info(fields, "m");
        only(lines);
      }),
      { numRuns: 200 },
    );
  });
});
