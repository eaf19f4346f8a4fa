/** The metrics of fronts, rows of the edge's table. */

import { counter, gauge } from "./metric-rows.ts";

export const FRONT_METRICS = [
  gauge("touchdown_fronts", [], "Threads that take transactions and send them by themselves."),
  counter(
    "touchdown_front_requests_relayed_total",
    ["reason"],
    "Requests that a front left to the main thread: for no pass for the key, the limit, " +
      "no leader that can be sent to at once, books that are behind, or other, reads among them.",
  ),
  gauge(
    "touchdown_front_leaders_left_out",
    [],
    "Connected leaders of the plan that fronts leave to the main thread: copies wait " +
      "there, or did just now.",
  ),
  gauge("touchdown_front_passes", [], "Keys that fronts let in by themselves."),
  counter(
    "touchdown_front_passes_total",
    ["event"],
    "Passes for keys: granted to a thread, revoked by a change, and for want of room evicted or " +
      "declined, a request each.",
  ),
  gauge(
    "touchdown_front_records_waiting",
    [],
    "Transactions that fronts have dealt with and that are not in the books yet.",
  ),
  counter(
    "touchdown_front_sends_held_total",
    [],
    "Transactions that fronts held for a moment and sent together with others.",
  ),
  counter(
    "touchdown_front_records_late_total",
    [],
    "Transactions of fronts whose receipts name no leaders: the books came too late.",
  ),
  counter(
    "touchdown_front_news_unclaimed_total",
    ["reason"],
    "News of copies of fronts that the books never asked for: by age, as of copies that " +
      "were refused at once, or for want of room, which leaves copies without their end.",
  ),
] as const;
