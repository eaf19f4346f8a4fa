/**
 * Sends requests to a node in a loop, and prints the errors. The test sets a stack size with which
 * the engine cannot start threads.
 */

import { createServer } from "node:net";
import { createNativeRpcHttpClient } from "../../../src/cluster/rpc/native-http-client.ts";
import { native } from "../../native/addon.ts";

if (native === null) throw new Error("the native engine is not built");
const url = "http://127.0.0.1:9/";
const httpClient = createNativeRpcHttpClient(native, { url, bytesMax: 1_000, timeoutMs: 30_000 });
// The engine's responses do not keep a process alive.
const alive = createServer().listen(0, "127.0.0.1");
// More requests than the engine has request threads.
for (let time = 0; time < 20; time += 1) {
  const outcome = await httpClient.post("{}").catch(String);
  process.stdout.write(`${typeof outcome === "string" ? outcome : outcome.status}\n`);
}
alive.close();
httpClient.close();
