/**
 * The metrics of the control process: the value that each row of the metric table reads on a
 * scrape.
 */

import type { CONTROL_METRICS } from "../telemetry/control-metric-table.ts";
import { type SourcesOf, samplesBy } from "../telemetry/metrics.ts";
import type { Edges } from "./edges.ts";
import type { EventStreams } from "./event-stream.ts";
import type { Login } from "./login/login.ts";
import type { Oidc } from "./login/oidc.ts";
import type { AttemptLimiter } from "./web/attempt-limiter.ts";
import type { WebServer } from "./web/server.ts";

export interface ControlParts {
  readonly version: string;
  readonly ready: () => boolean;
  readonly web: WebServer;
  readonly login: Login;
  readonly oidc: Oidc;
  readonly attempts: AttemptLimiter;
  readonly eventStreams: EventStreams;
  readonly edges: Edges;
  readonly pruned: () => number;
}

export function controlMetricSources(parts: ControlParts): SourcesOf<typeof CONTROL_METRICS> {
  const { web, login, oidc, attempts, eventStreams, edges } = parts;
  return {
    touchdown_control_build_info: () => [{ labels: { version: parts.version }, value: 1 }],
    touchdown_control_ready: () => (parts.ready() ? 1 : 0),
    touchdown_control_requests_total: () => samplesBy("outcome", web.counters.requests),
    touchdown_control_response_seconds: () => web.counters.duration,
    touchdown_control_logins_total: () => {
      const { started, finished, refused } = login.counters;
      return samplesBy("outcome", { started: started, finished, ...refused });
    },
    touchdown_control_provider_known: () => (oidc.available() ? 1 : 0),
    touchdown_control_discoveries_failed_total: () => oidc.counters.discoveryFailed,
    touchdown_control_rate_limited_total: () => attempts.counters.limited,
    touchdown_control_rate_limiter_evictions_total: () => attempts.counters.evicted,
    touchdown_control_event_streams: () => eventStreams.count(),
    touchdown_control_event_streams_ended_total: () =>
      samplesBy("reason", {
        rejected: eventStreams.counters.rejected,
        backpressure: eventStreams.counters.cutOff,
      }),
    touchdown_control_edge_requests_total: () =>
      samplesBy("outcome", { sent: edges.counters.asked, failed: edges.counters.failed }),
    touchdown_control_pruned_total: parts.pruned,
  };
}
