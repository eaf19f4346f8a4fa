/**
 * Posts JSON over keep-alive connections and reads complete responses, with a size limit and one
 * deadline for the complete request.
 *
 * The global `fetch` needs 2.4 ms of processor time for a small request; this takes less than half
 * of that (Node 20, two shared cores). Two features of fetch are missing: redirects, because a node
 * is configured by its own address, and encodings other than gzip.
 */

import { type ClientRequest, Agent as HttpAgent, type IncomingMessage, request } from "node:http";
import { Agent as HttpsAgent, request as secureRequest } from "node:https";
import { pipeline } from "node:stream";
import { urlToHttpOptions } from "node:url";
import { createGunzip } from "node:zlib";
import type { Clock } from "../../core/clock.ts";
import { codeOf } from "../../core/errors.ts";

export interface RpcHttpResponse {
  readonly status: number;
  /** How long the node asks for no further requests; 0 if it does not. */
  readonly retryAfterMs: number;
  readonly body: Buffer;
}

export interface RpcHttpOptions {
  /** http: or https:; a name and password in it are sent as credentials. */
  readonly url: string;
  /** A response with more bytes after decompression fails. */
  readonly bytesMax: number;
  /** A request fails if its response is not complete within this time. */
  readonly timeoutMs: number;
}

export interface RpcHttpClient {
  /**
   * Sends an idempotent request. Rejects with the connection's error, for a response above the
   * limit, on timeout, and on close.
   */
  post(body: string): Promise<RpcHttpResponse>;
  /** Ends all connections; pending requests fail. */
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

  /** One attempt; rejects with the reason. */
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
          // The node may close an idle connection at the very moment it is reused.
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
 * Closes idle connections after a timeout: what silently broke one connection, such as a gateway
 * that dropped its state, most likely broke the idle ones too, and each would cost another
 * deadline.
 */
function leaveIdle({ freeSockets }: HttpAgent): void {
  for (const sockets of Object.values(freeSockets)) {
    for (const socket of sockets ?? []) socket.destroy();
  }
}

/** Lets the caller abort a pending request. */
interface Ending {
  with: ((reason: Error) => void) | null;
  over: boolean;
}

/** Reports the complete body or a failure; may report more than one failure. */
function readBody(
  response: IncomingMessage,
  bytesMax: number,
  fail: (cause: Error) => void,
  done: (body: Buffer) => void,
): void {
  const isPacked = response.headers["content-encoding"] === "gzip";
  // The decompressor reports errors of the source stream too.
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

/** Seconds in `retry-after`; 0 for a date, which a possibly wrong clock cannot use. */
function secondsOf(header: string | undefined): number {
  return header !== undefined && /^\d{1,9}$/.test(header) ? Number(header) : 0;
}

function isReset(cause: unknown): boolean {
  return codeOf(cause) === "ECONNRESET";
}

/** Gateways in front of nodes reject clients without a user agent. */
export const USER_AGENT = "touchdown";
const HEADERS = {
  "content-type": "application/json",
  "accept-encoding": "gzip",
  "user-agent": USER_AGENT,
};
const SOCKETS_MAX = 16;
