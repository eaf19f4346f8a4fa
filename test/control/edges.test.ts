import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { createEdges } from "../../src/control/edges.ts";
import {
  EDGE_REQUESTS_MAX,
  EDGE_RESPONSE_BYTES_MAX,
  EDGE_RESPONSE_MS_MAX,
} from "../../src/control/limits.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { until } from "../support/wait.ts";

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
});

/** An edge that responds to every path with `status` and `body`; never where `status` is null. */
async function edge(name: string, status: number | null, body: string) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? "");
    if (status === null) return;
    response.writeHead(status);
    response.end(body);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  // A listening TCP server has an address of this type.
  const { port } = server.address() as AddressInfo;
  return { name, at: `http://127.0.0.1:${port}`, asked };
}

const whole = (body: unknown) => body;

describe("edges", () => {
  it("are all requested for the account; one without a receipt adds nothing", async () => {
    const one = await edge("one", 200, '{"a":1}');
    const two = await edge("two", 404, '{"status":"error","reason":"not_found"}');
    const edges = createEdges(createFakeClock(), [one, two]);
    expect(await edges.find({ path: "/receipts/x", accountId: "a&b=c" }, whole)).toEqual({
      responses: [{ edge: "one", body: { a: 1 } }],
      unreachable: [],
    });
    const query = { state: "landed", account: "somebody else's" };
    await edges.ask({ path: "/receipts", accountId: "a", query }, whole);
    expect(one.asked).toEqual([
      "/receipts/x?account=a%26b%3Dc",
      "/receipts?state=landed&account=a",
    ]);
  });

  it("that do not know what every edge has did not answer, and are not empty", async () => {
    const older = await edge("older", 404, '{"status":"error","reason":"not_found"}');
    const edges = createEdges(createFakeClock(), [older]);
    expect(await edges.ask({ path: "/receipts", accountId: "a" }, whole)).toEqual({
      responses: [],
      unreachable: ["older"],
    });
  });

  it("with a 404 that is not an edge's own count as not responding", async () => {
    const all = [await edge("proxy", 404, "<html>"), await edge("other", 404, '"not_found"')];
    const edges = createEdges(createFakeClock(), all);
    const { unreachable } = await edges.find({ path: "/receipts/x", accountId: "a" }, whole);
    expect([...unreachable].sort()).toEqual(["other", "proxy"]);
  });

  it("that fail, answer no JSON, too much or something else are named", async () => {
    const all = [
      await edge("broken", 200, "<html>"),
      await edge("failing", 500, "{}"),
      await edge("large", 200, " ".repeat(EDGE_RESPONSE_BYTES_MAX + 1)),
      await edge("strange", 200, '"strange"'),
      await edge("good", 200, "[]"),
      { name: "gone", at: "http://127.0.0.1:1" },
    ];
    const edges = createEdges(createFakeClock(), all);
    const { responses, unreachable } = await edges.ask({ path: "/", accountId: "x" }, (body) => {
      if (Array.isArray(body)) return body.length;
      throw new Error("no list");
    });
    expect(responses).toEqual([{ edge: "good", body: 0 }]);
    expect([...unreachable].sort()).toEqual(["broken", "failing", "gone", "large", "strange"]);
    expect(edges.counters).toEqual({ asked: 6, failed: 5 });
  });

  it("that are silent are given up", async () => {
    const clock = createFakeClock();
    const silent = await edge("silent", null, "");
    const asking = createEdges(clock, [silent]).ask({ path: "/", accountId: "x" }, whole);
    await until("being asked", () => silent.asked.length > 0);
    clock.advance(EDGE_RESPONSE_MS_MAX);
    expect((await asking).unreachable).toEqual(["silent"]);
  });

  it("get a bounded number of requests at a time, over all users", async () => {
    const clock = createFakeClock();
    const silent = await edge("silent", null, "");
    const edges = createEdges(clock, [silent]);
    const ask = (accountId: string) => edges.ask({ path: "/", accountId }, whole);
    const asking = Array.from({ length: EDGE_REQUESTS_MAX }, (_, user) => ask(`user ${user}`));
    expect((await ask("one more")).unreachable).toEqual(["silent"]);
    await until("being asked", () => silent.asked.length === EDGE_REQUESTS_MAX);
    clock.advance(EDGE_RESPONSE_MS_MAX);
    await Promise.all(asking);
    const last = ask("after those");
    await until("being asked again", () => silent.asked.length > EDGE_REQUESTS_MAX);
    clock.advance(EDGE_RESPONSE_MS_MAX);
    await last;
    expect(silent.asked).toHaveLength(EDGE_REQUESTS_MAX + 1);
  });
});
