/**
 * The RPC of a cluster in which everything lands: statuses are answered here, with the slot before
 * the current one, and whatever else is asked goes on to the simulated cluster. Without it an edge
 * would watch every transaction of a run until its blockhash expires, which no cluster makes it do.
 */

import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";

export interface AgreeingRpc {
  readonly url: string;
  stop(): Promise<void>;
}

interface Call {
  readonly id: number;
  readonly method: string;
  readonly params: readonly unknown[];
}

/** Listens on loopback. */
export async function startAgreeingRpc(
  clusterUrl: string,
  currentSlot: () => number,
): Promise<AgreeingRpc> {
  const server = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      const body = Buffer.concat(chunks);
      // An edge asks in JSON; a bench that sends anything else should fail loudly.
      const call = JSON.parse(body.toString()) as Call;
      if (call.method === "getSignatureStatuses") {
        outgoing.setHeader("content-type", "application/json");
        outgoing.end(statuses(call, currentSlot()));
        return;
      }
      const { headers, method } = incoming;
      const onward = request(clusterUrl, { method: method ?? "POST", headers }, (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      });
      onward.on("error", () => outgoing.destroy());
      onward.end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  // A server that listens on a port tells it as an object.
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    stop() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

function statuses({ id, params }: Call, slot: number): string {
  const [signatures] = params;
  const count = Array.isArray(signatures) ? signatures.length : 0;
  const status = {
    slot: slot - 1,
    confirmations: 1,
    err: null,
    status: { Ok: null },
    confirmationStatus: "confirmed",
  };
  const value = new Array<typeof status>(count).fill(status);
  return JSON.stringify({ jsonrpc: "2.0", id, result: { context: { slot }, value } });
}
