import { tmpdir } from "node:os";
import { expect, it } from "vitest";
import { z } from "zod";
import { createAttemptLimiter } from "../../../src/control/web/attempt-limiter.ts";
import type { Authenticator } from "../../../src/control/web/authenticate.ts";
import { openRoute, route } from "../../../src/control/web/route.ts";
import { createWebServer } from "../../../src/control/web/server.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { silent } from "../../support/postgres.ts";
import { stub } from "../../support/stub.ts";

const shape = z.object({ name: z.string(), inner: z.object({ count: z.number() }) });

it("a response holds only what its schema names, whatever the handler returns", async () => {
  const clock = createFakeClock();
  const whole = { name: "a", inner: { count: 1, secret: "x" }, ciphertext: "y" };
  const wrong: object = { name: 7 };
  const web = createWebServer(
    {
      ...{
        clock,
        log: silent,
        attempts: createAttemptLimiter(clock),
        authenticator: stub<Authenticator>({}),
      },
      routes: [
        openRoute(["GET", "/api/v1/whole"], "", { response: shape }, async () => whole),
        // Simulates a handler whose types are wrong.
        openRoute(["GET", "/api/v1/wrong"], "", { response: shape }, async () => wrong as never),
      ],
      onReturn: async () => "/",
      onLive: () => {
        throw new Error("nobody listens");
      },
    },
    {
      ...{ host: "127.0.0.1", port: 0, publicUrl: "http://127.0.0.1", version: "test" },
      ...{ fetchOrigins: [], trustedProxies: [], pagesFolder: tmpdir() },
    },
  );
  const { port } = await web.start();
  const ask = async (path: string) => {
    const response = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`);
    return [response.status, await response.json()] as const;
  };
  expect(await ask("whole")).toEqual([200, { name: "a", inner: { count: 1 } }]);
  const [status, told] = await ask("wrong");
  expect(status).toBe(500);
  expect(JSON.stringify(told)).not.toContain("7");
  expect(web.counters.requests).toEqual({ ok: 1, internal: 1 });
  await web.stop();
});

it("cannot be made for a change without a word on whether it needs a recent login", () => {
  const spec = { response: z.object({}) };
  const make = (more: { readonly recentLogin?: boolean }) =>
    route(["POST", "/api/v1/x"], "account", "", { ...spec, ...more }, async () => ({}));
  expect(() => make({})).toThrow("POST /api/v1/x does not say whether");
  expect(make({ recentLogin: true }).recentLogin).toBe(true);
  expect(make({ recentLogin: false }).recentLogin).toBe(false);
});

it("does not run without an identity if it requires one", async () => {
  const spec = { response: z.object({}) };
  const known = route(["GET", "/api/v1/x"], "account", "", spec, async () => ({}));
  const call = { params: {}, query: {}, body: null, address: "", userAgent: null };
  const whole = { ...call, cookie: () => null, setCookie: () => undefined };
  expect(() => known.handle(whole, null)).toThrow("without a caller");
});
