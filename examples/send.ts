// Sends transactions over one kept connection, with Node alone.
import { readFileSync } from "node:fs";
import * as http from "node:http";
import * as https from "node:https";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";

const { URL: url = "http://127.0.0.1:8080", KEY: key = "" } = process.env;
const { Agent, request } = url.startsWith("https:") ? https : http;
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
const RETRYABLE = ["rate_limited", "no_leader", "overloaded", "internal"];
const ATTEMPTS_MAX = 5;

async function call(method: string, path: string, body: Uint8Array) {
  const headers = { "api-x-token": key, "content-type": "application/octet-stream" };
  const response = await new Promise<http.IncomingMessage>((resolve, reject) => {
    const signal = AbortSignal.timeout(10_000);
    request(url + path, { method, agent, headers, signal }, resolve)
      .on("error", reject)
      .end(body);
  });
  return { body: await text(response), retryAfter: Number(response.headers["retry-after"] ?? 1) };
}

/** Returns the signature. Throws for a reason that no repetition changes. */
async function send(transaction: Uint8Array): Promise<string> {
  for (let attempt = 1; ; attempt += 1) {
    const { body, retryAfter } = await call("POST", "/api/v1/sendRawTransaction", transaction);
    const answer: { readonly signature?: string; readonly reason?: string } = JSON.parse(body);
    if (answer.signature !== undefined) return answer.signature;
    const { reason = "" } = answer;
    console.error(body);
    if (!RETRYABLE.includes(reason) || attempt === ATTEMPTS_MAX) throw new Error(reason);
    await sleep(1000 * retryAfter);
  }
}

// Warm-up: the connection is open before the first transaction is there.
await call("GET", "/ping", new Uint8Array(0));
for (const file of process.argv.slice(2)) console.log(await send(readFileSync(file)));
agent.destroy();
