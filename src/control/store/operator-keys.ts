/**
 * Operator functions on keys: search and list over all accounts, and resealing of all texts after a
 * change of the key-encryption key. Nothing here returns the text of a key.
 */

import { parsePublicKey, publicKeySha256 } from "../../accounts/keys/public-key.ts";
import type { Sealed } from "../vault.ts";
import { note } from "./audit.ts";
import type { Keys } from "./contract.ts";
import { SEALED_COLUMNS } from "./keys.ts";
import {
  exactTime,
  instant,
  isLive,
  isUuid,
  KEY_COLUMNS,
  type KeyRow,
  keyOf,
  pageOf,
  readCursor,
  type StoreDeps,
  sha256,
  writeCursor,
} from "./records.ts";

type OperatorKeys = Pick<Keys, "find" | "listAll" | "rewrap" | "missingEncryptionKeys">;

interface HashedRow extends KeyRow {
  readonly sha256: Buffer;
}

interface ListedRow extends HashedRow {
  readonly accountName: string;
  readonly plan: string;
}

export function createOperatorKeys(deps: StoreDeps): OperatorKeys {
  const { database, clock } = deps;
  return {
    async find(which) {
      const publicKey = parsePublicKey(which);
      const digits = PREFIX_FORM.test(which) ? which.toLowerCase() : null;
      const rows = await database.query<HashedRow>(
        `select ${KEY_COLUMNS}, k.sha256 from touchdown.keys k
         where k.sha256 = any($1)
           or ($2::text is not null and encode(k.sha256, 'hex') like $2 || '%')
         order by k.revoked_at is not null limit ${FOUND_MAX}`,
        [[sha256(which), ...(publicKey === null ? [] : [publicKeySha256(publicKey)])], digits],
      );
      return rows.map((row) => hashed(row, clock.unixMs()));
    },
    async listAll({ limit, after }) {
      // By account, in index order: a page costs the same regardless of the number of keys.
      const [account = "", cursorText = null] = after?.split("/") ?? [];
      const cursor = isUuid(account) ? readCursor(cursorText) : null;
      const nowMs = clock.unixMs();
      const rows = await database.query<ListedRow>(
        `select ${KEY_COLUMNS}, k.sha256, a.name as "accountName", a.plan
         from touchdown.keys k join touchdown.accounts a on a.id = k.account_id
         where ${isLive(1)} and (k.account_id, k.created_at, k.id)
           > ($2::uuid, ${exactTime("keys", 4, 3)}, $4::uuid)
         order by k.account_id, k.created_at, k.id limit $5`,
        [
          instant(nowMs),
          cursor === null ? FIRST_ID : account,
          cursor?.at ?? instant(0),
          cursor?.id ?? FIRST_ID,
          limit + 1,
        ],
      );
      return pageOf(
        rows.map((row) => hashed(row, nowMs)),
        limit,
        (row) => `${row.accountId}/${writeCursor(row.createdAtMs, row.id)}`,
      );
    },
    rewrap: () => rewrapAll(deps),
    async missingEncryptionKeys() {
      const used = await encryptionKeysInUse(deps);
      const opens = await Promise.all(used.map((id) => canOpen(deps, id)));
      return used.filter((_, index) => !opens[index]);
    },
  };
}

/** Ids of the key-encryption keys that sealed the stored texts. */
export async function encryptionKeysInUse({
  database,
}: Pick<StoreDeps, "database">): Promise<readonly string[]> {
  const rows = await database.query<{ readonly kek_id: string }>(
    "select distinct kek_id from touchdown.keys where kek_id is not null order by kek_id",
  );
  return rows.map(({ kek_id: id }) => id);
}

/** Whether the vault opens what this key sealed, by one text: another key may have the same id. */
async function canOpen({ database, vault }: StoreDeps, kekId: string): Promise<boolean> {
  const [row] = await database.query<Sealed & { readonly id: string; readonly accountId: string }>(
    `select id, account_id as "accountId", ${SEALED_COLUMNS} from touchdown.keys
     where kek_id = $1 limit 1`,
    [kekId],
  );
  if (row === undefined) return true;
  const { id: keyId, accountId, ...sealed } = row;
  return vault.open(sealed, { accountId, keyId }).kind === "ok";
}

/** In separate transactions, so that a rotation can be interrupted and resumed. */
async function rewrapAll(deps: StoreDeps): ReturnType<Keys["rewrap"]> {
  let rewrapped = 0;
  let failed = 0;
  for (let after = FIRST_ID; ; ) {
    const step = await rewrapSome(deps, after);
    rewrapped += step.rewrapped;
    failed += step.failed;
    if (step.last === null) break;
    after = step.last;
  }
  if (rewrapped + failed > 0) {
    const detail = { rewrapped, failed, kekId: deps.vault.activeId };
    await note(deps.database, deps.clock, null, "key.change", detail, SYSTEM);
  }
  return { rewrapped, failed };
}

async function rewrapSome(
  { database, vault }: StoreDeps,
  after: string,
): Promise<{ readonly rewrapped: number; readonly failed: number; readonly last: string | null }> {
  return await database.transaction(async (tx) => {
    const rows = await tx.query<Sealed & { readonly id: string; readonly accountId: string }>(
      `select id, account_id as "accountId", ${SEALED_COLUMNS} from touchdown.keys
       where kek_id is not null and kek_id <> $1 and id > $2 order by id limit ${STEP}
       for update`,
      [vault.activeId, after],
    );
    let rewrapped = 0;
    for (const { id, accountId, ...stored } of rows) {
      const owner = { accountId, keyId: id };
      const opened = vault.open(stored, owner);
      if (opened.kind !== "ok") continue;
      const sealed = vault.seal(opened.text, owner);
      await tx.query(
        "update touchdown.keys set ciphertext = $2, nonce = $3, kek_id = $4 where id = $1",
        [id, sealed.ciphertext, sealed.nonce, sealed.kekId],
      );
      rewrapped += 1;
    }
    return { rewrapped, failed: rows.length - rewrapped, last: rows.at(-1)?.id ?? null };
  });
}

function hashed<Row extends HashedRow>(row: Row, nowMs: number) {
  return { ...keyOf(row, nowMs), sha256: row.sha256.toString("hex") };
}

const PREFIX_FORM = /^[0-9a-fA-F]{8,64}$/;
const FOUND_MAX = 16;
const STEP = 500;
const FIRST_ID = "00000000-0000-0000-0000-000000000000";
const SYSTEM = { kind: "system", accountId: null, address: null, userAgent: null } as const;
