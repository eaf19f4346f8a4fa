/**
 * Landing's access to the dedup cache: each copy of a transaction in flight renews the
 * transaction's entry. While the entry lives, the engine leaves a repeated submission to landing,
 * which knows the leaders that received the transaction.
 */

import { peekSignatureOffset } from "../decode/transaction.ts";
import type { DedupCache } from "../dedup/recent-transactions.ts";
import type { DeliveryGate } from "../landing/ports.ts";

export function deliveryGateOf(dedup: Pick<DedupCache, "renew" | "forget">): DeliveryGate {
  return {
    renew: (bytes, sinceNs, nowNs) =>
      dedup.renew(bytes, peekSignatureOffset(bytes), sinceNs, nowNs),
    forget: (bytes, sinceNs) => dedup.forget(bytes, peekSignatureOffset(bytes), sinceNs),
  };
}
