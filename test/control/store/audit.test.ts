import { expect, it } from "vitest";
import { note } from "../../../src/control/store/audit.ts";
import { actor, createFixture } from "./fixture.ts";

const { store, there, clock, user } = await createFixture();

it("is paged, newest first, for one account alone", async () => {
  const [mine, other] = [await user(), await user()];
  for (let n = 0; n < 5; n += 1) {
    const self = { ...actor, accountId: mine.id };
    await note(there.database, clock, mine.id, "key.change", { n }, self);
    await note(there.database, clock, other.id, "key.change", { n: 100 + n }, actor);
  }
  const seen: unknown[] = [];
  let after: string | null = null;
  do {
    const page = await store.audit.list(mine.id, { limit: 3, after });
    seen.push(...page.items.map(({ action, detail }) => detail["n"] ?? action));
    after = page.next;
  } while (after !== null);
  expect(seen).toEqual([4, 3, 2, 1, 0, "key.create", "account.register"]);
});

it("has who, when and from where, cut to a bound", async () => {
  const { id } = await user();
  const long = { ...actor, accountId: id, userAgent: "x".repeat(9_999) };
  await note(there.database, clock, id, "key.reveal", { a: "<script>" }, long);
  const { items } = await store.audit.list(id, { limit: 1, after: "nonsense" });
  expect(items).toMatchObject([
    {
      atMs: clock.unixMs(),
      accountId: id,
      action: "key.reveal",
      detail: { a: "<script>" },
      actor: { ...long, userAgent: "x".repeat(256) },
    },
  ]);
  expect(await store.audit.list("nobody", { limit: 1, after: null })).toEqual({
    items: [],
    next: null,
  });
});
