import { describe, expect, it } from "vitest";
import {
  headerSecret,
  hostUrl,
  identities,
  isLoopback,
  namedList,
  networks,
  origin,
  secret,
  storeUrl,
  text,
  urlTemplate,
} from "../../src/config/site-types.ts";
import type { Kind } from "../../src/config/value-types.ts";

function read<T>(kind: Kind<T>, raw: unknown): unknown {
  const reading = kind.read(raw, "/");
  return reading.kind === "ok" ? reading.value : `rejected: ${reading.message}`;
}

describe("text", () => {
  it("is one line of bounded length", () => {
    expect(read(text(3), "abc")).toBe("abc");
    for (const raw of ["", "abcd", "a\nb", 1]) expect(read(text(3), raw)).toMatch(/^rejected/);
  });
});

describe("the address of a store", () => {
  it("has a login that can be decoded, and is not quoted otherwise", () => {
    for (const good of ["redis://h:1", "rediss://:p%25w@h", "redis://u:p@[::1]:6379/2"]) {
      expect(read(storeUrl(), good)).toBe(good);
    }
    const reading = read(storeUrl(), "redis://:50%off@h");
    expect(reading).toBe('rejected: must have a login that is percent-encoded, a "%" in it as %25');
    expect(read(storeUrl(), "http://h")).toMatch(/^rejected: must start with redis:/);
  });
});

describe("networks", () => {
  it("are unique CIDR ranges or addresses", () => {
    for (const list of [[], ["10.0.0.0/8", "::1"], ["2001:db8::/32", "10.1.2.3/32"]]) {
      expect(read(networks(2), list)).toEqual(list);
    }
    for (const raw of ["10.0.0.0/8", ["::1", "::1"], ["10.0.0.1", "10.0.0.2", "::1"], [1]]) {
      expect(read(networks(2), raw)).toMatch(/^rejected/);
    }
  });

  it("are rejected if one is malformed, and the message names it", () => {
    const malformed = [
      "x",
      "10.0.0.0/33",
      "::/129",
      "0.0.0.0/0",
      "10.0.0.0/08",
      "10.0.0.0/255.0.0.0",
    ];
    for (const item of [
      ...malformed,
      "10.0.0/8",
      "proxy.example",
      "fe80::1%eth0",
      "10.0.0.0/8/8",
      "",
    ]) {
      expect(read(networks(2), ["::1", item])).toBe(
        `rejected: must hold networks like 203.0.113.0/24 or 2001:db8::/32, holds "${item}"`,
      );
    }
  });

  it("are comma-separated in the environment, and none in an empty variable", () => {
    expect(networks(2).fromText("::1, 10.0.0.1")).toEqual(["::1", "10.0.0.1"]);
    expect(networks(2).fromText("")).toEqual([]);
  });
});

describe("identities", () => {
  it("consist of an issuer, a space and a subject", () => {
    const list = ["https://login.example/ auth0|5 a", "http://127.0.0.1:1 ada"];
    expect(read(identities(2), list)).toEqual(list);
    const malformed = [
      "ada",
      "https://login.example",
      "https://login.example ",
      "login.example ada",
    ];
    for (const item of [...malformed, "https://login.example  ada", "https:// ada"]) {
      expect(read(identities(2), [item])).toBe(
        `rejected: must hold "ISSUER SUBJECT", the issuer as a URL, holds "${item}"`,
      );
    }
  });
});

describe("secret", () => {
  it("is neither quoted in a message nor shown", () => {
    expect(read(secret(), "s3cret")).toBe("s3cret");
    expect(secret().show("s3cret")).toBe("hidden");
    expect(read(secret(), ["s3cret"])).not.toContain("s3cret");
  });
});

describe("origin", () => {
  it("consists of scheme and host only", () => {
    expect(read(origin(), "https://a.example/")).toBe("https://a.example");
    expect(read(origin(), "http://127.0.0.1:8088")).toBe("http://127.0.0.1:8088");
    for (const raw of ["https://a/b", "https://u@a", "https://a?x", "ftp://a", "a", 1]) {
      expect(read(origin(), raw)).toMatch(/^rejected/);
    }
  });

  it("allows plain HTTP on loopback only", () => {
    expect(["localhost", "127.0.0.1", "[::1]"].every(isLoopback)).toBe(true);
    expect(["localhost.example", "127.0.0.1.example", "10.0.0.1"].some(isLoopback)).toBe(false);
    expect(read(origin(), "http://a.example")).toMatch(/^rejected/);
  });
});

describe("URL template", () => {
  it("must contain its placeholder", () => {
    const kind = urlTemplate("{signature}");
    expect(read(kind, "https://x/{signature}")).toBe("https://x/{signature}");
    for (const raw of ["https://x/", "javascript:{signature}", 1]) {
      expect(read(kind, raw)).toMatch(/^rejected/);
    }
  });
});

describe("header secret", () => {
  it("is rejected with characters that a header cannot carry, and never quoted", () => {
    expect(read(headerSecret(), "s3cret ~")).toBe("s3cret ~");
    for (const raw of ["s3crét", "s3cret€", "s3cret\n", "", 1, "x".repeat(1025)]) {
      const result = String(read(headerSecret(), raw));
      expect(result).toMatch(/^rejected: must be a line of 1 to 1024/);
      expect(result).not.toContain("s3cr");
    }
    expect(headerSecret().show("s3cret")).toBe("hidden");
  });
});

describe("service URL", () => {
  it("is rejected with a path, query, fragment or login, which would not reach the service", () => {
    for (const valid of ["https://grpc.example", "http://127.0.0.1:10000/", "https://[::1]:443"]) {
      expect(read(hostUrl(), valid)).toBe(valid);
    }
    for (const suffix of ["/s3cret", "/?token=s3cret", "/#s3cret"]) {
      expect(read(hostUrl(), `https://grpc.example${suffix}`)).toBe(
        "rejected: must be scheme, host and port alone",
      );
    }
    expect(read(hostUrl(), "https://me:s3cret@grpc.example")).toMatch(/alone$/);
    expect(read(hostUrl(), "grpc.example:443")).toMatch(/must start with http/);
  });
});

describe("named list", () => {
  it("accepts each name once, with a URL or address as configured", () => {
    const fra = { name: "fra", at: "https://fra.example" };
    expect(read(namedList("url", 2), ["fra=https://fra.example/"])).toEqual([fra]);
    expect(read(namedList("address", 2), ["fra=fra.example:8009"])).toEqual([
      { name: "fra", at: "fra.example:8009" },
    ]);
    for (const raw of [["fra"], ["fra=x"], ["=https://a"], ["a=https://a", "a=https://b"], "a"]) {
      expect(read(namedList("url", 2), raw)).toMatch(/^rejected/);
    }
  });

  it("names the invalid entry and its error", () => {
    const needsScheme = 'rejected: "b" must start with http:// or https://';
    const rejected: readonly (readonly ["url" | "address", string, string])[] = [
      // As an address it would be the path of a scheme called "edge.example".
      ["url", "b=edge.example:9090", needsScheme],
      ["url", "b=10.0.0.1:9090", 'rejected: "b" must be a URL that starts with http://'],
      ["url", "b=https://me:s3cret@b.example", 'rejected: "b" must be without a login'],
      ["url", "b=https://b.example/?key=s3cret", 'rejected: "b" must be without a login, a query'],
      ["url", "b=https://b.example/#x", 'rejected: "b" must be without'],
      ["address", "b=b.example:65536", 'rejected: "b" must have a port from 0 to 65535'],
      ["address", "b=b.example:0", 'rejected: "b" must have a port from 1 to 65535'],
      ["address", "b=https://b.example", 'rejected: "b" must be "host:port"'],
    ];
    for (const [what, item, message] of rejected) {
      const result = String(read(namedList(what, 2), [item]));
      expect({ item, result }).toEqual({ item, result: expect.stringContaining(message) });
      expect(result).not.toContain("s3cret");
    }
    expect(read(namedList("url", 2), ["b=https://b.example/edge/"])).toEqual([
      { name: "b", at: "https://b.example/edge" },
    ]);
  });

  it("is shown as written", () => {
    expect(namedList("url", 2).show([{ name: "fra", at: "https://f" }])).toEqual(["fra=https://f"]);
  });
});
