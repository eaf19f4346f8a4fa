/**
 * A simulated cluster: the leader of each slot, the slots with a block, the contents of blocks, and
 * the responses of a node.
 *
 * A leader puts what it holds into its own next block while the blockhash is valid. It silently
 * drops what arrives further before its window than Agave holds packets, and what it still holds
 * after its window. The cluster may fork away the last block of a window, and with it its
 * transactions. The node learns of a block after a propagation delay, and returns statuses later
 * still.
 */

import { NS_PER_MS } from "../../src/core/clock.ts";
import { encodeKey, encodeSignatures } from "../../src/core/encoding.ts";
import type { ClusterView, StatusResponse } from "../../src/landing/ports.ts";
import type { EpochLeaders } from "../../src/route/schedule.ts";
import type { SlotEventKind } from "../../src/route/slot-time.ts";
import { type Chances, type SimulationOptions, share } from "./options.ts";
import { readHeight, sequenceOf } from "./transactions.ts";
import type { VirtualClock } from "./virtual-clock.ts";

export type Kind = "honest" | "dead" | "saturated";

export interface LeaderFacts {
  readonly identity: string;
  readonly address: string;
  readonly kind: Kind;
}

const WINDOW = 4;
/** Slots ahead of its window for which a leader keeps packets. Agave `consumer`, 4.2, 2026-11. */
const HOLD_SLOTS = 20;
/** Time of a packet from the socket into a block. */
const INTO_BLOCK_MS = 20;
/** Until a remote node has a block, and between its receiving a request and responding. */
const TRAVEL_MS = 80;
const RPC_MS = 60;
/** Slots until a block is confirmed. */
const CONFIRM_SLOTS = 2;
const BLOCKHASH_AGE = 150;
/** A transaction that is in no block. */
const NOWHERE = -1;
const EPOCH = 2;

export class SimulatedCluster {
  readonly leaders: readonly LeaderFacts[];
  readonly firstSlot: number;
  readonly epoch: EpochLeaders;
  /** By transaction: the slot of its block. */
  readonly landedSlot: Int32Array;
  outOfTurn = 0;
  heldLost = 0;
  forked = 0;
  readonly #options: SimulationOptions;
  readonly #clock: VirtualClock;
  readonly #chances: Chances;
  readonly #originNs: number;
  /** By slot of the epoch: its leader's index, whether it has a block, and the height. */
  readonly #places: Uint16Array;
  readonly #blocks: Uint8Array;
  readonly #heights: Int32Array;
  readonly #lastValid: Int32Array;
  /** By leader: what it holds for its window. */
  readonly #held: number[][];
  /** In the current block, which may still be forked away. */
  #fresh: number[] = [];
  readonly #sequences = new Map<string, number>();

  constructor(options: SimulationOptions, clock: VirtualClock, chances: Chances) {
    this.#options = options;
    this.#clock = clock;
    this.#chances = chances;
    this.#originNs = clock.nowNs();
    this.firstSlot = EPOCH * options.slots;
    this.leaders = drawLeaders(options, chances);
    this.#held = this.leaders.map(() => []);
    this.landedSlot = new Int32Array(options.transactions).fill(NOWHERE);
    this.#lastValid = new Int32Array(options.transactions);
    this.#places = new Uint16Array(options.slots);
    this.#blocks = new Uint8Array(options.slots);
    this.#heights = new Int32Array(options.slots);
    this.epoch = this.#draw();
  }

  slotAt(nowNs: number): number {
    const passedMs = (nowNs - this.#originNs) / NS_PER_MS;
    return this.firstSlot + Math.floor(passedMs / this.#options.slotMs);
  }

  startNs(slot: number): number {
    return this.#originNs + (slot - this.firstSlot) * this.#options.slotMs * NS_PER_MS;
  }

  hasBlock(slot: number): boolean {
    return this.#blocks[slot - this.firstSlot] === 1;
  }

  heightAt(slot: number): number {
    return this.#heights[Math.max(0, slot - this.firstSlot)] ?? 0;
  }

  /** Starts the slots; `onSlot` receives them with the propagation delay of a node. */
  start(onSlot: (kind: SlotEventKind, slot: number) => void): void {
    const { slots, slotMs } = this.#options;
    const enter = (slot: number): void => {
      this.#enter(slot);
      if (this.hasBlock(slot)) {
        this.#clock.after(this.#travelMs(), () => onSlot("start", slot));
        this.#clock.after(slotMs + this.#travelMs(), () => onSlot("end", slot));
      }
      if (slot + 1 >= this.firstSlot + slots) return;
      this.#clock.after((this.startNs(slot + 1) - this.#clock.nowNs()) / NS_PER_MS, () =>
        enter(slot + 1),
      );
    };
    enter(this.firstSlot);
  }

  /** Registers a transaction before it is sent; its blockhash determines how long it is valid. */
  open(bytes: Uint8Array, signature: string): void {
    const sequence = sequenceOf(bytes);
    this.#lastValid[sequence] = readHeight(bytes) + BLOCKHASH_AGE;
    this.#sequences.set(signature, sequence);
  }

  /** A leader's transaction port received these bytes. */
  receive(place: number, bytes: Uint8Array): void {
    const sequence = sequenceOf(bytes);
    const slot = this.slotAt(this.#clock.nowNs() + INTO_BLOCK_MS * NS_PER_MS);
    if (this.#placeAt(slot) === place && this.hasBlock(slot)) {
      if (slot === this.slotAt(this.#clock.nowNs())) this.#land(sequence, slot);
      else this.#held[place]?.push(sequence);
      return;
    }
    if (this.#leadsSoon(place, slot)) this.#held[place]?.push(sequence);
    else this.outOfTurn += 1;
  }

  /** The view that landing uses. */
  readonly view: Omit<ClusterView, "currentSlot"> = {
    blockHeight: () => this.heightAt(this.#nodeSlot() - CONFIRM_SLOTS),
    lastValidHeight: (blockhash) => readHeight(blockhash, 0) + BLOCKHASH_AGE,
    statusReporting: () => "yes",
    contentOf: () => "unknown",
    fetchStatuses: (signatures) => this.#statuses(signatures),
  };

  /** The first slot whose leader could have had it, if it is sent to every live leader. */
  earliest(atNs: number): number {
    const arrivesNs = atNs + (this.#options.rttMs / 2 + INTO_BLOCK_MS) * NS_PER_MS;
    const end = this.firstSlot + this.#options.slots;
    let slot = this.slotAt(arrivesNs);
    while (slot < end && !this.hasBlock(slot)) slot += 1;
    return slot;
  }

  #draw(): EpochLeaders {
    const { slots, skip } = this.#options;
    const { schedule } = this.#chances;
    const leaders = new Map<string, number[]>(this.leaders.map((it) => [it.identity, []]));
    let height = this.firstSlot;
    for (let index = 0; index < slots; index += 1) {
      const isFirst = index % WINDOW === 0;
      const before = this.#places[index - 1] ?? 0;
      const place = isFirst ? schedule.below(this.leaders.length) : before;
      this.#places[index] = place;
      const leader = this.leaders[place];
      if (leader === undefined) throw new RangeError("a cluster needs at least one leader");
      leaders.get(leader.identity)?.push(index);
      const isSkipped = share(schedule) < skip;
      const hasBlock = leader.kind !== "dead" && !isSkipped;
      this.#blocks[index] = Number(hasBlock);
      if (hasBlock) height += 1;
      this.#heights[index] = height;
    }
    return { epoch: EPOCH, firstSlot: this.firstSlot, slots, leaders };
  }

  #placeAt(slot: number): number {
    return this.#places[slot - this.firstSlot] ?? NOWHERE;
  }

  #leadsSoon(place: number, slot: number): boolean {
    for (let ahead = 0; ahead <= HOLD_SLOTS; ahead += 1) {
      if (this.#placeAt(slot + ahead) === place) return true;
    }
    return false;
  }

  #travelMs(): number {
    return TRAVEL_MS * (1 + this.#options.jitter * share(this.#chances.network));
  }

  #enter(slot: number): void {
    this.#leaveFork(slot);
    this.#fresh = [];
    const place = this.#placeAt(slot);
    const held = this.#held[place] ?? [];
    if (this.hasBlock(slot)) {
      for (const sequence of held) this.#land(sequence, slot);
      this.#held[place] = [];
    }
    const before = this.#placeAt(slot - 1);
    if (slot === this.firstSlot || before === place) return;
    const left = this.#held[before] ?? [];
    if (left.length > 0 && !this.#leadsSoon(before, slot)) {
      this.heldLost += left.length;
      this.#held[before] = [];
    }
  }

  /** The next leader may build on the block before the last one. */
  #leaveFork(slot: number): void {
    const isNext = slot % WINDOW === 0 && this.#placeAt(slot) !== this.#placeAt(slot - 1);
    if (!isNext || share(this.#chances.schedule) >= this.#options.forks) return;
    for (const sequence of this.#fresh) this.landedSlot[sequence] = NOWHERE;
    this.forked += this.#fresh.length;
  }

  #land(sequence: number, slot: number): void {
    if (this.landedSlot[sequence] !== NOWHERE) return;
    if (this.heightAt(slot) > (this.#lastValid[sequence] ?? 0)) return;
    this.landedSlot[sequence] = slot;
    this.#fresh.push(sequence);
  }

  /** The newest slot that the node has completely. */
  #nodeSlot(): number {
    return this.slotAt(this.#clock.nowNs() - TRAVEL_MS * NS_PER_MS) - 1;
  }

  #statuses(signatures: Uint8Array): Promise<StatusResponse> {
    const names = encodeSignatures(signatures);
    return new Promise((resolve) => {
      this.#clock.after(RPC_MS / 2, () => {
        const response = this.#response(names);
        this.#clock.after(RPC_MS / 2, () => {
          this.#clock.settled();
          resolve(response);
        });
      });
    });
  }

  #response(signatures: readonly string[]): StatusResponse {
    const slot = this.#nodeSlot();
    const statuses = signatures.map((signature) => {
      const landed = this.landedSlot[this.#sequences.get(signature) ?? 0] ?? NOWHERE;
      if (landed === NOWHERE || landed > slot) return null;
      return { slot: landed, confirmed: landed <= slot - CONFIRM_SLOTS, error: null };
    });
    return { slot, statuses };
  }
}

function drawLeaders(options: SimulationOptions, chances: Chances): readonly LeaderFacts[] {
  const { leaders, dead, saturated } = options;
  const deadCount = Math.round(leaders * dead);
  const saturatedCount = Math.round(leaders * saturated);
  const kinds = Array.from({ length: leaders }, (_, index): Kind => {
    if (index < deadCount) return "dead";
    return index < deadCount + saturatedCount ? "saturated" : "honest";
  });
  return kinds.map((kind, index) => ({
    identity: encodeKey(chances.schedule.bytes(32)),
    address: `10.0.${index >> 8}.${index & 255}:8009`,
    kind,
  }));
}
