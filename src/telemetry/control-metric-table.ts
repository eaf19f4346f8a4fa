/**
 * Every metric of the control process, one row each; its `/metrics` and docs/metrics.md are made
 * from it. The same promises hold as for an edge's: names stay, labels have few values.
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
    help: "Requests to the dashboard's API, by ok or the reason of the refusal.",
  },
  {
    name: "touchdown_control_answer_seconds",
    kind: "histogram",
    labels: [],
    help: "From a request's complete body to its answer, successful calls of the API only.",
  },
  {
    name: "touchdown_control_logins_total",
    kind: "counter",
    labels: ["outcome"],
    help: "Logins, by begun, finished or the reason of the refusal.",
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
    help: "Tries to discover the identity provider that failed.",
  },
  {
    name: "touchdown_control_tries_refused_total",
    kind: "counter",
    labels: [],
    help: "Requests refused for being too many.",
  },
  {
    name: "touchdown_control_tries_forgotten_total",
    kind: "counter",
    labels: [],
    help: "Callers whose tries were forgotten to make room.",
  },
  {
    name: "touchdown_control_live_streams",
    kind: "gauge",
    labels: [],
    help: "Live streams that are open now.",
  },
  {
    name: "touchdown_control_live_streams_ended_total",
    kind: "counter",
    labels: ["reason"],
    help: "Live streams not opened for being too many (refused), or cut off unread (cut_off).",
  },
  {
    name: "touchdown_control_edge_questions_total",
    kind: "counter",
    labels: ["outcome"],
    help: "Questions to edges' admin listeners, by asked or failed.",
  },
  {
    name: "touchdown_control_pruned_total",
    kind: "counter",
    labels: [],
    help: "Rows of the database that were past their time and let go.",
  },
] as const satisfies readonly MetricRow[];
