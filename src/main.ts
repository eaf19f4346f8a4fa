#!/usr/bin/env node
/**
 * The program: picks a command, runs it, exits with its code. The exit is explicit, because a
 * library's forgotten handle must not keep a stopped service alive, and a command that only waits
 * must not end because nothing else is open.
 */

import { processIo } from "./cli/io.ts";
import { run } from "./cli/run.ts";
import { holdProcess } from "./core/clock.ts";

holdProcess();
process.exit(await run(process.argv.slice(2), processIo));
