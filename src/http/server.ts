/**
 * The HTTP server: routes, request checks and the lifecycle of the listening socket. With ingress
 * threads it is their upstream server on loopback: they own the public port and proxy requests here
 * that are no submissions (forwarded-header.ts). It is the only user of uWebSockets.js (uws.ts),
 * whose pitfalls shape it:
 *
 * - A throw out of a handler ends the process, so each runs inside one wrapper that responds 500.
 * - Framing is validated on every route before anything else (framing.ts), and a connection with
 *   invalid framing is closed together with everything sent after it (request-context.ts).
 * - A second request while the first is pending makes the library close the connection without a
 *   response to either; pipelining works only while responses are immediate.
 * - Responses that a client does not read are buffered without a bound, unless they are written in
 *   a way that can fail (response-end.ts).
 * - The library closes an idle connection, or one whose body stops arriving, after 8 to 12 s.
 * - Addresses from a PROXY protocol preamble are never used: anyone can send one.
 *
 * Hot path: one request context per request, no other allocation.
 */

import { cannotListen, type RejectionReason } from "../core/errors.ts";
import { HTTP_CONNECTIONS_MAX } from "../core/limits.ts";
import type { AccessControl } from "../limits/access-control.ts";
import { readFraming } from "./framing.ts";
import { UNREAD_BODY_BYTES_MAX } from "./limits.ts";
import type { ReceiptEndpointCounters } from "./receipts/endpoints.ts";
import { createRequestChecks, tooLarge } from "./request-checks.ts";
import { RequestContext, type ResponseFormat } from "./request-context.ts";
import {
  type HttpCounters,
  RequestTracker,
  type RequestTrackerDeps,
  type RequestTrackerOptions,
} from "./request-tracker.ts";
import type { UnreadCounters } from "./response-end.ts";
import {
  ALWAYS_READY,
  createRoutes,
  FAST_PATH,
  RAW_PATH,
  ROOT_PATH,
  type RoutesDeps,
  type RoutesOptions,
  RPC_PATH,
} from "./routes.ts";
import type { Submit, SubmitCall } from "./submit/submission.ts";
import * as uws from "./uws.ts";

export interface HttpServerDeps extends RoutesDeps, RequestTrackerDeps {
  readonly access: AccessControl;
  readonly submit: Submit;
  /** Submits JSON-RPC calls in the common form; null or absent: all calls are parsed. */
  readonly submitCall?: SubmitCall | null;
  /** Name of the header that ingress threads add to what they proxy here; absent without them. */
  readonly forwardedHeader?: string;
}

export interface HttpOptions extends RoutesOptions, RequestTrackerOptions {
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
  /**
   * Whether another process may listen there too, because it replaces this one. none, the default:
   * never; later: nobody may do so now; now: the predecessor does.
   */
  readonly sharing?: "none" | "later" | "now";
  /** Largest number of open connections. */
  readonly connectionsMax?: number;
}

export interface HttpServer {
  /** Listens; a port in use, also by another edge, is a `SetupError`. */
  start(): Promise<{ readonly port: number }>;
  /** Stops listening, waits for pending requests, then closes every connection. */
  stop(): Promise<void>;
  /** From now on each connection is closed with its next response. */
  disableKeepAlive(): void;
  /** From now on new work is rejected with 503 and its connection closed. */
  rejectNewWork(): void;
  /** Closes each connection with its next response; a shared port is left to the other process. */
  retire(): void;
  readonly counters: Readonly<HttpCounters>;
  readonly rejections: Readonly<Record<RejectionReason, number>>;
  /** Counters of the receipt endpoints. */
  readonly receipts: ReceiptEndpointCounters;
  /** Responses that wait for their clients to read. */
  readonly unread: Readonly<UnreadCounters>;
}

export function createHttpServer(deps: HttpServerDeps, options: HttpOptions): HttpServer {
  const tracker = new RequestTracker(deps, options);
  const { clock, access, submit } = deps;
  const forwardedHeader = deps.forwardedHeader ?? "";
  const routes = createRoutes(deps, options);
  const submitCall = deps.submitCall ?? null;
  const health = deps.health ?? ALWAYS_READY;
  const info = { tipAccounts: deps.tip.accounts, version: options.version };
  const parts = { clock, access, submit, submitCall, tracker, info };
  const checks = createRequestChecks({ ...parts, forwardedHeader, health });
  const connectionsMax = options.connectionsMax ?? HTTP_CONNECTIONS_MAX;
  const app = createApp(tracker, connectionsMax, {
    ...checks,
    rest: (context, request) => serveRest(context, request),
  });
  let listening: uws.ListenSocket | null = null;

  /** Checks and serves every request that is not a submission. */
  function serveRest(context: RequestContext, request: uws.HttpRequest): void {
    const framing = readFraming(request, forwardedHeader);
    const { token, bodySize, rejection, forwarded } = framing;
    context.useFraming(framing);
    if (rejection !== null) {
      context.rejectAndClose(rejection);
      return;
    }
    if (bodySize > UNREAD_BODY_BYTES_MAX) {
      context.rejectAndClose(tooLarge(bodySize, UNREAD_BODY_BYTES_MAX));
      return;
    }
    if (forwardedHeader !== "") context.forwardedAddress = forwarded;
    routes.serve(context, {
      method: request.getCaseSensitiveMethod(),
      path: request.getUrl(),
      query: request.getQuery(),
      lastEventId: request.getHeader("last-event-id"),
      token,
    });
  }

  function endAccepts(): void {
    if (listening !== null) uws.us_listen_socket_close(listening);
    listening = null;
  }

  return {
    counters: tracker.counters,
    rejections: tracker.rejections,
    receipts: routes.counters,
    unread: tracker.unread.counters,
    async start() {
      const socket = listen(app, options);
      listening = socket;
      tracker.start();
      return { port: uws.us_socket_local_port(socket) };
    },
    disableKeepAlive() {
      tracker.keepAlive = false;
    },
    rejectNewWork() {
      tracker.draining = true;
      routes.drain();
    },
    retire() {
      tracker.keepAlive = false;
      routes.retire();
      // An upstream server serves what ingress threads still proxy.
      if ((options.sharing ?? "none") !== "none") endAccepts();
    },
    async stop() {
      tracker.draining = true;
      routes.drain();
      endAccepts();
      await closeWhenIdle(app, tracker);
    },
  };
}

type Act = (context: RequestContext, request: uws.HttpRequest) => void;

/** The handler of each route. */
interface RouteHandlers {
  readonly raw: Act;
  readonly rpc: Act;
  readonly rest: Act;
}

function createApp(
  tracker: RequestTracker,
  connectionsMax: number,
  handlers: RouteHandlers,
): uws.App {
  const app = uws.App();

  function handler(format: ResponseFormat, act: Act) {
    return (response: uws.HttpResponse, request: uws.HttpRequest): void => {
      const context = new RequestContext(response, tracker, format);
      try {
        act(context, request);
      } catch (error) {
        context.respond500(error);
      }
      context.handlerReturned();
    };
  }

  function countConnection(response: uws.HttpResponse, change: number): void {
    tracker.counters.connections += change;
    if (change < 0 || tracker.counters.connections <= connectionsMax) return;
    tracker.counters.connectionsRejected += 1;
    // Closing calls back into this function and decrements the count again.
    response.close();
  }

  uws._cfg("silent");
  asPublished(app).filter(countConnection);
  app.post(RAW_PATH, handler("raw", handlers.raw));
  for (const path of [RPC_PATH, ROOT_PATH, FAST_PATH]) app.post(path, handler("rpc", handlers.rpc));
  app.any("/*", handler("raw", handlers.rest));
  return app;
}

async function closeWhenIdle(app: uws.App, tracker: RequestTracker): Promise<void> {
  await new Promise<void>((resolve) => tracker.whenIdle(resolve));
  // The last response may still be in the cork buffer of the callback that wrote it.
  await new Promise<void>((resolve) => setImmediate(resolve));
  app.close();
  tracker.stop();
}

/** `SO_REUSEPORT`, which all sockets of a port must have. */
const SHARED_PORT = 0;

/**
 * Listens. A port that may be shared later is first bound alone, which fails while anyone else,
 * even with a shared port, listens there.
 */
function listen(app: uws.App, options: HttpOptions): uws.ListenSocket {
  const { host, port, sharing = "none" } = options;
  if (sharing === "now") return listenOnce(app, host, port, SHARED_PORT);
  const alone = listenOnce(app, host, port, uws.LIBUS_LISTEN_EXCLUSIVE_PORT);
  if (sharing === "none") return alone;
  const bound = uws.us_socket_local_port(alone);
  uws.us_listen_socket_close(alone);
  return listenOnce(app, host, bound, SHARED_PORT);
}

function listenOnce(app: uws.App, host: string, port: number, flags: number): uws.ListenSocket {
  let socket: uws.ListenSocket | false = false;
  asPublished(app).listen(host, port, flags, (bound) => {
    socket = bound;
  });
  if (socket === false) throw cannotListen("http.listen", { host, port });
  return socket;
}

/** Methods of an app that its declaration lacks or declares wrongly. */
interface PublishedApp {
  listen(
    host: string,
    port: number,
    options: number,
    done: (socket: uws.ListenSocket | false) => void,
  ): void;
  /** Called with 1 for each new connection and with -1 for each that ends. */
  filter(count: (response: uws.HttpResponse, change: number) => void): void;
}

function asPublished(app: uws.App): PublishedApp {
  // The declaration is older than the library here; the tests use both methods.
  return app as unknown as PublishedApp;
}
