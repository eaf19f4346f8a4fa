import { connect } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { SetupError } from "../../src/core/errors.ts";
import { type Admin, type AdminDeps, createAdmin } from "../../src/telemetry/admin.ts";
import { ADMIN_HEADERS_BYTES_MAX } from "../../src/telemetry/limits.ts";

const HOST = "127.0.0.1";
const running: Admin[] = [];

afterEach(async () => {
  await Promise.all(running.splice(0).map((admin) => admin.stop()));
});

async function setup(given: Partial<AdminDeps> = {}, port = 0) {
  const errors: object[] = [];
  const note = (fields: object) => void errors.push(fields);
  const admin = createAdmin(
    {
      log: { info: note, warn: note, error: note },
      metrics: { contentType: "text/plain; version=0.0.4", text: async () => "up 1\n" },
      readiness: () => ({ ok: true, checks: [] }),
      ...given,
    },
    { host: HOST, port },
  );
  const started = await admin.start();
  running.push(admin);
  const url = `http://${HOST}:${started.port}`;
  return { admin, errors, port: started.port, get: (path: string) => fetch(url + path), url };
}

/** Writes bytes to the port; returns all that arrives until the connection ends. */
function talk(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let response = "";
    const socket = connect(port, HOST, () => socket.write(text));
    socket.on("data", (chunk) => {
      response += chunk.toString();
    });
    socket.on("close", () => resolve(response));
    socket.on("error", reject);
  });
}

describe("the admin listener", () => {
  it("answers /livez while the process lives", async () => {
    const { get } = await setup({ readiness: () => ({ ok: false, checks: [] }) });
    const response = await get("/livez");
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({ status: "live" });
  });

  it("answers /readyz with 503 and the failing checks, then 200", async () => {
    let warm = 0;
    const readiness = () => {
      const known = { name: "leaders", ok: true, detail: "12 known" };
      const check = { name: "connections", ok: warm > 0, detail: `${warm} warm` };
      return { ok: check.ok, checks: [known, check] };
    };
    const { get } = await setup({ readiness });
    const before = await get("/readyz");
    expect(before.status).toBe(503);
    expect(await before.json()).toMatchObject({
      status: "not ready",
      failing: [{ name: "connections", ok: false, detail: "0 warm" }],
    });
    warm = 1;
    const after = await get("/readyz");
    expect(after.status).toBe(200);
    expect(await after.json()).toMatchObject({
      status: "ready",
      checks: [{}, { detail: "1 warm" }],
    });
  });

  it("states on /readyz whose it is", async () => {
    const service = { service: "edge", region: "fra", name: "fra-1" } as const;
    for (const ok of [true, false]) {
      const { get } = await setup({ service, readiness: () => ({ ok, checks: [] }) });
      expect(await (await get("/readyz")).json()).toMatchObject(service);
    }
  });

  it("answers /metrics as text with its content type", async () => {
    const { get } = await setup();
    const response = await get("/metrics");
    expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4");
    expect(response.headers.get("cache-control")).toBe("no-store");
    expect(await response.text()).toBe("up 1\n");
  });

  it("answers HEAD like GET, without a body", async () => {
    const { port } = await setup();
    const ask = `HEAD /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;
    const response = await talk(port, ask);
    expect(response).toMatch(/^HTTP\/1\.1 200 /);
    expect(response).toContain("Content-Length: 5\r\n");
    expect(response.endsWith("\r\n\r\n")).toBe(true);
  });

  it("ignores a query string", async () => {
    const { get } = await setup();
    expect((await get("/livez?verbose=1")).status).toBe(200);
  });

  it("shows the cluster when it is provided", async () => {
    const { get } = await setup({ cluster: () => ({ slot: 7, consensus: "alpenglow" }) });
    expect(await (await get("/cluster")).json()).toEqual({ slot: 7, consensus: "alpenglow" });
    const { get: getWithout } = await setup({});
    expect((await getWithout("/cluster")).status).toBe(404);
  });

  it("shows the leaders when they are provided", async () => {
    const leaderStats = () => ({ leaders: [{ identity: "A" }] });
    const { get } = await setup({ leaders: () => ({ slot: 7, send: [] }), leaderStats });
    expect(await (await get("/leaders/stats")).json()).toEqual({ leaders: [{ identity: "A" }] });
    expect(await (await get("/leaders")).json()).toEqual({ slot: 7, send: [] });
    expect(await (await get("/")).json()).toMatchObject({
      paths: ["/", "/livez", "/readyz", "/metrics", "/leaders", "/leaders/stats"],
    });
  });

  it("answers 404 to other paths and 405 to other methods, in JSON", async () => {
    const { admin, get, url } = await setup();
    const lost = await get("/leaders");
    expect(lost.status).toBe(404);
    expect(await lost.json()).toMatchObject({ reason: "not_found" });
    const wrong = await fetch(`${url}/metrics`, { method: "POST", body: "x".repeat(100_000) });
    expect(wrong.status).toBe(405);
    expect(wrong.headers.get("allow")).toBe("GET, HEAD");
    expect(await wrong.json()).toMatchObject({ reason: "method_not_allowed" });
    expect(admin.counters).toMatchObject({ answered: 0, rejected: 2 });
  });

  it("answers 500 and logs when a page fails, and continues", async () => {
    const broken = {
      contentType: "text/plain",
      text: () => Promise.reject(new Error("no source")),
    };
    const readiness = (): never => {
      throw new Error("no checks");
    };
    const { admin, errors, get } = await setup({ metrics: broken, readiness });
    expect((await get("/metrics")).status).toBe(500);
    expect((await get("/readyz")).status).toBe(500);
    expect((await get("/livez")).status).toBe(200);
    expect(errors).toHaveLength(2);
    expect(admin.counters).toMatchObject({ failed: 2, answered: 1 });
  });

  it("rejects headers above the bound and closes the connection", async () => {
    const { port } = await setup();
    const long = "x".repeat(ADMIN_HEADERS_BYTES_MAX);
    expect(await talk(port, `GET / HTTP/1.1\r\nX-Long: ${long}\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 431 /,
    );
  });

  it("fails on a port in use, and names it", async () => {
    const { port } = await setup();
    const second = setup({}, port);
    await expect(second).rejects.toBeInstanceOf(SetupError);
    await expect(second).rejects.toThrow(`admin.listen: cannot listen on 127.0.0.1:${port}`);
  });

  it("can be started again, as after failed upgrades, and collects no listeners", async () => {
    const warnings: string[] = [];
    const note = ({ name }: Error): void => void warnings.push(name);
    process.on("warning", note);
    const { admin } = await setup();
    for (let count = 0; count < 12; count += 1) {
      await admin.stop();
      await admin.start();
    }
    await new Promise<void>((resolve) => setImmediate(resolve));
    process.off("warning", note);
    expect(warnings).toEqual([]);
  });

  it("stops although a client keeps its connection open", async () => {
    const { admin, port } = await setup();
    const ended = talk(port, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n");
    await expect.poll(() => admin.counters.answered).toBe(1);
    await admin.stop();
    expect(await ended).toContain("live");
    await expect(talk(port, "")).rejects.toThrow(/ECONNREFUSED/);
  });
});

describe("a dashboard query", () => {
  const ofAccount = {
    receipt: (signature: string, account: string) =>
      signature === "sig" && account === "ada" ? { signature, state: "landed" } : null,
    receipts: (account: string, query: string) =>
      query === "state=landed"
        ? ({ kind: "list", list: { transactions: [account] } } as const)
        : ({ kind: "rejected", message: `no such query: ${query}` } as const),
    refusals: (account: string) => [{ reason: "tip_missing", message: account }],
  };

  it("is answered for the named account", async () => {
    const { get } = await setup({ ofAccount });
    const receipt = await get("/receipts/sig?account=ada");
    expect(await receipt.json()).toEqual({ signature: "sig", state: "landed" });
    expect((await get("/receipts/sig?account=grace")).status).toBe(404);
    const list = await get("/receipts?account=ada&state=landed");
    expect(await list.json()).toEqual({ transactions: ["ada"] });
    const misspelt = await get("/receipts?account=ada&stat=landed");
    expect(misspelt.status).toBe(400);
    expect(await misspelt.json()).toMatchObject({ error: "no such query: stat=landed" });
    const refusals = await get("/refusals?account=a%20b");
    expect(await refusals.json()).toEqual({
      refusals: [{ reason: "tip_missing", message: "a b" }],
    });
  });

  it("is rejected without an account, and is 404 without a query handler", async () => {
    const { get } = await setup({ ofAccount });
    expect((await get("/receipts/sig")).status).toBe(400);
    expect((await get("/refusals")).status).toBe(400);
    expect((await get("/receipts")).status).toBe(400);
    for (const path of ["/receipts/", "/receipts/a/b?account=ada", "/livez/x"]) {
      expect((await get(path)).status).toBe(404);
    }
    const other = await setup();
    expect((await other.get("/receipts/sig?account=ada")).status).toBe(404);
  });
});
