/**
 * A Yellowstone gRPC server of a simulated cluster: slots, transactions and blocks, each with the
 * bank that it belongs to.
 */

import type { ClusterObserver } from "../../src/sandbox/cluster.ts";
import type { Block } from "../../src/sandbox/cluster-bank.ts";
import { fromBase58 } from "./base58.ts";
import { type FakeGeyser, startFakeGeyser } from "./fake-geyser.ts";

/** `SlotStatus` in Yellowstone's description. */
const STATUS = {
  processed: 0,
  confirmed: 1,
  finalized: 2,
  firstShred: 3,
  completed: 4,
  created: 5,
} as const;

export interface ClusterGeyser {
  readonly geyser: FakeGeyser;
  /** For the option of the cluster. */
  readonly observer: ClusterObserver;
}

/** Every confirmed block is finalized too, as with Alpenglow. */
export async function startClusterGeyser(): Promise<ClusterGeyser> {
  const geyser = await startFakeGeyser();
  const slot = ({ slot, bankId, parent }: Block, status: keyof typeof STATUS): void =>
    geyser.say({ slot: { slot, parent, status: STATUS[status], bank_id: bankId } });
  const observer: ClusterObserver = {
    blockStarted(block) {
      slot(block, "firstShred");
      slot(block, "created");
    },
    blockEnded(block) {
      const { bankId, blockhash, height } = block;
      slot(block, "completed");
      slot(block, "processed");
      geyser.say({
        block_meta: {
          ...{ slot: block.slot, blockhash, bank_id: bankId },
          block_height: { block_height: height },
        },
      });
    },
    confirmed(block) {
      slot(block, "confirmed");
      slot(block, "finalized");
    },
    landed({ signature, slot, bankId, leader, err }) {
      // An airdrop names no account that the edge subscribes to.
      if (leader === null) return;
      const bytes = Buffer.from(fromBase58(signature));
      // Transactions of the tests that use this never land with an error.
      if (err !== null) throw new Error(`landed with an error: ${JSON.stringify(err)}`);
      geyser.say({ transaction_status: { slot, signature: bytes, bank_id: bankId } });
    },
  };
  return { geyser, observer };
}
