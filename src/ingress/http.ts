/**
 * The public HTTP server: routes, admission and the life of the listening socket. With fronts it
 * listens for them: each is a server on a thread of its own, which gets connections in turn and
 * moves here the requests that it is not certain of. The only user of uWebSockets.js, whose traps
 * shape it:
 *
 * - A throw out of a handler ends the process, so each runs inside one wrapper that answers 500.
 * - Framing is judged on every route before anything else (framing.ts), and a connection whose
 *   framing cannot be trusted is cut together with all that was sent behind (exchange.ts).
 * - A second request while the first still waits makes the library close the connection without
 *   an answer to either; pipelining works only as far as answers are immediate.
 * - Answers that a client does not take in are kept in memory without a bound, unless they are
 *   written in a way that can fail (exchange.ts).
 * - An idle connection, or a body that stops arriving, is closed by the library after 8 to 12 s.
 * - Addresses from a PROXY preamble are never asked for: anyone can send one.
 *
 * Hot path: one exchange a request, nothing else is made here.
 */

import * as uws from "uWebSockets.js";
import { type RefusalReason, SetupError } from "../core/errors.ts";
import { HTTP_CONNECTIONS_MAX, UNREAD_BODY_BYTES_MAX } from "../core/limits.ts";
import { createAdmission, type OwnerKnown, tooLarge } from "./admission.ts";
import type { CallReader } from "./call-reader.ts";
import { Desk, type DeskCounters, type DeskDeps, type DeskOptions } from "./desk.ts";
import type { Elsewhere } from "./elsewhere.ts";
import { Exchange, type Shape, type Wire } from "./exchange.ts";
import { readFraming } from "./framing.ts";
import { createFrontAdmission } from "./front-admission.ts";
import type { Gate } from "./gate.ts";
import type { MovedPage, MovedRequest } from "./moved.ts";
import { createPages, type PagesDeps, type PagesOptions, RAW_PATH, RPC_PATH } from "./pages.ts";
import type { ReceiptPageCounters } from "./receipt-pages.ts";
import type { Submit, TrySubmit } from "./submit.ts";

export interface IngressDeps extends PagesDeps, DeskDeps {
  readonly gate: Gate;
  readonly submit: Submit;
  /** Reads JSON-RPC calls of the usual form; all are parsed when not given. */
  readonly calls?: CallReader;
}

export interface HttpOptions extends PagesOptions, DeskOptions {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** Connections open at once. */
  readonly connectionsMax?: number;
}

interface Serving {
  /** From now on new work is refused with 503 and its connection closed. */
  drain(): void;
  readonly counters: Readonly<DeskCounters>;
  readonly refusals: Readonly<Record<RefusalReason, number>>;
}

export interface HttpServer extends Serving {
  /** Listens; a port that is taken, by another edge too, is a `SetupError`. */
  start(): Promise<{ readonly port: number }>;
  /** Stops listening, waits for the requests in hand, then closes every connection. */
  stop(): Promise<void>;
  /** From now on connections go to fronts alone, in turn; `descriptor` is the front's own. */
  addFront(descriptor: number): void;
  /** This front gets no more connections; the last one's go to this server again. */
  removeFront(descriptor: number): void;
  /** Serves a request that a front moved here. `known` is told whose key a submission carries. */
  takeMoved(request: MovedRequest, wire: Wire, known: OwnerKnown | null): void;
  /** What is read of receipts. */
  readonly receipts: ReceiptPageCounters;
}

export function createHttpServer(deps: IngressDeps, options: HttpOptions): HttpServer {
  const desk = new Desk(deps, options);
  const { clock, gate, submit } = deps;
  const pages = createPages(deps, options);
  const admission = createAdmission({ clock, gate, submit, desk, calls: deps.calls ?? null });
  const connectionsMax = options.connectionsMax ?? HTTP_CONNECTIONS_MAX;
  const app = createApp(desk, () => connectionsMax, {
    ...admission,
    rest: restOf((exchange, token, _, page) => pages.serve(exchange, { ...page, token })),
  });
  let listening: uws.us_listen_socket | null = null;

  function serveMoved(exchange: Exchange, request: MovedRequest, known: OwnerKnown | null): void {
    const { page, token } = request;
    if (page === null) admission.moved(exchange, request, known);
    else pages.serve(exchange, { ...page, token });
  }

  return {
    counters: desk.counters,
    refusals: desk.refusals,
    receipts: pages.counters,
    async start() {
      const socket = listen(app, options);
      listening = socket;
      desk.start();
      return { port: uws.us_socket_local_port(socket) };
    },
    addFront: (descriptor) => asPublished(app).addChildAppDescriptor(descriptor),
    removeFront: (descriptor) => asPublished(app).removeChildAppDescriptor(descriptor),
    takeMoved(request, wire, known) {
      const { door, body, receivedNs } = request;
      const exchange = new Exchange(wire, desk, door === "rpc" || door === "open" ? "rpc" : "raw");
      // Of a body that follows it is not known yet.
      if (body !== null) exchange.receivedNs = receivedNs;
      run(exchange, () => serveMoved(exchange, request, known));
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

export interface FrontDeps extends DeskDeps {
  readonly gate: Gate;
  readonly submit: TrySubmit;
  readonly calls: CallReader;
  readonly elsewhere: Elsewhere;
}

export interface FrontOptions extends DeskOptions {
  /** Connections of this front open at once. */
  readonly connectionsMax: number;
}

export interface FrontServer extends Serving {
  /** For `addFront` of the server that listens; connections may come from then on. */
  readonly descriptor: number;
  /**
   * Waits for the requests in hand, those that were moved among them, then closes every connection.
   * No server may hand connections on to it any more.
   */
  stop(): Promise<void>;
  /** Closes every connection at once, whatever is in hand, and those that are handed on later. */
  close(): void;
}

/** A server for the thread that it is made on, which listens to nothing by itself. */
export function createFrontServer(deps: FrontDeps, options: FrontOptions): FrontServer {
  const desk = new Desk(deps, options);
  const { elsewhere } = deps;
  let { connectionsMax } = options;
  const app = createApp(desk, () => connectionsMax, {
    ...createFrontAdmission({ ...deps, desk }),
    rest: restOf((exchange, token, bodySize, page) => {
      const what = { door: "rest", why: "other", isPaid: false } as const;
      elsewhere.move(desk, exchange, { ...what, token, bodySize, receivedNs: 0, page }, null);
    }),
  });
  return {
    descriptor: asPublished(app).getDescriptor(),
    counters: desk.counters,
    refusals: desk.refusals,
    drain() {
      desk.draining = true;
    },
    async stop() {
      desk.draining = true;
      await closeWhenIdle(app, desk);
    },
    close() {
      connectionsMax = 0;
      app.close();
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

/** Judges what is no submission and gives it to `serve`. */
function restOf(
  serve: (exchange: Exchange, token: string, bodySize: number, page: MovedPage) => void,
): Act {
  return (exchange, request) => {
    const { token, bodySize, fault } = readFraming(request);
    if (fault !== null) {
      exchange.cut(fault);
      return;
    }
    if (bodySize > UNREAD_BODY_BYTES_MAX) {
      exchange.cut(tooLarge(bodySize, UNREAD_BODY_BYTES_MAX));
      return;
    }
    serve(exchange, token, bodySize, {
      method: request.getCaseSensitiveMethod(),
      path: request.getUrl(),
      query: request.getQuery(),
      lastEventId: request.getHeader("last-event-id"),
    });
  };
}

function createApp(desk: Desk, connectionsMax: () => number, routes: Routes): uws.TemplatedApp {
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
    if (change < 0 || desk.counters.connections <= connectionsMax()) return;
    desk.counters.connectionsRefused += 1;
    // Closing calls back in here and counts the connection out again.
    response.close();
  }

  undeclared._cfg("silent");
  asPublished(app).filter(countConnection);
  app.post(RAW_PATH, handler("raw", routes.raw));
  app.post(RPC_PATH, handler("rpc", routes.rpc));
  app.post("/", handler("rpc", routes.open));
  app.any("/*", handler("raw", routes.rest));
  return app;
}

/** Runs what must not throw out of here. */
function run(exchange: Exchange, act: () => void): void {
  try {
    act();
  } catch (error) {
    exchange.fail(error);
  }
  exchange.handled();
}

async function closeWhenIdle(app: uws.TemplatedApp, desk: Desk): Promise<void> {
  await new Promise<void>((resolve) => desk.whenIdle(resolve));
  // The last answer may still lie in the cork buffer of the callback that wrote it.
  await new Promise<void>((resolve) => setImmediate(resolve));
  app.close();
  desk.stop();
}

function listen(app: uws.TemplatedApp, options: HttpOptions): uws.us_listen_socket {
  const { host, port } = options;
  let socket: uws.us_listen_socket | false = false;
  asPublished(app).listen(host, port, undeclared.LIBUS_LISTEN_EXCLUSIVE_PORT, (answer) => {
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
    done: (socket: uws.us_listen_socket | false) => void,
  ): void;
  /** Called with 1 for each new connection and with -1 for each that ends. */
  filter(count: (response: uws.HttpResponse, change: number) => void): void;
  /** What another thread's app may hand new sockets on by: an address, as a number. */
  getDescriptor(): number;
  addChildAppDescriptor(descriptor: number): void;
  removeChildAppDescriptor(descriptor: number): void;
}

function asPublished(app: uws.TemplatedApp): PublishedApp {
  // The declaration is behind the library here; the tests go through each of the two.
  return app as unknown as PublishedApp;
}

/** What the library exports without declaring it. */
interface Undeclared {
  /** "silent" leaves the library's name out of answers. */
  _cfg(setting: string): void;
  /** Without it, a second edge on the same port silently gets half of the connections. */
  readonly LIBUS_LISTEN_EXCLUSIVE_PORT: number;
}

// The names are exported by the library's module; only its declaration is behind.
const undeclared = uws as unknown as Undeclared;
