/**
 * The RPC of the node that the edges ask: it answers requests for statuses and proxies all others
 * to the simulated cluster, which announces each slot over WebSocket. Either every transaction has
 * landed in the slot before the current one, as most do on a real cluster; or the node knows no
 * transaction of the run nor its blockhash, and an edge polls and resends each of them until it
 * ends it as `blockhash_unknown`, after about 6 s. A real node has its own machine, whereas this
 * one shares two processors with the measured process; so it does not parse requests, and builds
 * responses by repetition.
 */

import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";

export interface AgreeingRpc {
  readonly url: string;
  stop(): Promise<void>;
}

/** Listens on loopback. */
export async function startAgreeingRpc(
  clusterUrl: string,
  currentSlot: () => number,
  lands: boolean,
): Promise<AgreeingRpc> {
  const server = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      const body = Buffer.concat(chunks);
      if (body.includes('"getSignatureStatuses"')) {
        outgoing.setHeader("content-type", "application/json");
        outgoing.end(statuses(body, currentSlot(), lands));
        return;
      }
      const { headers, method } = incoming;
      const onward = request(clusterUrl, { method: method ?? "POST", headers }, (response) => {
        outgoing.writeHead(response.statusCode ?? 502, response.headers);
        response.pipe(outgoing);
      });
      onward.on("error", () => outgoing.destroy());
      onward.end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  // The address of a server that listens on a port is an object.
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    stop() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** The position of a request's id. */
const HEAD_BYTES = 64;
const QUOTE = 0x22;

/** The strings of the list at the start of a request's parameters. */
function countOf(question: Buffer): number {
  const end = question.indexOf("]");
  let quotes = 0;
  for (let at = question.indexOf("[["); at < end; at += 1) quotes += Number(question[at] === QUOTE);
  return quotes / 2;
}

function statuses(question: Buffer, slot: number, lands: boolean): string {
  const id = /"id":(\d+)/.exec(question.toString("latin1", 0, HEAD_BYTES))?.[1];
  if (id === undefined) throw new Error(`a request that does not begin with its id: ${question}`);
  const landed =
    `{"slot":${slot - 1},"confirmations":1,"err":null,"status":{"Ok":null},` +
    '"confirmationStatus":"confirmed"}';
  const status = lands ? landed : "null";
  const value = `${status},`.repeat(countOf(question)).slice(0, -1);
  return `{"jsonrpc":"2.0","id":${id},"result":{"context":{"slot":${slot}},"value":[${value}]}}`;
}
