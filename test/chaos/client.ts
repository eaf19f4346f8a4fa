/**
 * A client that creates and revokes keys, sends transactions with them, and records the responses:
 * the only reference for checking the service.
 */

import type { Rng } from "../support/rng.ts";
import { pause, type Service } from "./processes.ts";

export interface NotedKey {
  readonly id: string;
  readonly token: string;
  /** asked: the response is missing, so either may be true. */
  revoked: "no" | "asked" | "answered";
  /** The edge's last response for it: served, rejected, or none yet. */
  observed: "good" | "gone" | null;
}

export interface Client {
  readonly keys: NotedKey[];
  /** Requests with a valid key: with a response, and sent to an edge that died before its own. */
  readonly requests: { answered: number; open: number };
  /** Works until `stop`, which waits for the last responses. */
  run(): { stop(): Promise<void> };
  /** Requests the revocation; the key records the result. */
  revoke(key: NotedKey): Promise<void>;
  /** Whether the edge serves this key now; null: no response. */
  probe(key: NotedKey): Promise<boolean | null>;
}

export function createClient(service: Service, rng: Rng): Client {
  const keys: NotedKey[] = [];
  const requests = { answered: 0, open: 0 };
  const transactions = Array.from({ length: 50 }, () => service.network.tipped().bytes);

  async function probe(key: NotedKey): Promise<boolean | null> {
    const body = Uint8Array.from(rng.pick(transactions));
    try {
      const response = await fetch(`${service.edgeUrl}/api/v1/sendRawTransaction`, {
        method: "POST",
        headers: { "api-x-token": key.token },
        body,
      });
      // From here on the response counts: an edge that dies in its middle has counted it.
      await response.arrayBuffer().catch(() => null);
      const isServed = response.status !== 401;
      if (isServed) requests.answered += 1;
      key.observed = isServed ? "good" : "gone";
      return isServed;
    } catch (error) {
      if (!wasRefused(error)) requests.open += 1;
      return null;
    }
  }

  async function call(path: string, body: object): Promise<unknown> {
    try {
      const response = await fetch(`${service.controlUrl}${path}`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          authorization: `Bearer ${service.token}`,
        },
        body: JSON.stringify(body),
      });
      return response.ok ? await response.json() : null;
    } catch {
      // It was killed, or has not started yet.
      return null;
    }
  }

  async function make(): Promise<void> {
    const made = await call("/api/v1/keys", { label: `${keys.length}` });
    if (made === null) return;
    // The form in the API's documentation.
    const { key, token } = made as { key: { id: string }; token: string };
    keys.push({ id: key.id, token, revoked: "no", observed: null });
  }

  async function revokeAny(): Promise<void> {
    const good = keys.filter(({ revoked }) => revoked === "no");
    if (good.length >= 4) await revoke(rng.pick(good));
  }

  async function revoke(key: NotedKey): Promise<void> {
    key.revoked = "asked";
    if ((await call(`/api/v1/keys/${key.id}/revoke`, {})) !== null) key.revoked = "answered";
  }

  async function repeat(act: () => Promise<unknown>, pauseMs: number, end: { at: boolean }) {
    while (!end.at) {
      await act();
      await pause(pauseMs);
    }
  }

  return {
    keys,
    requests,
    probe,
    revoke,
    run() {
      const end = { at: false };
      const send = async () => {
        if (keys.length > 0) await probe(rng.pick(keys.slice(-20)));
      };
      const manage = () => (rng.chance(3) ? revokeAny() : make());
      const work = [repeat(send, 2, end), repeat(send, 5, end), repeat(manage, 20, end)];
      return {
        async stop() {
          end.at = true;
          await Promise.all(work);
        },
      };
    },
  };
}

/** Whether no process listened: then the request was never sent. */
function wasRefused(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : null;
  return cause instanceof Error && "code" in cause && cause.code === "ECONNREFUSED";
}
