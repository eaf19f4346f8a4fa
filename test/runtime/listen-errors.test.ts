import { createServer } from "node:http";
import { Server } from "node:net";
import { tmpdir } from "node:os";
import { describe, expect, it, vi } from "vitest";
import { createAttemptLimiter } from "../../src/control/web/attempt-limiter.ts";
import type { Authenticator } from "../../src/control/web/authenticate.ts";
import { createWebServer } from "../../src/control/web/server.ts";
import type { Log } from "../../src/core/log.ts";
import { surviveAcceptErrors } from "../../src/runtime/listen-errors.ts";
import { createAdmin } from "../../src/telemetry/admin.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { stub } from "../support/stub.ts";

const ENOBUFS = -105;
const LOOPBACK = { host: "127.0.0.1", port: 0 };

function adminWith(log: Log) {
  const metrics = { contentType: "text/plain", text: async () => "" };
  return createAdmin({ log, metrics, readiness: () => ({ ok: true, checks: [] }) }, LOOPBACK);
}

function dashboardWith(log: Log) {
  const clock = createFakeClock();
  const authenticator = stub<Authenticator>({});
  return createWebServer(
    {
      ...{ clock, log, routes: [], attempts: createAttemptLimiter(clock), authenticator },
      onReturn: async () => "/",
      onLive: () => {
        throw new Error("nothing listens");
      },
    },
    {
      ...{ ...LOOPBACK, publicUrl: "http://127.0.0.1", version: "test" },
      ...{ fetchOrigins: [], trustedProxies: [], pagesFolder: tmpdir() },
    },
  );
}

describe("a server that failed to accept a connection", () => {
  it("reports it once and accepts the next one", async () => {
    const errors: object[] = [];
    const note = (fields: object): void => void errors.push(fields);
    const server = createServer((_, response) => response.end("here"));
    const port = await new Promise<number>((resolve) => {
      server.listen(0, "127.0.0.1", () => resolve(Number(Object(server.address()).port)));
    });
    surviveAcceptErrors(server, { info() {}, warn() {}, error: note }, "test");
    // The function that libuv calls when `accept` fails.
    const failAccept = (): void => Object(server)._handle.onconnection(ENOBUFS);
    for (let count = 0; count < 3; count += 1) failAccept();
    expect(errors).toEqual([{ err: expect.objectContaining({ code: "ENOBUFS" }), server: "test" }]);
    const answer = await fetch(`http://127.0.0.1:${port}/`);
    expect(await answer.text()).toBe("here");
    failAccept();
    expect(errors).toHaveLength(2);
    await new Promise((resolve) => server.close(resolve));
  });

  it.each([
    ["the admin listener", adminWith],
    ["the dashboard", dashboardWith],
  ])("does not end the process: %s", async (_, make) => {
    const errors: object[] = [];
    const service = make({ info() {}, warn() {}, error: (fields) => void errors.push(fields) });
    const listen = vi.spyOn(Server.prototype, "listen");
    await service.start();
    const [server] = listen.mock.contexts;
    listen.mockRestore();
    Object(server).emit("error", new Error("accept"));
    expect(errors).toHaveLength(1);
    await service.stop();
  });
});
