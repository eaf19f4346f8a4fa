/**
 * Posts JSON over keep-alive connections and reads whole answers, with a bound for their size and
 * a deadline for all of it.
 *
 * This is the portable engine's way, on the thread that takes transactions; the native engine has
 * threads for it (`native-poster.ts`). The global `fetch` would do it, at 2.4 ms of processor time
 * for a small question; this takes less than half of that (Node 20, two shared cores). Two things
 * that fetch does are missed out: redirects, because a node is configured by its own address, and
 * encodings but gzip.
 */

import { type ClientRequest, Agent as HttpAgent, type IncomingMessage, request } from "node:http";
import { Agent as HttpsAgent, request as secureRequest } from "node:https";
import { pipeline } from "node:stream";
import { urlToHttpOptions } from "node:url";
import { createGunzip } from "node:zlib";
import type { Clock } from "../../core/clock.ts";
import { codeOf } from "../../core/errors.ts";
import type { StatusResponse } from "../ports.ts";

export interface RpcHttpResponse {
  readonly status: number;
  /** For how long the node asks to be left alone; 0 when it does not. */
  readonly retryAfterMs: number;
  readonly body: Buffer;
}

export interface RpcHttpOptions {
  /** http: or https:; a name and password in it are sent as such. */
  readonly url: string;
  /** An answer of more bytes, unpacked, has failed. */
  readonly bytesMax: number;
  /** A question without a whole answer in this time has failed. */
  readonly timeoutMs: number;
}

export interface RpcHttpClient {
  /**
   * Asks something that may be asked twice. Rejects with the connection's error, for an answer
   * above the bound, when the time is up, and when it is closed.
   */
  post(body: string): Promise<RpcHttpResponse>;
  /**
   * Where the poster writes and reads these itself: what became of at most 256 signatures of 64
   * bytes each. An answer of an unusual form comes as it is.
   */
  statuses?(signatures: Uint8Array): Promise<RpcHttpResponse | StatusResponse>;
  /** Ends all connections; questions in hand fail. */
  close(): void;
}

export function createRpcHttpClient(
  clock: Clock,
  { url, bytesMax, timeoutMs }: RpcHttpOptions,
): RpcHttpClient {
  const isSecure = url.startsWith("https:");
  const limits = { keepAlive: true, maxSockets: SOCKETS_MAX };
  const agent = isSecure ? new HttpsAgent(limits) : new HttpAgent(limits);
  const open = isSecure ? secureRequest : request;
  const target = { ...urlToHttpOptions(new URL(url)), method: "POST", agent };
  const pending = new Set<(reason: Error) => void>();

  /** One try; the reason why not, and whether another may do better. */
  function attempt(
    body: string,
    clientRequest: ClientRequest,
    end: Ending,
  ): Promise<RpcHttpResponse> {
    return new Promise((resolve, reject) => {
      const fail = (cause: Error): void => {
        reject(cause);
        clientRequest.destroy();
      };
      end.with = fail;
      clientRequest.on("error", fail);
      clientRequest.on("response", (response) => {
        readBody(response, bytesMax, fail, (whole) => {
          const { statusCode: status = 0, headers } = response;
          resolve({ status, retryAfterMs: secondsOf(headers["retry-after"]) * 1_000, body: whole });
        });
      });
      clientRequest.end(body);
    });
  }

  async function post(body: string): Promise<RpcHttpResponse> {
    const headers = { ...HEADERS, "content-length": Buffer.byteLength(body) };
    const end: Ending = { with: null, over: false };
    const stop = (reason: Error): void => {
      end.over = true;
      end.with?.(reason);
    };
    pending.add(stop);
    const timer = clock.after(timeoutMs, () => {
      stop(new Error(`no answer in ${timeoutMs} ms`));
      leaveIdle(agent);
    });
    try {
      for (;;) {
        const clientRequest = open({ ...target, headers });
        try {
          return await attempt(body, clientRequest, end);
        } catch (cause) {
          // The node may close an idle connection at the very moment when it is used again.
          if (end.over || !clientRequest.reusedSocket || !isReset(cause)) throw cause;
        }
      }
    } finally {
      timer.cancel();
      pending.delete(stop);
    }
  }

  return {
    post,
    close() {
      for (const stop of pending) stop(new Error("the client was closed"));
      agent.destroy();
    },
  };
}

/**
 * What made one connection go dead without a word, such as a gateway that forgot them, has most
 * likely done so to those that were idle meanwhile; each would cost another deadline.
 */
function leaveIdle({ freeSockets }: HttpAgent): void {
  for (const sockets of Object.values(freeSockets)) {
    for (const socket of sockets ?? []) socket.destroy();
  }
}

/** How a question in hand is ended from outside. */
interface Ending {
  with: ((reason: Error) => void) | null;
  over: boolean;
}

/** Tells of the whole body or of a failure; of more than one failure, when it comes to that. */
function readBody(
  response: IncomingMessage,
  bytesMax: number,
  fail: (cause: Error) => void,
  done: (body: Buffer) => void,
): void {
  const isPacked = response.headers["content-encoding"] === "gzip";
  // Whatever goes wrong before the packer is told by the packer.
  const source = isPacked ? pipeline(response, createGunzip(), () => {}) : response;
  const chunks: Buffer[] = [];
  let size = 0;
  // Neither stream has an encoding set, so both give Buffers.
  source.on("data", (chunk: Buffer) => {
    size += chunk.length;
    if (size > bytesMax) fail(new Error(`an answer above ${bytesMax} B`));
    else chunks.push(chunk);
  });
  source.on("error", fail);
  source.on("end", () => {
    const [only] = chunks;
    done(only !== undefined && chunks.length === 1 ? only : Buffer.concat(chunks));
  });
}

/** A date, which the header may also hold, is of no use to a clock that may be wrong: 0. */
function secondsOf(header: string | undefined): number {
  return header !== undefined && /^\d{1,9}$/.test(header) ? Number(header) : 0;
}

function isReset(cause: unknown): boolean {
  return codeOf(cause) === "ECONNRESET";
}

/** Gateways in front of nodes turn away who does not say what it is. */
export const USER_AGENT = "touchdown";
const HEADERS = {
  "content-type": "application/json",
  "accept-encoding": "gzip",
  "user-agent": USER_AGENT,
};
const SOCKETS_MAX = 16;
