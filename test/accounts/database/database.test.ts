import { createServer, type Server, type Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { createDatabase, requireConnectable } from "../../../src/accounts/database/database.ts";
import { DatabaseError } from "../../../src/accounts/database/database-error.ts";
import { DATABASE_CLOSE_MS_MAX, DATABASE_RETRY_MS_MIN } from "../../../src/accounts/limits.ts";
import { type Clock, systemClock } from "../../../src/core/clock.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { silent, testDatabase } from "../../support/postgres.ts";
import { until } from "../../support/wait.ts";

const deps = { clock: systemClock, log: silent };
const testDb = await testDatabase({ migrated: false });
const { owner } = testDb;

const kindOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => "done",
    (error: unknown) => (error instanceof DatabaseError ? error.kind : error),
  );

/** A database connected to this server, and its warnings. */
async function databaseAt(server: Server, clock: Clock = systemClock) {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const warnings: string[] = [];
  const log = { ...silent, warn: (_: object, message: string) => void warnings.push(message) };
  const url = `postgres://u:p@127.0.0.1:${port}/x`;
  return { database: createDatabase({ clock, log }, { url }), warnings };
}

describe("an address whose TLS file is gone", () => {
  const url = "postgres://u:p@127.0.0.1:1/x?sslmode=verify-full&sslrootcert=/none/root.pem";

  it("is refused before anything is started, without the password", () => {
    const refused = () => requireConnectable("accounts.database_url", url);
    expect(refused).toThrow(/^accounts\.database_url: no connection .*\/none\/root\.pem/);
    expect(refused).toThrow(expect.not.stringMatching("u:p"));
    expect(() => requireConnectable("x", "postgres://u:p@127.0.0.1:1/x")).not.toThrow();
  });

  it("does not end a process that listens: it tries again", async () => {
    const clock = createFakeClock();
    const warnings: object[] = [];
    const log = { ...silent, warn: (fields: object) => void warnings.push(fields) };
    const database = createDatabase({ clock, log }, { url });
    const nothing = () => undefined;
    const listener = database.listen("x", { notice: nothing, connected: nothing, lost: nothing });
    expect(warnings).toEqual([{ channel: "x", reason: expect.stringContaining("/none/root.pem") }]);
    expect(clock.pending).toBe(1);
    clock.advance(DATABASE_RETRY_MS_MIN);
    expect(clock.pending).toBe(1);
    await listener.stop();
    expect(clock.pending).toBe(0);
    await database.stop();
  });
});

describe("connection lost between two statements of a transaction", () => {
  it("fails the transaction and does not end the process", async () => {
    const database = testDb.open(testDb.url);
    const counters = { noticed: false };
    const lost = database.transaction(async (tx) => {
      const [row] = await tx.query<{ pid: number }>("select pg_backend_pid() as pid");
      await owner.query("select pg_terminate_backend($1)", [row?.pid]);
      // The notification arrives while no query is running.
      while (database.counters.connectionsLost === 0) await owner.query("select pg_sleep(0.01)");
      counters.noticed = true;
      await tx.query("select 1");
    });
    expect(await kindOf(lost)).toBe("unavailable");
    expect(counters.noticed).toBe(true);
    expect(await database.query("select 1 as one")).toEqual([{ one: 1 }]);
  });
});

describe("statement", () => {
  it("returns bigints as numbers, times as milliseconds and bytes as buffers", async () => {
    const [row] = await owner.query(
      `select 9007199254740991::bigint as big, '{1,2}'::bigint[] as list, '{}'::bigint[] as none,
         '2026-11-21 10:00:00.5+02'::timestamptz as at, '\\x00ff'::bytea as bytes, $1::text as text,
         null::timestamptz as never`,
      ["t"],
    );
    expect(row).toEqual({
      big: Number.MAX_SAFE_INTEGER,
      list: [1, 2],
      none: [],
      at: Date.UTC(2026, 10, 21, 8, 0, 0, 500),
      bytes: Buffer.from([0, 255]),
      text: "t",
      never: null,
    });
  });

  it("fails instead of rounding a bigint beyond the safe integers", async () => {
    await expect(owner.query("select 9007199254740993::bigint as big")).rejects.toThrow(
      "beyond exact numbers",
    );
  });

  it.each([
    ["select pg_sleep(600)", "timeout"],
    ["select nonsense", "fault"],
    ["select 1/0", "fault"],
    ["do $$ begin raise unique_violation; end $$", "constraint"],
    ["do $$ begin raise insufficient_privilege; end $$", "refused"],
    ["select pg_terminate_backend(pg_backend_pid())", "unavailable"],
  ])("%s fails as %s, and the next statement succeeds", async (sql, kind) => {
    const database = createDatabase(deps, { url: testDb.url, statementMsMax: 3_000 });
    expect(await kindOf(database.query(sql))).toBe(kind);
    expect(await database.query("select 1 as one")).toEqual([{ one: 1 }]);
    await database.stop();
  });

  it("includes no parameter value in its error message", async () => {
    const failed = owner.query("select $1::text::uuid", ["secret-secret"]);
    await expect(failed).rejects.toThrow(
      expect.objectContaining({ message: expect.not.stringContaining("secret") }),
    );
  });

  it("names the violated constraint in its error", async () => {
    await owner.query("create table if not exists once (n int constraint only_once unique)");
    await owner.query("insert into once values (1)");
    await expect(owner.query("insert into once values (1)")).rejects.toMatchObject({
      kind: "constraint",
      constraint: "only_once",
    });
  });

  it("is rejected immediately if too many statements wait", async () => {
    const database = createDatabase(deps, { url: testDb.url, connections: 8 });
    const all = Array.from({ length: 300 }, () => kindOf(database.query("select pg_sleep(0.001)")));
    const kinds = await Promise.all(all);
    expect(kinds.filter((kind) => kind === "done").length).toBeGreaterThanOrEqual(256);
    expect(database.counters.refusedWaiting).toBeGreaterThan(0);
    await database.stop();
  });
});

describe("unreachable database", () => {
  it("fails as unavailable without the password in the error if no server listens", async () => {
    const database = createDatabase(deps, { url: "postgres://u:hunter2@127.0.0.1:1/x" });
    const failed = database.query("select 1");
    await expect(failed).rejects.toMatchObject({ kind: "unavailable", code: "ECONNREFUSED" });
    await expect(failed).rejects.not.toThrow(/hunter2/);
    await database.stop();
  });

  it("fails as refused for a wrong password", async () => {
    const database = createDatabase(deps, { url: testDb.url.replace(/:[^:@]+@/, ":wrong@") });
    expect(await kindOf(database.query("select 1"))).toBe("refused");
    await database.stop();
  });

  it("fails as refused without a password", async () => {
    const database = createDatabase(deps, { url: testDb.url.replace(/:[^:@]+@/, "@") });
    expect(await kindOf(database.query("select 1"))).toBe("refused");
    await database.stop();
  });

  it("fails as unavailable if it speaks no TLS and the address needs that", async () => {
    const database = createDatabase(deps, { url: `${testDb.url}?sslmode=verify-full` });
    expect(await kindOf(database.query("select 1"))).toBe("unavailable");
    await database.stop();
  });
});

describe("database that shuts down", () => {
  const wireMessage = (type: string, text: string): Buffer => {
    const size = Buffer.alloc(4);
    size.writeUInt32BE(4 + text.length);
    return Buffer.concat([Buffer.from(type), size, Buffer.from(text)]);
  };
  const READY = wireMessage("Z", "I");
  const RESULT = Buffer.concat([wireMessage("C", "SELECT 0\0"), READY]);
  const SHUTDOWN = wireMessage("E", "SFATAL\0C57P01\0Mterminating connection\0\0");

  /** Answers a client's statements with nothing; `end` answers its end. */
  function serve(socket: Socket, end: () => void): void {
    socket.once("data", () => {
      socket.write(Buffer.concat([wireMessage("R", "\0\0\0\0"), READY]));
      socket.on("data", (request) => {
        if (request.toString("latin1", 0, 1) === "Q") socket.write(RESULT);
        else end();
      });
    });
  }

  /** The warnings if the server shuts down before, or right after, the pool is stopped. */
  async function warningsWhen(when: "before" | "after"): Promise<readonly string[]> {
    const sockets: Socket[] = [];
    const server = createServer((socket) => {
      sockets.push(socket);
      serve(socket, () => socket.end(SHUTDOWN));
    });
    const { database, warnings } = await databaseAt(server);
    await database.query("select");
    const [socket] = sockets;
    if (when === "before") socket?.end(SHUTDOWN);
    const ended = new Promise((resolve) => socket?.once("close", resolve));
    if (when === "before") await ended;
    await database.stop();
    await ended;
    await new Promise((resolve) => server.close(resolve));
    return warnings;
  }

  it("is logged as the end of a connection, unless the pool ended it", async () => {
    expect(await warningsWhen("before")).toEqual(["a connection to the accounts database ended"]);
    expect(await warningsWhen("after")).toEqual([]);
  });

  it("does not keep a process that stops, even if it never closes its connection", async () => {
    const clock = createFakeClock();
    const sockets: Socket[] = [];
    let ended = false;
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      sockets.push(socket);
      serve(socket, () => {
        ended = true;
      });
    });
    const { database } = await databaseAt(server, clock);
    let connects = 0;
    const connected = (): void => {
      connects += 1;
    };
    database.listen("test_events", { notice() {}, connected, lost() {} });
    await until("the channel is connected", () => connects === 1);
    const stopped = database.stop();
    await until("the end of the connection", () => ended);
    clock.advance(DATABASE_CLOSE_MS_MAX);
    await stopped;
    for (const socket of sockets) socket.destroy();
    server.close();
  });
});

describe("transaction", () => {
  it("commits on success, and rolls back if its function throws", async () => {
    await owner.query("create table tx_kept (n int)");
    const value = await owner.transaction(async (tx) => {
      await tx.query("insert into tx_kept values (1)");
      return "result";
    });
    const failed = owner.transaction(async (tx) => {
      await tx.query("insert into tx_kept values (2)");
      throw new RangeError("changed my mind");
    });
    await expect(failed).rejects.toThrow(RangeError);
    expect(value).toBe("result");
    expect(await owner.query("select n from tx_kept")).toEqual([{ n: 1 }]);
  });

  it("with a snapshot reads one point in time and cannot write", async () => {
    await owner.query("create table tx_moment (n int)");
    await owner.transaction(
      async (tx) => {
        expect(await tx.query("select * from tx_moment")).toEqual([]);
        await owner.query("insert into tx_moment values (1)");
        expect(await tx.query("select * from tx_moment")).toEqual([]);
        await expect(tx.query("insert into tx_moment values (2)")).rejects.toThrow(/read-only/);
      },
      { snapshot: true },
    );
  });

  it("is retried after a deadlock", async () => {
    await owner.query("create table tx_pair (id int primary key, n int)");
    await owner.query("insert into tx_pair values (1, 0), (2, 0)");
    let started = 0;
    let ended = 0;
    const add = async (first: number, second: number): Promise<void> => {
      await owner.transaction(async (tx) => {
        // The retried transaction could lock its row again before the other one wakes up.
        if (started >= 2) await until("the end of the other transaction", () => ended > 0);
        await tx.query("update tx_pair set n = n + 1 where id = $1", [first]);
        started += 1;
        // Each transaction holds the row that the other one needs.
        await until("both transactions have started", () => started >= 2);
        await tx.query("update tx_pair set n = n + 1 where id = $1", [second]);
      });
      ended += 1;
    };
    const before = owner.counters.retries;
    await Promise.all([add(1, 2), add(2, 1)]);
    expect(await owner.query("select n from tx_pair")).toEqual([{ n: 2 }, { n: 2 }]);
    expect(owner.counters.retries).toBe(before + 1);
  });

  it("leaves a server that became a standby: the next one gets another connection", async () => {
    const [row] = await owner.query<{ name: string }>("select current_database() as name");
    await owner.query("create table tx_standby (n int)");
    const readOnly = `alter database ${row?.name} set default_transaction_read_only`;
    await owner.query(`${readOnly} = on`);
    const database = createDatabase(deps, { url: testDb.url, connections: 1 });
    const write = () => database.transaction((tx) => tx.query("insert into tx_standby values (1)"));
    expect(await database.query("select 1 as one")).toEqual([{ one: 1 }]);
    // The address of the database leads to the new primary from now on.
    await owner.query(`${readOnly} = off`);
    expect(await kindOf(write())).toBe("unavailable");
    expect(await kindOf(write())).toBe("done");
    await database.stop();
  });

  it("is rolled back if it loses its connection, and the pool continues", async () => {
    await owner.query("create table tx_lost (n int)");
    const lost = owner.transaction(async (tx) => {
      await tx.query("insert into tx_lost values (1)");
      await tx.query("select pg_terminate_backend(pg_backend_pid())");
    });
    await expect(lost).rejects.toMatchObject({ kind: "unavailable" });
    expect(await owner.query("select n from tx_lost")).toEqual([]);
  });
});

describe("notification channel", () => {
  it("delivers notifications in order, and again after its connection ended", async () => {
    const payloads: string[] = [];
    const warnings: string[] = [];
    let connects = 0;
    let losses = 0;
    const log = { ...silent, warn: (_: object, message: string) => void warnings.push(message) };
    const options = { url: testDb.url, applicationName: "listens" };
    const database = createDatabase({ ...deps, log }, options);
    const listener = database.listen("test_events", {
      notice: (payload) => void payloads.push(payload),
      connected: () => {
        connects += 1;
      },
      lost: () => {
        losses += 1;
      },
    });
    await until("the channel is connected", () => connects === 1);
    await owner.query("select pg_notify('test_events', n::text) from generate_series(1, 3) n");
    await until("three notifications", () => payloads.length === 3);
    for (const times of [1, 2]) {
      await owner.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'listens'",
      );
      await until("the channel is connected again", () => connects === 1 + times);
      expect(losses).toBe(times);
    }
    // Each loss is logged, though the reason is the same.
    expect(warnings).toEqual(Array(2).fill("the accounts database cannot be followed"));
    await owner.query("select pg_notify('test_events', '4')");
    await until("a fourth notification", () => payloads.length === 4);
    expect(payloads).toEqual(["1", "2", "3", "4"]);
    await listener.stop();
    await database.stop();
    await owner.query("select pg_notify('test_events', '5')");
    expect(payloads).toHaveLength(4);
  });

  it("reconnects while the database refuses connections, and logs that once", async () => {
    const sockets = new Set<Socket>();
    let attempts = 0;
    const server = createServer((socket) => {
      attempts += 1;
      sockets.add(socket.on("error", () => sockets.delete(socket)));
      socket.destroy();
    });
    const { database, warnings } = await databaseAt(server);
    let losses = 0;
    const lost = (): void => {
      losses += 1;
    };
    database.listen("test_events", { notice() {}, connected() {}, lost });
    await until("three attempts", () => attempts >= 3 && losses >= 3);
    expect(warnings).toEqual(["the accounts database cannot be followed"]);
    await database.stop();
    server.close();
  });
});
