/** Listening on ports of this machine. */

import { type AddressInfo, createServer, type Server } from "node:net";

/** Listens on this port, or on any free one for 0; resolves with the port as bound. */
export function listening(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port, exclusive: true }, () => {
      server.off("error", reject);
      // The address of a listening TCP server has this form.
      resolve((server.address() as AddressInfo).port);
    });
  });
}

/** This port of loopback, or any free one for 0; rejects if it is in use. */
export async function freePort(port = 0): Promise<number> {
  const server = createServer();
  const bound = await listening(server, "127.0.0.1", port);
  await new Promise((resolve) => server.close(resolve));
  return bound;
}
