/**
 * One of several processes that want the same journals' locks at the same moment. Takes the paths
 * from its arguments, waits for a line on its standard input, prints the numbers of those that it
 * got, and keeps them until its input ends.
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
    // Another one was sooner.
    return [];
  }
});
process.stdout.write(`${JSON.stringify(got)}\n`);
process.stdin.resume();
