import { describe, expect, it } from "vitest";
import { LOG_DEPTH_MAX, LOG_ENTRIES_MAX, LOG_TEXT_CHARS_MAX } from "../../src/telemetry/limits.ts";
import { HIDDEN, redactFields, redactLine, redactText } from "../../src/telemetry/redact.ts";

const KEY = "td_0123456789abcdef";

describe("a finished line", () => {
  it("stays valid JSON without its keys", () => {
    const line = JSON.stringify({ msg: `two: ${KEY} and ${KEY}_-Z`, n: 1 });
    expect(JSON.parse(redactLine(line))).toEqual({ msg: `two: ${HIDDEN} and ${HIDDEN}`, n: 1 });
  });

  it("keeps what is too short to be a key", () => {
    const short = KEY.slice(0, -1);
    expect(redactLine(short)).toBe(short);
    expect(redactLine(KEY)).toBe(HIDDEN);
  });
});

describe("a text", () => {
  it.each([
    ["http://user:secret@host/path", `http://user:${HIDDEN}@host/path`],
    ["ws://:secret@host", `ws://:${HIDDEN}@host`],
    ["?API_KEY=secret&x=1", `?API_KEY=${HIDDEN}&x=1`],
    ["a?x=1&access-token=secret", `a?x=1&access-token=${HIDDEN}`],
    ['{"x-token": "secret"}', `{"x-token": "${HIDDEN}`],
    ["authorization=basic secret", `authorization=basic ${HIDDEN}`],
  ])("loses the secret of %s", (text, clean) => {
    expect(redactText(text)).toBe(clean);
  });

  it.each([
    "http://host:8080/path?slot=5",
    "connected to user@host",
    "the key is wrong, the token too",
    "127.0.0.1:8009 and [::1]:8009",
    "td_short",
  ])("is unchanged without a secret: %s", (text) => {
    expect(redactText(text)).toBe(text);
  });
});

describe("fields", () => {
  it("lose a value named like a secret, even an empty one, but not null", () => {
    expect(redactFields({ token: null, password: "", key: 0 })).toEqual({
      token: null,
      password: HIDDEN,
      key: HIDDEN,
    });
  });

  it.each([
    "x-token",
    "X_Token",
    "api-x-token",
    "x-api-key",
    "apiKey",
    "authorization",
    "cookie",
    "set-cookie",
    "key",
    "password",
    "private_key",
    "secret",
    "secretKey",
    "token",
  ])("named %s are hidden at any depth", (name) => {
    const secret = "any visible ASCII";
    const clean = redactFields({ [name]: secret, inner: { [name]: [secret] } });
    expect(clean).toEqual({ [name]: HIDDEN, inner: { [name]: HIDDEN } });
  });

  it("are cut at the bound of entries, with the count of the rest", () => {
    const entries = (count: number): object =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`f${index}`, index]));
    expect(Object.keys(redactFields(entries(LOG_ENTRIES_MAX)))).toHaveLength(LOG_ENTRIES_MAX);
    const cut = redactFields(entries(LOG_ENTRIES_MAX + 3));
    expect(Object.keys(cut)).toHaveLength(LOG_ENTRIES_MAX + 1);
    expect(cut["…"]).toBe("3 more");
    const list = new Array(LOG_ENTRIES_MAX + 2).fill(1);
    expect(redactFields({ list })["list"]).toEqual([...list.slice(2), "2 more"]);
  });

  it("are followed down to the bound of depth", () => {
    const nested = (depth: number): object => (depth === 0 ? {} : { a: nested(depth - 1) });
    const shown = (depth: number): string => JSON.stringify(redactFields(nested(depth)));
    expect(shown(LOG_DEPTH_MAX)).not.toContain("[deeper]");
    expect(shown(LOG_DEPTH_MAX + 1)).toContain('{"a":"[deeper]"}');
  });

  it("may contain the same object twice, but not within itself", () => {
    const shared = { slot: 5 };
    const circle: { self?: object } = {};
    circle.self = circle;
    expect(redactFields({ a: shared, b: [shared, shared] })).toEqual({
      a: shared,
      b: [shared, shared],
    });
    expect(redactFields({ circle })).toEqual({ circle: { self: "[circular]" } });
  });

  it("show values that JSON cannot represent", () => {
    const clean = redactFields({
      big: 2n ** 64n,
      act: () => 1,
      sign: Symbol("x"),
      bytes: new Uint8Array(32),
      when: new Date(0),
      where: new URL("http://u:p@host/"),
      map: new Map([["a", 1]]),
      set: new Set([1]),
      nothing: undefined,
    });
    expect(clean).toEqual({
      big: "18446744073709551616",
      act: "[function]",
      sign: "[symbol]",
      bytes: "[32 bytes]",
      when: "1970-01-01T00:00:00.000Z",
      where: `http://u:${HIDDEN}@host/`,
      map: [["a", 1]],
      set: [1],
      nothing: undefined,
    });
  });

  it("cut a long text before a word at the limit, and show its length", () => {
    const whole = "x".repeat(LOG_TEXT_CHARS_MAX);
    expect(redactFields({ whole })["whole"]).toBe(whole);
    const long = `${"y ".repeat(LOG_TEXT_CHARS_MAX / 2 - 4)}${KEY}`;
    expect(long.length).toBeGreaterThan(LOG_TEXT_CHARS_MAX);
    const cut = String(redactFields({ long })["long"]);
    expect(cut).toMatch(/y … \(\d+ characters\)$/);
    expect(cut).toContain(`(${long.length} characters)`);
    expect(cut).not.toContain("td_");
  });
});
