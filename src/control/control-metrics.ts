/** The control process's metrics: what each row of the table reads when it is scraped. */

import type { CONTROL_METRICS } from "../telemetry/control-metric-table.ts";
import { type SourcesOf, samplesBy } from "../telemetry/metrics.ts";
import type { Edges } from "./edges.ts";
import type { Live } from "./live.ts";
import type { Login } from "./login/login.ts";
import type { Oidc } from "./login/oidc.ts";
import type { WebServer } from "./web/server.ts";
import type { Tries } from "./web/tries.ts";

export interface ControlParts {
  readonly version: string;
  readonly ready: () => boolean;
  readonly web: WebServer;
  readonly login: Login;
  readonly oidc: Oidc;
  readonly tries: Tries;
  readonly live: Live;
  readonly edges: Edges;
  readonly pruned: () => number;
}

export function controlMetricSources(parts: ControlParts): SourcesOf<typeof CONTROL_METRICS> {
  const { web, login, oidc, tries, live, edges } = parts;
  return {
    touchdown_control_build_info: () => [{ labels: { version: parts.version }, value: 1 }],
    touchdown_control_ready: () => (parts.ready() ? 1 : 0),
    touchdown_control_requests_total: () => samplesBy("outcome", web.counters.requests),
    touchdown_control_answer_seconds: () => web.counters.duration,
    touchdown_control_logins_total: () => {
      const { begun, finished, refused } = login.counters;
      return samplesBy("outcome", { begun, finished, ...refused });
    },
    touchdown_control_provider_known: () => (oidc.available() ? 1 : 0),
    touchdown_control_discoveries_failed_total: () => oidc.counters.discoveryFailed,
    touchdown_control_tries_refused_total: () => tries.counters.refused,
    touchdown_control_tries_forgotten_total: () => tries.counters.forgotten,
    touchdown_control_live_streams: () => live.count(),
    touchdown_control_live_streams_ended_total: () =>
      samplesBy("reason", { refused: live.counters.refused, cut_off: live.counters.cutOff }),
    touchdown_control_edge_questions_total: () =>
      samplesBy("outcome", { asked: edges.counters.asked, failed: edges.counters.failed }),
    touchdown_control_pruned_total: parts.pruned,
  };
}
