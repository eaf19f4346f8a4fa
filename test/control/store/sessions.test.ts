import { describe, expect, it } from "vitest";
import { SESSIONS_PER_ACCOUNT_MAX } from "../../../src/control/limits.ts";
import type { Account, Store } from "../../../src/control/store/contract.ts";
import { actor, createFixture, identityOf, reasonOf, STORE_OPTIONS, value } from "./fixture.ts";

const { store, clock, there } = await createFixture();
const { sessionIdleMs, sessionMsMax } = STORE_OPTIONS;

async function loggedIn(): Promise<{ readonly account: Account; open: () => OpenResponse }> {
  const { issuer, subject, ...rest } = identityOf();
  const made = await store.accounts.register({ issuer, subject, ...rest }, actor);
  const { account } = value(made);
  return {
    account,
    open: async () => {
      const login = { accountId: account.id, issuer, subject };
      const authenticatedAtMs = clock.unixMs() - 1000;
      return value(await store.sessions.open({ ...login, authenticatedAtMs }, actor));
    },
  };
}
type OpenResponse = Promise<{ readonly secret: string; readonly session: { readonly id: string } }>;
type SessionOf = Awaited<ReturnType<Store["sessions"]["touch"]>>;

describe("a session", () => {
  it("is found by its secret alone, which the database does not hold", async () => {
    const { account, open } = await loggedIn();
    const { secret, session } = await open();
    expect(secret).toMatch(/^[\w-]{43}$/);
    expect(await store.sessions.touch(secret)).toMatchObject({
      id: session.id,
      account: { id: account.id, plan: { name: "Beta" } },
      address: actor.address,
      authenticatedAtMs: clock.unixMs() - 1000,
    });
    expect(await store.sessions.touch(session.id)).toBeNull();
    const rows = await there.owner.query("select * from touchdown.sessions");
    expect(JSON.stringify(rows)).not.toContain(secret);
  });

  it("lives while it is used, and ends when idle", async () => {
    const { open } = await loggedIn();
    const { secret } = await open();
    for (let i = 0; i < 4; i += 1) {
      clock.advance(sessionIdleMs - 1);
      expect(await store.sessions.touch(secret)).not.toBeNull();
    }
    clock.advance(sessionIdleMs);
    expect(await store.sessions.touch(secret)).toBeNull();
  });

  it("ends when it is old, however much it is used", async () => {
    const { open } = await loggedIn();
    const { secret } = await open();
    const startMs = clock.unixMs();
    let last: SessionOf = await store.sessions.touch(secret);
    while (last !== null && clock.unixMs() - startMs <= sessionMsMax) {
      clock.advance(sessionIdleMs / 2);
      last = await store.sessions.touch(secret);
    }
    expect(clock.unixMs() - startMs).toBe(sessionMsMax);
  });

  it("gets a new secret at a new login, and the old one is void", async () => {
    const { open } = await loggedIn();
    const { secret, session } = await open();
    clock.advance(60_000);
    const authenticatedAtMs = clock.unixMs() - 500;
    const renewed = await store.sessions.renew(secret, actor, authenticatedAtMs);
    expect(renewed?.session).toMatchObject({ id: session.id, authenticatedAtMs });
    expect(await store.sessions.touch(secret)).toBeNull();
    expect(await store.sessions.renew(secret, actor, authenticatedAtMs)).toBeNull();
    expect(await store.sessions.touch(renewed?.secret ?? "")).toMatchObject({ id: session.id });
  });

  it("is closed by its owner, alone or with all others, and never by another", async () => {
    const [mine, other] = [await loggedIn(), await loggedIn()];
    const [a, b, c] = [await mine.open(), await mine.open(), await mine.open()];
    expect(await store.sessions.list(mine.account.id)).toHaveLength(3);
    expect(await store.sessions.end(other.account.id, a.session.id, actor)).toBe(false);
    expect(await store.sessions.end(mine.account.id, a.session.id, actor)).toBe(true);
    await store.sessions.close(b.secret, actor);
    await store.sessions.close(b.secret, actor);
    const left = (await store.sessions.list(mine.account.id)).map(({ id }) => id);
    expect(left).toEqual([c.session.id]);
    expect(await store.sessions.endAll(mine.account.id, actor)).toBe(1);
    expect(await store.sessions.touch(c.secret)).toBeNull();
    expect(await store.sessions.end("x", "y", actor)).toBe(false);
  });

  it("makes room for a new one when there are too many", async () => {
    const { account, open } = await loggedIn();
    const first = await open();
    for (let i = 0; i < SESSIONS_PER_ACCOUNT_MAX; i += 1) {
      clock.advance(1);
      await open();
    }
    expect(await store.sessions.list(account.id)).toHaveLength(SESSIONS_PER_ACCOUNT_MAX);
    expect(await store.sessions.touch(first.secret)).toBeNull();
  });

  it("is not opened for an account that is not there", async () => {
    const login = { accountId: "nobody", issuer: "i", subject: "s", authenticatedAtMs: 0 };
    expect(reasonOf(await store.sessions.open(login, actor))).toBe("not_found");
  });
});
