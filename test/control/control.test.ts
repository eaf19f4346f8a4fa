import { once } from "node:events";
import { connect } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import {
  CONTROL_CHECK_MS,
  CONTROL_PRUNE_MS,
  CONTROL_STOP_MS_MAX,
} from "../../src/control/limits.ts";
import { Browser, startTestControl, type TestControl } from "../support/control.ts";

let site: TestControl | null = null;
afterEach(() => site?.stop());

const readiness = async ({ control }: TestControl): Promise<readonly [number, string]> => {
  const response = await fetch(`http://${control.adminAddress}/readyz`);
  return [response.status, await response.text()];
};

/** Statements that wait for a lock of a table of this database. */
const WAITING = `select from pg_locks l join pg_database d on d.oid = l.database
  where d.datname = current_database() and not l.granted`;

/** Runs `act` while a request that makes a key waits for a lock of the database. */
async function whileAKeyWaits<Result>(
  { url, store }: TestControl,
  act: (call: ReturnType<Browser["call"]>) => Promise<Result>,
): Promise<Result> {
  const grace = new Browser(url);
  await grace.login("grace");
  const { owner } = store.there;
  return owner.transaction(async (tx) => {
    await tx.query("lock table touchdown.keys in exclusive mode");
    const call = grace.call("POST", "/api/v1/keys", { label: "late" });
    await expect.poll(() => owner.query(WAITING)).toHaveLength(1);
    return act(call);
  });
}

describe("the control process", () => {
  it("is not ready from when the database stops responding until it responds", async () => {
    const started = await startTestControl();
    site = started;
    const [status, answer] = await readiness(started);
    expect([status, JSON.parse(answer)]).toEqual([
      200,
      expect.objectContaining({ service: "control", ports: [expect.any(String)] }),
    ]);
    started.store.gone = true;
    started.clock.advance(CONTROL_CHECK_MS);
    await expect.poll(() => readiness(started)).toEqual([503, expect.stringContaining("database")]);
    expect(started.control.readiness()).toMatchObject({ ok: false });
    started.store.gone = false;
    started.clock.advance(CONTROL_CHECK_MS);
    await expect.poll(async () => (await readiness(started))[0]).toBe(200);
  });

  it("starts without the operators that its configuration no longer has", async () => {
    const started = await startTestControl();
    site = started;
    const ada = new Browser(started.url);
    await ada.login("ada");
    const status = async () => (await ada.call("GET", "/api/v1/admin/accounts")).status;
    expect(await status()).toBe(200);
    const { issuer } = started.provider;
    for (const [admins, expected] of [
      [[`${issuer} grace`, `${issuer} ada`], 200],
      [[`${issuer} grace`], 403],
    ] as const) {
      const next = await startTestControl({ store: started.store, control: { admins } });
      await next.control.stop();
      await next.provider.stop();
      expect(await status()).toBe(expected);
    }
    expect(await started.store.lastAction()).toBe("account.admin");
  });

  it("lets go of what is past its time each hour", async () => {
    const started = await startTestControl();
    site = started;
    const attempt = { state: "s", verifier: "v", nonce: "n", binding: "b", returnTo: "/" };
    await started.store.logins.startLogin({ ...attempt, reauthenticate: false });
    const kept = async (): Promise<number> => {
      const rows = await started.store.there.owner.query("select from touchdown.login_attempts");
      return rows.length;
    };
    expect(await kept()).toBe(1);
    started.clock.advance(CONTROL_PRUNE_MS);
    await expect.poll(kept).toBe(0);
    await started.store.logins.startLogin({ ...attempt, reauthenticate: false });
    started.clock.advance(CONTROL_PRUNE_MS);
    await expect.poll(kept).toBe(0);
  });

  it("answers open requests before it stops", async () => {
    const started = await startTestControl();
    site = started;
    const { call, stopped } = await whileAKeyWaits(started, async (call) => ({
      call,
      stopped: started.control.stop(),
    }));
    expect((await call).status).toBe(201);
    await stopped;
  });

  it("waits for no connection without a request when it stops", async () => {
    const started = await startTestControl();
    site = started;
    const { hostname, port } = new URL(started.url);
    const sockets = ["", "GET / HTTP/1.1\r\n"].map((text) => {
      const socket = connect(Number(port), hostname);
      socket.write(text);
      return socket.resume();
    });
    const closed = sockets.map((socket) => once(socket, "close"));
    await Promise.all(sockets.map((socket) => once(socket, "connect")));
    // The server accepts in order, so it has both.
    expect((await fetch(`${started.url}/livez`)).status).toBe(404);
    await started.control.stop();
    await Promise.all(closed);
  });

  it("ends requests that stay open for too long when it stops", async () => {
    const started = await startTestControl();
    site = started;
    await whileAKeyWaits(started, async (call) => {
      const stopped = started.control.stop();
      started.clock.advance(CONTROL_STOP_MS_MAX);
      await expect(call).rejects.toThrow();
      await stopped;
    });
  });

  it("notifies the live streams that it stops, and ends them", async () => {
    const started = await startTestControl();
    site = started;
    const grace = new Browser(started.url);
    await grace.login("grace");
    const cookie = [...grace.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const headers = { cookie, "sec-fetch-site": "same-origin" };
    const stream = await fetch(`${started.url}/api/v1/live`, { headers });
    const text = stream.text();
    await started.control.stop();
    expect(await text).toMatch(/event: stopping\ndata: \{\}\n\n$/);
  });
});
