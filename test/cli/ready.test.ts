import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readyUrl } from "../../src/cli/ready.ts";
import { run } from "../../src/cli/run.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createFakeIo } from "../support/fake-io.ts";
import { pace } from "../support/wait.ts";

const TIP = "96gYZGLnJYVFmbjzopPSU6QiEV5fGqZNyN9nmNhvrZU5";

let directory = "";
let server: Server | null = null;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "touchdown-ready-"));
});
afterEach(() => {
  server?.close();
  server?.closeAllConnections();
  server = null;
  rmSync(directory, { recursive: true });
});

/** An admin listener that returns these statuses in order, then repeats the last one. */
const admin = (...statuses: number[]): Promise<number> => adminSaying("ready", ...statuses);

/** `page`: with status 200. */
async function adminSaying(page: string, ...statuses: number[]): Promise<number> {
  let index = 0;
  server = createServer((request, response) => {
    const status = request.url === "/readyz" ? statuses[Math.min(index, statuses.length - 1)] : 404;
    index += 1;
    response.writeHead(status ?? 500).end(status === 200 ? page : '{"reason":"no leader yet"}');
  });
  const listening = server;
  await new Promise<void>((resolve) => listening.listen(0, "127.0.0.1", resolve));
  const address = listening.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

const EDGE = `[tip]\naccounts = ["${TIP}"]\n[accounts]\nkeys_file = "k"\n`;
const CONTROL = `[control]
public_url = "https://dashboard.example"
oidc_issuer = "https://login.example"
oidc_client_id = "touchdown"
vault_file = "vault"
[accounts]
database_url = "postgres://dashboard@db/touchdown"
`;

async function ready(port: number, timeout: string, least = EDGE) {
  const file = join(directory, "touchdown.toml");
  writeFileSync(file, `${least}[admin]\nlisten = "127.0.0.1:${port}"\n`);
  const clock = createFakeClock();
  const io = createFakeIo(clock);
  const stop = pace(clock);
  const code = await run(["ready", "--config", file, "--timeout", timeout], io);
  stop();
  return { code, out: io.outLines.join("\n"), err: io.errLines.join("\n") };
}

describe("ready", () => {
  it("exits with 0 once the edge serves", async () => {
    expect(await ready(await admin(503, 200), "20s")).toEqual({ code: 0, out: "ready", err: "" });
  });

  it("exits with 0 once the control process serves, with its file", async () => {
    const found = await ready(await admin(503, 200), "20s", CONTROL);
    expect(found).toEqual({ code: 0, out: "ready", err: "" });
  });

  it("exits with 1 and the edge's reason after the timeout", async () => {
    const { code, out, err } = await ready(await admin(503), "300ms");
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toContain("no leader yet");
  });

  it.each([
    [EDGE, '{"service":"control"}', "a control process"],
    [CONTROL, '{"service":"edge","region":"local","name":"a"}', "edge a of region local"],
    [`region = "fra"\n${EDGE}`, '{"service":"edge","region":"ams","name":"a"}', "edge a of region"],
    [`name = "b"\n${EDGE}`, '{"service":"edge","region":"local","name":"a"}', "edge a of region"],
  ])("does not take another service at that address for it: %j", async (least, page, who) => {
    const { code, err } = await ready(await adminSaying(page, 200), "300ms", least);
    expect(code).toBe(1);
    expect(err).toContain(`not ready within 300ms: ${who}`);
  });

  it.each([
    [CONTROL, '{"service":"control"}'],
    [EDGE, '{"service":"edge","region":"local","name":"the-host"}'],
    [`name = "b"\n${EDGE}`, '{"service":"edge","region":"local","name":"b"}'],
  ])("knows it by what its answer states: %j", async (least, page) => {
    expect((await ready(await adminSaying(page, 200), "300ms", least)).code).toBe(0);
  });

  it("reports that nothing listens", async () => {
    const port = await admin(200);
    server?.close();
    const { code, err } = await ready(port, "300ms");
    expect(code).toBe(1);
    expect(err).toContain("ECONNREFUSED");
  });

  it("rejects a port that is chosen at start", async () => {
    const { code, err } = await ready(0, "1ms");
    expect(code).toBe(1);
    expect(err).toContain("port 0");
  });

  it("uses loopback when the edge listens on all addresses", () => {
    expect(readyUrl({ host: "0.0.0.0", port: 1 })).toBe("http://127.0.0.1:1/readyz");
    expect(readyUrl({ host: "::", port: 1 })).toBe("http://[::1]:1/readyz");
    expect(readyUrl({ host: "10.0.0.1", port: 1 })).toBe("http://10.0.0.1:1/readyz");
  });
});
