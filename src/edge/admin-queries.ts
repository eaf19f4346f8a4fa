/**
 * What the dashboard asks of an edge in the name of an account: its receipts, one or the latest of
 * them, and its latest refusals. A list is asked for in the words of the public API and read by the
 * same reader, so that the two cannot come to differ.
 */

import { readListQuery } from "../http/receipts/query.ts";
import type { Receipts } from "../receipts/receipts.ts";
import type { RejectionLog } from "../receipts/rejection-log.ts";
import type { AdminDeps } from "../telemetry/admin.ts";

export function adminQueries(
  receipts: Pick<Receipts, "find" | "list">,
  refusals: Pick<RejectionLog, "latest">,
  /** Has all that was done so far taken into the books. */
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
      if (read.kind === "refused") return { kind: "refused", message: read.rejection.message };
      return { kind: "list", list: receipts.list(account, read.query) };
    },
    refusals(account) {
      flushEvents();
      return refusals.latest(account);
    },
  };
}
