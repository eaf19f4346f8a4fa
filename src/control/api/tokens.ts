/**
 * Management tokens: API access without a browser. A token is shown once and stored as a hash. Its
 * scope limits what it may do; it can neither reveal a key nor create another token.
 */

import type { ApiToken, Store } from "../store/contract.ts";
import { type Route, route } from "../web/route.ts";
import { givenTime, id, iso, isoOrNull, label, time, z } from "../web/schema.ts";
import { valueOrThrow } from "./store-result.ts";

const scope = z.enum(["read", "write"]);
const tokenShape = z.object({
  id: z.string(),
  label: z.string(),
  hint: z.string(),
  scope,
  created_at: time,
  expires_at: time.nullable(),
  last_used_at: time.nullable(),
});

export function tokenRoutes({ apiTokens }: Pick<Store, "apiTokens">): readonly Route[] {
  return [
    route(
      ["GET", "/api/v1/tokens"],
      "session",
      "The account's management tokens",
      { response: z.object({ tokens: z.array(tokenShape) }) },
      async ({ caller }) => ({ tokens: (await apiTokens.list(caller.account.id)).map(shownOf) }),
    ),
    route(
      ["POST", "/api/v1/tokens"],
      "session",
      "Makes a management token, which is shown this once",
      {
        body: z.strictObject({
          label,
          scope: scope.default("read"),
          expires_at: givenTime.nullable().default(null),
        }),
        response: z.object({ info: tokenShape, token: z.string() }),
        status: 201,
        limit: "change",
        recentLogin: true,
      },
      async ({ caller: { account, actor }, body }) => {
        const expiresAtMs = body.expires_at === null ? null : Date.parse(body.expires_at);
        const options = { label: body.label, scope: body.scope, expiresAtMs };
        const { apiToken, token } = valueOrThrow(
          await apiTokens.create(account.id, options, actor),
        );
        return { info: shownOf(apiToken), token };
      },
    ),
    route(
      ["DELETE", "/api/v1/tokens/{token_id}"],
      "session",
      "Revokes a management token",
      {
        params: z.strictObject({ token_id: id }),
        response: z.object({ ended: z.number() }),
        limit: "change",
        recentLogin: true,
      },
      async ({ caller: { account, actor }, params }) => {
        valueOrThrow(await apiTokens.revoke(account.id, params.token_id, actor));
        return { ended: 1 };
      },
    ),
  ];
}

function shownOf(token: ApiToken): z.input<typeof tokenShape> {
  return {
    id: token.id,
    label: token.label,
    hint: token.hint,
    scope: token.scope,
    created_at: iso(token.createdAtMs),
    expires_at: isoOrNull(token.expiresAtMs),
    last_used_at: isoOrNull(token.lastUsedAtMs),
  };
}
