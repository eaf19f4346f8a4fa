/**
 * What a node says about itself and about the validators' stakes, for `doctor`: an edge needs none
 * of it to send.
 */

import type { Clock } from "../../core/clock.ts";
import { RPC_RESPONSE_BYTES_MAX } from "../limits.ts";
import { createRpcHttpClient } from "./http-client.ts";
import { createCaller, RpcError } from "./json-rpc.ts";
import { isRecord, readStakes } from "./responses.ts";

export interface NodeFacts {
  /** Null if the node is in step with its cluster; else its own words, such as "behind by 3". */
  health(): Promise<string | null>;
  /** The node's software version. */
  version(): Promise<string>;
  /** The activated stake of each voting identity, in lamports. */
  stakes(): Promise<ReadonlyMap<string, number>>;
  /** Ends pending requests; they fail. */
  close(): void;
}

/** Each method rejects if the node does not answer in time, or not as a node does. */
export function createNodeFacts(clock: Clock, url: string, timeoutMs: number): NodeFacts {
  const client = createRpcHttpClient(clock, { url, timeoutMs, bytesMax: RPC_RESPONSE_BYTES_MAX });
  const { call } = createCaller(client);
  return {
    async health() {
      try {
        const result = await call("getHealth", []);
        return result === "ok" ? null : String(result);
      } catch (error) {
        if (error instanceof RpcError) return error.message;
        throw error;
      }
    },
    async version() {
      const result = await call("getVersion", []);
      const version = isRecord(result) ? result["solana-core"] : null;
      if (typeof version !== "string") throw new Error("getVersion: the result has no version");
      return version;
    },
    async stakes() {
      return readStakes(await call("getVoteAccounts", []));
    },
    close: client.close,
  };
}
