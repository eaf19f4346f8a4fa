/** All commands, in the order of `--help`. */

import { checkCommand } from "./check.ts";
import type { Command } from "./command.ts";
import { controlCommand } from "./control.ts";
import { doctorCommand } from "./doctor.ts";
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
  doctorCommand,
  readyCommand,
  upgradeCommand,
  sendCommand,
  keysCommand,
];
