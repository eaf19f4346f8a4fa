/**
 * The documents of the API: they are those that the code's tables make, they name what a running
 * edge serves, and schemathesis finds no response that they do not describe. SCHEMATHESIS names its
 * program; without it that part is left out, except in CI.
 */

import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { REJECTIONS } from "../../src/core/errors.ts";
import { KEYLESS_METHODS } from "../../src/http/submit/json-rpc-parse.ts";
import { openRpc } from "../../src/http/submit/openrpc.ts";
import { VERSION } from "../../src/runtime/version.ts";
import { type Sandbox, startSandbox } from "../../src/sandbox/sandbox.ts";
import { apiDocuments, OPENAPI_FILE, openApi } from "../support/api-documents.ts";
import {
  ENGINE,
  keysToml,
  keyToml,
  RAW_PATH,
  RPC_PATH,
  SILENT,
  THREADS,
  WIDE_KEY,
} from "../support/flow.ts";
import { ROOT } from "../support/source-tree.ts";

interface KeyPlace {
  readonly in?: string;
  readonly name?: string;
  readonly scheme?: string;
}

interface Operation {
  readonly security?: readonly Readonly<Record<string, unknown>>[];
  readonly requestBody?: { readonly content: Readonly<Record<string, unknown>> };
}

interface OpenApiDocument {
  readonly components: { readonly securitySchemes: Readonly<Record<string, KeyPlace>> };
  readonly paths: Readonly<Record<string, { readonly post?: Operation }>>;
}

interface RpcDocument {
  readonly servers: readonly { readonly url: string }[];
  readonly methods: readonly {
    readonly name: string;
    readonly result: { readonly schema: { readonly type?: string; readonly const?: unknown } };
    readonly errors?: readonly {
      readonly code: number;
      readonly data?: readonly { readonly reason: string }[];
    }[];
  }[];
  readonly "x-refused-methods": readonly { readonly name: string; readonly instead: string }[];
}

const SCHEMATHESIS = process.env["SCHEMATHESIS"];
/** Has a limit that schemathesis exceeds, so that it sees such refusals too. */
const LIMITED_KEY = "api-documents-test-key-limited";
const LIMITED_PLAN = "[plans.Limited]\nrate_per_second = 50\nburst = 100\n";

const folder = mkdtempSync(join(tmpdir(), "touchdown-api-"));
let sandbox: Sandbox;
beforeAll(async () => {
  const keysFile = join(folder, "keys.toml");
  const limited = LIMITED_PLAN + keyToml(LIMITED_KEY, "limited", "Limited");
  writeFileSync(keysFile, `${keysToml()}\n${limited}`);
  sandbox = await startSandbox({
    port: 0,
    log: SILENT,
    edge: {
      http: { threads: THREADS },
      send: { engine: ENGINE },
      accounts: { keys_file: keysFile },
    },
  });
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await sandbox?.stop();
});

/** Calls a method without parameters. */
async function call(path: string, method: string): Promise<Readonly<Record<string, unknown>>> {
  const response = await fetch(`${sandbox.url}${path}`, {
    method: "POST",
    headers: { "api-x-token": WIDE_KEY, "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: [] }),
  });
  return (await response.json()) as Readonly<Record<string, unknown>>;
}

describe("the documents of the API", () => {
  it.each(Object.entries(apiDocuments()))("%s is what `npm run docs` makes", (file, text) => {
    expect(readFileSync(join(ROOT, file), "utf8")).toBe(text);
  });

  it("name every path that a running edge names, with its method", async () => {
    const response = await fetch(`${sandbox.url}/`);
    const root: { readonly endpoints: Readonly<Record<string, string>> } = JSON.parse(
      await response.text(),
    );
    const { paths } = openApi() as { readonly paths: Readonly<Record<string, object>> };
    const documented = Object.entries(paths).flatMap(([path, operations]) =>
      Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(documented).toEqual(expect.arrayContaining(Object.values(root.endpoints)));
  });

  it("name every place of a key, and which of them is warned of", async () => {
    const { components, paths } = openApi() as unknown as OpenApiDocument;
    const places = Object.entries(components.securitySchemes);
    for (const [name, place] of places) {
      const url = new URL("/api/v1/transactions", sandbox.url);
      const headers = new Headers();
      if (place.in === "query") url.searchParams.set(place.name ?? "", WIDE_KEY);
      else if (place.scheme === "bearer") headers.set("authorization", `Bearer ${WIDE_KEY}`);
      else headers.set(place.name ?? "", WIDE_KEY);
      const { status, headers: answered } = await fetch(url, { headers });
      const isWarned = answered.get("warning")?.startsWith("299 touchdown ") ?? false;
      expect({ name, status, isWarned }).toEqual({
        ...{ name, status: 200, isWarned: place.in === "query" },
      });
    }
    // What the head of framing.ts lists.
    expect(places.map(([name]) => name)).toEqual(["key", "xApiKey", "bearer", "keyInQuery"]);
    for (const { post } of Object.values(paths)) {
      if (post === undefined) continue;
      const named = post.security?.flatMap((each) => Object.keys(each));
      expect(named).toEqual(places.map(([name]) => name));
    }
  });

  it("name base64 as text for the binary endpoint, which takes it", async () => {
    const { paths } = openApi() as unknown as OpenApiDocument;
    const types = Object.keys(paths[RAW_PATH]?.post?.requestBody?.content ?? {});
    expect(types).toEqual(["application/octet-stream", "text/plain"]);
    const response = await fetch(`${sandbox.url}${RAW_PATH}`, {
      method: "POST",
      headers: { "api-x-token": WIDE_KEY, "content-type": "text/plain" },
      body: `${Buffer.from(sandbox.transaction()).toString("base64")}\n`,
    });
    expect(await response.json()).toMatchObject({ success: true });
  });

  it("name every reason of a refusal, each code once", () => {
    const { methods } = openRpc(VERSION) as unknown as RpcDocument;
    const errors = methods[0]?.errors ?? [];
    const reasons = errors.flatMap(({ data }) => data?.map(({ reason }) => reason) ?? []);
    expect(reasons.sort()).toEqual(Object.keys(REJECTIONS).sort());
    expect(new Set(errors.map(({ code }) => code)).size).toBe(errors.length);
  });

  it("name every method that the edge serves, on every path of JSON-RPC", async () => {
    const { methods, servers } = openRpc(VERSION) as unknown as RpcDocument;
    expect(methods.map(({ name }) => name)).toEqual(["sendTransaction", ...KEYLESS_METHODS]);
    for (const { url } of servers) {
      const { pathname } = new URL(url, sandbox.url);
      for (const { name, result } of methods) {
        const answer = await call(pathname, name);
        const value = answer["result"];
        if (name === "sendTransaction") {
          expect(answer).toMatchObject({ error: { data: { reason: "invalid_params" } } });
        } else if (result.schema.const === undefined) {
          expect(Array.isArray(value) ? "array" : typeof value).toBe(result.schema.type);
        } else {
          expect(value).toEqual(result.schema.const);
        }
      }
    }
  });

  it("come from a running edge, by the method that OpenRPC has for it", async () => {
    for (const path of [RPC_PATH, "/", "/fast"]) {
      const response = await fetch(`${sandbox.url}${path}`, {
        method: "POST",
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "rpc.discover" }),
      });
      expect(await response.json()).toEqual({ jsonrpc: "2.0", result: openRpc(VERSION), id: 1 });
    }
  });

  it("name methods of other senders with what the edge says of them", async () => {
    const { "x-refused-methods": refused } = openRpc(VERSION) as unknown as RpcDocument;
    expect(refused.length).toBeGreaterThan(3);
    for (const { name, instead } of refused) {
      expect(await call(RPC_PATH, name)).toMatchObject({
        error: { message: expect.stringContaining(instead), data: { reason: "method_not_found" } },
      });
    }
  });

  it.skipIf(SCHEMATHESIS === undefined && process.env["CI"] === undefined)(
    "describe every response to what schemathesis makes of them",
    async () => {
      const checks =
        "not_a_server_error,status_code_conformance,content_type_conformance," +
        "response_schema_conformance,response_headers_conformance";
      const args = [
        ...["run", join(ROOT, OPENAPI_FILE), "--url", sandbox.url],
        ...["--header", `api-x-token: ${LIMITED_KEY}`, "--checks", checks],
        // A stream stays open; an unknown receipt is awaited until its time is up.
        ...["--exclude-path", "/api/v1/receipts", "--phases", "examples,coverage,fuzzing"],
        ...["--max-examples", "25", "--seed", "1", "--generation-deterministic", "--no-color"],
      ];
      const { stdout } = await promisify(execFile)(SCHEMATHESIS ?? "schemathesis", args, {
        // It writes its record of the run there.
        cwd: folder,
        maxBuffer: 64 * 1024 * 1024,
      }).catch((error: { readonly stdout?: string }) => ({ stdout: `FAILED ${error.stdout}` }));
      expect(stdout).not.toContain("FAILED");
      // Without cases there would be nothing to fail.
      expect(Number(/(\d+) generated/.exec(stdout)?.[1])).toBeGreaterThan(100);
    },
  );
});
