import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { encodeBase64 } from "../../src/core/encoding.ts";
import { openAccounts } from "../../src/sandbox/dashboard.ts";
import { type Sandbox, startSandbox } from "../../src/sandbox/sandbox.ts";
import { Browser, fieldOf, reasonOf } from "../support/control.ts";
import { SILENT, untilResponse } from "../support/flow.ts";
import { freePort } from "../support/ports.ts";

let sandbox: Sandbox;
let url = "";
beforeAll(async () => {
  // They name addresses of the edge, and of another dashboard.
  vi.stubEnv("TOUCHDOWN_ADMIN_LISTEN", `127.0.0.1:${await freePort()}`);
  vi.stubEnv("TOUCHDOWN_CONTROL_LISTEN", `127.0.0.1:${await freePort()}`);
  sandbox = await startSandbox({ port: 0, leaderCount: 2, dashboard: true, log: SILENT });
  url = (await sandbox.dashboard)?.url ?? "";
  vi.unstubAllEnvs();
});
afterAll(() => sandbox?.stop());

async function send(key: string) {
  const response = await fetch(`${sandbox.url}/api/v1/sendTransaction`, {
    method: "POST",
    headers: { "content-type": "application/json", "api-x-token": key },
    body: JSON.stringify({
      ...{ jsonrpc: "2.0", id: 1, method: "sendTransaction" },
      params: [encodeBase64(sandbox.transaction()), { encoding: "base64" }],
    }),
  });
  const json: unknown = await response.json();
  return { status: response.status, signature: String(fieldOf(json, "result")) };
}

describe("an expired login at the provider", () => {
  it("is reported, with a link to the dashboard", async () => {
    const { issuer } = (await sandbox.dashboard) ?? { issuer: "" };
    const answer = await fetch(`${issuer}/login/finished-already`);
    expect(answer.status).toBe(400);
    const text = await answer.text();
    expect(text).toContain("This login is over");
    expect(text).toContain(`<a href="${url}/">`);
  });
});

describe("from a login to a landed transaction", () => {
  it("works with the account's initial key", async () => {
    const browser = new Browser(url);
    await browser.login("grace");
    const keys = await browser.call("GET", "/api/v1/keys");
    const path = `/api/v1/keys/${String(fieldOf(keys.json, "keys.0.id"))}`;
    const shown = await browser.call("POST", `${path}/reveal`, {});
    const token = String(fieldOf(shown.json, "token"));
    const sent = await untilResponse(
      "the key to be known",
      () => send(token),
      ({ status }) => status === 200,
    );
    const receipt = await browser.call("GET", `/api/v1/transactions/${sent.signature}`);
    expect(fieldOf(receipt.json, "receipts.0.receipt.signature")).toBe(sent.signature);
    const other = new Browser(url);
    await other.login("ada");
    const hidden = await other.call("GET", `/api/v1/transactions/${sent.signature}`);
    expect(reasonOf(hidden)).toBe("not_found");
    const usage = await untilResponse(
      "the usage to be counted",
      () => browser.call("GET", "/api/v1/usage"),
      ({ json }) => Number(fieldOf(json, "totals.accepted")) > 0,
    );
    expect(fieldOf(usage.json, "regions.0.region")).toBe("sandbox");
    await browser.call("POST", `${path}/revoke`, {});
    await untilResponse(
      "the revoked key to be rejected",
      () => send(token),
      ({ status }) => status === 401,
    );
  });

  it("has an example to paste: raw bytes that a submission accepts unchanged", async () => {
    const site = await new Browser(url).call("GET", "/api/v1/site");
    const bytes = await fetch(String(fieldOf(site.json, "examples.transaction_url")));
    expect(bytes.headers.get("content-type")).toBe("application/octet-stream");
    const sent = await fetch(`${sandbox.url}/api/v1/sendRawTransaction`, {
      method: "POST",
      headers: { "api-x-token": sandbox.key },
      body: await bytes.arrayBuffer(),
    });
    expect(await sent.json()).toMatchObject({ success: true });
    const rpc = await fetch(String(fieldOf(site.json, "examples.rpc_url")), {
      method: "POST",
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "getLatestBlockhash" }),
    });
    expect(fieldOf(await rpc.json(), "result.value.blockhash")).toBeTypeOf("string");
  });

  it("says where the edge takes QUIC, and who issued its certificate", async () => {
    const site = await new Browser(url).call("GET", "/api/v1/site");
    expect(fieldOf(site.json, "regions.0.quic")).toBe(sandbox.quic?.address ?? null);
    const file = fieldOf(site.json, "examples.authority_file");
    expect(file).toBe(sandbox.quic?.authorityFile ?? null);
  });

  it("works with the key on the terminal, which its holder can link to the account", async () => {
    expect((await send(sandbox.key)).status).toBe(200);
    const browser = new Browser(url);
    await browser.login("grace");
    const linked = await browser.call("POST", "/api/v1/keys/link", { token: sandbox.key });
    expect(fieldOf(linked.json, "key.state")).toBe("live");
    const thief = new Browser(url);
    await thief.login("ada");
    const again = await thief.call("POST", "/api/v1/keys/link", { token: sandbox.key });
    expect(reasonOf(again)).toBe("key_refused");

    // Five attempts in all, with the same response. In the same test, because it takes a minute
    // until a key can be linked again.
    const answers: unknown[] = [];
    for (let count = 0; count < 8; count += 1) {
      const token = `td_sandbox_${"a".repeat(32)}${count}`;
      answers.push(reasonOf(await thief.call("POST", "/api/v1/keys/link", { token })));
    }
    expect(answers.at(-1)).toBe("rate_limited");
    expect(new Set(answers)).toEqual(new Set(["key_refused", "rate_limited"]));
  });
});

describe("the sandbox's database", () => {
  it("is removed when it is stopped, wherever it is", async () => {
    const folder = mkdtempSync(join(tmpdir(), "touchdown-accounts-"));
    const accounts = await openAccounts({ clock: systemClock, log: SILENT }, folder);
    expect(readdirSync(accounts.databaseFolder)).toContain("data");
    await accounts.stop();
    expect(existsSync(accounts.databaseFolder)).toBe(false);
    rmSync(folder, { recursive: true });
  });
});

describe("a dashboard that fails to start", () => {
  it("does not prevent everything else from being stopped and removed", async () => {
    // An edge reads these keys too, but not the rule that compares two of them.
    vi.stubEnv("TOUCHDOWN_CONTROL_SESSION_IDLE", "24h");
    // Other sandboxes come and go among the usual temporary folders meanwhile.
    const temporary = mkdtempSync(join(tmpdir(), "touchdown-dashboard-"));
    vi.stubEnv("TMPDIR", temporary);
    const other = await startSandbox({ port: 0, leaderCount: 2, dashboard: true, log: SILENT });
    await expect(other.dashboard).rejects.toThrow(/session_idle/);
    vi.unstubAllEnvs();
    expect(readdirSync(temporary)).toEqual([expect.stringMatching(/^touchdown-sandbox-/)]);
    await other.stop();
    expect(readdirSync(temporary)).toEqual([]);
    rmSync(temporary, { recursive: true });
    await expect(fetch(`${other.url}/ping`)).rejects.toThrow();
  });
});
