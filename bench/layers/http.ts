/** The HTTP stage alone: every submission gets an immediate response. */

import type { KeyTable } from "../../src/accounts/keys/table.ts";
import { systemClock } from "../../src/core/clock.ts";
import { createHttpServer } from "../../src/http/server.ts";
import { createAccessControl } from "../../src/limits/access-control.ts";
import { receiptSource } from "../../test/support/receipt-source.ts";

const SILENT = { info: () => {}, warn: () => {}, error: () => {} };
const SIGNATURE = "1".repeat(64);

export async function startBareHttp(keys: KeyTable) {
  const clock = systemClock;
  const access = createAccessControl({
    clock,
    keys,
    looksMistyped: () => false,
    globalLimits: null,
  });
  const server = createHttpServer(
    {
      clock,
      log: SILENT,
      access,
      submit: (_, done) => done({ kind: "accepted", signature: SIGNATURE }),
      receipts: receiptSource(),
      tip: { accounts: [], lamportsMin: 0 },
      latency: null,
    },
    { host: "127.0.0.1", port: 0, requestDeadlineMs: 5000, version: "bench", region: "bench" },
  );
  const { port } = await server.start();
  return { port, stop: () => server.stop() };
}
