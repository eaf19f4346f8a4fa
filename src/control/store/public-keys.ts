/**
 * Registers an Ed25519 public key as a key of an account, by proof of possession: the holder signs
 * a challenge that names the account and the key, ends after 15 minutes and is used once.
 *
 * A public key that is in use has one owner. Its holder may register it again after it ended, also
 * for another account. A wrong signature does not use up a challenge: it proves nothing, and the
 * next try may be the right paste.
 */

import { randomUUID } from "node:crypto";
import type { Queryable } from "../../accounts/database/database.ts";
import {
  type Challenge,
  challengeText,
  isSignedText,
  parsePublicKey,
  publicKeySha256,
} from "../../accounts/keys/public-key.ts";
import { encodeKey } from "../../core/encoding.ts";
import { KEY_CHALLENGE_MS_MAX, KEY_CHALLENGES_PER_ACCOUNT_MAX } from "../limits.ts";
import { note } from "./audit.ts";
import type { Account, Actor, KeyOptions, KeyRecord, Keys, Result } from "./contract.ts";
import { checkOptions } from "./key-options.ts";
import { auditDetail, insertKey, keysMax, liveCount } from "./keys.ts";
import { instant, isUuid, lockAccount, ok, refused, type StoreDeps } from "./records.ts";

type PublicKeys = Pick<Keys, "challenge" | "register">;

export function createPublicKeys(deps: StoreDeps): PublicKeys {
  return {
    challenge(accountId, publicKey) {
      return deps.database.transaction(async (tx) => {
        const locked = await lockAccount(tx, accountId);
        if (locked.kind === "refused") return locked;
        const bytes = parsePublicKey(publicKey);
        if (bytes === null) return refused("invalid", PUBLIC_KEY_NEEDED);
        const challenge = await insertChallenge(tx, deps, accountId, bytes);
        const { id, expiresAtMs } = challenge;
        return ok({ id, text: challengeText(challenge), expiresAtMs });
      });
    },
    register(accountId, proof, wanted, actor) {
      return deps.database.transaction(async (tx) => {
        const locked = await lockAccount(tx, accountId);
        if (locked.kind === "refused") return locked;
        const challenge = await findChallenge(tx, deps, accountId, proof.challengeId);
        if (challenge === null) {
          return refused("challenge_ended", "the challenge was used or has expired, get a new one");
        }
        if (!isSignedText(challenge.publicKey, challengeText(challenge), proof.signature)) {
          return refused("signature_wrong", "the signature is not the public key's for this text");
        }
        const made = await createPublicKey(tx, deps, locked.value, challenge, wanted, actor);
        if (made.kind === "ok") {
          await tx.query("delete from touchdown.key_challenges where id = $1", [challenge.id]);
        }
        return made;
      });
    },
  };
}

/** Above the limit the account's oldest challenges are dropped. */
async function insertChallenge(
  tx: Queryable,
  { clock }: StoreDeps,
  accountId: string,
  publicKey: Uint8Array,
): Promise<Challenge> {
  // The text has whole seconds.
  const expiresAtMs = Math.floor((clock.unixMs() + KEY_CHALLENGE_MS_MAX) / 1000) * 1000;
  const id = randomUUID();
  await tx.query(
    `insert into touchdown.key_challenges (id, account_id, public_key, expires_at)
     values ($1, $2, $3, $4)`,
    [id, accountId, publicKey, instant(expiresAtMs)],
  );
  await tx.query(
    `delete from touchdown.key_challenges where id in (
       select id from touchdown.key_challenges where account_id = $1 and id <> $2
       order by expires_at desc, id offset $3)`,
    [accountId, id, KEY_CHALLENGES_PER_ACCOUNT_MAX - 1],
  );
  return { id, account: accountId, publicKey, expiresAtMs };
}

async function findChallenge(
  tx: Queryable,
  { clock }: StoreDeps,
  accountId: string,
  id: string,
): Promise<Challenge | null> {
  if (!isUuid(id)) return null;
  const [row] = await tx.query<{ readonly public_key: Buffer; readonly expires_at: number }>(
    `select public_key, expires_at from touchdown.key_challenges
     where id = $1 and account_id = $2 and expires_at > $3`,
    [id, accountId, instant(clock.unixMs())],
  );
  if (row === undefined) return null;
  return { id, account: accountId, publicKey: row.public_key, expiresAtMs: row.expires_at };
}

async function createPublicKey(
  tx: Queryable,
  deps: StoreDeps,
  account: Account,
  { publicKey }: Challenge,
  wanted: KeyOptions,
  actor: Actor,
): Promise<Result<KeyRecord>> {
  const nowMs = deps.clock.unixMs();
  const checked = checkOptions(wanted, account.plan, nowMs);
  if (checked.kind === "refused") return checked;
  const countMax = keysMax(account.plan);
  if ((await liveCount(tx, deps, account.id)) >= countMax) {
    return refused("too_many", `an account may have ${countMax} keys at a time, revoke one first`);
  }
  const sha256 = publicKeySha256(publicKey);
  await tx.query(
    `update touchdown.keys set revoked_at = expires_at
     where sha256 = $1 and revoked_at is null and expires_at <= $2`,
    [sha256, instant(nowMs)],
  );
  const [apiKey] = await tx.query(
    `select 1 from touchdown.keys
     where client_sha256 = $1 and revoked_at is null
       and (expires_at is null or expires_at > $2)`,
    [sha256, instant(nowMs)],
  );
  if (apiKey !== undefined) {
    return refused("key_taken", "this public key follows from an API key, and identifies that");
  }
  const secret = {
    ...{ id: randomUUID(), sha256, clientSha256: null },
    ...{ hint: hintOf(publicKey), sealed: null, publicKey },
  };
  const key = await insertKey(tx, nowMs, account.id, secret, checked.value, null);
  if (key === null) {
    return refused(
      "key_taken",
      "this public key is registered, for this account or another; revoke it there first",
    );
  }
  await note(tx, deps.clock, account.id, "key.create", auditDetail(key), actor);
  return ok(key);
}

/** `7Np4…x9Qz` */
function hintOf(publicKey: Uint8Array): string {
  const text = encodeKey(publicKey);
  return `${text.slice(0, HINT_CHARS)}…${text.slice(-HINT_CHARS)}`;
}

const HINT_CHARS = 4;
const PUBLIC_KEY_NEEDED =
  "a public key is the 32 bytes of an Ed25519 key in base58, as `solana address` prints it";
