/**
 * A server of Node's that goes on when it could not take a connection, as for want of memory or of
 * buffers: an `error` that nobody hears ends the process. The connection waits and is tried again
 * at once, so what keeps it away is told of once, until another one is taken.
 */

import type { EventEmitter } from "node:events";
import type { Log } from "../core/log.ts";

/** From now on; `name` is the server's in the log. What goes wrong before is the caller's. */
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
