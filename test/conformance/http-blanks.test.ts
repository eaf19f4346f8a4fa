/**
 * Only spaces and tabs around a header value are not part of it (RFC 9110, 5.5). A server that
 * strips other bytes reads a different length or key than a proxy in front of it.
 */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { native } from "../native/addon.ts";
import { connectRaw, type Fixture, KEY, once, RAW, RPC, startFixture } from "./http-fixture.ts";

const BODY = "a".repeat(452);
/** No-break spaces and other bytes that are not header whitespace. */
const ODD = ["\xa0", "\xff", "\x80", "\xc2\xa0", "\xe2\x80\x89", "\x7f"];
/** Control characters, which no value may contain. */
const CONTROLS = ["\x0b", "\x0c", "\x01"];
const PATHS = [RAW, RPC, "/", "/nowhere"];

interface Parts {
  readonly path?: string;
  readonly length?: string;
  readonly key?: string;
}

function request({ path = RAW, length = "452", key = KEY }: Parts): Buffer {
  const lines = [`POST ${path} HTTP/1.1`, "Host: x", `api-x-token: ${key}`];
  return Buffer.from(`${lines.join("\r\n")}\r\nContent-Length: ${length}\r\n\r\n${BODY}`, "latin1");
}

const around = (value: string, odd: string) => [
  value + odd,
  odd + value,
  `${value} ${odd}`,
  `${value}${odd}\t`,
];

describe.skipIf(native === null)("with an ingress thread", () => {
  let edge: Fixture;
  beforeAll(async () => {
    edge = await startFixture({ ingressEngine: native });
  });
  afterAll(() => edge?.stop());

  it.each(PATHS)("a length with other bytes around it is rejected on %s", async (path) => {
    for (const length of [...ODD, ...CONTROLS].flatMap((odd) => around("452", odd))) {
      const client = await connectRaw(edge.port);
      client.write(Buffer.concat([request({ path, length }), request({})]));
      expect([length, (await client.response()).status]).toEqual([length, 400]);
      await client.ended();
    }
    expect(edge.submitted.splice(0)).toEqual([]);
  });

  it("a key with other bytes around it is another key", async () => {
    for (const path of [RAW, RPC]) {
      for (const [bytes, wanted] of [
        [ODD, 401],
        [CONTROLS, 400],
      ] as const) {
        for (const key of bytes.flatMap((odd) => around(KEY, odd))) {
          const { status } = await once(edge.port, request({ path, key }));
          expect([key, status]).toEqual([key, wanted]);
        }
      }
    }
    expect(edge.submitted.splice(0)).toEqual([]);
  });

  it("spaces and tabs around either are ignored", async () => {
    for (const blank of [" ", "\t", " \t "]) {
      const parts = { length: `${blank}452${blank}`, key: `${blank}${KEY}${blank}` };
      const { status, body } = await once(edge.port, request(parts));
      expect([status, JSON.parse(body)]).toMatchObject([400, { reason: "undecodable" }]);
    }
    expect(edge.refused.splice(0)).toEqual(new Array(3).fill("acme undecodable"));
  });
});
