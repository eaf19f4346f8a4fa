/**
 * Waits for the end of a sent transaction by repeatedly requesting its receipt with `?wait=landed`,
 * and reports the end in one line. On a rate limit or a lost connection it retries after a pause
 * until the timeout: the transaction is on its way regardless. Where the receipt is missing, it
 * retries for 2 s.
 */

import { type Clock, holdProcess, NS_PER_MS, sleep, withTimeout } from "../core/clock.ts";
import { SEND_RECEIPT_MS_MAX, SEND_RESPONSE_MS_MAX } from "./limits.ts";

/** How a transaction ended, as one line; `landed` is true if it succeeded on the network. */
export interface Ending {
  readonly landed: boolean;
  readonly line: string;
}

export interface WaitOptions {
  readonly url: string;
  readonly key: string;
  readonly signature: string;
  readonly timeoutMs: number;
}

/** The end of a transaction, or its last known state at the timeout. */
export async function waitForEnd(clock: Clock, options: WaitOptions): Promise<Ending> {
  const startNs = clock.nowNs();
  const untilNs = startNs + options.timeoutMs * NS_PER_MS;
  const receiptUntilNs = startNs + SEND_RECEIPT_MS_MAX * NS_PER_MS;
  let last = "nothing is known of it yet";
  for (;;) {
    const leftMs = (untilNs - clock.nowNs()) / NS_PER_MS;
    if (leftMs < QUESTION_MS_MIN) return { landed: false, line: `no end in time: ${last}` };
    const answer = await ask(clock, options, Math.min(leftMs, QUESTION_MS));
    if (answer.kind === "ended") return answer.ending;
    last = answer.known;
    const isMissing = answer.kind === "missing";
    if (isMissing && clock.nowNs() >= receiptUntilNs) return { landed: false, line: last };
    if (answer.pauseMs > 0) await pause(clock, Math.min(answer.pauseMs, leftMs));
  }
}

type Asked =
  | { readonly kind: "ended"; readonly ending: Ending }
  /** missing: the edge has no receipt. */
  | { readonly kind: "open" | "missing"; readonly known: string; readonly pauseMs: number };

async function ask(clock: Clock, options: WaitOptions, holdMs: number): Promise<Asked> {
  const { url, key, signature } = options;
  const path = `/api/v1/transactions/${signature}?wait=landed&timeout=${Math.ceil(holdMs)}ms`;
  const init = { headers: { "api-x-token": key }, redirect: "error" } as const;
  try {
    return await withTimeout(clock, holdMs + SEND_RESPONSE_MS_MAX, async (signal) => {
      const response = await fetch(new URL(path, url), { ...init, signal });
      return readAnswer(response.status, await response.json());
    });
  } catch {
    // The edge may be restarting, or a proxy may have responded; the next request shows it.
    return { kind: "open", known: "the edge could not be asked", pauseMs: PAUSE_MS };
  }
}

function readAnswer(status: number, body: unknown): Asked {
  const receipt = fieldsOf(body);
  if (status === 200) {
    const landing = fieldsOf(receipt["landing"]);
    const { state } = landing;
    if (state === "landed" || state === "expired" || state === "dropped") {
      return { kind: "ended", ending: endingOf(landing, receipt["received_slot"]) };
    }
    return { kind: "open", known: `it is ${String(receipt["state"])}`, pauseMs: 0 };
  }
  const known = String(receipt["error"] ?? `HTTP ${status}`);
  if (RETRIED.has(status)) return { kind: "open", known, pauseMs: PAUSE_MS };
  if (status === 404) return { kind: "missing", known, pauseMs: PAUSE_MS };
  return { kind: "ended", ending: { landed: false, line: known } };
}

function endingOf(landing: Fields, receivedSlot: unknown): Ending {
  const { state, slot, slots, error, reason, message } = landing;
  if (state !== "landed") {
    return { landed: false, line: `${String(state)}: ${String(reason)}: ${String(message)}` };
  }
  const unit = slots === 1 ? "slot" : "slots";
  const after = typeof slots === "number" ? `, ${slots} ${unit} after it came` : "";
  // A transaction sent elsewhere first may have landed earlier; the receipt then has no slot delta.
  const before = Number(slot) < Number(receivedSlot);
  const where = `in slot ${String(slot)}${before ? ", before it came here" : after}`;
  if (error === null) return { landed: true, line: `landed ${where}` };
  return { landed: false, line: `failed on the network ${where}: ${JSON.stringify(error)}` };
}

type Fields = Readonly<Record<string, unknown>>;

function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

/** The clock's timers do not keep the process alive, and nothing else does between two requests. */
async function pause(clock: Clock, ms: number): Promise<void> {
  const held = holdProcess();
  await sleep(clock, ms);
  held.cancel();
}

/** How long the edge may hold one request, and the shortest remaining time for another. */
const QUESTION_MS = 30_000;
const QUESTION_MS_MIN = 10;
/** Pause before a retry after a temporary rejection. */
const PAUSE_MS = 1_000;
/** Temporary rejections: rate limit, or an edge that is overloaded, draining or behind a proxy. */
const RETRIED: ReadonlySet<number> = new Set([429, 500, 502, 503, 504]);
