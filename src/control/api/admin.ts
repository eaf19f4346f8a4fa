/**
 * Operator functions: list accounts, change their plans, disable and enable them; and the cluster
 * as the edges see it. Every call needs a session with the admin right, and every change is written
 * to the audit log of that account.
 */

import type { Edges } from "../edges.ts";
import { noPlan } from "../store/accounts.ts";
import type { Account, AccountSummary, Store } from "../store/contract.ts";
import { type Route, route } from "../web/route.ts";
import { cursor, id, iso, isoOrNull, time, z } from "../web/schema.ts";
import { planOf, planShape } from "./account.ts";
import { statsOf, statsShape } from "./stats.ts";
import { valueOrThrow } from "./store-result.ts";

const accountShape = z.object({
  id: z.string(),
  name: z.string(),
  created_at: time,
  plan: z.string(),
  disabled: z.boolean(),
  rights: z.array(z.enum(["admin"])),
});
const summaryShape = accountShape.extend({
  contact: z.string().nullable(),
  keys: z.number(),
  last_used_at: time.nullable(),
});

const listQuery = z.strictObject({
  query: z.string().max(128).default(""),
  after: cursor(/^\d{1,15}_[0-9a-f-]{36}$/).optional(),
  limit: z.coerce.number().int().min(1).max(200).default(50),
});

/** What an edge knows of its cluster; docs/operations.md describes it. */
const clusterOfEdge = z.object({
  slot: z.number().nullable(),
  slot_ms: z.number(),
  consensus: z.enum(["unknown", "tower_bft", "alpenglow"]),
  confirmation_stalled: z.boolean(),
});

interface Deps {
  readonly store: Pick<Store, "accounts" | "plans" | "usage">;
  readonly edges: Pick<Edges, "ask">;
}

export function adminRoutes({ store, edges }: Deps): readonly Route[] {
  const { accounts, plans, usage } = store;
  const isPlan = async (wanted: string): Promise<boolean> =>
    (await plans.list()).some(({ name }) => name === wanted);
  return [
    route(
      ["GET", "/api/v1/admin/accounts"],
      "admin",
      "All accounts, newest first",
      {
        query: listQuery,
        response: z.object({ accounts: z.array(summaryShape), next: z.string().nullable() }),
      },
      async ({ query: { query: search, after = null, limit } }) => {
        const { items, next } = await accounts.list({ search, after, limit });
        return { accounts: items.map(summaryOf), next };
      },
    ),
    route(
      ["PATCH", "/api/v1/admin/accounts/{account_id}"],
      "admin",
      "Changes an account's plan, disables or enables it",
      {
        params: z.strictObject({ account_id: id }),
        body: z.strictObject({
          plan: z.string().min(1).max(64).optional(),
          disabled: z.boolean().optional(),
        }),
        response: z.object({ account: accountShape }),
        limit: "change",
        recentLogin: true,
      },
      async ({ caller, params: { account_id }, body }) => {
        const actor = { ...caller.actor, kind: "operator" as const };
        let account: Account | null = null;
        // Make the change that may be rejected first, so that either both changes are made or
        // neither.
        if (body.plan !== undefined && !(await isPlan(body.plan))) valueOrThrow(noPlan(body.plan));
        if (body.disabled !== undefined) {
          account = valueOrThrow(await accounts.setDisabled(account_id, body.disabled, actor));
        }
        if (body.plan !== undefined) {
          account = valueOrThrow(await accounts.setPlan(account_id, body.plan, actor));
        }
        account ??= await accounts.byId(account_id);
        const refused = { kind: "refused", reason: "not_found", detail: NO_ACCOUNT } as const;
        return {
          account: accountOf(
            valueOrThrow(account === null ? refused : { kind: "ok", value: account }),
          ),
        };
      },
    ),
    route(
      ["GET", "/api/v1/admin/plans"],
      "admin",
      "The plans",
      { response: z.object({ plans: z.array(planShape.extend({ accounts: z.number() })) }) },
      async () => ({
        plans: (await plans.list()).map((plan) => ({
          ...planOf(plan),
          accounts: plan.accountCount,
        })),
      }),
    ),
    route(
      ["GET", "/api/v1/admin/usage"],
      "admin",
      "Usage of all accounts",
      {
        query: z.strictObject({ range: z.enum(["hour", "day", "month"]).default("hour") }),
        response: z.object({ totals: statsShape }),
      },
      async ({ query: { range } }) => ({ totals: statsOf(await usage.overall(range)) }),
    ),
    route(
      ["GET", "/api/v1/admin/cluster"],
      "admin",
      "The cluster as each edge sees it",
      {
        response: z.object({
          edges: z.array(clusterOfEdge.extend({ edge: z.string() })),
          unreachable: z.array(z.string()),
        }),
      },
      async ({ caller }) => {
        const { responses, unreachable } = await edges.ask(
          { path: "/cluster", accountId: caller.account.id },
          (body) => clusterOfEdge.parse(body),
        );
        const seen = responses.map(({ edge, body }) => ({ ...body, edge }));
        seen.sort((a, b) => a.edge.localeCompare(b.edge));
        return { edges: seen, unreachable: [...unreachable] };
      },
    ),
  ];
}

const NO_ACCOUNT = "there is no such account";

function accountOf(account: Account): z.input<typeof accountShape> {
  return {
    id: account.id,
    name: account.name,
    created_at: iso(account.createdAtMs),
    plan: account.plan.name,
    disabled: account.disabledAtMs !== null,
    rights: account.admin ? ["admin"] : [],
  };
}

function summaryOf(summary: AccountSummary): z.input<typeof summaryShape> {
  return {
    ...accountOf(summary),
    contact: summary.contact,
    keys: summary.keyCount,
    last_used_at: isoOrNull(summary.lastUsedAtMs),
  };
}
