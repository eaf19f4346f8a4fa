/**
 * A port without TLS that leads to one with it, so that the tests of HTTP, whose clients are plain
 * sockets, hold a server with TLS to the same. Each piece that a client writes becomes a record.
 */

import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { connect } from "node:tls";

export interface Tunnel {
  readonly port: number;
  stop(): void;
}

/** `ca` is the PEM of the authority that signed what the server on loopback presents. */
export async function startTunnel(port: number, ca: string): Promise<Tunnel> {
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (plain) => {
    const secure = connect({ port, host: "127.0.0.1", ca });
    secure.allowHalfOpen = true;
    secure.setNoDelay(true);
    for (const [from, to] of [
      [plain, secure],
      [secure, plain],
    ] as const) {
      open.add(from);
      from.on("error", () => to.destroy());
      from.on("close", () => {
        open.delete(from);
        to.destroySoon();
      });
      from.pipe(to);
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    // A TCP server's address is never a path.
    port: (server.address() as AddressInfo).port,
    stop() {
      server.close();
      for (const each of open) each.destroy();
    },
  };
}
