/** All commands, in the order of `--help`, and the names reserved for a later version. */

import { checkCommand } from "./check.ts";
import type { Command } from "./command.ts";
import { controlCommand } from "./control.ts";
import { edgeCommand } from "./edge.ts";
import { keysCommand } from "./keys.ts";
import { readyCommand } from "./ready.ts";
import { sandboxCommand } from "./sandbox.ts";
import { sendCommand } from "./send.ts";
import { upgradeCommand } from "./upgrade.ts";

export const COMMANDS: readonly Command[] = [
  sandboxCommand,
  edgeCommand,
  controlCommand,
  checkCommand,
  readyCommand,
  upgradeCommand,
  sendCommand,
  keysCommand,
];

/** Known names that this version does not implement: calling one prints that and exits with 1. */
export const LATER_COMMANDS: readonly string[] = ["doctor"];
