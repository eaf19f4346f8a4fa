/**
 * The admin listener: `/metrics` for Prometheus, `/livez` and `/readyz` for process supervisors and
 * monitors. It has no authentication and must be on a private address.
 *
 * `/livez` responds as long as the event loop runs; `/readyz` responds 503 with the failing checks
 * until all pass. Bodies contain a stable token for scripts: `"status":"live"`, `"status":"ready"`
 * or `"status":"not ready"`. Node's own server suffices: requests are few, and it rejects a second
 * process on the same port.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { REJECTIONS, SetupError } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import { surviveAcceptErrors } from "../runtime/listen-errors.ts";
import {
  ADMIN_CONNECTIONS_MAX,
  ADMIN_HEADERS_BYTES_MAX,
  ADMIN_REQUEST_TIMEOUT_MS,
} from "./limits.ts";

export interface Check {
  readonly name: string;
  readonly ok: boolean;
  /** The check's finding in a few words. */
  readonly detail: string;
}

export interface Readiness {
  readonly ok: boolean;
  readonly checks: readonly Check[];
}

/** Which service answers: two of one host may have the same address by mistake. */
export interface ServiceName {
  readonly service: "edge" | "control";
  /** Of an edge. */
  readonly region?: string;
  readonly name?: string;
  /** Of the control process, each as `tcp 8088`; those of an edge are on its `/upgrade`. */
  readonly ports?: readonly string[];
}

export interface AdminDeps {
  readonly log: Log;
  /** Stated by `/readyz`. */
  readonly service?: ServiceName;
  readonly metrics: { readonly contentType: string; text(): Promise<string> };
  readonly readiness: () => Readiness;
  /** The content of `/leaders`: the plan and the connections, for operators. */
  readonly leaders?: () => object;
  /** The content of `/cluster`: the cluster as this edge sees it. */
  readonly cluster?: () => object;
  /** The content of `/leaders/stats`: the stats of each leader. */
  readonly leaderStats?: () => object;
  /** The content of `/upgrade`: this process, and its hand-over to a successor. */
  readonly upgrade?: () => object;
  /** The dashboard's requests for an account; `account` is as in the keys. */
  readonly ofAccount?: {
    /** Null if there is none for this account. */
    receipt(signature: string, account: string): object | null;
    /** The account's latest, newest first; `query` as in the public transaction list. */
    receipts(account: string, query: string): ReceiptListResult;
    refusals(account: string): readonly object[];
  };
}

/** A list response, or the message that explains the invalid query. */
export type ReceiptListResult =
  | { readonly kind: "list"; readonly list: object }
  | { readonly kind: "rejected"; readonly message: string };

export interface AdminOptions {
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
}

export interface Admin {
  /** Requests answered by a route, rejected for their path or method, and failed. */
  readonly counters: { answered: number; rejected: number; failed: number };
  /** Starts to listen; a SetupError says why it cannot. */
  start(): Promise<{ readonly port: number }>;
  /** Stops listening and closes open connections. */
  stop(): Promise<void>;
}

interface Page {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/** Receives the rest of the path, the requested account, and the rest of the query. */
type Route = (rest: string, account: string | null, query: string) => Page | Promise<Page>;

export function createAdmin(deps: AdminDeps, options: AdminOptions): Admin {
  const counters = { answered: 0, rejected: 0, failed: 0 };
  const routes = routesOf(deps);
  function createListener(): Server {
    const server = createServer(
      {
        requestTimeout: ADMIN_REQUEST_TIMEOUT_MS,
        headersTimeout: ADMIN_REQUEST_TIMEOUT_MS,
        keepAliveTimeout: ADMIN_REQUEST_TIMEOUT_MS,
        connectionsCheckingInterval: ADMIN_REQUEST_TIMEOUT_MS / 4,
        maxHeaderSize: ADMIN_HEADERS_BYTES_MAX,
      },
      (request, response) => {
        handle(routes, request, response, counters).catch((cause: unknown) => {
          counters.failed += 1;
          deps.log.error({ cause, path: request.url }, "the admin listener could not answer");
          if (response.headersSent) response.destroy();
          else send(response, json(500, { status: "error", reason: "internal" }), false);
        });
      },
    );
    server.maxConnections = ADMIN_CONNECTIONS_MAX;
    return server;
  }

  let server: Server | null = null;
  return {
    counters,
    async start() {
      // Anew each time, with listeners of its own: a failed upgrade starts it again.
      server = createListener();
      const started = await listen(server, options);
      surviveAcceptErrors(server, deps.log, "admin");
      return started;
    },
    stop: () =>
      new Promise((resolve) => {
        if (server === null) return resolve();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function routesOf(deps: AdminDeps): ReadonlyMap<string, Route> {
  const { metrics, readiness, leaders, leaderStats, cluster, upgrade, ofAccount } = deps;
  const { service } = deps;
  const routes = new Map<string, Route>();
  routes.set("/", () => json(200, { service: "touchdown admin", paths: [...routes.keys()] }));
  routes.set("/livez", () => json(200, { status: "live" }));
  routes.set("/readyz", () => readyPage(readiness(), service));
  routes.set("/metrics", async () => ({
    status: 200,
    contentType: metrics.contentType,
    body: await metrics.text(),
  }));
  if (leaders !== undefined) routes.set("/leaders", () => json(200, leaders()));
  if (leaderStats !== undefined) routes.set("/leaders/stats", () => json(200, leaderStats()));
  if (cluster !== undefined) routes.set("/cluster", () => json(200, cluster()));
  if (upgrade !== undefined) routes.set("/upgrade", () => json(200, upgrade()));
  if (ofAccount !== undefined) {
    routes.set("/receipts/", (signature, account) => {
      if (account === null) return NO_ACCOUNT;
      const receipt = ofAccount.receipt(signature, account);
      return receipt === null ? rejection("not_found", "no receipt") : json(200, receipt);
    });
    routes.set("/receipts", (_, account, query) => {
      if (account === null) return NO_ACCOUNT;
      const result = ofAccount.receipts(account, query);
      return result.kind === "list" ? json(200, result.list) : badQuery(result.message);
    });
    routes.set("/refusals", (_, account) =>
      account === null ? NO_ACCOUNT : json(200, { refusals: ofAccount.refusals(account) }),
    );
  }
  return routes;
}

/** A route whose path ends with a slash takes one more segment. */
function routeOf(routes: ReadonlyMap<string, Route>, path: string) {
  const split = path.lastIndexOf("/") + 1;
  const rest = path.slice(split);
  const parent = split > 1 && rest !== "" ? routes.get(path.slice(0, split)) : undefined;
  const whole = split > 1 && rest === "" ? undefined : routes.get(path);
  return { route: whole ?? parent, rest };
}

function readyPage({ ok, checks }: Readiness, service?: ServiceName): Page {
  if (ok) return json(200, { status: "ready", ...service, checks });
  const failing = checks.filter((check) => !check.ok);
  return json(503, { status: "not ready", ...service, failing, checks });
}

async function handle(
  routes: ReadonlyMap<string, Route>,
  request: IncomingMessage,
  response: ServerResponse,
  counters: Admin["counters"],
): Promise<void> {
  const [path = "/", query = ""] = (request.url ?? "/").split("?", 2);
  const { route, rest } = routeOf(routes, path);
  const method = request.method ?? "";
  // No route takes a body; it is discarded.
  request.resume();
  if (route === undefined) {
    counters.rejected += 1;
    send(
      response,
      rejection("not_found", `no such path: the admin paths are ${[...routes.keys()]}`),
    );
  } else if (method !== "GET" && method !== "HEAD") {
    counters.rejected += 1;
    response.setHeader("Allow", "GET, HEAD");
    send(response, rejection("method_not_allowed", `${path} takes GET and HEAD`));
  } else {
    const given = new URLSearchParams(query);
    const account = given.get("account");
    given.delete("account");
    send(response, await route(rest, account, given.toString()), method === "HEAD");
    counters.answered += 1;
  }
}

function rejection(reason: "not_found" | "method_not_allowed", error: string): Page {
  return json(REJECTIONS[reason].status, { status: "error", reason, error });
}

function badQuery(error: string): Page {
  return json(400, { status: "error", reason: "invalid_request", error });
}

const NO_ACCOUNT = badQuery("the query must name an account");

function json(status: number, value: object): Page {
  return { status, contentType: "application/json", body: `${JSON.stringify(value)}\n` };
}

function send(response: ServerResponse, page: Page, head = false): void {
  response.writeHead(page.status, {
    "Content-Type": page.contentType,
    "Content-Length": Buffer.byteLength(page.body),
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
  });
  response.end(head ? undefined : page.body);
}

function listen(server: Server, { host, port }: AdminOptions): Promise<{ readonly port: number }> {
  return new Promise((resolve, reject) => {
    const refuse = (cause: Error): void => {
      const where = `admin.listen: cannot listen on ${host}:${port}`;
      reject(new SetupError(`${where}: ${cause.message}`, { cause }));
    };
    server.once("error", refuse);
    server.listen({ host, port, exclusive: true }, () => {
      server.off("error", refuse);
      const address = server.address();
      resolve({ port: typeof address === "object" && address !== null ? address.port : port });
    });
  });
}
