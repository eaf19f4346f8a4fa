/**
 * A reporter of vitest: names each test that failed and passed when it was run again, and why it
 * failed, on the output and, one a line, in the file `FLAKY_TESTS`. `run` prints that file before its
 * last line.
 */

import { appendFileSync } from "node:fs";
import process from "node:process";

const CAUSE_LENGTH_MAX = 500;

export default class FlakyReporter {
  /** @param {import("vitest/node").TestCase} test */
  onTestCaseResult(test) {
    if (test.diagnostic()?.flaky !== true) return;
    // Of the times before the one that passed.
    const causes = (test.result().errors ?? []).map(({ message }) => oneLine(String(message)));
    const line = [`${test.module.relativeModuleId} > ${test.fullName}`, ...causes].join(": ");
    process.stdout.write(`flaky: ${line}\n`);
    const file = process.env["FLAKY_TESTS"];
    if (file !== undefined) appendFileSync(file, `${line}\n`);
  }
}

/** @param {string} message */
function oneLine(message) {
  return message.replaceAll(/\s+/g, " ").slice(0, CAUSE_LENGTH_MAX);
}
