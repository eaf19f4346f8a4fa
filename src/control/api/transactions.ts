/**
 * Receipts of the account's transactions (one, or the latest) and its latest rejections. They exist
 * only in the memory of the edges that accepted them, so the control process queries the edges in
 * the name of the account, and an edge returns only that account's data. A transaction that was
 * sent to two edges is listed twice, because each edge tracks it separately.
 */

import { decodeBase58 } from "../../core/encoding.ts";
import { RECEIPT_STATES } from "../../core/receipt-state.ts";
import { ApiError } from "../api-error.ts";
import type { Edges } from "../edges.ts";
import type { Store } from "../store/contract.ts";
import { type Route, route } from "../web/route.ts";
import { time, z } from "../web/schema.ts";

/**
 * Small enough that an edge's response has room for a list in which every entry carries a long
 * error.
 */
const LISTED_MAX = 100;

/** As the edge sent it; docs/api.md describes it. */
const receiptShape = z.looseObject({ signature: z.string(), state: z.string() });

const us = z.number().nullable();
/** A receipt without its leaders, as in an edge's list. */
const listedShape = z.object({
  signature: z.string(),
  state: z.string(),
  received_at: time,
  received_slot: z.number().nullable(),
  submissions: z.number(),
  version: z.union([z.string(), z.number()]),
  tip_lamports: z.number(),
  priority_fee_lamports: z.number(),
  /** Absent from edges of an earlier version. */
  priority_lamports: z.number().optional(),
  timings: z.object({ decoded_us: us, first_sent_us: us, first_acked_us: us }),
  landing: z.object({
    state: z.string(),
    slot: z.number().nullable(),
    /** Landing slot minus the slot in progress at receipt. */
    slots: z.number().nullable(),
    error: z.unknown(),
    reason: z.string().nullable(),
    message: z.string(),
    known_us: us,
  }),
});
const transactionShape = listedShape.extend({ edge: z.string() });
const listOfEdge = z.object({
  transactions: z.array(listedShape).max(LISTED_MAX),
  next: z.string().nullable(),
});

/** Parses `landed,expired`; the error for an unknown state lists the valid ones. */
const givenStates = z
  .string()
  .max(200)
  .transform((text) => text.split(",").map((name) => name.trim()))
  .pipe(z.array(z.enum(RECEIPT_STATES)).max(RECEIPT_STATES.length))
  .meta({ description: `some of ${RECEIPT_STATES.join(", ")}, with commas in between` });

const refusalShape = z.object({
  at: time,
  edge: z.string(),
  reason: z.string(),
  message: z.string(),
  /** The key that was used; null if it no longer belongs to the account. */
  key_id: z.string().nullable(),
  hint: z.string().nullable(),
});
const refusalsOfEdge = z.object({
  refusals: z
    .array(refusalShape.omit({ edge: true, hint: true }).extend({ key_id: z.string().default("") }))
    .max(1000),
});

interface Deps {
  readonly edges: Edges;
  readonly keys: Pick<Store["keys"], "list">;
}

export function transactionRoutes({ edges, keys }: Deps): readonly Route[] {
  return [
    latestRoute(edges),
    route(
      ["GET", "/api/v1/transactions/{signature}"],
      "account",
      "The receipts of a transaction that this account sent, from every edge that has one",
      {
        params: z.strictObject({ signature: z.string().min(64).max(88) }),
        response: z.object({
          signature: z.string(),
          receipts: z.array(z.object({ edge: z.string(), receipt: receiptShape })),
          unreachable: z.array(z.string()),
        }),
      },
      async ({ caller, params: { signature } }) => {
        if (decodeBase58(signature, 64)?.length !== 64) {
          throw new ApiError("invalid_request", "a signature is 64 bytes in base58", {
            fields: [{ path: "signature", message: "must be 64 bytes in base58" }],
          });
        }
        const { responses, unreachable } = await edges.find(
          { path: `/receipts/${signature}`, accountId: caller.account.id },
          (body) => receiptShape.parse(body),
        );
        const receipts = responses.map(({ edge, body }) => ({ edge, receipt: body }));
        if (receipts.length > 0) return { signature, receipts, unreachable: [...unreachable] };
        const message = "no edge has a receipt of this transaction for this account";
        throw new ApiError("not_found", message, { unreachable: [...unreachable] });
      },
    ),
    route(
      ["GET", "/api/v1/refusals"],
      "account",
      "The latest submissions of the account that edges refused, newest first",
      {
        query: z.strictObject({ limit: z.coerce.number().int().min(1).max(200).default(50) }),
        response: z.object({
          refusals: z.array(refusalShape),
          unreachable: z.array(z.string()),
        }),
      },
      async ({ caller, query: { limit } }) => {
        const { responses, unreachable } = await edges.ask(
          { path: "/refusals", accountId: caller.account.id },
          (body) => refusalsOfEdge.parse(body),
        );
        const refusals = responses.flatMap(({ edge, body }) =>
          body.refusals.map((row) => ({ ...row, edge })),
        );
        refusals.sort((a, b) => newestFirst(a.at, b.at));
        // Edges write ids without dashes.
        const own = new Map(
          (await keys.list(caller.account.id)).map((key) => [key.id.replaceAll("-", ""), key]),
        );
        const named = refusals.slice(0, limit).map((row) => {
          const key = own.get(row.key_id.replaceAll("-", ""));
          return { ...row, key_id: key?.id ?? null, hint: key?.hint ?? null };
        });
        return { refusals: named, unreachable: [...unreachable] };
      },
    ),
  ];
}

function latestRoute(edges: Edges): Route {
  return route(
    ["GET", "/api/v1/transactions"],
    "account",
    "The latest transactions of the account from all edges, newest first, of some states or of all",
    {
      query: z.strictObject({
        state: givenStates.optional(),
        limit: z.coerce.number().int().min(1).max(LISTED_MAX).default(50),
      }),
      response: z.object({
        transactions: z.array(transactionShape),
        /** Whether the edges have older ones in these states. */
        more: z.boolean(),
        unreachable: z.array(z.string()),
      }),
    },
    async ({ caller, query: { state, limit } }) => {
      const wanted = { ...(state === undefined ? {} : { state: state.join(",") }) };
      const { responses, unreachable } = await edges.ask(
        {
          path: "/receipts",
          accountId: caller.account.id,
          query: { ...wanted, limit: String(limit) },
        },
        (body) => listOfEdge.parse(body),
      );
      const all = responses.flatMap(({ edge, body }) =>
        body.transactions.map((one) => ({ ...one, edge })),
      );
      all.sort((a, b) => newestFirst(a.received_at, b.received_at));
      const more = all.length > limit || responses.some(({ body }) => body.next !== null);
      return { transactions: all.slice(0, limit), more, unreachable: [...unreachable] };
    },
  );
}

/** Newest ISO time first. Entries of the same millisecond keep the order of their edge. */
function newestFirst(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? 1 : -1;
}
