/**
 * All commands, in the order in which `--help` lists them, and the names that are promised for a
 * later version.
 */

import { checkCommand } from "./check.ts";
import type { Command } from "./command.ts";
import { controlCommand } from "./control.ts";
import { edgeCommand } from "./edge.ts";
import { keysCommand } from "./keys.ts";
import { readyCommand } from "./ready.ts";
import { sandboxCommand } from "./sandbox.ts";
import { sendCommand } from "./send.ts";

export const COMMANDS: readonly Command[] = [
  sandboxCommand,
  edgeCommand,
  controlCommand,
  checkCommand,
  readyCommand,
  sendCommand,
  keysCommand,
];

/** Known by name, but not part of this version: calling one says so and exits with 1. */
export const LATER_COMMANDS: readonly string[] = ["doctor"];
