/**
 * The dashboard's queries to an edge on behalf of an account: one receipt, the latest receipts, and
 * the latest rejections. A list has the parameters of the public API and is parsed by the same
 * code, so that the two cannot diverge.
 */

import { readListQuery } from "../http/receipts/query.ts";
import type { Receipts } from "../receipts/receipts.ts";
import type { RejectionLog } from "../receipts/rejection-log.ts";
import type { AdminDeps } from "../telemetry/admin.ts";

export function adminQueries(
  receipts: Pick<Receipts, "find" | "list">,
  rejections: Pick<RejectionLog, "latest">,
  /** Reads the engine's events, so that accounting has all submissions and outcomes so far. */
  flushEvents: () => void = () => {},
): NonNullable<AdminDeps["ofAccount"]> {
  return {
    receipt(signature, account) {
      flushEvents();
      return receipts.find(signature, account);
    },
    receipts(account, text) {
      flushEvents();
      const read = readListQuery(text);
      if (read.kind === "rejected") return { kind: "rejected", message: read.rejection.message };
      return { kind: "list", list: receipts.list(account, read.query) };
    },
    refusals(account) {
      flushEvents();
      return rejections.latest(account);
    },
  };
}
