/**
 * The dashboard's HTTP server: the pages, the API routes, the login callback and the event stream,
 * each behind the same checks in the same order: provenance, rate, caller, body.
 *
 * All errors have one format, whether a handler, the framework or the HTTP parser found them. API
 * responses are not cached, and contain only the fields of their schema.
 */

import fastifyHelmet from "@fastify/helmet";
import fastifyStatic from "@fastify/static";
import type { Clock } from "../../core/clock.ts";
import { messageOf, SetupError } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";
import { createHistogram, type Histogram } from "../../runtime/histogram.ts";
import { surviveAcceptErrors } from "../../runtime/listen-errors.ts";
import { ApiError, errorBody } from "../api-error.ts";
import { CONTROL_STOP_MS_MAX } from "../limits.ts";
import { type App, headersOf, newApp, type Reply, type Request, type WebOptions } from "./app.ts";
import { type AttemptLimiter, networkOf } from "./attempt-limiter.ts";
import type { Authenticator } from "./authenticate.ts";
import { readCookie, writeCookie } from "./cookies.ts";
import { EVENT_STREAM_ROUTE } from "./event-stream-route.ts";
import { rejectCrossSite } from "./guard.ts";
import { openApi } from "./openapi.ts";
import { parseRequest } from "./parse-request.ts";
import type { Call, Caller, Route } from "./route.ts";
import { toApiError } from "./to-api-error.ts";

export interface WebDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly routes: readonly Route[];
  readonly authenticator: Authenticator;
  readonly attempts: AttemptLimiter;
  /** Handles the provider's redirect; returns the path to continue to. */
  readonly onReturn: (call: Call<null, null, null>, query: string) => Promise<string>;
  /** Opens the event stream of a caller. */
  readonly onLive: (caller: Caller) => NodeJS.ReadableStream;
}

export interface WebServer {
  readonly counters: {
    /** By `ok` or the reason of the rejection. */
    readonly requests: Record<string, number>;
    readonly duration: Histogram;
  };
  start(): Promise<{ readonly port: number }>;
  /** From now on responds 503 and closes connections. */
  refuse(): void;
  /**
   * Waits for the responses to open requests, for a while at most, and closes all connections: one
   * without a request is not waited for.
   */
  stop(): Promise<void>;
}

export const CALLBACK_PATH = "/login/callback";
const EVENT_STREAM_PATH = EVENT_STREAM_ROUTE.path;
/** Browser features that the pages do not use; the clipboard is needed for copying keys. */
const PERMISSIONS =
  "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=(), " +
  "clipboard-read=(), clipboard-write=(self)";
/** Page names that `index.html` serves. */
const PAGE_NAMES = /^\/(?:overview|connect|keys|transactions|plan|audit|account|admin)?$/;

export function createWebServer(deps: WebDeps, options: WebOptions): WebServer {
  const { clock, log } = deps;
  const counters: WebServer["counters"] = { requests: {}, duration: createHistogram() };
  let isStopping = false;
  let openRequests = 0;

  function count(outcome: string): void {
    counters.requests[outcome] = (counters.requests[outcome] ?? 0) + 1;
  }

  /** Counts an error, and logs what is no fault of the client. */
  function failed(request: Request, error: unknown): ApiError {
    const fault = toApiError(error);
    if (fault.reason === "internal" || fault.reason === "unavailable") {
      log.error({ err: error, method: request.method, route: request.routeOptions.url }, "failed");
    }
    count(fault.reason);
    return fault;
  }

  function sendError(request: Request, reply: Reply, error: unknown): void {
    const fault = failed(request, error);
    const { retry_after_seconds } = fault.fields;
    if (retry_after_seconds !== undefined) reply.header("retry-after", String(retry_after_seconds));
    // A 401 deletes no cookie: the browser may have got a newer one since it sent this request.
    reply.code(fault.status).header("cache-control", "no-store").send(errorBody(fault));
  }

  const app = newApp(options, sendError, count);
  // Node would wait for a connection that has sent nothing, or a part of a request.
  const closeUnused = (): void => {
    if (isStopping && openRequests === 0) app.server.closeAllConnections();
  };
  app.addHook("preClose", async () => closeUnused());
  app.addHook("onRequest", async (_, reply) => {
    openRequests += 1;
    reply.raw.once("close", () => {
      openRequests -= 1;
      closeUnused();
    });
    reply.header("vary", "Origin, Sec-Fetch-Site, Cookie");
    reply.header("permissions-policy", PERMISSIONS);
    if (isStopping) {
      reply.header("connection", "close");
      throw new ApiError("unavailable", "the service is stopping");
    }
  });
  const guarded = guardOf(deps, options);
  const setup: RouteSetup = { app, deps, options, guarded, count, failed, clock };
  return {
    counters,
    async start() {
      await app.register(fastifyHelmet, headersOf(options));
      await addPages(setup);
      for (const route of deps.routes) addRoute(setup, route, counters.duration);
      addSpecial(setup);
      app.setNotFoundHandler((request, reply) => missing(deps, request, reply));
      const started = await listen(app, options);
      surviveAcceptErrors(app.server, log, "control");
      return started;
    },
    refuse() {
      isStopping = true;
    },
    async stop() {
      isStopping = true;
      const late = clock.after(CONTROL_STOP_MS_MAX, () => app.server.closeAllConnections());
      await app.close();
      late.cancel();
    },
  };
}

interface RouteSetup {
  readonly app: App;
  readonly deps: WebDeps;
  readonly options: WebOptions;
  readonly guarded: Guarded;
  readonly count: (outcome: string) => void;
  readonly failed: (request: Request, error: unknown) => ApiError;
  readonly clock: Clock;
}

type Guarded = (
  request: Request,
  route: Pick<Route, "access" | "method" | "limit" | "recentLogin">,
) => Promise<Caller | null>;

function guardOf({ authenticator, attempts }: WebDeps, { publicUrl }: WebOptions): Guarded {
  function take(limit: Parameters<AttemptLimiter["take"]>[0], callers: readonly string[]): void {
    const waitMs = attempts.take(limit, callers);
    if (waitMs === 0) return;
    const seconds = Math.ceil(waitMs / 1000);
    throw new ApiError("rate_limited", `too many attempts, the next one in ${seconds} s`, {
      retry_after_seconds: seconds,
    });
  }
  return async (request, { access, method, limit, recentLogin }) => {
    const { headers, ip } = request;
    const authorization = headers.authorization ?? null;
    rejectCrossSite(
      {
        method: request.method,
        origin: headers.origin ?? null,
        fetchSite: textOf(headers["sec-fetch-site"]),
        bearer: access !== "open" && authorization !== null,
      },
      publicUrl,
    );
    const network = networkOf(ip);
    take("request", [network]);
    if (access === "open") {
      if (limit !== null) take(limit, [network]);
      return null;
    }
    const caller = await authenticator.caller(
      {
        authorization,
        secret: cookieOf(request, "session"),
        address: ip,
        userAgent: userAgentOf(request),
        unattended:
          request.routeOptions.url === EVENT_STREAM_PATH || headers["x-unattended"] === "1",
      },
      { access, writes: method !== "GET", recentLogin },
    );
    if (limit !== null) {
      const mine = `account ${caller.account.id}`;
      take(limit, limit === "change" ? [mine] : [mine, network]);
    }
    return caller;
  };
}

function addRoute(
  { app, guarded, count, clock }: RouteSetup,
  route: Route,
  duration: Histogram,
): void {
  const callers = new WeakMap<Request, Caller | null>();
  app.route({
    method: route.method,
    url: route.path.replaceAll(/\{(\w+)\}/g, ":$1"),
    onRequest: async (request) => {
      callers.set(request, await guarded(request, route));
    },
    handler: async (request, reply) => {
      const startNs = clock.nowNs();
      const call = callOf(request, reply, parseRequest(route, request));
      const response = await route.handle(call, callers.get(request) ?? null);
      const answered = route.response.parse(response);
      reply.code(route.status).header("cache-control", "no-store");
      count("ok");
      duration.record(clock.nowNs() - startNs);
      return answered;
    },
  });
}

/** Routes that are not a plain request and response. */
function addSpecial({ app, deps, options, guarded, count, failed }: RouteSetup): void {
  const document = openApi([...deps.routes, EVENT_STREAM_ROUTE], options);
  app.get("/api/openapi.json", async () => document);
  // HEAD would consume the login without showing a page, and open a stream without a reader.
  const getAlone = { exposeHeadRoute: false };
  // A browser shows the response, so an error leads to a page.
  const errorHandler = (error: unknown, request: Request, reply: Reply): void => {
    const path = `/?login_error=${failed(request, error).reason}`;
    void reply.header("cache-control", "no-store").redirect(path, 303);
  };
  app.get(CALLBACK_PATH, { ...getAlone, errorHandler }, async (request, reply) => {
    const question = request.raw.url?.indexOf("?") ?? -1;
    const query = question < 0 ? "" : (request.raw.url ?? "").slice(question);
    const waitMs = deps.attempts.take("login", [networkOf(request.ip)]);
    const nothing = { params: null, query: null, body: null };
    const path =
      waitMs > 0
        ? "/?login_error=rate_limited"
        : await deps.onReturn(callOf(request, reply, nothing), query);
    count("ok");
    return reply.header("cache-control", "no-store").redirect(path, 303);
  });
  app.get(EVENT_STREAM_PATH, getAlone, async (request, reply) => {
    const caller = await guarded(request, EVENT_STREAM_ROUTE);
    if (caller === null) throw new ApiError("unauthorized", "no user is logged in");
    const stream = deps.onLive(caller);
    count("ok");
    reply.header("cache-control", "no-store").header("x-accel-buffering", "no");
    return reply.type("text/event-stream").send(stream);
  });
}

async function addPages({ app, options }: RouteSetup): Promise<void> {
  await app.register(fastifyStatic, {
    root: options.pagesFolder,
    wildcard: true,
    cacheControl: false,
    dotfiles: "ignore",
    index: "index.html",
    extensions: ["html"],
    // The build puts it next to each file.
    preCompressed: true,
    setHeaders: (reply) => void reply.header("cache-control", "no-cache"),
  });
}

/** Serves pages by name; everything else gets the standard error. */
async function missing(deps: WebDeps, request: Request, reply: Reply) {
  const path = (request.raw.url ?? "/").split("?", 1)[0] ?? "/";
  const reads = request.method === "GET" || request.method === "HEAD";
  if (reads && PAGE_NAMES.test(path) && !missed.has(request)) {
    missed.add(request);
    return reply.sendFile("index.html");
  }
  const methods = deps.routes.filter((route) => patternOf(route.path).test(path));
  if (methods.length > 0) {
    const allowed = methods.map(({ method }) => method).join(", ");
    reply.header("allow", allowed);
    throw new ApiError("method_not_allowed", `${path} takes ${allowed}`);
  }
  if (path === CALLBACK_PATH || path === EVENT_STREAM_PATH) {
    reply.header("allow", "GET");
    throw new ApiError("method_not_allowed", `${path} takes GET`);
  }
  // For a mistyped URL in a browser, the pages show a message and a link.
  const looks = request.headers.accept?.includes("text/html") === true;
  if (reads && looks && !path.startsWith("/api/") && !missed.has(request)) {
    missed.add(request);
    return reply.code(404).sendFile("index.html");
  }
  throw new ApiError("not_found", "there is no such path");
}

/** Requests for the fallback page itself, so that the lookup terminates. */
const missed = new WeakSet<Request>();

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/]+")}$`);
}

function callOf<P, Q, B>(
  request: Request,
  reply: Reply,
  input: { readonly params: P; readonly query: Q; readonly body: B },
): Call<P, Q, B> {
  return {
    ...input,
    address: request.ip,
    userAgent: userAgentOf(request),
    cookie: (name) => cookieOf(request, name),
    setCookie: (name, value, maxAgeMs = 0) =>
      void reply.header("set-cookie", writeCookie(name, value, maxAgeMs)),
  };
}

function cookieOf(request: Request, name: "session" | "login"): string | null {
  return readCookie(request.headers.cookie, name);
}

function userAgentOf({ headers }: Request): string | null {
  return headers["user-agent"]?.slice(0, 256) ?? null;
}

function textOf(header: string | string[] | undefined): string | null {
  return typeof header === "string" ? header : (header?.[0] ?? null);
}

async function listen(app: App, { host, port }: WebOptions) {
  try {
    await app.listen({ host, port });
  } catch (cause) {
    const why = messageOf(cause);
    throw new SetupError(`the dashboard cannot use ${host}:${port}: ${why}`, { cause });
  }
  const address = app.server.address();
  return { port: typeof address === "object" && address !== null ? address.port : port };
}
