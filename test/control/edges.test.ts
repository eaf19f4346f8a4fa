import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { createEdges } from "../../src/control/edges.ts";
import { EDGE_ANSWER_BYTES_MAX, EDGE_ANSWER_MS_MAX } from "../../src/core/limits-control.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { until } from "../support/wait.ts";

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
});

/** An edge that answers every path with this, or never. */
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
  // A TCP server that listens has an address of this form.
  const { port } = server.address() as AddressInfo;
  return { name, at: `http://127.0.0.1:${port}`, asked };
}

describe("edges", () => {
  it("are all asked in the account's name; one that has nothing gives nothing", async () => {
    const one = await edge("one", 200, '{"a":1}');
    const two = await edge("two", 404, "{}");
    const edges = createEdges(createFakeClock(), [one, two]);
    expect(await edges.ask("/refusals", "a&b=c")).toEqual({
      answers: [{ edge: "one", body: { a: 1 } }],
      unreachable: [],
    });
    await edges.ask("/receipts", "a", { state: "landed", account: "somebody else's" });
    expect(one.asked).toEqual(["/refusals?account=a%26b%3Dc", "/receipts?state=landed&account=a"]);
  });

  it("that fail, answer no JSON or too much are named, and hold up nobody", async () => {
    const all = [
      await edge("broken", 200, "<html>"),
      await edge("failing", 500, "{}"),
      await edge("large", 200, " ".repeat(EDGE_ANSWER_BYTES_MAX + 1)),
      await edge("good", 200, "[]"),
      { name: "gone", at: "http://127.0.0.1:1" },
    ];
    const edges = createEdges(createFakeClock(), all);
    const { answers, unreachable } = await edges.ask("/", "x");
    expect(answers).toEqual([{ edge: "good", body: [] }]);
    expect([...unreachable].sort()).toEqual(["broken", "failing", "gone", "large"]);
    expect(edges.counters).toEqual({ asked: 5, failed: 4 });
  });

  it("that are silent are given up", async () => {
    const clock = createFakeClock();
    const silent = await edge("silent", null, "");
    const asking = createEdges(clock, [silent]).ask("/", "x");
    await until("being asked", () => silent.asked.length > 0);
    clock.advance(EDGE_ANSWER_MS_MAX);
    expect((await asking).unreachable).toEqual(["silent"]);
  });
});
