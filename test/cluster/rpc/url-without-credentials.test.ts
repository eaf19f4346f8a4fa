import { describe, expect, it } from "vitest";
import { urlWithoutCredentials } from "../../../src/cluster/rpc/url-without-credentials.ts";

const basic = (text: string): string => `Basic ${Buffer.from(text).toString("base64")}`;

describe("URL without credentials", () => {
  it.each([
    ["ws://node.example", "ws://node.example/", ""],
    ["wss://node.example:8900/a?key=b#part", "wss://node.example:8900/a?key=b", ""],
    ["https://user:pass@node.example/x", "https://node.example/x", basic("user:pass")],
    ["ws://user@[::1]:9/", "ws://[::1]:9/", basic("user:")],
    ["ws://:p%40ss%2f@a/", "ws://a/", basic(":p@ss/")],
    ["ws://100%:%zz@a/", "ws://a/", basic("100%:%zz")],
  ])("splits %s into the URL %s and the Authorization header", (text, href, authorization) => {
    expect(urlWithoutCredentials(text)).toEqual({ href, authorization });
  });
});
