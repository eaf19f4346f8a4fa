/**
 * Submits files with one signed transaction each, and prints the verdict of each.
 *
 * `EDGE=host:port KEY=… npx tsx examples/submit.ts transaction.bin …`, after `npm run build`. Instead
 * of `KEY`: `DERIVE_FROM` takes a certificate that is derived from an API key, `KEYPAIR` a file of
 * `solana-keygen`. `ALPN=solana-tpu` sends without verdicts. `AUTHORITY` names a file with the
 * authority of the edge's certificate, in PEM or DER; empty: any certificate, which only a keypair
 * allows.
 */

import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type Client, type Credential, connect, type Verdict } from "../src/client.ts";

const { EDGE = "", KEY, DERIVE_FROM, KEYPAIR = "", ALPN, AUTHORITY } = process.env;
const TRIES = 6;

function credential(): Credential {
  if (KEY !== undefined) return { apiKey: KEY };
  if (DERIVE_FROM !== undefined) return { derivedFrom: DERIVE_FROM };
  const numbers: number[] = JSON.parse(readFileSync(KEYPAIR, "utf8"));
  return { seed: Uint8Array.from(numbers.slice(0, 32)) };
}

/** Submits again what the edge refuses for now. */
async function untilDecided(client: Client, transaction: Uint8Array): Promise<Verdict> {
  let verdict = await client.submit(transaction);
  for (let tried = 1; tried < TRIES; tried += 1) {
    if (verdict.outcome !== "refused" || !verdict.isRetryable) break;
    await sleep(100 * 2 ** tried);
    verdict = await client.submit(transaction);
  }
  return verdict;
}

const client = connect({
  address: EDGE,
  credential: credential(),
  protocol: ALPN === "solana-tpu" ? "solana-tpu" : "touchdown/1",
  trust: AUTHORITY === undefined ? "system" : AUTHORITY === "" ? "any" : [readFileSync(AUTHORITY)],
  onEvent(event) {
    if (event.kind === "limits") console.error(`${event.ratePerSecond} a second`);
  },
});
try {
  await client.ready();
  for (const file of process.argv.slice(2)) {
    const transaction = readFileSync(file);
    if (ALPN === "solana-tpu") {
      await client.send(transaction);
      console.log(`${file}: sent`);
    } else {
      const { outcome, microseconds } = await untilDecided(client, transaction);
      console.log(`${file}: ${outcome} after ${microseconds} us`);
    }
  }
} catch (cause) {
  console.error(cause instanceof Error ? cause.message : cause);
  process.exitCode = 1;
} finally {
  client.close();
}
