import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { clientKeyOf } from "../../../src/accounts/keys/client-key.ts";
import { publicKeySha256 } from "../../../src/accounts/keys/public-key.ts";
import {
  KEY_CHALLENGE_MS_MAX,
  KEY_CHALLENGES_PER_ACCOUNT_MAX,
} from "../../../src/control/limits.ts";
import type { KeyOptions } from "../../../src/control/store/contract.ts";
import { createSigner, type Signer } from "../../support/signer.ts";
import { actor, createFixture, plain, reasonOf, value } from "./fixture.ts";

const { store, clock, there, user, atOnce } = await createFixture();

async function challenged(accountId: string, signer: Signer) {
  return value(await store.keys.challenge(accountId, signer.publicKey));
}

/** Registers a key as its holder does. */
async function register(accountId: string, signer: Signer, options: KeyOptions = plain) {
  const { id: challengeId, text } = await challenged(accountId, signer);
  const proof = { challengeId, signature: signer.signOffchain(text) };
  return await store.keys.register(accountId, proof, options, actor);
}

/** Ids of the keys that edges find by this public key. */
async function edgeKeys({ publicKeyBytes }: Signer): Promise<readonly string[]> {
  const rows = await there.owner.query<{ key_id: string }>(
    "select key_id from touchdown.edge_keys where sha256 = $1",
    [publicKeySha256(publicKeyBytes)],
  );
  return rows.map(({ key_id: id }) => id);
}

describe("a public key", () => {
  it("is registered by its holder's signature, with the options of an API key", async () => {
    const { id } = await user();
    const signer = createSigner();
    const expiresAtMs = clock.unixMs() + 86_400_000;
    const cidrs = ["203.0.113.0/24"];
    const options = { label: "bot", expiresAtMs, cidrs, ratePerSecond: 5, burst: 10 };
    const key = value(await register(id, signer, options));
    expect(key).toMatchObject({
      ...options,
      ...{ publicKey: signer.publicKey, state: "live", revealable: false },
      hint: `${signer.publicKey.slice(0, 4)}…${signer.publicKey.slice(-4)}`,
    });
    expect(await edgeKeys(signer)).toEqual([key.id]);
    const { items } = await store.audit.list(id, { limit: 1, after: null });
    expect(items).toMatchObject([{ action: "key.create", detail: { keyId: key.id } }]);
    expect(await store.keys.find(signer.publicKey)).toMatchObject([{ id: key.id }]);
  });

  it("is changed and revoked as an API key is, and neither rotated nor revealed", async () => {
    const { id } = await user();
    const signer = createSigner();
    const key = value(await register(id, signer));
    const changed = await store.keys.change(id, key.id, { label: "new" }, actor);
    expect(value(changed)).toMatchObject({ label: "new", publicKey: signer.publicKey });
    expect(reasonOf(await store.keys.rotate(id, key.id, 0, actor))).toBe("invalid");
    expect(reasonOf(await store.keys.reveal(id, key.id, actor))).toBe("not_revealable");
    value(await store.keys.revoke(id, key.id, actor));
    expect(await edgeKeys(signer)).toEqual([]);
    const [change] = await there.owner.query(
      "select kind, sha256 from touchdown.edge_changes order by revision desc limit 1",
    );
    expect(change).toEqual({ kind: "key", sha256: publicKeySha256(signer.publicKeyBytes) });
  });

  it("has one owner, also when two accounts register it at once", async () => {
    const [first, second] = [await user(), await user()];
    const signer = createSigner();
    value(await register(first.id, signer));
    expect(reasonOf(await register(first.id, signer))).toBe("key_taken");
    expect(reasonOf(await register(second.id, signer))).toBe("key_taken");

    const contested = createSigner();
    const proofs = await Promise.all(
      [first, second].map(async ({ id }) => {
        const { id: challengeId, text } = await challenged(id, contested);
        return { id, proof: { challengeId, signature: contested.signOffchain(text) } };
      }),
    );
    const results = await atOnce(
      "keys",
      proofs.map(
        ({ id, proof }) =>
          () =>
            store.keys.register(id, proof, plain, actor),
      ),
    );
    expect(results.map(reasonOf).toSorted()).toEqual(["key_taken", null].toSorted());
    expect(await edgeKeys(contested)).toHaveLength(1);
  });

  it("that follows from an API key identifies that alone, until it is revoked", async () => {
    const [first, second] = [await user(), await user()];
    const { key, token } = value(await store.keys.create(first.id, plain, actor));
    const seed = createHmac("sha256", token).update("touchdown/1 client certificate").digest();
    const signer = createSigner(seed);
    expect(signer.publicKeyBytes).toEqual(Buffer.from(clientKeyOf(token)));
    for (const { id } of [first, second]) {
      expect(reasonOf(await register(id, signer))).toBe("key_taken");
    }
    value(await store.keys.revoke(first.id, key.id, actor));
    expect(reasonOf(await register(second.id, signer))).toBeNull();
  });

  it("that was registered before is no client key of its API key", async () => {
    const [first, second] = [await user(), await user()];
    const { key, token } = value(await store.keys.create(first.id, plain, actor));
    const clear = "update touchdown.keys set client_sha256 = null where id = $1";
    await there.owner.query(clear, [key.id]);
    const seed = createHmac("sha256", token).update("touchdown/1 client certificate").digest();
    const signer = createSigner(seed);
    const registered = value(await register(second.id, signer));
    value(await store.keys.reveal(first.id, key.id, actor));
    const clientKeys = async () =>
      await there.owner.query("select 1 from touchdown.edge_client_keys where key_id = $1", [
        key.id,
      ]);
    expect(await clientKeys()).toEqual([]);
    value(await store.keys.revoke(second.id, registered.id, actor));
    value(await store.keys.reveal(first.id, key.id, actor));
    expect(await clientKeys()).toHaveLength(1);
  });

  it("may come back after it was revoked or expired, for another account too", async () => {
    const [first, second] = [await user(), await user()];
    const signer = createSigner();
    const revoked = value(await register(first.id, signer));
    value(await store.keys.revoke(first.id, revoked.id, actor));
    const expiresAtMs = clock.unixMs() + 60_000;
    const expiring = value(await register(second.id, signer, { ...plain, expiresAtMs }));
    clock.advance(60_000);
    const last = value(await register(first.id, signer));
    expect(await edgeKeys(signer)).toEqual([last.id]);
    expect((await store.keys.byId(second.id, expiring.id))?.state).toBe("revoked");
  });

  it("counts among the account's keys", async () => {
    const { id } = await user();
    let result = await register(id, createSigner());
    for (let count = 0; result.kind === "ok" && count < 100; count += 1) {
      result = await register(id, createSigner());
    }
    expect(reasonOf(result)).toBe("too_many");
  });
});

describe("a challenge", () => {
  it("is given for a public key alone", async () => {
    const { id } = await user();
    for (const text of ["", "x", "1".repeat(32), "td_live_x"]) {
      expect(reasonOf(await store.keys.challenge(id, text))).toBe("invalid");
    }
  });

  it("is used once", async () => {
    const { id } = await user();
    const signer = createSigner();
    const { id: challengeId, text } = await challenged(id, signer);
    const proof = { challengeId, signature: signer.signOffchain(text) };
    const key = value(await store.keys.register(id, proof, plain, actor));
    value(await store.keys.revoke(id, key.id, actor));
    expect(reasonOf(await store.keys.register(id, proof, plain, actor))).toBe("challenge_ended");
  });

  it("is not used up by a wrong signature", async () => {
    const { id } = await user();
    const signer = createSigner();
    const { id: challengeId, text } = await challenged(id, signer);
    const wrong = { challengeId, signature: createSigner().signOffchain(text) };
    expect(reasonOf(await store.keys.register(id, wrong, plain, actor))).toBe("signature_wrong");
    const right = { challengeId, signature: signer.signOffchain(text) };
    expect(reasonOf(await store.keys.register(id, right, plain, actor))).toBeNull();
  });

  it("ends after a quarter of an hour", async () => {
    const { id } = await user();
    const signer = createSigner();
    const { id: challengeId, text, expiresAtMs } = await challenged(id, signer);
    expect(expiresAtMs - clock.unixMs()).toBeGreaterThan(KEY_CHALLENGE_MS_MAX - 1000);
    clock.advance(expiresAtMs - clock.unixMs());
    const proof = { challengeId, signature: signer.signOffchain(text) };
    expect(reasonOf(await store.keys.register(id, proof, plain, actor))).toBe("challenge_ended");
    expect(await store.prune()).toBeGreaterThan(0);
  });

  it("is bound to the account, and its text names it", async () => {
    const [mine, other] = [await user(), await user()];
    const signer = createSigner();
    const { id: challengeId, text } = await challenged(mine.id, signer);
    expect(text).toContain(mine.id);
    const proof = { challengeId, signature: signer.signOffchain(text) };
    for (const id of [other.id, "unknown"]) {
      const result = await store.keys.register(id, proof, plain, actor);
      expect(["challenge_ended", "not_found"]).toContain(reasonOf(result));
    }
    const bad = { challengeId: "1 or 1=1", signature: "x" };
    expect(reasonOf(await store.keys.register(mine.id, bad, plain, actor))).toBe("challenge_ended");
  });

  it("is dropped when the account has too many newer ones", async () => {
    const { id } = await user();
    const signers = Array.from({ length: KEY_CHALLENGES_PER_ACCOUNT_MAX + 1 }, createSigner);
    const [oldest] = signers;
    if (oldest === undefined) throw new Error("there is one");
    const first = await challenged(id, oldest);
    for (const signer of signers.slice(1)) {
      clock.advance(1000);
      await challenged(id, signer);
    }
    const rows = await there.owner.query(
      "select from touchdown.key_challenges where account_id = $1",
      [id],
    );
    expect(rows).toHaveLength(KEY_CHALLENGES_PER_ACCOUNT_MAX);
    const proof = { challengeId: first.id, signature: oldest.signOffchain(first.text) };
    expect(reasonOf(await store.keys.register(id, proof, plain, actor))).toBe("challenge_ended");
  });
});
