/**
 * Usage of the account over an hour, a day or a month, for all regions and keys or for one.
 */

import type { Store } from "../store/contract.ts";
import { type Route, route } from "../web/route.ts";
import { id, z } from "../web/schema.ts";
import { overviewOf, overviewShape } from "./stats.ts";

const query = z.strictObject({
  range: z.enum(["hour", "day", "month"]).default("hour"),
  region: z.string().max(64).optional(),
  key: id.optional(),
});

export function usageRoutes({ usage }: Pick<Store, "usage">): readonly Route[] {
  return [
    route(
      ["GET", "/api/v1/usage"],
      "account",
      "What the account sent and what became of it",
      { query, response: overviewShape },
      async ({ caller, query: { range, region = null, key = null } }) =>
        overviewOf(await usage.overview(caller.account.id, { span: range, region, keyId: key })),
    ),
  ];
}
