import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { generate, readResponse } from "../../../bench/load/generator.ts";
import { readOptions } from "../../../bench/load/options.ts";
import { quantiles, summarize } from "../../../bench/load/results.ts";
import { drawRow, drawTable } from "../../../bench/load/table.ts";
import { numberOf, requestOf, signTransactions } from "../../../bench/load/transactions.ts";
import { toBase58 } from "../../support/base58.ts";
import { newKeypair } from "../../support/transactions.ts";

const HOST = "127.0.0.1";
const TIP = newKeypair(9).address;
const servers: Server[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
});

async function serve(listener: RequestListener): Promise<number> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
  // The address of a listening TCP server has this form.
  return (server.address() as AddressInfo).port;
}

/** Responds as an edge does; `act` may respond instead by returning true. */
function edge(seen: Buffer[], act: (count: number, destroy: () => void) => boolean = () => false) {
  const listener: RequestListener = (request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks);
      seen.push(body);
      if (act(seen.length, () => request.socket.destroy())) return;
      const signature = toBase58(body.subarray(1, 65));
      response.end(JSON.stringify({ success: true, signature }));
    });
  };
  return listener;
}

function requests(count: number): readonly Buffer[] {
  const all = signTransactions(count, 3, TIP, 1_000_000);
  return all.map((bytes, id) => requestOf(bytes, "raw", HOST, "k".repeat(16), id));
}

const options = {
  host: HOST,
  certificate: null,
  ratePerSecond: 2000,
  connections: 4,
  markAt: 10,
};

describe("the load generator", () => {
  it("sends every transaction once, complete, on its schedule", async () => {
    const seen: Buffer[] = [];
    const port = await serve(edge(seen));
    let marks = 0;
    const shots = await generate(requests(100), {
      ...options,
      port,
      mark: () => {
        marks += 1;
      },
    });
    expect(seen.map(numberOf).sort((a, b) => a - b)).toEqual([...Array(100).keys()]);
    expect(shots.faults.every((fault) => fault === "")).toBe(true);
    expect(shots.signatures.every((signature) => signature !== null)).toBe(true);
    expect(marks).toBe(1);
    for (const [index, due] of shots.dueNs.entries()) {
      expect(due - (shots.dueNs[0] ?? 0)).toBeCloseTo(index * 500_000, 0);
      expect(shots.sentNs[index]).toBeGreaterThanOrEqual(due);
      expect(shots.respondedNs[index]).toBeGreaterThan(shots.sentNs[index] ?? 0);
    }
  });

  it("continues after lost connections and counts what was in flight", async () => {
    const seen: Buffer[] = [];
    const drop = (count: number, destroy: () => void): boolean => {
      if (count % 20 !== 0) return false;
      destroy();
      return true;
    };
    const port = await serve(edge(seen, drop));
    const shots = await generate(requests(100), { ...options, port, mark: () => undefined });
    expect(seen).toHaveLength(100);
    expect(shots.faults.filter((fault) => fault === "connection_lost")).toHaveLength(5);
    expect(shots.faults.filter((fault) => fault === "")).toHaveLength(95);
  });

  it("fails to start when nothing listens", async () => {
    const port = await serve(() => undefined);
    servers.splice(0)[0]?.close();
    const started = generate(requests(1), { ...options, port, mark: () => undefined });
    await expect(started).rejects.toThrow(/0 connections/);
  });

  it("reads the responses of both endpoints", () => {
    const signature = toBase58(new Uint8Array(64).fill(5));
    const read = (status: number, body: object) =>
      readResponse({ status, closes: false, body: Buffer.from(JSON.stringify(body)) });
    expect(read(200, { success: true, signature })).toEqual(["", signature]);
    expect(read(200, { jsonrpc: "2.0", result: signature, id: 1 })).toEqual(["", signature]);
    const error = { code: -32602, data: { reason: "tip_missing" } };
    expect(read(200, { jsonrpc: "2.0", error, id: 1 })).toEqual(["tip_missing", null]);
    expect(read(503, { success: false, reason: "no_leader" })).toEqual(["no_leader", null]);
    expect(read(502, {})).toEqual(["status_502", null]);
  });
});

describe("the load's transactions", () => {
  it("are all different, signed, and contain their number", () => {
    const all = signTransactions(10, 3, TIP, 1_000_000);
    expect(new Set(all.map((bytes) => bytes.toString("hex"))).size).toBe(10);
    expect(all.map(numberOf)).toEqual([...Array(10).keys()]);
  });

  it("are wrapped for each endpoint", () => {
    const [bytes = Buffer.alloc(0)] = signTransactions(1, 1, TIP, 1_000_000);
    const raw = requestOf(bytes, "raw", "h", "key", 1);
    expect(raw.subarray(-bytes.length)).toEqual(bytes);
    const json = requestOf(bytes, "json", "h", "key", 7).toString();
    const [head = "", body = ""] = json.split("\r\n\r\n");
    expect(head).toContain(`Content-Length: ${body.length}`);
    expect(JSON.parse(body)).toMatchObject({ id: 7, params: [bytes.toString("base64"), {}] });
  });
});

describe("the load's results", () => {
  const shots = {
    dueNs: Float64Array.from([0, 1e6, 2e6, 3e6]),
    sentNs: Float64Array.from([0, 1e6, 2e6 + 5000, 3e6]),
    respondedNs: Float64Array.from([1e5, 1.2e6, 2.4e6, NaN]),
    faults: ["", "", "no_leader", null],
    signatures: [null, null, null, null],
  };
  const seen = {
    arrivedNs: Float64Array.from([5e4, 1.5e6, NaN, NaN]),
    wireUs: Float64Array.from([9, 80, NaN, NaN]),
    edgeCpuUs: 150,
    edgeRssMb: 90,
  };

  it("exclude the warm-up and count from each scheduled time", () => {
    const result = summarize(shots, 1, readOptions([]), seen);
    expect(result).toMatchObject({
      sent: 3,
      accepted: 1,
      lost: 0,
      errors: { no_leader: 1, no_answer: 1 },
      answer_us: { count: 1, max: 200 },
      leader_us: { count: 1, max: 500 },
      wire_us: { count: 1, max: 80 },
      edge_cpu_us: 150,
    });
    expect(result.late_us?.count).toBe(3);
  });

  it("count an accepted transaction that reached no leader as lost", () => {
    const arrivedNs = Float64Array.from([NaN, 1.5e6, NaN, NaN]);
    expect(summarize(shots, 0, readOptions([]), { ...seen, arrivedNs }).lost).toBe(1);
    expect(summarize(shots, 0, readOptions([]), { ...seen, arrivedNs: null }).lost).toBeNull();
  });

  it("never contain the key", () => {
    const key = "td_0123456789abcdef";
    const secret = readOptions(["--url", "http://h:1", "--key", key]);
    expect(JSON.stringify(summarize(shots, 0, secret, seen))).not.toContain(key);
  });

  it("have quantiles within a thousandth", () => {
    const values = Array.from({ length: 10_000 }, (_, index) => index + 1);
    const found = quantiles(values);
    expect(found?.p50).toBeCloseTo(5000, -1);
    expect((found?.p99 ?? 0) / 9900).toBeCloseTo(1, 2);
    expect((found?.max ?? 0) / 10_000).toBeCloseTo(1, 2);
    expect(quantiles([NaN])).toBeNull();
  });

  it("are shown as a table, the latest of each kind", () => {
    const slow = summarize(shots, 0, readOptions(["--rate", "500"]), seen);
    const fast = summarize(shots, 0, readOptions(["--rate", "5000"]), seen);
    const again = { ...fast, lost: 7 };
    const table = drawTable([fast, slow, again].map((line) => JSON.stringify(line)).join("\n"));
    expect(table.split("\n").slice(2)).toEqual([drawRow(slow), drawRow(again)]);
    expect(drawRow(again)).toMatch(/^\| 5,000 \| raw \| portable \| auto \| .* \| 7 \| /);
    expect(() => drawTable('{"at":1}')).toThrow(/line 1/);
  });
});

describe("the load's options", () => {
  it.each([
    [["--rate", "0"], "--rate"],
    [["--rate", "1e9"], "--rate"],
    [["--seconds", "1.5"], "--seconds"],
    [["--endpoint", "soap"], "--endpoint"],
    [["--url", "http://h"], "--key"],
    [["--rate", "100000", "--seconds", "600"], "transactions"],
    [["--nonsense", "1"], "nonsense"],
  ])("reject %j by name", (args, name) => {
    expect(() => readOptions(args)).toThrow(name);
  });
});
