/**
 * The poster of the native engine: asks and waits on threads of its own, so that the thread that
 * takes transactions makes one call for a question and one for its answer. The statuses of
 * signatures are even written and read over there.
 *
 * The deadline is kept by the engine's clock, not by ours. Nothing is opened before the first
 * question, and nothing that is closed is opened again.
 */

import { ANSWER, ANSWER_NUMBERS, type NativeAsking, OK } from "../../native/contract.ts";
import type { StatusAnswer } from "../target.ts";
import type { PostAnswer, Poster, PostOptions } from "./http-client.ts";
import { readStatusColumns } from "./native-statuses.ts";
import { bareAddress } from "./url-without-credentials.ts";

/** Whoever waits for an answer, and for how many signatures. */
interface Waiting {
  readonly count: number;
  resolve(answer: PostAnswer | StatusAnswer): void;
  reject(reason: Error): void;
}

export function createNativePoster(native: NativeAsking, options: PostOptions): Poster {
  return new NativePoster(native, options);
}

class NativePoster implements Poster {
  readonly #native: NativeAsking;
  readonly #options: PostOptions;
  readonly #waiting = new Map<number, Waiting>();
  readonly #numbers = new Float64Array(ANSWER_NUMBERS);
  /** 0 while it is not open. */
  #asker = 0;
  #closed = false;
  #id = 0;

  constructor(native: NativeAsking, options: PostOptions) {
    this.#native = native;
    this.#options = options;
  }

  async post(body: string): Promise<PostAnswer> {
    const bytes = Buffer.from(body);
    const answer = await this.#asked(0, (asker, id) =>
      this.#native.ask(asker, id, bytes, this.#options.timeoutMs),
    );
    if ("statuses" in answer) throw new Error("an answer to something else");
    return answer;
  }

  statuses(signatures: Uint8Array): Promise<PostAnswer | StatusAnswer> {
    const { timeoutMs } = this.#options;
    return this.#asked(signatures.length / SIGNATURE_BYTES, (asker, id) =>
      this.#native.askStatuses(asker, id, signatures, timeoutMs),
    );
  }

  close(): void {
    this.#closed = true;
    if (this.#asker > 0) this.#native.askerClose(this.#asker);
    for (const { reject } of this.#waiting.values()) reject(new Error(CLOSED));
    this.#waiting.clear();
  }

  #asked(
    count: number,
    ask: (asker: number, id: number) => number,
  ): Promise<PostAnswer | StatusAnswer> {
    return new Promise((resolve, reject) => {
      if (this.#closed) throw new Error(CLOSED);
      if (this.#asker === 0) this.#asker = this.#open();
      this.#id = (this.#id + 1) % IDS;
      const code = ask(this.#asker, this.#id);
      if (code !== OK) throw new Error(`the question was not taken on: code ${code}`);
      this.#waiting.set(this.#id, { count, resolve, reject });
    });
  }

  /** @throws Error where the engine has too many of them */
  #open(): number {
    const { url, bytesMax } = this.#options;
    const { href, authorization } = bareAddress(url);
    const drain = (): void => this.#drain();
    const asker = this.#native.askerOpen(href, authorization, bytesMax, drain);
    if (asker > 0) return asker;
    throw new Error(`the engine asks no more nodes: code ${asker}`);
  }

  #drain(): void {
    const numbers = this.#numbers;
    while (!this.#closed && this.#native.answerNext(this.#asker, numbers) === 1) {
      const [id = 0, kind = 0, status = 0, retryAfterS = 0, size = 0] = numbers;
      // Not from a pool: doubles are read where it starts.
      const bytes = Buffer.from(new ArrayBuffer(size));
      this.#native.answerTake(this.#asker, bytes);
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (waiting === undefined) continue;
      // What fails here is one answer, and those behind it are still to be taken.
      try {
        if (kind === ANSWER.statuses) waiting.resolve(readStatusColumns(bytes, waiting.count));
        else if (kind === ANSWER.body) {
          waiting.resolve({ status, retryAfterMs: retryAfterS * 1_000, body: bytes });
        } else waiting.reject(this.#failure(kind, bytes));
      } catch (cause) {
        waiting.reject(cause instanceof Error ? cause : new Error(String(cause)));
      }
    }
  }

  #failure(kind: number, words: Buffer): Error {
    const { timeoutMs, bytesMax } = this.#options;
    if (kind === ANSWER.late) return new Error(`no answer in ${timeoutMs} ms`);
    if (kind === ANSWER.tooLarge) return new Error(`an answer above ${bytesMax} B`);
    return new Error(words.toString("utf8"));
  }
}

const SIGNATURE_BYTES = 64;
/** Far more than are in hand at a time. */
const IDS = 2 ** 31;
const CLOSED = "the client was closed";
