/** Nodes behind TLS, with a certificate of an authority that only the operator trusts. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { createAuthority } from "../support/authority.ts";
import { startEdgeProcess, startNetwork, untilReady } from "../support/edge-process.ts";
import { untilResponse } from "../support/flow.ts";

const folder = mkdtempSync(join(tmpdir(), "touchdown-authorities-"));
afterAll(() => rmSync(folder, { recursive: true }));

describe("an edge", () => {
  it("connects to a node whose certificate NODE_EXTRA_CA_CERTS makes trusted", async () => {
    const network = await startNetwork(1);
    const authority = createAuthority();
    const rpc = await authority.before(Number(new URL(network.rpcUrl).port));
    const ws = await authority.before(Number(new URL(network.wsUrl).port));
    const [rpcUrl, wsUrl] = [`https://127.0.0.1:${rpc.port}`, `wss://127.0.0.1:${ws.port}`];
    const file = join(folder, "ca.pem");
    writeFileSync(file, authority.certificate);
    const environment = { NODE_EXTRA_CA_CERTS: file };
    const edge = await startEdgeProcess({ ...network, rpcUrl, wsUrl }, { environment });
    try {
      await untilReady(edge);
      await untilResponse(
        "slots over the WebSocket",
        async () => [...(await edge.metrics()).values()].flatMap(({ samples }) => samples),
        (samples) => samples.some(({ labels }) => labels["source"] === "slotsUpdates"),
      );
      const { bytes } = network.tipped();
      expect(await edge.post(bytes)).toBe(200);
    } finally {
      await edge.remove();
      for (const each of [rpc, ws]) each.stop();
      await network.stop();
    }
  });
});
