/**
 * Proves whether the RPC node reports the statuses of signatures.
 *
 * A node that keeps no signatures in its status cache, as Agave 4.3 without its full RPC, returns
 * null for every transaction, landed or not; others reject the method. One status that is not null
 * proves the node; a "method not found" error disproves it. While every status is null, possibly
 * nothing landed, so the node is asked now and then for signatures of one of its own blocks: these
 * have certainly landed. On a quiet cluster the transaction count shows which block has any.
 *
 * Decision: docs/decisions/0007-nodes-prove-statuses.md
 */

import { type Clock, NS_PER_MS } from "../core/clock.ts";
import { decodeBase58 } from "../core/encoding.ts";
import type { Log } from "../core/log.ts";
import type { QuietRange } from "./blocks/quiet-range.ts";
import type { ClusterCounters } from "./counters.ts";
import { STATUS_PROBE_BLOCKS_MAX, STATUS_PROBE_SIGNATURES } from "./limits.ts";
import type { StatusReporting, StatusResponse } from "./ports.ts";
import { METHOD_NOT_FOUND, RpcError } from "./rpc/json-rpc.ts";
import type { Rpc } from "./rpc/rpc.ts";

export interface StatusProofDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly rpc: Pick<Rpc, "blockSignatures" | "statuses">;
  readonly counters: ClusterCounters;
  /** The result changed. */
  readonly onChange: (reporting: StatusReporting) => void;
  /** Shows which block holds transactions. */
  readonly quietRange: Pick<QuietRange, "busySlot">;
}

export interface StatusProof {
  /** The current result; `unknown` before the first evidence. */
  readonly reporting: StatusReporting;
  /** The node responded to a status request. */
  onResponse(response: StatusResponse): void;
  /** A status request failed. */
  failed(error: unknown): void;
}

/**
 * Minimum time between two probes, and after a proof while every status is null; and the maximum
 * after a proof.
 */
const PROBE_MS = 10_000;
const PROBE_AGAIN_MS = 60_000;
/**
 * While every status is null, a proof counts for as long as the last ones took to come: where many
 * transactions land, that soon shows a node that reports no statuses any more.
 */
const PROOFS_KEPT = 16;
/** Slots back to the probed block: surely confirmed. */
const PROBE_SLOTS_BACK = 40;
/** Age of a probed block: well within the 300 rooted slots of Agave's status cache, 2026-11. */
const STATUS_KEPT_SLOTS = 200;

export function createStatusProof(deps: StatusProofDeps): StatusProof {
  const { clock, log, rpc, counters, quietRange, onChange } = deps;
  let reporting: StatusReporting = "unknown";
  /** When the last proofs came, the newest first, and the earliest time of the next probe. */
  let provenNs: readonly number[] = [];
  let nextProbeNs = 0;
  let probing = false;

  function learn(now: "yes" | "no"): void {
    if (now === "yes") provenNs = [clock.nowNs(), ...provenNs].slice(0, PROOFS_KEPT);
    if (reporting === now) return;
    if (now === "no")
      log.warn({}, "the node reports no statuses: what landed cannot be learned from it");
    else if (reporting === "no") log.info({}, "the node reports statuses again");
    reporting = now;
    onChange(now);
  }

  function isProofFresh(nowNs: number): boolean {
    const [newestNs = Number.NEGATIVE_INFINITY] = provenNs;
    const oldestNs = provenNs[PROOFS_KEPT - 1] ?? Number.NEGATIVE_INFINITY;
    const tookMs = (newestNs - oldestNs) / NS_PER_MS;
    const freshMs = Math.min(PROBE_AGAIN_MS, Math.max(PROBE_MS, tookMs));
    return reporting === "yes" && nowNs - newestNs < freshMs * NS_PER_MS;
  }

  /** A slot at or shortly before which there is a block with transactions, if one is known. */
  function slotToProbe(nodeSlot: number): number {
    const { busySlot } = quietRange;
    const isKept = busySlot !== null && nodeSlot - busySlot <= STATUS_KEPT_SLOTS;
    return Math.max(0, isKept ? busySlot : nodeSlot - PROBE_SLOTS_BACK);
  }

  /** Signatures of the newest block at or below the slot; empty if there is none. */
  async function landedNear(slot: number): Promise<readonly string[]> {
    for (let back = 0; back < STATUS_PROBE_BLOCKS_MAX; back += 1) {
      const signatures = await rpc.blockSignatures(slot - back);
      if (signatures !== null && signatures.length > 0) return signatures;
    }
    return [];
  }

  async function probe(slot: number): Promise<void> {
    counters.statusProbes += 1;
    const landed = (await landedNear(slot)).slice(0, STATUS_PROBE_SIGNATURES);
    const signatures = landed.map((text) => decodeBase58(text, 64)).filter((each) => each !== null);
    if (signatures.length === 0) return;
    const response = await rpc.statuses(Buffer.concat(signatures));
    if (response.statuses.some((status) => status !== null)) learn("yes");
    else if (response.slot > slot) learn("no");
  }

  return {
    get reporting() {
      return reporting;
    },
    onResponse({ slot, statuses }) {
      if (statuses.some((status) => status !== null)) {
        learn("yes");
        return;
      }
      const nowNs = clock.nowNs();
      if (isProofFresh(nowNs) || probing || nowNs < nextProbeNs) return;
      probing = true;
      nextProbeNs = nowNs + PROBE_MS * NS_PER_MS;
      void probe(slotToProbe(slot))
        .catch(() => {
          // Nodes without a history return no blocks: the previous result stays.
          counters.statusProbeFailures += 1;
        })
        .finally(() => {
          probing = false;
        });
    },
    failed(error) {
      if (error instanceof RpcError && error.code === METHOD_NOT_FOUND) learn("no");
    },
  };
}
