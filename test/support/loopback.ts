/** A server on a free port of loopback, for one test. */

import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";

/** Returns "127.0.0.1:port"; `cleanups` gets the function that closes the server. */
export async function listenOnLoopback(
  server: Server,
  cleanups: (() => unknown)[],
): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanups.push(() => {
    server.close();
    server.closeAllConnections();
  });
  // A TCP server's address is always an AddressInfo.
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}
