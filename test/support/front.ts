/**
 * A front on the thread of its test, joined to a fixture's server by a line of Node's: connections
 * to the fixture's port come to the front from then on.
 */

import { MessageChannel } from "node:worker_threads";
import { systemClock } from "../../src/core/clock.ts";
import { portOf } from "../../src/core/port.ts";
import { createElsewhere, type Elsewhere } from "../../src/ingress/elsewhere.ts";
import type { Gate } from "../../src/ingress/gate.ts";
import { createFrontServer, type FrontDeps, type FrontServer } from "../../src/ingress/http.ts";
import { createMovedRequests, type MovedRequests } from "../../src/ingress/moved-requests.ts";
import type { Fixture } from "../conformance/http-fixture.ts";
import { stub } from "./stub.ts";

export interface TestFront {
  readonly server: FrontServer;
  readonly elsewhere: Elsewhere;
  readonly requests: MovedRequests;
  /** Whose key moved submissions carried, each as key, blank, account. */
  readonly known: string[];
  /** Stops the front and the fixture. */
  stop(): Promise<void>;
}

/** A front that knows no key, so that all is moved, unless `parts` say otherwise. */
export function addFront(
  edge: Pick<Fixture, "server" | "stop">,
  parts: Partial<FrontDeps & { readonly connectionsMax: number }> = {},
): TestFront {
  const { port1, port2 } = new MessageChannel();
  const known: string[] = [];
  const elsewhere = createElsewhere(portOf(port1));
  const requests = createMovedRequests({
    port: portOf(port2),
    http: edge.server,
    known: (token, { account }) => void known.push(`${token} ${account}`),
  });
  const server = createFrontServer(
    {
      clock: systemClock,
      gate: stub<Gate>({ find: () => null }),
      submit: () => "other" as const,
      calls: { read: () => null },
      log: { info: () => {}, warn: () => {}, error: () => {} },
      latency: null,
      elsewhere,
      ...parts,
    },
    { requestDeadlineMs: 600_000, connectionsMax: parts.connectionsMax ?? 1_000 },
  );
  edge.server.addFront(server.descriptor);
  return {
    server,
    elsewhere,
    requests,
    known,
    async stop() {
      await Promise.all([edge.stop(), server.stop()]);
      port1.close();
    },
  };
}
