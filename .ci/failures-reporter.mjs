/**
 * A reporter of vitest: names each test that failed (`failed:`), or passed only when it was run again
 * (`flaky:`), and why it failed. It writes one line for each to the output and to the file
 * `TEST_FAILURES`. `run` prints that file before its last line.
 */

import { appendFileSync } from "node:fs";
import process from "node:process";

const CAUSE_LENGTH_MAX = 500;

export default class FailuresReporter {
  /** @param {import("vitest/node").TestCase} test */
  onTestCaseResult(test) {
    const { state, errors } = test.result();
    const name = `${test.module.relativeModuleId} > ${test.fullName}`;
    if (state === "failed") record("failed", name, errors);
    else if (test.diagnostic()?.flaky === true) record("flaky", name, errors);
  }

  /** A file that could not be read, or failed outside its tests. @param {import("vitest/node").TestModule} module */
  onTestModuleEnd(module) {
    const errors = module.errors();
    if (errors.length > 0) record("failed", module.relativeModuleId, errors);
  }

  /** @param {import("vitest/node").TestSuite} suite */
  onTestSuiteResult(suite) {
    const errors = suite.errors();
    if (errors.length === 0) return;
    record("failed", `${suite.module.relativeModuleId} > ${suite.fullName}`, errors);
  }

  /**
   * @param {unknown} _
   * @param {ReadonlyArray<{ message: string }>} unhandled
   */
  onTestRunEnd(_, unhandled) {
    if (unhandled.length > 0) record("failed", "outside a test", unhandled);
  }
}

/**
 * @param {"failed" | "flaky"} what
 * @param {string} name
 * @param {ReadonlyArray<{ message: string }>} [errors] of each time that it ran and failed
 */
function record(what, name, errors = []) {
  const line = `${what}: ${[name, ...errors.map(({ message }) => oneLine(message))].join(": ")}\n`;
  process.stdout.write(line);
  const file = process.env["TEST_FAILURES"];
  if (file !== undefined) appendFileSync(file, line);
}

/** @param {string} message */
function oneLine(message) {
  return String(message).replaceAll(/\s+/g, " ").slice(0, CAUSE_LENGTH_MAX);
}
