/**
 * Sets up the framework's application for the dashboard: limits on requests, which proxies may set
 * the client's address, error responses in the API's format even for input that is not HTTP, and
 * the headers of every response. For a client that is not behind a trusted proxy, the address is
 * always that of its socket.
 */

import type { Socket } from "node:net";
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { ApiError, errorBody } from "../api-error.ts";
import {
  CONTROL_BODY_BYTES_MAX,
  CONTROL_CONNECTIONS_MAX,
  CONTROL_HEADERS_BYTES_MAX,
  CONTROL_REQUEST_TIMEOUT_MS,
} from "../limits.ts";

export type App = FastifyInstance;
export type Request = FastifyRequest;
export type Reply = FastifyReply;

export interface WebOptions {
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  readonly publicUrl: string;
  /** Further origins that the pages may fetch from. */
  readonly fetchOrigins: readonly string[];
  /** Networks of proxies whose `X-Forwarded-For` is trusted. */
  readonly trustedProxies: readonly string[];
  readonly pagesFolder: string;
  readonly version: string;
  /** Time limit for receiving a request; default: from the limits. */
  readonly requestTimeoutMs?: number;
}

/** `sendError` responds to every error; `count` is called for input that is not HTTP. */
export function newApp(
  options: WebOptions,
  sendError: (request: Request, reply: Reply, error: unknown) => void,
  count: (outcome: string) => void,
): App {
  const requestTimeout = options.requestTimeoutMs ?? CONTROL_REQUEST_TIMEOUT_MS;
  const app = Fastify({
    bodyLimit: CONTROL_BODY_BYTES_MAX,
    requestTimeout,
    http: {
      maxHeaderSize: CONTROL_HEADERS_BYTES_MAX,
      // By default Node allows a minute for headers and checks for late ones every 30 s.
      headersTimeout: requestTimeout,
      connectionsCheckingInterval: Math.ceil(requestTimeout / 4),
    },
    trustProxy: options.trustedProxies.length === 0 ? false : [...options.trustedProxies],
    frameworkErrors: (error, request, reply) => sendError(request, reply, error),
    clientErrorHandler: (error, socket) => {
      count("invalid_request");
      refuseBytes(error, socket);
    },
  });
  app.server.maxConnections = CONTROL_CONNECTIONS_MAX;
  app.removeContentTypeParser("text/plain");
  takeEmptyJson(app);
  app.setErrorHandler((error, request, reply) => sendError(request, reply, error));
  return app;
}

/**
 * Treats an empty body announced as JSON as no body. Many clients send the header with every
 * request, DELETE included; a route that needs a body reports its absence.
 */
function takeEmptyJson(app: App): void {
  const parse = app.getDefaultJsonParser("error", "error");
  app.addContentTypeParser("application/json", { parseAs: "string" }, (request, body, done) => {
    if (body === "") done(null);
    else void parse(request, String(body), done);
  });
}

/** Responds in the API's format to input that is not HTTP, if the socket is still writable. */
function refuseBytes(error: Error & { code?: string }, socket: Socket): void {
  if (!socket.writable || error.code === "ECONNRESET") {
    socket.destroy();
    return;
  }
  const large = error.code === "HPE_HEADER_OVERFLOW";
  const fault = new ApiError("invalid_request", large ? "the headers are too large" : "not HTTP");
  const body = JSON.stringify(errorBody(fault));
  const status = large ? "431 Request Header Fields Too Large" : "400 Bad Request";
  const length = `Content-Length: ${Buffer.byteLength(body)}`;
  const head = `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\n${length}`;
  socket.end(`${head}\r\nConnection: close\r\n\r\n${body}`);
}

/** Headers that helmet adds to every response. */
export function headersOf({ fetchOrigins, publicUrl }: WebOptions) {
  return {
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "font-src": ["'self'"],
        "connect-src": ["'self'", ...fetchOrigins],
        "form-action": ["'self'"],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
      },
    },
    crossOriginOpenerPolicy: { policy: "same-origin" as const },
    crossOriginResourcePolicy: { policy: "same-origin" as const },
    referrerPolicy: { policy: "no-referrer" as const },
    xFrameOptions: { action: "deny" as const },
    // Over plain HTTP the header has no effect, and a browser must not remember it for loopback.
    strictTransportSecurity: publicUrl.startsWith("https:") ? { maxAge: 31_536_000 } : false,
  };
}
