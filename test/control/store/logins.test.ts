import { describe, expect, it } from "vitest";
import { LOGIN_ATTEMPT_MS_MAX, LOGIN_ATTEMPTS_MAX } from "../../../src/control/limits.ts";
import { createFixture } from "./fixture.ts";

const { store, clock, there } = await createFixture();

const attempt = (name: string) => ({
  state: `state-${name}`,
  binding: `browser-${name}`,
  verifier: "v",
  nonce: "n",
  returnTo: "/keys",
  reauthenticate: false,
});
const take = (name: string, browser = name) =>
  store.logins.take(`state-${name}`, `browser-${browser}`);

describe("a pending login", () => {
  it("is used once", async () => {
    await store.logins.startLogin(attempt("a"));
    const responses = await Promise.all([take("a"), take("a"), take("a")]);
    expect(responses.filter((response) => response !== null)).toEqual([
      { verifier: "v", nonce: "n", returnTo: "/keys", reauthenticate: false },
    ]);
  });

  it("cannot be used by another browser, and stays usable after its attempt", async () => {
    await store.logins.startLogin(attempt("b"));
    await store.logins.startLogin(attempt("c"));
    expect([await take("b", "c"), await take("c", "b"), await take("none")]).toEqual([
      null,
      null,
      null,
    ]);
    expect([await take("b"), await take("c")]).not.toContain(null);
  });

  it("ends with its time, and its row goes with a later one", async () => {
    await store.logins.startLogin(attempt("d"));
    clock.advance(LOGIN_ATTEMPT_MS_MAX);
    expect(await take("d")).toBeNull();
    await store.logins.startLogin(attempt("e"));
    const [row] = await there.owner.query("select count(*) as n from touchdown.login_attempts");
    expect(row).toEqual({ n: 1 });
  });

  it("makes room when there are too many, oldest first", async () => {
    await there.owner.query(
      `insert into touchdown.login_attempts
       select sha256(n::text::bytea), sha256('x'), 'v', 'n', '/', false, $2
       from generate_series(1, $1) n`,
      [LOGIN_ATTEMPTS_MAX, new Date(clock.unixMs() + 60_000)],
    );
    await store.logins.startLogin(attempt("f"));
    const [row] = await there.owner.query("select count(*) as n from touchdown.login_attempts");
    expect(row).toEqual({ n: LOGIN_ATTEMPTS_MAX });
    expect(await take("f")).not.toBeNull();
  });

  it("leaves neither state nor binding in the database", async () => {
    await store.logins.startLogin(attempt("secret"));
    const rows = await there.owner.query("select * from touchdown.login_attempts");
    expect(JSON.stringify(rows)).not.toMatch(/state-secret|browser-secret/);
  });
});
