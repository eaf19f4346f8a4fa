/**
 * The fixture of tests of landing over a faulty network: the network and an edge in front of it,
 * both stopped with their test, whether it passed or not.
 */

import { afterEach } from "vitest";
import { untilResponse } from "./flow.ts";
import {
  type LandingEdge,
  type LandingNetwork,
  type LandingNetworkOptions,
  startLandingEdge,
  startLandingNetwork,
} from "./landing-network.ts";
import type { BuiltTransaction } from "./transactions.ts";

/** A running edge, and its network. */
export interface Landed extends LandingEdge {
  readonly network: LandingNetwork;
  /** Submits until a leader accepts it: connections may be lost briefly. Returns the signature. */
  postUntilTaken(built: BuiltTransaction): Promise<string>;
}

export interface LandingFixture {
  /** A network without an edge; ends with the test. */
  network(options?: LandingNetworkOptions): Promise<LandingNetwork>;
  /** An edge in front of a network, a fresh one when none is given; `over` are its own sections. */
  edge(over?: Readonly<Record<string, object>>, network?: LandingNetwork): Promise<Landed>;
  /** Both. */
  start(options?: LandingNetworkOptions): Promise<Landed>;
}

/** Call it once at the top of a test file. */
export function useLanding(): LandingFixture {
  const running: { stop(): Promise<void> }[] = [];
  afterEach(async () => {
    // The edge before its network.
    for (const each of running.splice(0).reverse()) await each.stop();
  });

  const fixture: LandingFixture = {
    async network(options) {
      const network = await startLandingNetwork(options);
      running.push(network);
      return network;
    },
    async edge(over, given) {
      const network = given ?? (await fixture.network());
      const edge = await startLandingEdge(network, over);
      running.push(edge);
      return {
        ...edge,
        network,
        async postUntilTaken({ bytes, signature }) {
          await untilResponse(
            "a leader that accepts it",
            () => edge.post(bytes),
            (status) => status === 200,
          );
          return signature;
        },
      };
    },
    start: async (options) => fixture.edge({}, await fixture.network(options)),
  };
  return fixture;
}
