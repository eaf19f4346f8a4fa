/**
 * The account's keys: list, create, change, rotate, revoke, reveal, link, and the registration of
 * public keys, which the other routes list, change and revoke too. Only three responses contain the
 * text of a key: create, rotate and reveal. These calls, and any change of a key's
 * options, need a recent session login. A management token cannot reveal a key.
 */

import { ApiError } from "../api-error.ts";
import type { FreshKey, KeyOptions, KeyRecord, Store } from "../store/contract.ts";
import { UNRESTRICTED } from "../store/key-options.ts";
import { type Route, route } from "../web/route.ts";
import { givenTime, id, iso, isoOrNull, label, time, z } from "../web/schema.ts";
import { valueOrThrow } from "./store-result.ts";

const HIDE_AFTER_S = 30;
const OVERLAP_S_MAX = 30 * 24 * 3600;
const OVERLAP_S = 24 * 3600;

const keyShape = z.object({
  id: z.string(),
  label: z.string(),
  kind: z.enum(["api_key", "public_key"]),
  hint: z.string(),
  public_key: z
    .string()
    .nullable()
    .meta({ description: "in base58, of a key of the kind public_key; it is not rotated" }),
  state: z.enum(["live", "expired", "revoked"]),
  created_at: time,
  expires_at: time.nullable(),
  revoked_at: time.nullable(),
  last_used_at: time.nullable(),
  allowed_addresses: z.array(z.string()),
  rate_per_second: z.number().nullable(),
  burst: z.number().nullable(),
  rotated_from: z.string().nullable(),
  replaced_by: z
    .object({ id: z.string(), hint: z.string() })
    .nullable()
    .meta({ description: "the key that a rotation put in its place; it is not rotated again" }),
  revealable: z.boolean(),
});

const limits = {
  expires_at: givenTime.nullable().optional(),
  allowed_addresses: z.array(z.string().max(64)).max(32).optional(),
  rate_per_second: z.int().positive().nullable().optional(),
  burst: z.int().positive().nullable().optional(),
};
const makeShape = z.strictObject({ label, ...limits });
const changeShape = z.strictObject({ label: label.optional(), ...limits });
const overlap = z.int().min(0).max(OVERLAP_S_MAX).default(OVERLAP_S);
const keyResponse = z.object({ key: keyShape });
const freshShape = z.object({ key: keyShape, token: z.string() });
const params = z.strictObject({ key_id: id });

export function keyRoutes({ keys }: Pick<Store, "keys">): readonly Route[] {
  return [
    route(
      ["GET", "/api/v1/keys"],
      "account",
      "The account's keys, live ones first",
      { response: z.object({ keys: z.array(keyShape) }) },
      async ({ caller }) => ({ keys: (await keys.list(caller.account.id)).map(keyOf) }),
    ),
    route(
      ["POST", "/api/v1/keys"],
      "account",
      "Makes a key",
      { body: makeShape, response: freshShape, status: 201, limit: "change", recentLogin: true },
      async ({ caller, body }) => {
        const { account, actor } = caller;
        const options = { ...UNRESTRICTED, ...changeOf(body), label: body.label };
        return freshOf(valueOrThrow(await keys.create(account.id, options, actor)));
      },
    ),
    route(
      ["PATCH", "/api/v1/keys/{key_id}"],
      "account",
      "Labels or restricts a key",
      { params, body: changeShape, response: keyResponse, limit: "change", recentLogin: true },
      async ({ caller, params: { key_id }, body }) => {
        const { account, actor } = caller;
        const changed = await keys.change(account.id, key_id, changeOf(body), actor);
        return { key: keyOf(valueOrThrow(changed)) };
      },
    ),
    route(
      ["POST", "/api/v1/keys/{key_id}/rotate"],
      "account",
      "Makes a key in the place of this one, which ends after the overlap",
      {
        params,
        body: z.strictObject({ overlap_seconds: overlap }),
        response: freshShape,
        status: 201,
        limit: "change",
        recentLogin: true,
      },
      async ({ caller, params: { key_id }, body }) => {
        const { account, actor } = caller;
        const overlapMs = body.overlap_seconds * 1000;
        return freshOf(valueOrThrow(await keys.rotate(account.id, key_id, overlapMs, actor)));
      },
    ),
    ...endsOf(keys),
    ...publicKeyRoutes(keys),
  ];
}

function endsOf(keys: Store["keys"]): readonly Route[] {
  return [
    route(
      ["POST", "/api/v1/keys/{key_id}/revoke"],
      "account",
      "Revokes a key; edges refuse it within a second",
      { params, response: keyResponse, limit: "change", recentLogin: true },
      async ({ caller: { account, actor }, params: { key_id } }) => ({
        key: keyOf(valueOrThrow(await keys.revoke(account.id, key_id, actor))),
      }),
    ),
    route(
      ["POST", "/api/v1/keys/{key_id}/reveal"],
      "session",
      "Shows a key's text; written to the audit",
      {
        params,
        response: z.object({ token: z.string(), hide_after_seconds: z.number() }),
        limit: "reveal",
        recentLogin: true,
      },
      async ({ caller: { account, actor }, params: { key_id } }) => {
        const { token } = valueOrThrow(await keys.reveal(account.id, key_id, actor));
        return { token, hide_after_seconds: HIDE_AFTER_S };
      },
    ),
    route(
      ["POST", "/api/v1/keys/link"],
      "session",
      "Moves a key to this account, by proof of the key itself",
      {
        body: z.strictObject({ token: z.string().min(1).max(256), label: label.optional() }),
        response: keyResponse,
        limit: "link",
        // Possession of the key text is the proof.
        recentLogin: false,
      },
      async ({ caller: { account, actor }, body }) => {
        const linked = await keys.link(account.id, body.token, actor);
        // Unknown, expired, mistyped and foreign keys get the same response, so that guessing
        // reveals nothing.
        if (linked.kind === "refused" && linked.reason !== "too_many") {
          throw new ApiError("key_refused", "this key cannot be linked to this account");
        }
        const key = valueOrThrow(linked);
        if (body.label === undefined) return { key: keyOf(key) };
        const named = await keys.change(account.id, key.id, { label: body.label }, actor);
        return { key: keyOf(valueOrThrow(named)) };
      },
    ),
  ];
}

const challengeShape = z.object({
  id: z.string(),
  text: z.string().meta({ description: "what the holder of the public key signs" }),
  command: z.string().meta({ description: "a command line that prints the signature" }),
  expires_at: time,
});

function publicKeyRoutes(keys: Store["keys"]): readonly Route[] {
  return [
    route(
      ["POST", "/api/v1/public-keys/challenges"],
      "account",
      "A text that the holder of a public key signs, for this account",
      {
        body: z.strictObject({ public_key: z.string().min(1).max(64) }),
        response: z.object({ challenge: challengeShape }),
        status: 201,
        limit: "change",
        recentLogin: true,
      },
      async ({ caller: { account }, body }) => {
        const { id, text, expiresAtMs } = valueOrThrow(
          await keys.challenge(account.id, body.public_key),
        );
        const command = `solana sign-offchain-message '${text}'`;
        return { challenge: { id, text, command, expires_at: iso(expiresAtMs) } };
      },
    ),
    route(
      ["POST", "/api/v1/public-keys"],
      "account",
      "Registers the public key of a challenge, by its holder's signature of the text",
      {
        body: makeShape.extend({ challenge_id: id, signature: z.string().min(1).max(128) }),
        response: keyResponse,
        status: 201,
        limit: "change",
        recentLogin: true,
      },
      async ({ caller: { account, actor }, body }) => {
        const { challenge_id: challengeId, signature, ...rest } = body;
        const options = { ...UNRESTRICTED, ...changeOf(rest), label: body.label };
        const proof = { challengeId, signature };
        return { key: keyOf(valueOrThrow(await keys.register(account.id, proof, options, actor))) };
      },
    ),
  ];
}

function changeOf(body: z.output<typeof changeShape>): Partial<KeyOptions> {
  const { label: text, expires_at, allowed_addresses, rate_per_second, burst } = body;
  const expiresAtMs =
    expires_at === undefined || expires_at === null ? null : Date.parse(expires_at);
  return {
    ...(text === undefined ? {} : { label: text }),
    ...(expires_at === undefined ? {} : { expiresAtMs }),
    ...(allowed_addresses === undefined ? {} : { cidrs: allowed_addresses }),
    ...(rate_per_second === undefined ? {} : { ratePerSecond: rate_per_second }),
    ...(burst === undefined ? {} : { burst }),
  };
}

function freshOf({ key, token }: FreshKey) {
  return { key: keyOf(key), token };
}

function keyOf(key: KeyRecord): z.input<typeof keyShape> {
  return {
    id: key.id,
    label: key.label,
    kind: key.publicKey === null ? "api_key" : "public_key",
    hint: key.hint,
    public_key: key.publicKey,
    state: key.state,
    created_at: iso(key.createdAtMs),
    expires_at: isoOrNull(key.expiresAtMs),
    revoked_at: isoOrNull(key.revokedAtMs),
    last_used_at: isoOrNull(key.lastUsedAtMs),
    allowed_addresses: [...key.cidrs],
    rate_per_second: key.ratePerSecond,
    burst: key.burst,
    rotated_from: key.rotatedFrom,
    replaced_by: key.replacedBy,
    revealable: key.revealable,
  };
}
