/**
 * Postgres access: a bounded pool with deadlines, transactions, and LISTEN that reconnects.
 *
 * Every failure is thrown as a `DatabaseError` whose kind determines the reaction; its message
 * contains neither the password nor a query value. Timestamps are returned as milliseconds since
 * the epoch and bigints as numbers; a bigint that a number cannot represent is an error.
 *
 * Note: a transaction that Postgres aborts for a conflict is run again, so its rollback must undo
 * all effects of the callback.
 */

import pg from "pg";
import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf, SetupError } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";
import { SnapshotQuery } from "../keys/snapshot-query.ts";
import {
  DATABASE_CLOSE_MS_MAX,
  DATABASE_CONNECT_MS_MAX,
  DATABASE_CONNECTIONS_MAX,
  DATABASE_LISTEN_HEARTBEAT_MS,
  DATABASE_RETRY_MS_MAX,
  DATABASE_RETRY_MS_MIN,
  DATABASE_SNAPSHOT_STALL_MS_MAX,
  DATABASE_STATEMENT_MS_MAX,
  DATABASE_TRANSACTION_ATTEMPTS_MAX,
  DATABASE_WAITING_MAX,
} from "../limits.ts";
import { BROKEN, DatabaseError, translate } from "./database-error.ts";

/** Accepts statements. */
export interface Queryable {
  /** The rows of one statement; the caller's SQL must return the columns of `Row`. */
  query<Row extends object = object>(
    text: string,
    values?: readonly unknown[],
  ): Promise<readonly Row[]>;
}

/** A transaction in progress. */
export interface Transaction extends Queryable {
  /**
   * Passes the output of a `COPY … TO STDOUT` to `take` in arbitrarily cut chunks, each valid until
   * `take` returns; the event loop runs other work in between. Rejects with what `take` throws.
   */
  streamSnapshot(text: string, take: (chunk: Buffer) => void): Promise<void>;
}

export interface TransactionOptions {
  /** A read-only, repeatable-read snapshot; otherwise read committed. */
  readonly snapshot?: boolean;
  /** Statement timeout within the transaction in milliseconds; overrides the pool's. */
  readonly statementMsMax?: number;
}

export interface Database extends Queryable {
  /** Commits when `act` resolves, rolls back when it rejects. */
  transaction<T>(act: (tx: Transaction) => Promise<T>, options?: TransactionOptions): Promise<T>;
  /** Listens on a channel until stopped, over a dedicated connection that is reopened when lost. */
  listen(channel: string, on: ListenEvents): Listener;
  readonly counters: DatabaseCounters;
  /** Waits for statements in progress, then closes all connections. */
  stop(): Promise<void>;
}

export interface ListenEvents {
  notice(payload: string): void;
  /** Called each time listening starts or resumes: earlier notifications may be lost. */
  connected(): void;
  /** Called each time listening is interrupted. */
  lost(): void;
}

export interface Listener {
  stop(): Promise<void>;
}

export interface DatabaseDeps {
  readonly clock: Clock;
  readonly log: Log;
}

export interface DatabaseOptions {
  readonly url: string;
  /** Maximum concurrent connections; those of `listen` are additional. */
  readonly connections?: number;
  readonly statementMsMax?: number;
  /** Connection name in `pg_stat_activity`. */
  readonly applicationName?: string;
}

/**
 * Checks what a connection needs on this machine before there is any: the address, and the files of
 * its TLS parameters. @throws SetupError that begins with the key
 */
export function requireConnectable(key: string, url: string): void {
  try {
    void new pg.Client(clientOptions({ url }));
  } catch (cause) {
    const why = messageOf(cause);
    throw new SetupError(`${key}: no connection can be made with it: ${why}`, { cause });
  }
}

/** A pool that connects on first use: the first statement reports an unreachable database. */
export function createDatabase(deps: DatabaseDeps, options: DatabaseOptions): Database {
  const counters = noneYet();
  const client = clientOptions(options);
  const listeners = new Set<Listener>();
  const pool = new pg.Pool({
    ...client,
    max: options.connections ?? DATABASE_CONNECTIONS_MAX,
    allowExitOnIdle: true,
  });
  let stopping = false;
  pool.on("error", (error) => {
    // `pool.end()` does not wait for its connections to close; a server shutdown then reports
    // errors.
    if (stopping) return;
    deps.log.warn({ reason: error.message }, "a connection to the accounts database ended");
  });

  // The pool handles errors only of idle connections: an error of a checked-out connection with no
  // statement running would end the process. Its next statement fails.
  pool.on("connect", (lent) => {
    lent.on("error", () => {
      counters.connectionsLost += 1;
    });
  });

  async function guarded<T>(act: () => Promise<T>): Promise<T> {
    if (pool.waitingCount >= DATABASE_WAITING_MAX) {
      counters.refusedWaiting += 1;
      throw new DatabaseError("unavailable", "too many statements wait", null, null);
    }
    try {
      return await act();
    } catch (error) {
      const known = translate(error);
      if (known instanceof DatabaseError) counters.errors += 1;
      throw known;
    }
  }

  return {
    counters,
    query<Row extends object>(text: string, values: readonly unknown[] = []) {
      counters.queries += 1;
      return guarded(async () => rowsOf<Row>(await pool.query(queryConfig(text, values))));
    },
    async transaction(act, how = {}) {
      for (let attempt = 1; ; attempt += 1) {
        counters.transactions += 1;
        try {
          return await guarded(() => runTransaction(pool, act, how, counters, deps.clock));
        } catch (error) {
          const again = error instanceof DatabaseError && error.kind === "conflict";
          if (!again || attempt >= DATABASE_TRANSACTION_ATTEMPTS_MAX) throw error;
          counters.retries += 1;
        }
      }
    },
    listen(channel, on) {
      const listener = listenOn(deps, client, channel, on, counters);
      listeners.add(listener);
      return listener;
    },
    async stop() {
      stopping = true;
      await Promise.all([...listeners].map((listener) => listener.stop()));
      listeners.clear();
      await pool.end();
    },
  };
}

export interface DatabaseCounters {
  queries: number;
  transactions: number;
  /** Transactions run again after a conflict. */
  retries: number;
  errors: number;
  /** Statements rejected immediately because too many waited. */
  refusedWaiting: number;
  /** Connections that ended unexpectedly. */
  connectionsLost: number;
  listenConnects: number;
}

function noneYet(): DatabaseCounters {
  return {
    queries: 0,
    transactions: 0,
    retries: 0,
    errors: 0,
    refusedWaiting: 0,
    connectionsLost: 0,
    listenConnects: 0,
  };
}

function clientOptions(options: DatabaseOptions): pg.ClientConfig {
  const statementMsMax = options.statementMsMax ?? DATABASE_STATEMENT_MS_MAX;
  return {
    connectionString: options.url,
    application_name: options.applicationName ?? "touchdown",
    connectionTimeoutMillis: DATABASE_CONNECT_MS_MAX,
    statement_timeout: statementMsMax,
    // Detects a silently lost connection, which the server cannot report.
    query_timeout: statementMsMax + DATABASE_CONNECT_MS_MAX,
    idle_in_transaction_session_timeout: statementMsMax + DATABASE_CONNECT_MS_MAX,
    keepAlive: true,
    types: { getTypeParser: parserOf },
  };
}

async function runTransaction<T>(
  pool: pg.Pool,
  act: (tx: Transaction) => Promise<T>,
  how: TransactionOptions,
  counters: DatabaseCounters,
  clock: Clock,
): Promise<T> {
  const client = await pool.connect();
  const { statementMsMax } = how;
  const extra =
    statementMsMax === undefined ? {} : { query_timeout: statementMsMax + DATABASE_CONNECT_MS_MAX };
  const tx: Transaction = {
    streamSnapshot(text, take) {
      counters.queries += 1;
      const msMax = (statementMsMax ?? DATABASE_STATEMENT_MS_MAX) + DATABASE_CONNECT_MS_MAX;
      return new Promise((resolve, reject) => {
        const copy = new SnapshotQuery(text, msMax, take, (error) => {
          watch.cancel();
          if (error === null) resolve();
          else reject(error);
        });
        const watch = clock.every(DATABASE_SNAPSHOT_STALL_MS_MAX, () => copy.check());
        client.query(copy);
      });
    },
    async query<Row extends object>(text: string, values: readonly unknown[] = []) {
      counters.queries += 1;
      return rowsOf<Row>(await client.query({ ...queryConfig(text, values), ...extra }));
    },
  };
  let fault: unknown = null;
  try {
    await client.query(how.snapshot ? "begin isolation level repeatable read read only" : "begin");
    if (statementMsMax !== undefined) {
      await client.query(`set local statement_timeout = ${Math.ceil(statementMsMax)}`);
    }
    const value = await act(tx);
    await client.query("commit");
    return value;
  } catch (error) {
    fault = await rollback(client, error);
    throw error;
  } finally {
    // Closes a connection in an unknown state instead of reusing it.
    client.release(fault !== null);
  }
}

/** Null when the connection is usable again, otherwise the reason why not. */
async function rollback(client: pg.PoolClient, error: unknown): Promise<unknown> {
  const known = translate(error);
  if (known instanceof DatabaseError && BROKEN.has(known.kind)) return error;
  try {
    await client.query("rollback");
    return null;
  } catch (second) {
    return second;
  }
}

function listenOn(
  { clock, log }: DatabaseDeps,
  options: pg.ClientConfig,
  channel: string,
  on: ListenEvents,
  counters: DatabaseCounters,
): Listener {
  let stopped = false;
  let client: pg.Client | null = null;
  let timer: Timer | null = null;
  let waitMs = DATABASE_RETRY_MS_MIN;
  /** The reason last logged for not listening. */
  let loggedReason: string | null = null;

  async function connect(): Promise<void> {
    const fresh = newClient();
    if (fresh === null) return;
    client = fresh;
    fresh.on("error", (error) => lost(fresh, error.message));
    fresh.on("end", () => lost(fresh, "the connection ended"));
    fresh.on("notification", ({ payload }) => on.notice(payload ?? ""));
    try {
      await fresh.connect();
      await fresh.query(`listen ${pg.escapeIdentifier(channel)}`);
    } catch (error) {
      lost(fresh, messageOf(error));
      return;
    }
    if (stopped || client !== fresh) return;
    waitMs = DATABASE_RETRY_MS_MIN;
    loggedReason = null;
    counters.listenConnects += 1;
    on.connected();
    heartbeat(fresh);
  }

  /** Null if there is none now: the address names a file, of TLS, that cannot be read. */
  function newClient(): pg.Client | null {
    try {
      return new pg.Client(options);
    } catch (error) {
      retry(messageOf(error));
      return null;
    }
  }

  /** Queries periodically, because a connection can be lost without an event. */
  function heartbeat(of: pg.Client): void {
    timer = clock.after(DATABASE_LISTEN_HEARTBEAT_MS, () => {
      of.query("select 1").then(
        () => {
          if (client === of) heartbeat(of);
        },
        (error: unknown) => lost(of, messageOf(error)),
      );
    });
  }

  function lost(which: pg.Client, reason: string): void {
    if (client !== which) return;
    client = null;
    timer?.cancel();
    void close(which, clock);
    if (stopped) return;
    counters.connectionsLost += 1;
    on.lost();
    retry(reason);
  }

  function retry(reason: string): void {
    // Logs each reason once until listening resumes, because it retries every few seconds.
    if (reason !== loggedReason)
      log.warn({ channel, reason }, "the accounts database cannot be followed");
    loggedReason = reason;
    timer = clock.after(waitMs, () => void connect());
    waitMs = Math.min(waitMs * 2, DATABASE_RETRY_MS_MAX);
  }

  void connect();
  return {
    async stop() {
      stopped = true;
      timer?.cancel();
      const last = client;
      client = null;
      if (last !== null) await close(last, clock);
    },
  };
}

async function close(client: pg.Client, clock: Clock): Promise<void> {
  // The client waits for the server to close too, which a silent host never does.
  const timer = clock.after(DATABASE_CLOSE_MS_MAX, () => client.connection.stream.destroy());
  try {
    await client.end();
  } catch {
    // Already closed, as intended.
  }
  timer.cancel();
}

/** `pg` declares mutable arrays; ours are read-only. */
function queryConfig(text: string, values: readonly unknown[]): pg.QueryConfig {
  return values.length === 0 ? { text } : { text, values: [...values] };
}

function rowsOf<Row extends object>(result: pg.QueryResult): readonly Row[] {
  // The statement determines the columns; the migrations fix their types.
  return result.rows as readonly Row[];
}

/** OIDs from `pg_type.dat`, Postgres 18, 2026-11. */
const OID_INT8 = 20;
const OID_INT8_ARRAY = 1016;
const OID_TIMESTAMPTZ = 1184;

const PARSERS: ReadonlyMap<number, (text: string) => unknown> = new Map<
  number,
  (text: string) => unknown
>([
  [OID_INT8, exactInteger],
  [OID_INT8_ARRAY, integerArray],
  [OID_TIMESTAMPTZ, unixMs],
]);

const parserOf: typeof pg.types.getTypeParser = (oid, format) => {
  // The package's type list omits arrays, which Postgres returns.
  const parser = format === "binary" ? undefined : PARSERS.get(Number(oid));
  if (parser !== undefined) return parser;
  return pg.types.getTypeParser(oid, format);
};

function exactInteger(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError(`${text} is beyond exact numbers`);
  return value;
}

function integerArray(text: string): number[] {
  return text === "{}" ? [] : text.slice(1, -1).split(",").map(exactInteger);
}

const dateOf = pg.types.getTypeParser(OID_TIMESTAMPTZ);

function unixMs(text: string): number {
  return Number(dateOf(text));
}
