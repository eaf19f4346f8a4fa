/**
 * The way to Postgres: a pool with bounds and deadlines, transactions, and LISTEN that comes back.
 *
 * Whatever goes wrong is thrown as a `DatabaseError` whose kind says what to do about it; its
 * message holds neither the password nor a value of the query. Times come back as milliseconds
 * since the epoch and bigints as numbers; a bigint that a number cannot hold is a fault.
 *
 * The surprise: a transaction that Postgres gave up for a conflict is run again, so what is done
 * in one must be undone by its rollback.
 */

import pg from "pg";
import type { Clock, Timer } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import { SnapshotQuery } from "../keys/snapshot-query.ts";
import {
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

/** Where a statement can be sent to. */
export interface Queryable {
  /** The rows of one statement; `Row` is what its columns are, which the caller's SQL decides. */
  query<Row extends object = object>(
    text: string,
    values?: readonly unknown[],
  ): Promise<readonly Row[]>;
}

/** A transaction that is under way. */
export interface Transaction extends Queryable {
  /**
   * Hands what a `COPY … TO STDOUT` sends to `take`, in pieces that are cut anywhere and are its
   * own until it returns; other work has its turns in between. Rejects with what `take` throws.
   */
  streamSnapshot(text: string, take: (chunk: Buffer) => void): Promise<void>;
}

export interface TransactionOptions {
  /** A repeatable-read view of one moment, read only; else read committed. */
  readonly snapshot?: boolean;
  /** Longest time of one statement in it, in milliseconds, instead of the pool's. */
  readonly statementMsMax?: number;
}

export interface Database extends Queryable {
  /** Commits what `act` did when it resolves, rolls it back when it rejects. */
  transaction<T>(act: (tx: Transaction) => Promise<T>, options?: TransactionOptions): Promise<T>;
  /** Hears a channel until stopped, over a connection of its own that is opened anew when lost. */
  listen(channel: string, on: ListenEvents): Listener;
  readonly counters: DatabaseCounters;
  /** Waits for what is under way, then closes everything. */
  stop(): Promise<void>;
}

export interface ListenEvents {
  notice(payload: string): void;
  /** Each time the channel is heard, at first and again: what came before may have been missed. */
  connected(): void;
  /** Each time the channel is no longer heard. */
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
  /** Connections at a time, at most; those of `listen` come on top. */
  readonly connections?: number;
  readonly statementMsMax?: number;
  /** Name under which `pg_stat_activity` lists the connections. */
  readonly applicationName?: string;
}

/** A pool that connects on first use: a database that is down is told by the first statement. */
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
    // The pool's end does not wait for its connections', which a server that goes down then tells.
    if (stopping) return;
    deps.log.warn({ reason: error.message }, "a connection to the accounts database ended");
  });

  // The pool hears only the connections that it has at hand: an error of one that is lent, while
  // nothing is asked of it, would end the process. Its next statement fails.
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
  /** Transactions that were run again after a conflict. */
  retries: number;
  errors: number;
  /** Statements refused at once because too many waited. */
  refusedWaiting: number;
  /** Connections that ended by themselves. */
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
    // A connection that is gone without a word is noticed here, when the server cannot tell.
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
    // A connection in an unknown state is closed instead of being lent to the next.
    client.release(fault !== null);
  }
}

/** Null when the connection is good again, else why it is not. */
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
  /** Why it is not heard, as it was logged last. */
  let told: string | null = null;

  async function connect(): Promise<void> {
    const fresh = new pg.Client(options);
    client = fresh;
    fresh.on("error", (error) => lost(fresh, error.message));
    fresh.on("end", () => lost(fresh, "the connection ended"));
    fresh.on("notification", ({ payload }) => on.notice(payload ?? ""));
    try {
      await fresh.connect();
      await fresh.query(`listen ${pg.escapeIdentifier(channel)}`);
    } catch (error) {
      lost(fresh, error instanceof Error ? error.message : String(error));
      return;
    }
    if (stopped || client !== fresh) return;
    waitMs = DATABASE_RETRY_MS_MIN;
    told = null;
    counters.listenConnects += 1;
    on.connected();
    heartbeat(fresh);
  }

  /** Asks now and then, because a connection can be gone without anybody being told. */
  function heartbeat(of: pg.Client): void {
    timer = clock.after(DATABASE_LISTEN_HEARTBEAT_MS, () => {
      of.query("select 1").then(
        () => {
          if (client === of) heartbeat(of);
        },
        (error: unknown) => lost(of, error instanceof Error ? error.message : String(error)),
      );
    });
  }

  function lost(which: pg.Client, reason: string): void {
    if (client !== which) return;
    client = null;
    timer?.cancel();
    void close(which);
    if (stopped) return;
    counters.connectionsLost += 1;
    on.lost();
    // Once for each reason, until it is heard again: it is tried every few seconds.
    if (reason !== told) log.warn({ channel, reason }, "the accounts database is not heard");
    told = reason;
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
      if (last !== null) await close(last);
    },
  };
}

async function close(client: pg.Client): Promise<void> {
  try {
    await client.end();
  } catch {
    // It is gone already, which is what was wanted.
  }
}

/** `pg` lends its own array type; ours are read-only. */
function queryConfig(text: string, values: readonly unknown[]): pg.QueryConfig {
  return values.length === 0 ? { text } : { text, values: [...values] };
}

function rowsOf<Row extends object>(result: pg.QueryResult): readonly Row[] {
  // The columns are what the statement says; the migrations fix their types.
  return result.rows as readonly Row[];
}

/** OIDs of `pg_type.dat`, Postgres 18, 2026-11. */
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
  // The package's list of types leaves out arrays, which Postgres does not.
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
