/**
 * `send`: submits one transaction to an edge and prints its signature. The file may hold raw bytes,
 * base64 or base58, detected from the content. The key is never printed, and it can come from a
 * file so that it stays out of the process list. With `--wait` it runs until the transaction has
 * ended and reports how.
 */

import { parseDuration } from "../config/durations.ts";
import { type Clock, NS_PER_MS } from "../core/clock.ts";
import { decodeBase58, decodeBase64 } from "../core/encoding.ts";
import { fetchReasonOf, SetupError } from "../core/errors.ts";
import { SIGNATURES_MAX, V1_TRANSACTION_BYTES_MAX } from "../core/limits.ts";
import {
  type Command,
  type Given,
  type Io,
  noPositionals,
  optionalText,
  requiredText,
  UsageError,
} from "./command.ts";
import { readInput } from "./io.ts";
import { SEND_RESPONSE_MS_MAX } from "./limits.ts";
import { waitForEnd } from "./send-wait.ts";

export const sendCommand: Command = {
  name: "send",
  summary: "sends one signed transaction and prints its signature",
  usage: [
    "send FILE|- --url URL --key KEY [--wait [--timeout 90s]]",
    "send FILE|- --url URL --key-file FILE [--wait [--timeout 90s]]",
  ],
  options: {
    url: { type: "string" },
    key: { type: "string" },
    "key-file": { type: "string" },
    wait: { type: "boolean" },
    timeout: { type: "string" },
  },
  detail: `
FILE holds the transaction as raw bytes, base64 or base58; - reads standard input.

  --url URL         the edge, like http://127.0.0.1:8080
  --key KEY         the API key
  --key-file FILE   a file that holds the API key alone, - for standard input
  --wait            wait for the end and print it: exit code 0 only where it landed and succeeded
  --timeout TIME    how long to wait for the end, 90s when not given

A refusal is printed on standard error as its reason and its message, exit code 1.
`,
  async run(given, positionals, io) {
    const [file, ...surplus] = positionals;
    if (file === undefined) throw new UsageError("the transaction's file is missing");
    noPositionals(surplus);
    const url = requiredText(given, "url");
    const endpoint = endpointOf(url);
    const timeoutMs = timeoutOf(given);
    if (file === "-" && given["key-file"] === "-") {
      throw new UsageError("standard input cannot be both the transaction and the key");
    }
    const key = await keyOf(given, io);
    const bytes = transactionBytes(await readInput(file, io));
    const answer = await post(endpoint, key, bytes, io.clock);
    if (answer.kind === "rejected") {
      io.err(answer.message);
      return 1;
    }
    const { signature } = answer;
    io.out(signature);
    if (timeoutMs === null) return 0;
    const ending = await waitForEnd(io.clock, { url, key, signature, timeoutMs });
    if (ending.landed) io.out(ending.line);
    else io.err(ending.line);
    return ending.landed ? 0 : 1;
  },
};

function endpointOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  // A bare host and port also parse, as a scheme that cannot be resolved against.
  if (url?.protocol === "http:" || url?.protocol === "https:") {
    if (url.username !== "" || url.password !== "") {
      throw new UsageError("--url must be without a login, an edge takes an API key alone");
    }
    return new URL("/api/v1/sendRawTransaction", url).href;
  }
  throw new UsageError("--url must start with http:// or https://");
}

/** How long to wait for the end; null: do not wait. */
function timeoutOf(given: Given): number | null {
  const text = optionalText(given, "timeout");
  if (given["wait"] !== true) {
    if (text !== null) throw new UsageError("--timeout is for --wait, which is missing");
    return null;
  }
  const ms = text === null ? WAIT_MS : parseDuration(text);
  if (ms !== null && ms > 0) return ms;
  throw new UsageError(`--timeout must be a duration like 90s, not ${JSON.stringify(text)}`);
}

/** The lifetime of a blockhash, plus time for its expiry to become known. */
const WAIT_MS = 90_000;

async function keyOf(given: Given, io: Io): Promise<string> {
  const key = optionalText(given, "key");
  const file = optionalText(given, "key-file");
  if ((key === null) === (file === null)) {
    throw new UsageError("exactly one of --key and --key-file is needed");
  }
  const text =
    key ??
    Buffer.from(await readInput(file ?? "", io))
      .toString("latin1")
      .trim();
  // Any other text cannot be a header value.
  if (!/^[\x21-\x7e]{1,128}$/.test(text)) {
    throw new UsageError("the key must be 1 to 128 visible ASCII characters");
  }
  return text;
}

/** The serialized transaction, from any of the three forms. */
export function transactionBytes(input: Uint8Array): Uint8Array {
  const text = Buffer.from(input).toString("latin1").trim();
  // A transaction begins with its signature count or its version, neither of which is a printable
  // character, so printable input is always an encoding.
  if (text === "") throw new SetupError("there is no transaction: the input is empty");
  if (!/^[\x20-\x7e\s]+$/.test(text)) return input;
  const packed = text.replace(/\s+/g, "");
  const readings = [decodeBase64(packed), decodeBase58(packed, V1_TRANSACTION_BYTES_MAX)].filter(
    (bytes) => bytes !== null,
  );
  // Letters and digits may be both encodings; only one of the results begins like a transaction.
  const best = readings.find(startsLikeTransaction) ?? readings[0];
  if (best === undefined) {
    throw new SetupError("the input is neither raw bytes nor base64 nor base58");
  }
  return best;
}

/** Whether the signature count before the signatures matches the one in the message's header. */
function startsLikeTransaction(bytes: Uint8Array): boolean {
  const [first = 0, second = 0] = bytes;
  if (first === 0x81) return second >= 1 && second <= SIGNATURES_MAX;
  if (first < 1 || first > SIGNATURES_MAX) return false;
  const message = 1 + 64 * first;
  const header = bytes[message] === 0x80 ? message + 1 : message;
  return bytes[header] === first;
}

type SendResponse =
  | { readonly kind: "accepted"; readonly signature: string }
  | { readonly kind: "rejected"; readonly message: string };

async function post(
  endpoint: string,
  key: string,
  bytes: Uint8Array,
  clock: Clock,
): Promise<SendResponse> {
  const abort = new AbortController();
  const startNs = clock.nowNs();
  const timer = clock.after(SEND_RESPONSE_MS_MAX, () => abort.abort());
  try {
    const response = await fetch(endpoint, {
      method: "POST",
      headers: { "api-x-token": key, "content-type": "application/octet-stream" },
      body: Uint8Array.from(bytes),
      signal: abort.signal,
      redirect: "error",
    });
    return answerOf(response.status, await response.text());
  } catch (error) {
    if (!abort.signal.aborted)
      throw new SetupError(`${endpoint} cannot be reached: ${fetchReasonOf(error)}`);
    const waitedMs = Math.round((clock.nowNs() - startNs) / NS_PER_MS);
    throw new SetupError(`${endpoint} did not answer within ${waitedMs} ms`);
  } finally {
    timer.cancel();
  }
}

function answerOf(status: number, text: string): SendResponse {
  const body = parseObject(text);
  if (status === 200 && typeof body["signature"] === "string") {
    return { kind: "accepted", signature: body["signature"] };
  }
  const reason = typeof body["reason"] === "string" ? body["reason"] : `HTTP ${status}`;
  const error = typeof body["error"] === "string" ? body["error"] : text.trim().slice(0, 500);
  return { kind: "rejected", message: `${reason}: ${error}` };
}

function parseObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? { ...value } : {};
  } catch {
    // Not JSON, so not an edge's response; the caller shows the text instead.
    return {};
  }
}
