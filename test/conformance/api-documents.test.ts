/**
 * The documents of the API: they are those that the code's tables make, they name what a running
 * edge serves, and schemathesis finds no response that they do not describe. SCHEMATHESIS names its
 * program; without it that part is left out, except in CI.
 */

import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { REJECTIONS } from "../../src/core/errors.ts";
import { type Sandbox, startSandbox } from "../../src/sandbox/sandbox.ts";
import { apiDocuments, OPENAPI_FILE, openApi, openRpc } from "../support/api-documents.ts";
import { ENGINE, RPC_PATH, SILENT, THREADS } from "../support/flow.ts";
import { ROOT } from "../support/source-tree.ts";

const SCHEMATHESIS = process.env["SCHEMATHESIS"];

const folder = mkdtempSync(join(tmpdir(), "touchdown-api-"));
let sandbox: Sandbox;
beforeAll(async () => {
  const edge = { http: { threads: THREADS }, send: { engine: ENGINE } };
  sandbox = await startSandbox({ port: 0, log: SILENT, edge });
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await sandbox?.stop();
});

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

  it("name every reason of a refusal, and methods that the edge knows", async () => {
    const { methods } = openRpc() as {
      readonly methods: readonly { readonly name: string; readonly errors: readonly unknown[] }[];
    };
    expect(methods[0]?.errors).toHaveLength(Object.keys(REJECTIONS).length);
    for (const { name: method } of methods) {
      const response = await fetch(`${sandbox.url}${RPC_PATH}`, {
        method: "POST",
        headers: { "api-x-token": sandbox.key, "content-type": "application/json" },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: [] }),
      });
      expect({ method, text: await response.text() }).not.toMatchObject({
        text: expect.stringContaining("method_not_found"),
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
        ...["--header", `api-x-token: ${sandbox.key}`, "--checks", checks],
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
