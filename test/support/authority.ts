/** The sandbox's certificate authority, and TLS in front of servers on loopback. */

import { once } from "node:events";
import { type AddressInfo, connect } from "node:net";
import { createServer } from "node:tls";
import {
  type Authority as CertificateAuthority,
  createAuthority as createCertificateAuthority,
  type Issued,
} from "../../src/sandbox/authority.ts";

export type { Issued };

export interface Authority extends CertificateAuthority {
  /** What a server on 127.0.0.1 presents. */
  readonly server: Issued;
  /** Serves TLS for 127.0.0.1 and forwards to a local port; returns the new port. */
  before(port: number): Promise<{ readonly port: number; stop(): void }>;
}

export function createAuthority(): Authority {
  const authority = createCertificateAuthority();
  const issued = authority.issue(...ALWAYS);
  const { certificate: cert, key } = issued;
  return {
    ...authority,
    server: issued,
    async before(port) {
      const open = new Set<{ destroy(): unknown }>();
      const server = createServer({ cert, key, noDelay: true }, (secure) => {
        const plain = connect({ port, host: "127.0.0.1", noDelay: true });
        for (const [from, to] of [
          [secure, plain],
          [plain, secure],
        ] as const) {
          open.add(from);
          from.on("error", () => to.destroy());
          from.on("close", () => {
            open.delete(from);
            to.destroy();
          });
          from.pipe(to);
        }
      });
      // A client that does not trust the certificate sends an alert and closes.
      server.on("tlsClientError", () => {});
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
    },
  };
}

const ALWAYS = [Date.UTC(2020, 0), Date.UTC(2049, 11, 31, 23, 59, 59)] as const;
