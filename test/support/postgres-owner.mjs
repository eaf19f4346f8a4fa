/**
 * A process that runs an embedded Postgres in the given folder and port, prints its address, and is
 * then terminated by the test. The server ends with it, or continues without an owner where the
 * second argument is `outlives`.
 */

import { holdProcess, systemClock } from "../../dist/core/clock.js";
import { startPostgres } from "../../dist/sandbox/postgres.js";

holdProcess();
const log = { info() {}, warn() {}, error() {} };
const [folder, how, port] = process.argv.slice(2);
const options = { folder, port: Number(port), outlives: how === "outlives" };
const postgres = await startPostgres({ clock: systemClock, log }, options);
process.stdout.write(`${JSON.stringify({ url: postgres.ownerUrl, pid: postgres.pid() })}\n`);
