/**
 * The open loop: transaction i is due at start + i / rate, whether or not earlier ones have a
 * response, and its latency counts from its due time. A slow generator or edge therefore shows in
 * the latencies instead of lowering the load.
 *
 * Requests are built before the start. A due request goes to an idle connection, or waits in order
 * until one is idle; that wait counts too.
 */

import { Worker } from "node:worker_threads";
import { systemClock } from "../../src/core/clock.ts";
import { type HttpConnection, type HttpResponse, openConnection } from "./http-connection.ts";

/** The results of each request, by its index. */
export interface Shots {
  /** When each was due, written and answered; NaN where that did not happen. */
  readonly dueNs: Float64Array;
  readonly sentNs: Float64Array;
  readonly respondedNs: Float64Array;
  /** Empty for accepted, else the rejection's reason or the error; null without a response. */
  readonly faults: readonly (string | null)[];
  /** The signature in the response; null without one. */
  readonly signatures: readonly (string | null)[];
}

export interface GeneratorOptions {
  readonly host: string;
  readonly port: number;
  /** PEM of the authority to trust; null: without TLS. */
  readonly certificate: string | null;
  readonly ratePerSecond: number;
  readonly connections: number;
  /** Called once, when request `markAt` is about to be sent. */
  readonly markAt: number;
  readonly mark: () => void;
}

/** The wake-up comes this much early; the thread polls the clock for the rest. */
const EARLY_NS = 100_000;
/** The first transaction is due this long after the start, so that everything runs. */
const LEAD_IN_NS = 100_000_000;
/** How long to wait for responses after the last request. */
const TAIL_MS = 5_000;
const CONNECT_MS = 5_000;

/** Sends all requests on schedule; resolves after the last response or on timeout. */
export async function generate(
  requests: readonly Buffer[],
  options: GeneratorOptions,
): Promise<Shots> {
  const run = new Run(requests, options);
  try {
    await run.connected();
    return await run.finished();
  } finally {
    run.close();
  }
}

class Run {
  readonly #requests: readonly Buffer[];
  readonly #options: GeneratorOptions;
  readonly #connections: HttpConnection[] = [];
  /** Index of the request in flight on each connection. */
  readonly #inFlight: Int32Array;
  readonly #idle: number[] = [];
  readonly #periodNs: number;
  readonly #shots: Shots;
  readonly #faults: (string | null)[];
  readonly #signatures: (string | null)[];
  readonly #flags = new Int32Array(new SharedArrayBuffer(8));
  #startNs = 0;
  #next = 0;
  #answered = 0;
  #spinning = false;
  #closed = false;
  #pacer: Worker | null = null;
  #done: () => void = () => undefined;

  constructor(requests: readonly Buffer[], options: GeneratorOptions) {
    const count = requests.length;
    this.#requests = requests;
    this.#options = options;
    this.#periodNs = 1e9 / options.ratePerSecond;
    this.#inFlight = new Int32Array(options.connections);
    this.#faults = new Array<string | null>(count).fill(null);
    this.#signatures = new Array<string | null>(count).fill(null);
    this.#shots = {
      dueNs: new Float64Array(count),
      sentNs: new Float64Array(count).fill(Number.NaN),
      respondedNs: new Float64Array(count).fill(Number.NaN),
      faults: this.#faults,
      signatures: this.#signatures,
    };
    for (let index = 0; index < options.connections; index += 1) {
      const connection = openConnection(
        options.host,
        options.port,
        (response) => this.#receive(index, response),
        () => this.#release(index),
        options.certificate,
      );
      this.#connections.push(connection);
    }
  }

  /** Waits until every connection is open. */
  async connected(): Promise<void> {
    const deadlineNs = systemClock.nowNs() + CONNECT_MS * 1e6;
    while (this.#idle.length < this.#connections.length) {
      if (systemClock.nowNs() > deadlineNs) {
        const { host, port } = this.#options;
        throw new Error(`${this.#idle.length} connections to ${host}:${port} in ${CONNECT_MS} ms`);
      }
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  /** Runs the schedule to its end. */
  async finished(): Promise<Shots> {
    const count = this.#requests.length;
    this.#startNs = systemClock.nowNs() + LEAD_IN_NS;
    for (let index = 0; index < count; index += 1) this.#shots.dueNs[index] = this.#dueNs(index);
    this.#pacer = new Worker(new URL("./pacer.worker.js", import.meta.url), {
      workerData: {
        startNs: this.#startNs,
        periodNs: this.#periodNs,
        count,
        earlyNs: EARLY_NS,
        flags: this.#flags.buffer,
      },
    });
    this.#pacer.on("message", () => {
      Atomics.store(this.#flags, 1, 0);
      this.#turn();
    });
    const failed = new Promise<never>((_, reject) => this.#pacer?.on("error", reject));
    const lastMs = LEAD_IN_NS / 1e6 + (count * this.#periodNs) / 1e6 + TAIL_MS;
    let tail: NodeJS.Timeout | null = null;
    const over = new Promise<void>((resolve) => {
      this.#done = resolve;
      tail = setTimeout(resolve, lastMs);
    });
    await Promise.race([over, failed]);
    if (tail !== null) clearTimeout(tail);
    return this.#shots;
  }

  close(): void {
    this.#closed = true;
    Atomics.store(this.#flags, 1, 2);
    this.#pacer?.terminate().catch(() => undefined);
    for (const connection of this.#connections) connection.close();
  }

  #dueNs(index: number): number {
    return this.#startNs + index * this.#periodNs;
  }

  /** Sends all due requests; checks again without a wait while the next is nearly due. */
  readonly #turn = (): void => {
    this.#spinning = false;
    if (this.#closed) return;
    this.#fire();
    if (this.#next === this.#requests.length || this.#idle.length === 0) return;
    if (this.#dueNs(this.#next) - systemClock.nowNs() > EARLY_NS * 1.5 || this.#spinning) return;
    this.#spinning = true;
    setImmediate(this.#turn);
  };

  #fire(): void {
    if (this.#startNs === 0) return;
    while (this.#next < this.#requests.length && this.#idle.length > 0) {
      const nowNs = systemClock.nowNs();
      if (this.#dueNs(this.#next) > nowNs) return;
      const slot = this.#idle.pop() ?? 0;
      const connection = this.#connections[slot];
      const request = this.#requests[this.#next];
      // A connection that was lost while idle reopens automatically.
      if (connection === undefined || request === undefined || !connection.idle) continue;
      if (this.#next === this.#options.markAt) this.#options.mark();
      this.#inFlight[slot] = this.#next;
      this.#shots.sentNs[this.#next] = nowNs;
      this.#next += 1;
      connection.send(request);
    }
  }

  #release(slot: number): void {
    this.#idle.push(slot);
    this.#fire();
  }

  #receive(slot: number, response: HttpResponse): void {
    const index = this.#inFlight[slot] ?? 0;
    this.#shots.respondedNs[index] = systemClock.nowNs();
    const [fault, signature] = readResponse(response);
    this.#faults[index] = fault;
    this.#signatures[index] = signature;
    this.#answered += 1;
    if (this.#answered === this.#requests.length) this.#done();
    // A connection that ended calls `opened` when it is open again.
    if (!response.closes) this.#release(slot);
  }
}

const SIGNATURE = /"(?:signature|result)":"([1-9A-HJ-NP-Za-km-z]{64,88})"/;
const REASON = /"reason":"([a-z_]+)"/;

/** The error (empty for accepted) and the signature in a response of either endpoint. */
export function readResponse({
  status,
  body,
}: HttpResponse): [fault: string, signature: string | null] {
  if (status === 0) return ["connection_lost", null];
  const text = body.toString("latin1");
  const signature = SIGNATURE.exec(text)?.[1];
  if (status === 200 && signature !== undefined) return ["", signature];
  return [REASON.exec(text)?.[1] ?? `status_${status}`, null];
}
