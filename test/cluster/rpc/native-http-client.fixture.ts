/**
 * Sends requests to a node in a loop, and prints the errors. The test sets a thread stack size that
 * the system cannot allocate, so the engine cannot start threads.
 */

import { createServer } from "node:net";
import { createNativeRpcHttpClient } from "../../../src/cluster/rpc/native-http-client.ts";
import { native } from "../../native/addon.ts";

if (native === null) throw new Error("the native engine is not built");
const url = "http://127.0.0.1:9/";
const httpClient = createNativeRpcHttpClient(native, { url, bytesMax: 1_000, timeoutMs: 30_000 });
// A pending request of the engine does not keep the process running.
const keepAlive = createServer().listen(0, "127.0.0.1");
// More requests than the engine has request threads.
for (let attempt = 0; attempt < 20; attempt += 1) {
  const outcome = await httpClient.post("{}").catch(String);
  process.stdout.write(`${typeof outcome === "string" ? outcome : outcome.status}\n`);
}
keepAlive.close();
httpClient.close();
