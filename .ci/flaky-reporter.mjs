/**
 * A reporter of vitest: names each test that failed and passed when it was run again, on the output
 * and, one a line, in the file `FLAKY_TESTS`. `run` prints that file before its last line.
 */

import { appendFileSync } from "node:fs";
import process from "node:process";

export default class FlakyReporter {
  /** @param {import("vitest/node").TestCase} test */
  onTestCaseResult(test) {
    if (test.diagnostic()?.flaky !== true) return;
    const line = `${test.module.relativeModuleId} > ${test.fullName}`;
    process.stdout.write(`flaky: ${line}\n`);
    const file = process.env["FLAKY_TESTS"];
    if (file !== undefined) appendFileSync(file, `${line}\n`);
  }
}
