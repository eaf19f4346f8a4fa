/**
 * RPC client of the native engine: sends and waits on the engine's threads, so that the thread that
 * accepts transactions makes one call per request and one per response. The engine also encodes and
 * decodes the statuses of signatures.
 *
 * The engine's clock enforces the deadline. Nothing is opened before the first request or after
 * `close`.
 */

import { type NativeRpc, OK, RPC_RESPONSE, RPC_RESPONSE_NUMBERS } from "../../native/contract.ts";
import type { StatusResponse } from "../ports.ts";
import type { RpcHttpClient, RpcHttpOptions, RpcHttpResponse } from "./http-client.ts";
import { readStatusColumns } from "./native-statuses.ts";
import { urlWithoutCredentials } from "./url-without-credentials.ts";

/** A pending request and its number of signatures. */
interface PendingRequest {
  readonly count: number;
  resolve(response: RpcHttpResponse | StatusResponse): void;
  reject(reason: Error): void;
}

export function createNativeRpcHttpClient(
  native: NativeRpc,
  options: RpcHttpOptions,
): RpcHttpClient {
  return new NativeRpcHttpClient(native, options);
}

class NativeRpcHttpClient implements RpcHttpClient {
  readonly #native: NativeRpc;
  readonly #options: RpcHttpOptions;
  readonly #pending = new Map<number, PendingRequest>();
  readonly #numbers = new Float64Array(RPC_RESPONSE_NUMBERS);
  /** 0 while not open. */
  #client = 0;
  #closed = false;
  #id = 0;

  constructor(native: NativeRpc, options: RpcHttpOptions) {
    this.#native = native;
    this.#options = options;
  }

  async post(body: string): Promise<RpcHttpResponse> {
    const bytes = Buffer.from(body);
    const response = await this.#request(0, (client, id) =>
      this.#native.rpcRequest(client, id, bytes, this.#options.timeoutMs),
    );
    if ("statuses" in response) throw new Error("an answer to something else");
    return response;
  }

  statuses(signatures: Uint8Array): Promise<RpcHttpResponse | StatusResponse> {
    const { timeoutMs } = this.#options;
    return this.#request(signatures.length / SIGNATURE_BYTES, (client, id) =>
      this.#native.rpcRequestStatuses(client, id, signatures, timeoutMs),
    );
  }

  close(): void {
    this.#closed = true;
    if (this.#client > 0) this.#native.rpcClientClose(this.#client);
    for (const { reject } of this.#pending.values()) reject(new Error(CLOSED));
    this.#pending.clear();
  }

  #request(
    count: number,
    start: (client: number, id: number) => number,
  ): Promise<RpcHttpResponse | StatusResponse> {
    return new Promise((resolve, reject) => {
      if (this.#closed) throw new Error(CLOSED);
      if (this.#client === 0) this.#client = this.#open();
      this.#id = (this.#id + 1) % IDS;
      const code = start(this.#client, this.#id);
      if (code !== OK) throw new Error(`the question was not taken on: code ${code}`);
      this.#pending.set(this.#id, { count, resolve, reject });
    });
  }

  /** @throws Error if the engine has too many clients */
  #open(): number {
    const { url, bytesMax } = this.#options;
    const { href, authorization } = urlWithoutCredentials(url);
    const drain = (): void => this.#drain();
    const client = this.#native.rpcClientOpen(href, authorization, bytesMax, drain);
    if (client > 0) return client;
    throw new Error(`the engine asks no more nodes: code ${client}`);
  }

  #drain(): void {
    const numbers = this.#numbers;
    while (!this.#closed && this.#native.rpcResponseNext(this.#client, numbers) === 1) {
      const [id = 0, kind = 0, status = 0, retryAfterS = 0, size = 0] = numbers;
      // Not from a pool: doubles are read from offset 0.
      const bytes = Buffer.from(new ArrayBuffer(size));
      this.#native.rpcResponseRead(this.#client, bytes);
      const pending = this.#pending.get(id);
      this.#pending.delete(id);
      if (pending === undefined) continue;
      // An error concerns one response; those after it must still be read.
      try {
        if (kind === RPC_RESPONSE.statuses)
          pending.resolve(readStatusColumns(bytes, pending.count));
        else if (kind === RPC_RESPONSE.body) {
          pending.resolve({ status, retryAfterMs: retryAfterS * 1_000, body: bytes });
        } else pending.reject(this.#failure(kind, bytes));
      } catch (cause) {
        pending.reject(cause instanceof Error ? cause : new Error(String(cause)));
      }
    }
  }

  #failure(kind: number, words: Buffer): Error {
    const { timeoutMs, bytesMax } = this.#options;
    if (kind === RPC_RESPONSE.timedOut) return new Error(`no answer in ${timeoutMs} ms`);
    if (kind === RPC_RESPONSE.tooLarge) return new Error(`an answer above ${bytesMax} B`);
    return new Error(words.toString("utf8"));
  }
}

const SIGNATURE_BYTES = 64;
/** Far more than can be pending at a time. */
const IDS = 2 ** 31;
const CLOSED = "the client was closed";
