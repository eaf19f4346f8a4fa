import { describe, expect, it } from "vitest";
import { API_TOKENS_PER_ACCOUNT_MAX } from "../../../src/control/limits.ts";
import { actor, createFixture, reasonOf, value } from "./fixture.ts";

const { store, clock, user } = await createFixture();
const options = { label: "ci", scope: "write", expiresAtMs: null } as const;

describe("a management token", () => {
  it("opens its account until it is revoked, and notes its use", async () => {
    const { id } = await user();
    const { apiToken, token } = value(await store.apiTokens.create(id, options, actor));
    expect(token).toMatch(/^tdm_[\w-]{43}$/);
    expect(apiToken).toMatchObject({ label: "ci", scope: "write", lastUsedAtMs: null });
    expect(await store.apiTokens.authenticate(token)).toMatchObject({
      account: { id },
      apiToken: { id: apiToken.id, accountId: id, createdAtMs: apiToken.createdAtMs },
    });
    expect(await store.apiTokens.list(id)).toMatchObject([{ lastUsedAtMs: clock.unixMs() }]);
    const other = await user();
    expect(reasonOf(await store.apiTokens.revoke(other.id, apiToken.id, actor))).toBe("not_found");
    value(await store.apiTokens.revoke(id, apiToken.id, actor));
    expect(reasonOf(await store.apiTokens.revoke(id, apiToken.id, actor))).toBe("not_found");
    expect(await store.apiTokens.authenticate(token)).toBeNull();
    expect(await store.apiTokens.list(id)).toEqual([]);
  });

  it("ends with its time", async () => {
    const { id } = await user();
    const expiresAtMs = clock.unixMs() + 1_000;
    const { token } = value(await store.apiTokens.create(id, { ...options, expiresAtMs }, actor));
    clock.advance(999);
    expect(await store.apiTokens.authenticate(token)).not.toBeNull();
    clock.advance(1);
    expect(await store.apiTokens.authenticate(token)).toBeNull();
    const past = await store.apiTokens.create(id, { ...options, expiresAtMs }, actor);
    expect(reasonOf(past)).toBe("invalid");
  });

  it("is one of a bounded number, also when all are created in parallel", async () => {
    const { id } = await user();
    const responses = await Promise.all(
      Array.from({ length: API_TOKENS_PER_ACCOUNT_MAX + 3 }, () =>
        store.apiTokens.create(id, options, actor),
      ),
    );
    expect(responses.filter(({ kind }) => kind === "ok")).toHaveLength(API_TOKENS_PER_ACCOUNT_MAX);
  });
});
