/**
 * The HTTP server: routes, admission and the life of the listening socket. With fronts it is behind
 * them, on loopback: they have the public port, and relay here what they are not certain of
 * (relayed.ts). The only user of uWebSockets.js (uws.ts), whose traps shape it:
 *
 * - A throw out of a handler ends the process, so each runs inside one wrapper that answers 500.
 * - Framing is judged on every route before anything else (framing.ts), and a connection whose
 *   framing cannot be trusted is cut together with all that was sent behind (exchange.ts).
 * - A second request while the first still waits makes the library close the connection without
 *   an answer to either; pipelining works only as far as answers are immediate.
 * - Answers that a client does not take in are kept in memory without a bound, unless they are
 *   written in a way that can fail (whole-answer.ts).
 * - An idle connection, or a body that stops arriving, is closed by the library after 8 to 12 s.
 * - Addresses from a PROXY preamble are never asked for: anyone can send one.
 *
 * Hot path: one exchange a request, nothing else is made here.
 */

import { type RefusalReason, SetupError } from "../core/errors.ts";
import { HTTP_CONNECTIONS_MAX } from "../core/limits.ts";
import type { Gate } from "../limits/gate.ts";
import { createAdmission, NO_RELAYS, type Relays, tooLarge } from "./admission.ts";
import { Exchange, type Shape } from "./exchange.ts";
import { readFraming } from "./framing.ts";
import { UNREAD_BODY_BYTES_MAX } from "./limits.ts";
import { readRelayed } from "./proxied-request.ts";
import type { ReceiptPageCounters } from "./receipts/endpoints.ts";
import { Desk, type DeskCounters, type DeskDeps, type DeskOptions } from "./request-tracker.ts";
import type { UnreadCounters } from "./response-end.ts";
import { createPages, type PagesDeps, type PagesOptions, RAW_PATH, RPC_PATH } from "./routes.ts";
import type { CallReader } from "./submit/json-rpc-fast-path.ts";
import type { Submit } from "./submit/submission.ts";
import * as uws from "./uws.ts";

export interface IngressDeps extends PagesDeps, DeskDeps {
  readonly gate: Gate;
  readonly submit: Submit;
  /** Reads JSON-RPC calls of the usual form; all are parsed when not given. */
  readonly calls?: CallReader;
  /** Not given where no front relays requests here. */
  readonly relays?: Relays;
}

export interface HttpOptions extends PagesOptions, DeskOptions {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** Connections open at once. */
  readonly connectionsMax?: number;
}

export interface HttpServer {
  /** Listens; a port that is taken, by another edge too, is a `SetupError`. */
  start(): Promise<{ readonly port: number }>;
  /** Stops listening, waits for the requests in hand, then closes every connection. */
  stop(): Promise<void>;
  /** From now on new work is refused with 503 and its connection closed. */
  drain(): void;
  readonly counters: Readonly<DeskCounters>;
  readonly refusals: Readonly<Record<RefusalReason, number>>;
  /** What is read of receipts. */
  readonly receipts: ReceiptPageCounters;
  /** Answers that wait for their clients to read. */
  readonly unread: Readonly<UnreadCounters>;
}

export function createHttpServer(deps: IngressDeps, options: HttpOptions): HttpServer {
  const desk = new Desk(deps, options);
  const { clock, gate, submit } = deps;
  const relays = deps.relays ?? NO_RELAYS;
  const pages = createPages(deps, options);
  const calls = deps.calls ?? null;
  const admission = createAdmission({ clock, gate, submit, desk, calls, relays });
  const connectionsMax = options.connectionsMax ?? HTTP_CONNECTIONS_MAX;
  const app = createApp(desk, connectionsMax, {
    ...admission,
    rest: (exchange, request) => serveRest(exchange, request),
  });
  let listening: uws.ListenSocket | null = null;

  /** Judges what is no submission, and serves it. */
  function serveRest(exchange: Exchange, request: uws.HttpRequest): void {
    const { token, bodySize, fault, relayed, isLast } = readFraming(request, relays.headerName);
    exchange.isLast = isLast;
    if (fault !== null) {
      exchange.cut(fault);
      return;
    }
    if (bodySize > UNREAD_BODY_BYTES_MAX) {
      exchange.cut(tooLarge(bodySize, UNREAD_BODY_BYTES_MAX));
      return;
    }
    if (relays.headerName !== "") exchange.relayed = readRelayed(relayed);
    pages.serve(exchange, {
      method: request.getCaseSensitiveMethod(),
      path: request.getUrl(),
      query: request.getQuery(),
      lastEventId: request.getHeader("last-event-id"),
      token,
    });
  }

  return {
    counters: desk.counters,
    refusals: desk.refusals,
    receipts: pages.counters,
    unread: desk.unread.counters,
    async start() {
      const socket = listen(app, options);
      listening = socket;
      desk.start();
      return { port: uws.us_socket_local_port(socket) };
    },
    drain() {
      desk.draining = true;
      pages.drain();
    },
    async stop() {
      desk.draining = true;
      pages.drain();
      if (listening !== null) uws.us_listen_socket_close(listening);
      listening = null;
      await closeWhenIdle(app, desk);
    },
  };
}

type Act = (exchange: Exchange, request: uws.HttpRequest) => void;

/** What each route does. */
interface Routes {
  readonly raw: Act;
  readonly rpc: Act;
  readonly open: Act;
  readonly rest: Act;
}

function createApp(desk: Desk, connectionsMax: number, routes: Routes): uws.App {
  const app = uws.App();

  function handler(shape: Shape, act: Act) {
    return (response: uws.HttpResponse, request: uws.HttpRequest): void => {
      const exchange = new Exchange(response, desk, shape);
      try {
        act(exchange, request);
      } catch (error) {
        exchange.fail(error);
      }
      exchange.handled();
    };
  }

  function countConnection(response: uws.HttpResponse, change: number): void {
    desk.counters.connections += change;
    if (change < 0 || desk.counters.connections <= connectionsMax) return;
    desk.counters.connectionsRefused += 1;
    // Closing calls back in here and counts the connection out again.
    response.close();
  }

  uws._cfg("silent");
  asPublished(app).filter(countConnection);
  app.post(RAW_PATH, handler("raw", routes.raw));
  app.post(RPC_PATH, handler("rpc", routes.rpc));
  app.post("/", handler("rpc", routes.open));
  app.any("/*", handler("raw", routes.rest));
  return app;
}

async function closeWhenIdle(app: uws.App, desk: Desk): Promise<void> {
  await new Promise<void>((resolve) => desk.whenIdle(resolve));
  // The last answer may still lie in the cork buffer of the callback that wrote it.
  await new Promise<void>((resolve) => setImmediate(resolve));
  app.close();
  desk.stop();
}

function listen(app: uws.App, options: HttpOptions): uws.ListenSocket {
  const { host, port } = options;
  let socket: uws.ListenSocket | false = false;
  asPublished(app).listen(host, port, uws.LIBUS_LISTEN_EXCLUSIVE_PORT, (answer) => {
    socket = answer;
  });
  if (socket === false) {
    throw new SetupError(
      `http.listen: cannot listen on ${host}:${port}; either the port is taken, ` +
        "perhaps by another edge, or the address is not one of this machine",
    );
  }
  return socket;
}

/** What an app can do that its declaration lacks or tells wrongly. */
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
  // The declaration is behind the library here; the tests go through each of the two.
  return app as unknown as PublishedApp;
}
