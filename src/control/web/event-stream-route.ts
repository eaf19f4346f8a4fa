/**
 * The event stream as a route: the only one whose response is not JSON and does not end. The server
 * guards it by this record, and the OpenAPI document describes it from the same record.
 */

import type { RouteHead } from "./route.ts";
import { nothing, z } from "./schema.ts";

const EVENTS =
  "Server-sent events. `usage`: the last hour, as GET /api/v1/usage returns it, immediately and " +
  "after each change. `stale`: `{since}`, the time since which there are no newer numbers, null " +
  "if there never were any; the next `usage` ends that state. `ended`: the session or token has " +
  "ended. `stopping`: the server stops. Comments are sent during a long silence.";

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
