import { expect, it } from "vitest";
import { createDatabase } from "../../../src/accounts/database/database.ts";
import { createStore } from "../../../src/control/store/store.ts";
import { silent } from "../../support/postgres.ts";
import { createFixture, STORE_OPTIONS } from "./fixture.ts";

const { store, deps } = await createFixture();

it("is healthy while its database responds, and reports when it does not", async () => {
  await expect(store.check()).resolves.toBeUndefined();
  const url = "postgres://u:p@127.0.0.1:1/x";
  const database = createDatabase({ clock: deps.clock, log: silent }, { url });
  const cut = createStore({ ...deps, database }, STORE_OPTIONS);
  await expect(cut.check()).rejects.toMatchObject({ kind: "unavailable" });
  await database.stop();
});
