/**
 * Keeps a Node server running when it cannot accept a connection, for example for lack of memory or
 * buffers: an unhandled `error` event ends the process. The connection waits and Node retries
 * immediately, so the error is logged once until another connection is accepted.
 */

import type { EventEmitter } from "node:events";
import type { Log } from "../core/log.ts";

/**
 * Active from this call on; `name` is the server's name in the log. The caller handles earlier
 * errors.
 */
export function surviveAcceptErrors(server: EventEmitter, log: Log, name: string): void {
  let wasLogged = false;
  server.on("error", (err) => {
    if (!wasLogged) log.error({ err, server: name }, "a connection could not be taken");
    wasLogged = true;
  });
  server.on("connection", () => {
    wasLogged = false;
  });
}
