/**
 * The data that the pages load first: the site, the logged-in account, the limits of its plan, and
 * its audit log.
 */

import type { Named } from "../../config/site-types.ts";
import type { AuditEntry, PlanRecord, Store } from "../store/contract.ts";
import { openRoute, type Route, route } from "../web/route.ts";
import { cursor, iso, label, time, z } from "../web/schema.ts";
import { statsOf, statsShape } from "./stats.ts";
import { valueOrThrow } from "./store-result.ts";

export interface SiteOptions {
  readonly version: string;
  readonly regions: readonly Named[];
  readonly quicRegions: readonly Named[];
  /** Contains the placeholder `{signature}`. */
  readonly explorerUrl: string | null;
  /** Values for the sample programs of the Connect page; null if not configured. */
  readonly examples: {
    readonly rpcUrl: string | null;
    readonly transactionUrl: string | null;
    readonly authorityFile: string | null;
  };
  readonly recentLoginMs: number;
}

interface Deps {
  readonly store: Pick<Store, "accounts" | "audit" | "keys" | "usage">;
  readonly loginAvailable: () => boolean;
}

export const planShape = z.object({
  name: z.string(),
  rate_per_second: z.number(),
  burst: z.number(),
  shared: z.boolean(),
  rights: z.record(z.string(), z.unknown()),
});

const siteShape = z.object({
  name: z.string(),
  version: z.string(),
  regions: z.array(z.object({ name: z.string(), url: z.string(), quic: z.string().nullable() })),
  explorer_url: z.string().nullable(),
  examples: z.object({
    rpc_url: z.string().nullable(),
    transaction_url: z.string().nullable(),
    authority_file: z.string().nullable(),
  }),
  login: z.object({ available: z.boolean() }),
  logged_in: z.boolean().meta({
    description: "whether a session's cookie came along; the session may have ended",
  }),
  recent_login_seconds: z.number(),
});

const meShape = z.object({
  account: z.object({
    id: z.string(),
    name: z.string(),
    created_at: time,
    plan: planShape,
    disabled: z.boolean(),
  }),
  people: z.array(
    z.object({
      issuer: z.string(),
      subject: z.string(),
      name: z.string().nullable(),
      email: z.string().nullable(),
    }),
  ),
  rights: z.array(z.enum(["admin"])),
  via: z.enum(["session", "token"]),
  session: z
    .object({
      id: z.string(),
      logged_in_at: time,
      recent_until: time,
      idle_ends_at: time,
      ends_at: time,
    })
    .nullable(),
});

const entryShape = z.object({
  id: z.string(),
  at: time,
  action: z.string(),
  actor: z.enum(["account", "token", "operator", "system"]),
  address: z.string().nullable(),
  user_agent: z.string().nullable(),
  detail: z.record(z.string(), z.unknown()),
});

export function accountRoutes(deps: Deps, options: SiteOptions): readonly Route[] {
  return [siteRoute(deps, options), ...meRoutes(deps, options), planRoute(deps), auditRoute(deps)];
}

function siteRoute({ loginAvailable }: Deps, options: SiteOptions): Route {
  const quic = new Map(options.quicRegions.map(({ name, at }) => [name, at]));
  const regions = options.regions.map(({ name, at }) => ({
    name,
    url: at,
    quic: quic.get(name) ?? null,
  }));
  return openRoute(
    ["GET", "/api/v1/site"],
    "The service: its regions, and whether one can log in now",
    { response: siteShape },
    async (call) => ({
      name: "Touchdown",
      version: options.version,
      regions,
      explorer_url: options.explorerUrl,
      examples: {
        rpc_url: options.examples.rpcUrl,
        transaction_url: options.examples.transactionUrl,
        authority_file: options.examples.authorityFile,
      },
      login: { available: loginAvailable() },
      logged_in: call.cookie("session") !== null,
      recent_login_seconds: options.recentLoginMs / 1000,
    }),
  );
}

function meRoutes({ store }: Deps, { recentLoginMs }: SiteOptions): readonly Route[] {
  return [
    route(
      ["GET", "/api/v1/me"],
      "account",
      "Who calls, and the account",
      { response: meShape },
      async ({ caller: { account, session } }) => ({
        account: {
          id: account.id,
          name: account.name,
          created_at: iso(account.createdAtMs),
          plan: planOf(account.plan),
          disabled: account.disabledAtMs !== null,
        },
        people: [...(await store.accounts.identities(account.id))],
        rights: account.admin ? ["admin" as const] : [],
        via: session === null ? ("token" as const) : ("session" as const),
        session:
          session === null
            ? null
            : {
                id: session.id,
                logged_in_at: iso(session.authenticatedAtMs),
                recent_until: iso(session.authenticatedAtMs + recentLoginMs),
                idle_ends_at: iso(session.idleEndsAtMs),
                ends_at: iso(session.endsAtMs),
              },
      }),
    ),
    route(
      ["PATCH", "/api/v1/me"],
      "session",
      "Renames the account",
      {
        body: z.strictObject({ name: label }),
        response: z.object({ name: z.string() }),
        limit: "change",
        recentLogin: false,
      },
      async ({ caller: { account, actor }, body }) => ({
        name: valueOrThrow(await store.accounts.rename(account.id, body.name, actor)).name,
      }),
    ),
  ];
}

function planRoute({ store }: Deps): Route {
  return route(
    ["GET", "/api/v1/plan"],
    "account",
    "The plan's limits, and how much of them was used in the last two whole minutes",
    {
      response: z.object({
        plan: planShape,
        scope: z.enum(["edge", "account"]),
        keys: z.number(),
        recent: statsShape.extend({
          busiest_edge_requests: z
            .number()
            .meta({ description: "of the edge that had most; scope edge limits each edge" }),
        }),
      }),
    },
    async ({ caller: { account } }) => {
      const keys = await store.keys.list(account.id);
      const recent = await store.usage.recent(account.id);
      return {
        plan: planOf(account.plan),
        scope: account.plan.shared ? ("account" as const) : ("edge" as const),
        keys: keys.filter(({ state }) => state === "live").length,
        recent: { ...statsOf(recent), busiest_edge_requests: recent.busiestEdgeRequests },
      };
    },
  );
}

function auditRoute({ store }: Deps): Route {
  return route(
    ["GET", "/api/v1/audit"],
    "account",
    "What was done to this account, newest first",
    {
      query: z.strictObject({
        limit: z.coerce.number().int().min(1).max(200).default(50),
        after: cursor(/^\d{1,15}$/).optional(),
      }),
      response: z.object({ entries: z.array(entryShape), next: z.string().nullable() }),
    },
    async ({ caller, query: { limit, after = null } }) => {
      const { items, next } = await store.audit.list(caller.account.id, { limit, after });
      return { entries: items.map(entryOf), next };
    },
  );
}

function entryOf(entry: AuditEntry): z.input<typeof entryShape> {
  // The customer does not see the operator's address and browser.
  const isOperator = entry.actor.kind === "operator";
  return {
    id: entry.id,
    at: iso(entry.atMs),
    action: entry.action,
    actor: entry.actor.kind,
    address: isOperator ? null : entry.actor.address,
    user_agent: isOperator ? null : entry.actor.userAgent,
    detail: { ...entry.detail },
  };
}

export function planOf(plan: PlanRecord): z.input<typeof planShape> {
  return {
    name: plan.name,
    rate_per_second: plan.ratePerSecond,
    burst: plan.burst,
    shared: plan.shared,
    rights: { ...plan.rights },
  };
}
