/**
 * One of several processes that compete for the same journals' locks. Reads the paths from its
 * arguments, waits for a line on standard input, prints the indices of the locks that it got, and
 * keeps them until its input ends.
 */

import { once } from "node:events";
import { lockJournal } from "../../src/accounts/keys/journal-lock.ts";

const paths = process.argv.slice(2);
process.stdout.write("ready\n");
await once(process.stdin, "data");
const got = paths.flatMap((path, place) => {
  try {
    lockJournal(path);
    return [place];
  } catch {
    // Another process was faster.
    return [];
  }
});
process.stdout.write(`${JSON.stringify(got)}\n`);
process.stdin.resume();
