/**
 * `check`: prints the effective configuration, or every problem at once. What is valid but cannot
 * be started by this version is told on standard error beside it, so that the next step brings no
 * surprise.
 */

import { unavailable } from "../config/available.ts";
import { describeEffective, describeKeys } from "../config/describe.ts";
import { describeProblems, readConfig } from "../config/load.ts";
import { type Command, noPositionals, requiredText } from "./command.ts";

export const checkCommand: Command = {
  name: "check",
  summary: "prints the effective configuration with secrets hidden, or every problem at once",
  usage: ["check --config FILE"],
  options: { config: { type: "string" } },
  detail: `
Exits with 1 when there is a problem. Each key can be overridden by an environment
variable: http.listen by TOUCHDOWN_HTTP_LISTEN. The keys:

${describeKeys()}
`,
  async run(given, positionals, io) {
    noPositionals(positionals);
    const file = requiredText(given, "config");
    const resolved = readConfig(file);
    if (resolved.kind === "problems") {
      io.err(describeProblems(file, resolved.problems));
      return 1;
    }
    io.out(describeEffective(resolved.shown));
    for (const sentence of unavailable(resolved.config)) {
      io.err(`${file}: an edge of this version would refuse to start: ${sentence}`);
    }
    return 0;
  },
};
