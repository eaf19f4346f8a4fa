/**
 * A process that runs an embedded Postgres in the folder it is given, tells its address, and is
 * then killed by the test, so that the server is left without an owner.
 */

import { holdProcess, systemClock } from "../../dist/core/clock.js";
import { startPostgres } from "../../dist/sandbox/postgres.js";

holdProcess();
const log = { info() {}, warn() {}, error() {} };
const folder = process.argv[2];
const postgres = await startPostgres({ clock: systemClock, log }, { folder, port: null });
process.stdout.write(`${JSON.stringify({ url: postgres.ownerUrl, pid: postgres.pid() })}\n`);
