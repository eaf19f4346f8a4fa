import { createServer } from "node:http";
import { describe, expect, it } from "vitest";
import { keepListening } from "../../src/core/keep-listening.ts";

const ENOBUFS = -105;

describe("a server that could not take a connection", () => {
  it("says so and takes the next one", async () => {
    const errors: object[] = [];
    const note = (fields: object): void => void errors.push(fields);
    const server = createServer((_, response) => response.end("here"));
    const port = await new Promise<number>((resolve) => {
      server.listen(0, "127.0.0.1", () => resolve(Number(Object(server.address()).port)));
    });
    keepListening(server, { info() {}, warn() {}, error: note }, "test");
    // What libuv calls when `accept` fails.
    Object(server)._handle.onconnection(ENOBUFS);
    expect(errors).toEqual([{ err: expect.objectContaining({ code: "ENOBUFS" }), server: "test" }]);
    const answer = await fetch(`http://127.0.0.1:${port}/`);
    expect(await answer.text()).toBe("here");
    await new Promise((resolve) => server.close(resolve));
  });
});
