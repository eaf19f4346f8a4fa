/**
 * Every metric of the control process, one row each; the source of its `/metrics` and
 * docs/metrics.md. As for an edge's metrics, names stay and labels have few values.
 */

import type { MetricRow } from "./metric-rows.ts";

export const CONTROL_METRICS = [
  {
    name: "touchdown_control_build_info",
    kind: "gauge",
    labels: ["version"],
    help: "Always 1; the label says what runs.",
  },
  {
    name: "touchdown_control_ready",
    kind: "gauge",
    labels: [],
    help: "1 while /readyz answers 200, else 0.",
  },
  {
    name: "touchdown_control_requests_total",
    kind: "counter",
    labels: ["outcome"],
    help: "Requests to the dashboard's API, by ok or the reason of the rejection.",
  },
  {
    name: "touchdown_control_response_seconds",
    kind: "histogram",
    labels: [],
    help: "From a request's complete body to its response, successful calls of the API only.",
  },
  {
    name: "touchdown_control_logins_total",
    kind: "counter",
    labels: ["outcome"],
    help: "Logins, by started, finished or the reason of the rejection.",
  },
  {
    name: "touchdown_control_provider_known",
    kind: "gauge",
    labels: [],
    help: "1 once the identity provider was discovered, else 0.",
  },
  {
    name: "touchdown_control_discoveries_failed_total",
    kind: "counter",
    labels: [],
    help: "Failed attempts to discover the identity provider.",
  },
  {
    name: "touchdown_control_rate_limited_total",
    kind: "counter",
    labels: [],
    help: "Requests rejected by the attempt limiter.",
  },
  {
    name: "touchdown_control_rate_limiter_evictions_total",
    kind: "counter",
    labels: [],
    help: "Callers that the attempt limiter evicted to make room.",
  },
  {
    name: "touchdown_control_event_streams",
    kind: "gauge",
    labels: [],
    help: "Open event streams.",
  },
  {
    name: "touchdown_control_event_streams_ended_total",
    kind: "counter",
    labels: ["reason"],
    help: "Event streams rejected for being too many, or closed for backpressure (unread).",
  },
  {
    name: "touchdown_control_edge_requests_total",
    kind: "counter",
    labels: ["outcome"],
    help: "Requests to edges' admin listeners, by sent or failed.",
  },
  {
    name: "touchdown_control_pruned_total",
    kind: "counter",
    labels: [],
    help: "Expired database rows that were deleted.",
  },
] as const satisfies readonly MetricRow[];
