import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  connectRaw,
  type Fixture,
  once,
  post,
  RAW,
  RPC,
  SIGNATURE,
  startFixture,
  WITH_KEY,
} from "./http-fixture.ts";

let edge: Fixture;
beforeAll(async () => {
  edge = await startFixture();
});
afterAll(() => edge.stop());

const RECEIPT = `/api/v1/transactions/${SIGNATURE}`;
const ask = (method: string, path: string, ...headers: readonly string[]) =>
  once(edge.port, `${[`${method} ${path} HTTP/1.1`, "Host: x", ...headers].join("\r\n")}\r\n\r\n`);

describe("a route without a key", () => {
  it("GET /ping answers ok as text", async () => {
    const response = await ask("GET", "/ping");
    expect(response).toMatchObject({ status: 200, body: "ok" });
    expect(response.headers.get("content-type")).toBe("text/plain");
    expect(response.headers.get("access-control-allow-origin")).toBe("*");
  });

  it("GET / describes the service", async () => {
    const response = await ask("GET", "/");
    expect(JSON.parse(response.body)).toMatchObject({
      service: "touchdown",
      version: "1.2.3",
      region: "test",
    });
  });

  it("GET /api/v1/tip returns the tip accounts and the minimum", async () => {
    const response = await ask("GET", "/api/v1/tip");
    expect(JSON.parse(response.body)).toEqual({
      accounts: ["Tip1111", "Tip2222"],
      lamportsMin: 1_000_000,
    });
  });

  it("ignores a query", async () => {
    expect((await ask("GET", "/ping?x=1")).body).toBe("ok");
  });
});

describe("HEAD", () => {
  for (const path of ["/ping", "/", "/api/v1/tip", RECEIPT, "/nowhere", RPC]) {
    it(`answers ${path} like GET without the body, and keeps the connection`, async () => {
      const get = await ask("GET", path, WITH_KEY);
      const client = await connectRaw(edge.port);
      for (let i = 0; i < 2; i += 1) {
        client.write(`HEAD ${path} HTTP/1.1\r\nHost: x\r\n${WITH_KEY}\r\n\r\n`);
      }
      client.write("GET /ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
      const heads = (await client.ended()).split("\r\n\r\n");
      // Two responses that are heads alone, then one with its body.
      expect(heads).toHaveLength(4);
      expect(heads[3]).toBe("ok");
      for (const head of heads.slice(0, 2)) {
        expect(head).toMatch(new RegExp(`^HTTP/1.1 ${get.status} `));
        expect(head.toLowerCase()).toContain(`content-type: ${get.headers.get("content-type")}`);
        if (path !== RPC && path !== "/nowhere") {
          expect(head.toLowerCase()).toContain(
            `content-length: ${get.headers.get("content-length")}`,
          );
        }
      }
    });
  }
});

describe("a receipt", () => {
  it("is returned to the account that sent the transaction", async () => {
    const response = await ask("GET", RECEIPT, WITH_KEY);
    expect(response.status).toBe(200);
    expect(JSON.parse(response.body)).toEqual({ signature: SIGNATURE, status: "landed" });
    expect(response.headers.get("cache-control")).toBe("no-store");
  });

  it("needs a key", async () => {
    const response = await ask("GET", RECEIPT);
    expect(response.status).toBe(401);
    expect(JSON.parse(response.body)).toMatchObject({ success: false, reason: "unauthorized" });
  });

  it("is 404 for a transaction that this account did not send", async () => {
    const response = await ask("GET", `/api/v1/transactions/${"6".repeat(88)}`, WITH_KEY);
    expect(response.status).toBe(404);
    expect(JSON.parse(response.body)).toMatchObject({ reason: "not_found" });
  });

  it("is 400 for an invalid signature", async () => {
    for (const text of ["", "0".repeat(88), "x", `${SIGNATURE}/..`, "%35".repeat(40)]) {
      const response = await ask("GET", `/api/v1/transactions/${text}`, WITH_KEY);
      expect(response.status).toBe(400);
      expect(JSON.parse(response.body)).toMatchObject({ reason: "invalid_params" });
    }
  });
});

describe("unknown paths and methods", () => {
  it("are answered with JSON, with CORS", async () => {
    for (const path of ["/x", "/api/v1", `${RAW}/`, "//", "/api/v1/sendtransaction", "/pin%67"]) {
      const response = await ask("GET", path);
      expect(response.status).toBe(404);
      expect(JSON.parse(response.body)).toMatchObject({ success: false, reason: "not_found" });
      expect(response.headers.get("access-control-allow-origin")).toBe("*");
    }
  });

  it("receive the methods that a path accepts", async () => {
    const rows = [
      ["GET", RAW, "POST, OPTIONS"],
      ["GET", RPC, "POST, OPTIONS"],
      ["PUT", RPC, "POST, OPTIONS"],
      ["GET", "/fast", "POST, OPTIONS"],
      ["post", RPC, "POST, OPTIONS"],
      ["FOO", RPC, "POST, OPTIONS"],
      ["DELETE", "/", "GET, HEAD, POST, OPTIONS"],
      ["DELETE", "/ping", "GET, HEAD, OPTIONS"],
      ["PATCH", "/api/v1/tip", "GET, HEAD, OPTIONS"],
      ["DELETE", RECEIPT, "GET, HEAD, OPTIONS"],
    ] as const;
    for (const [method, path, allow] of rows) {
      const response = await ask(method, path, WITH_KEY);
      expect({ method, status: response.status }).toEqual({ method, status: 405 });
      expect(response.headers.get("allow")).toBe(allow);
      expect(JSON.parse(response.body)).toMatchObject({ reason: "method_not_allowed" });
    }
    expect((await once(edge.port, post("/ping", "x", []))).status).toBe(405);
  });
});

describe("a preflight", () => {
  it("is allowed on any path, without a key and without a body", async () => {
    for (const path of [RAW, RPC, "/", RECEIPT, "/nowhere"]) {
      const response = await ask(
        "OPTIONS",
        path,
        "Origin: https://wallet.example",
        "Access-Control-Request-Method: POST",
        "Access-Control-Request-Headers: content-type, solana-client, api-x-token, authorization",
      );
      expect(response.status).toBe(204);
      expect(response.headers.get("access-control-allow-origin")).toBe("*");
      expect(response.headers.get("access-control-allow-methods")).toContain("POST");
      const names = ["content-type", "solana-client", "api-x-token", "x-api-key", "authorization"];
      for (const name of names) {
        expect(response.headers.get("access-control-allow-headers")).toContain(name);
      }
      expect(response.headers.get("access-control-max-age")).toBe("86400");
      expect(response.headers.has("content-length")).toBe(false);
    }
  });

  it("costs nothing and leaves the connection usable", async () => {
    const client = await connectRaw(edge.port);
    client.write(`OPTIONS ${RPC} HTTP/1.1\r\nHost: x\r\n\r\n`);
    expect((await client.response()).status).toBe(204);
    client.write(post(RAW, "x", [WITH_KEY]));
    expect((await client.response()).status).toBe(200);
    client.close();
  });
});

it("lets a browser read the headers of a rejection", async () => {
  const response = await once(edge.port, post(RAW, "x", []));
  const exposed = response.headers.get("access-control-expose-headers");
  for (const name of ["retry-after", "ratelimit", "ratelimit-policy"]) {
    expect(exposed).toContain(name);
  }
});
