/**
 * A simulated cluster on one machine: a slot clock, a chain of blocks, and the RPC and WebSocket
 * that report both.
 *
 * The leaders are separate: they pass what they receive to `receive`, and the cluster decides
 * whether it lands. Slots continue while the RPC is stopped, so a restart of the RPC looks from
 * outside as on a real network. `ClusterFaults` lists the faults that it can simulate.
 */

import type { Server } from "node:http";
import { type Clock, NS_PER_MS, type Timer } from "../core/clock.ts";
import {
  type BankCounters,
  type Block,
  type Commitment,
  createBank,
  type Landed,
} from "./cluster-bank.ts";
import { createRpcServer, type Example } from "./cluster-http.ts";
import {
  type ClusterFaults,
  type ClusterLeader,
  NO_FAULTS,
  type RpcContext,
} from "./cluster-rpc.ts";
import { createCalendar } from "./cluster-slots.ts";
import { attachSocket, type ClusterSocket } from "./cluster-socket.ts";
import {
  ALPENGLOW_DEFAULTS,
  type AlpenglowOptions,
  type Consensus,
  createTimeline,
  type Step,
  type Timeline,
} from "./cluster-timeline.ts";
import { createLedger, type Ledger } from "./ledger.ts";
import { listening } from "./ports.ts";

export interface ClusterOptions {
  readonly clock: Clock;
  /** The listen address, a loopback one. */
  readonly host: string;
  /** 0 for any free port; restarts keep the port. */
  readonly rpcPort: number;
  readonly wsPort: number;
  /** Read at each request for nodes, so an address may be a getter. At least one. */
  readonly leaders: readonly ClusterLeader[];
  readonly slotMs: number;
  /** Share of slots without a block, 0 to 1; with Alpenglow, of windows without one. */
  readonly skipShare: number;
  readonly consensus: Consensus;
  /** What can happen with Alpenglow; ignored with Tower BFT. */
  readonly alpenglow: AlpenglowOptions;
  /** Slots of an epoch, a multiple of four; with short ones the epoch changes within minutes. */
  readonly epochSlots: number;
  readonly seed: number;
  /** Blocks after which a blockhash is too old. */
  readonly blockhashAgeMax: number;
  /** null: LiteSVM. */
  readonly ledger: Ledger | null;
  readonly onLanded: ((landed: Landed) => void) | null;
  /** Sees what the node of the RPC sees, also while its RPC is down. */
  readonly observer: ClusterObserver | null;
  /** The response of `GET /example-transaction` on the RPC's port. */
  readonly example: Example | null;
}

/** What happens, in order. A block that is given up neither ends nor is confirmed. */
export interface ClusterObserver {
  blockStarted(block: Block): void;
  blockEnded(block: Block): void;
  confirmed(block: Block): void;
  /** A transaction is in a block, which may be given up. */
  landed(landed: Landed): void;
}

export interface ClusterUrls {
  readonly rpcUrl: string;
  readonly wsUrl: string;
}

const DEFAULTS = {
  host: "127.0.0.1",
  rpcPort: 0,
  wsPort: 0,
  slotMs: 250,
  skipShare: 0.05,
  consensus: "tower_bft",
  alpenglow: ALPENGLOW_DEFAULTS,
  epochSlots: 432,
  seed: 1,
  // Agave's `MAX_PROCESSING_AGE`, 2026-11.
  blockhashAgeMax: 150,
  ledger: null,
  onLanded: null,
  observer: null,
  example: null,
} as const;

/** A cluster that is not started; the first slot begins with this call. */
export async function createSimulatedCluster(
  options: Partial<ClusterOptions> & Pick<ClusterOptions, "clock" | "leaders">,
): Promise<SimulatedCluster> {
  const { ledger, ...rest } = { ...DEFAULTS, ...options };
  return new SimulatedCluster({ ...rest, ledger: ledger ?? (await createLedger()) });
}

export class SimulatedCluster {
  readonly #options: ClusterOptions;
  readonly #context: RpcContext;
  readonly #timeline: Timeline;
  #ports: { readonly rpc: number; readonly ws: number };
  #faults: ClusterFaults = NO_FAULTS;
  #socket: ClusterSocket | null = null;
  #servers: readonly Server[] = [];
  #timer: Timer | null = null;
  #startedBlock: Block | null = null;
  /** The height of the newest confirmed block that the observer has seen. */
  #observedHeight = 0;

  constructor(options: ClusterOptions & { readonly ledger: Ledger }) {
    const { clock, leaders, ledger } = options;
    this.#options = options;
    this.#ports = { rpc: options.rpcPort, ws: options.wsPort };
    const identities = leaders.map((leader) => leader.identity);
    const calendar = createCalendar(clock, { ...options, identities });
    const onLanded = (landed: Landed): void => {
      this.#socket?.landed(landed);
      options.observer?.landed(landed);
      options.onLanded?.(landed);
    };
    const { blockhashAgeMax } = options;
    this.#timeline = createTimeline({ ...options, calendar });
    const bank = createBank({ calendar, ledger, onLanded, blockhashAgeMax });
    const unixMs = (): number => Math.floor(clock.unixMs());
    const faults = () => this.#faults;
    this.#context = { calendar, bank, ledger, leaders, unixMs, faults };
    this.#observedHeight = bank.block("confirmed").height;
  }

  get counters(): BankCounters {
    return this.#context.bank.counters;
  }

  /** Whether landed transactions are executed; false if LiteSVM cannot be loaded. */
  get executes(): boolean {
    return this.#context.ledger.executes;
  }

  /** Starts the slot clock and the RPC. */
  async start(): Promise<ClusterUrls> {
    this.#tick();
    return await this.startRpc();
  }

  /** Stops both and closes everything. */
  async stop(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = null;
    await this.stopRpc();
  }

  /** Starts the RPC again, on the same ports. */
  async startRpc(): Promise<ClusterUrls> {
    const { host, clock, example } = this.#options;
    const { bank } = this.#context;
    const rpc = createRpcServer(this.#context, example);
    const ws = createRpcServer(this.#context);
    const unixMs = (): number => Math.floor(clock.unixMs());
    this.#socket = attachSocket(ws, { bank, unixMs, faults: () => this.#faults });
    this.#servers = [rpc, ws];
    const ports = { rpc: await listening(rpc, host, this.#ports.rpc), ws: 0 };
    this.#ports = { ...ports, ws: await listening(ws, host, this.#ports.ws) };
    const at = host.includes(":") ? `[${host}]` : host;
    return {
      rpcUrl: `http://${at}:${this.#ports.rpc}`,
      wsUrl: `ws://${at}:${this.#ports.ws}`,
    };
  }

  /** Simulates the death of the RPC's process; slots continue. */
  async stopRpc(): Promise<void> {
    this.#socket?.drop();
    this.#socket = null;
    const servers = this.#servers;
    this.#servers = [];
    await Promise.all(servers.map(close));
  }

  /** The slot in progress, skipped or not. */
  currentSlot(): number {
    this.#catchUp();
    return this.#context.bank.slot;
  }

  leaderAt(slot: number): string {
    return this.#context.calendar.leaderAt(slot);
  }

  /** A leader received these bytes; `statusOf` and the counters show the result. */
  receive(identity: string, bytes: Uint8Array): void {
    // After a late timer, the old slot's leader must not get transactions of the new slot.
    this.#catchUp();
    this.#context.bank.receive(identity, bytes);
  }

  /** Null for a transaction that has not landed. */
  statusOf(signature: string): Landed | null {
    return this.#context.bank.statusOf(signature);
  }

  /** @throws Error when the amount is too small or too large */
  airdrop(address: string, lamports: bigint): void {
    const airdrop = this.#context.bank.airdrop(address, lamports);
    if (typeof airdrop !== "string") throw new Error(`no airdrop: ${JSON.stringify(airdrop.err)}`);
  }

  balance(address: string): bigint {
    return this.#context.ledger.balance(address);
  }

  /** The blockhash of the newest block that has reached a commitment, base58. */
  latestBlockhash(commitment: Commitment = "processed"): string {
    return this.#context.bank.block(commitment).blockhash;
  }

  /** Sets the faults of the RPC and its WebSocket. */
  behave(faults: Partial<ClusterFaults>): void {
    this.#faults = { ...NO_FAULTS, ...faults };
  }

  #tick(): void {
    this.#catchUp();
    const { clock } = this.#options;
    const waitMs = Math.max(1, Math.ceil((this.#timeline.nextNs - clock.nowNs()) / NS_PER_MS));
    this.#timer = clock.after(waitMs, () => this.#tick());
  }

  /** Takes every step up to now, in order. */
  #catchUp(): void {
    const nowNs = this.#options.clock.nowNs();
    while (this.#timeline.nextNs <= nowNs) this.#take(this.#timeline.take());
  }

  #take(step: Step): void {
    const { bank } = this.#context;
    const { observer } = this.#options;
    // A block that is given up never ends.
    if (this.#startedBlock !== null && step.kind !== "second_bank") {
      this.#socket?.frozen(this.#startedBlock);
      observer?.blockEnded(this.#startedBlock);
    }
    this.#startedBlock = null;
    switch (step.kind) {
      case "slot":
        this.#startedBlock = bank.enter(step);
        break;
      case "second_bank":
        this.#startedBlock = bank.beginAgain();
        break;
      case "stall":
        bank.stall();
        break;
      case "migration":
        bank.migrate(step.genesisSlot);
        break;
      default:
        step satisfies never;
    }
    for (const block of bank.confirmedAfter(this.#observedHeight)) {
      this.#observedHeight = block.height;
      observer?.confirmed(block);
    }
    if (this.#startedBlock === null) return;
    this.#socket?.blockStarted(this.#startedBlock);
    observer?.blockStarted(this.#startedBlock);
  }
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
