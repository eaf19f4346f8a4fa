import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { run } from "../../src/cli/run.ts";
import { transactionBytes } from "../../src/cli/send.ts";
import { encodeBase58, encodeBase64 } from "../../src/core/encoding.ts";
import { createFakeIo } from "../support/fake-io.ts";
import { fc } from "../support/properties.ts";

/** The size of a transaction with one signature, and its two counts of signatures. */
const BYTES = Uint8Array.from({ length: 215 }, (_, at) => (at === 0 || at === 65 ? 1 : at));

interface SeenRequest {
  readonly url: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

let directory = "";
let server: Server | null = null;
const requests: SeenRequest[] = [];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "touchdown-send-"));
  requests.length = 0;
});
afterEach(() => {
  server?.close();
  server?.closeAllConnections();
  server = null;
  rmSync(directory, { recursive: true });
});

/** An edge that always returns the same response. */
async function edge(status: number, body: string): Promise<string> {
  server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      requests.push({ url: request.url, headers: request.headers, body: Buffer.concat(chunks) });
      response.writeHead(status).end(body);
    });
  });
  const listening = server;
  await new Promise<void>((resolve) => listening.listen(0, "127.0.0.1", resolve));
  const address = listening.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return `http://127.0.0.1:${address.port}`;
}

async function send(args: string[], stdin: Uint8Array | null = null) {
  const io = createFakeIo(undefined, stdin);
  const code = await run(["send", ...args], io);
  return { code, out: io.outLines.join("\n"), err: io.errLines.join("\n") };
}

function file(name: string, content: Uint8Array | string): string {
  const path = join(directory, name);
  writeFileSync(path, content);
  return path;
}

describe("send", () => {
  it.each([
    ["raw bytes", BYTES],
    ["base64", `${encodeBase64(BYTES)}\n`],
    ["base58", `${encodeBase58(BYTES)}\n`],
  ])("takes %s and prints the signature", async (_, content) => {
    const url = await edge(200, '{"success":true,"signature":"5ig"}');
    const answer = await send([file("tx", content), "--url", url, "--key", "td_key"]);
    expect(answer).toEqual({ code: 0, out: "5ig", err: "" });
    expect(requests[0]).toMatchObject({
      url: "/api/v1/sendRawTransaction",
      headers: { "api-x-token": "td_key", "content-type": "application/octet-stream" },
    });
    expect(requests[0]?.body.equals(BYTES)).toBe(true);
  });

  it("reads the transaction from standard input", async () => {
    const url = await edge(200, '{"success":true,"signature":"5ig"}');
    const answer = await send(["-", "--url", url, "--key", "td_key"], BYTES);
    expect(answer.code).toBe(0);
    expect(requests[0]?.body.equals(BYTES)).toBe(true);
  });

  it("reads the key from a file or from standard input", async () => {
    const url = await edge(200, '{"success":true,"signature":"5ig"}');
    const tx = file("tx", BYTES);
    await send([tx, "--url", url, "--key-file", file("key", "td_file\n")]);
    await send([tx, "--url", url, "--key-file", "-"], Buffer.from("td_stdin\n"));
    expect(requests.map(({ headers }) => headers["api-x-token"])).toEqual(["td_file", "td_stdin"]);
  });

  it("waits for the end with --wait, exit code 1 when it did not land", async () => {
    const landing = { state: "dropped", reason: "never_sent", message: "no copy went out" };
    const url = await edge(200, JSON.stringify({ signature: "5ig", landing }));
    const tx = file("tx", BYTES);
    const answer = await send([tx, "--url", url, "--key", "td_key", "--wait"]);
    expect(answer).toEqual({ code: 1, out: "5ig", err: "dropped: never_sent: no copy went out" });
    const urls = requests.map((each) => each.url);
    expect(urls[1]).toContain("/api/v1/transactions/5ig?wait=landed");
  });

  it("reports the landing with --wait, exit code 0", async () => {
    const landing = { state: "landed", slot: 9, slots: 0, error: null };
    const url = await edge(200, JSON.stringify({ signature: "5ig", landing }));
    const args = [file("tx", BYTES), "--url", url, "--key", "td_key", "--wait", "--timeout", "5s"];
    expect(await send(args)).toEqual({
      code: 0,
      out: "5ig\nlanded in slot 9, 0 slots after it came",
      err: "",
    });
  });

  it.each([
    [["--timeout", "5s"], "--wait"],
    [["--wait", "--timeout", "5"], "--timeout must be a duration"],
  ])("rejects %j", async (more, why) => {
    const args = [file("tx", BYTES), "--url", "http://127.0.0.1:9", "--key", "k", ...more];
    const { code, err } = await send(args);
    expect(code).toBe(2);
    expect(err).toContain(why);
  });

  it("reports the reason and the message of a rejection, exit code 1", async () => {
    const body = '{"success":false,"error":"no tip of 1000000 lamports","reason":"tip_missing"}';
    const url = await edge(400, body);
    const answer = await send([file("tx", BYTES), "--url", url, "--key", "td_s3cret"]);
    expect(answer).toEqual({ code: 1, out: "", err: "tip_missing: no tip of 1000000 lamports" });
  });

  it("shows a response that is not an edge's", async () => {
    const url = await edge(502, "<h1>Bad gateway</h1>");
    const { code, err } = await send([file("tx", BYTES), "--url", url, "--key", "k"]);
    expect({ code, err }).toEqual({ code: 1, err: "HTTP 502: <h1>Bad gateway</h1>" });
  });

  it("reports an unreachable edge, without the key", async () => {
    const url = await edge(200, "");
    server?.close();
    const { code, err } = await send([file("tx", BYTES), "--url", url, "--key", "td_s3cret"]);
    expect(code).toBe(1);
    expect(err).toContain("ECONNREFUSED");
    expect(err).not.toContain("s3cret");
  });

  it("reports a redirect, and sends no key there", async () => {
    const url = await edge(301, "");
    server?.on("request", (_, response) => response.setHeader("location", "https://h/"));
    const { code, err } = await send([file("tx", BYTES), "--url", url, "--key", "k"]);
    expect(code).toBe(1);
    expect(err).toMatch(/cannot be reached: .*redirect/);
  });

  it("rejects a login in an address, and does not repeat it", async () => {
    const url = "http://me:s3cret@127.0.0.1:9";
    const { code, err } = await send([file("tx", BYTES), "--url", url, "--key", "k"]);
    expect(code).toBe(2);
    expect(err).toContain("--url must be without a login");
    expect(err).not.toContain("s3cret");
  });

  it.each(["localhost:8080", "127.0.0.1:8080", "mailto:edge", "http://", ""])(
    "describes a valid address instead of %j",
    async (url) => {
      const { code, err } = await send([file("tx", BYTES), "--url", url, "--key", "k"]);
      expect(code).toBe(2);
      expect(err).toContain("--url");
      expect(err).not.toContain("bug");
    },
  );

  it("names the file that cannot be read", async () => {
    const { code, err } = await send(["nowhere.tx", "--url", "http://127.0.0.1:9", "--key", "k"]);
    expect(code).toBe(1);
    expect(err).toContain("nowhere.tx cannot be read (ENOENT)");
  });
});

describe("the encoding of a transaction", () => {
  it("is detected for any bytes that begin like one", () => {
    const tail = fc.uint8Array({ minLength: 101, maxLength: 1_000 });
    fc.assert(
      fc.property(fc.boolean(), tail, (v1, rest) => {
        const bytes = Uint8Array.from([v1 ? 0x81 : 1, ...rest]);
        bytes[v1 ? 1 : 65] = 1;
        for (const input of [
          bytes,
          Buffer.from(encodeBase64(bytes)),
          Buffer.from(`  ${encodeBase58(bytes)}\r\n`),
        ]) {
          expect(Buffer.from(transactionBytes(input)).equals(bytes)).toBe(true);
        }
      }),
      // One base58 text in many thousands is also the base64 of something like a transaction.
      { seed: 58 },
    );
  });

  it("may be base64 that is wrapped into lines", () => {
    const wrapped = encodeBase64(BYTES).replace(/.{76}/g, "$&\n");
    expect(Buffer.from(transactionBytes(Buffer.from(wrapped))).equals(BYTES)).toBe(true);
  });

  it.each(["", " \n", "not a transaction!", "===="])("is rejected for %j", (text) => {
    expect(() => transactionBytes(Buffer.from(text))).toThrow();
  });
});
