/**
 * The live stream as a route: the one whose answer is no JSON and does not end. The server guards
 * it by this record and the OpenAPI document describes it from it.
 */

import type { RouteHead } from "./route.ts";
import { nothing, z } from "./schema.ts";

const EVENTS =
  "Server-sent events. `usage`: the last hour, as GET /api/v1/usage answers it, at once and " +
  "whenever it changed. `stale`: `{since}`, the time from which on there are no newer figures, " +
  "null where there were none; the next `usage` ends that. `ended`: the session or token has " +
  "ended. `stopping`: the server stops. Comments fill a long silence.";

export const EVENT_STREAM_ROUTE: RouteHead = {
  method: "GET",
  path: "/api/v1/live",
  access: "account",
  summary: "The numbers of the last hour as they change, as server-sent events",
  params: nothing,
  query: nothing,
  body: null,
  response: z.string().meta({ description: EVENTS }),
  responseType: "text/event-stream",
  status: 200,
  limit: null,
  recentLogin: false,
};
