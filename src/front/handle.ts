/** One front as the main thread has it: its thread, its memory, its line and its passes. */

import { MessageChannel } from "node:worker_threads";
import type { Log } from "../core/log.ts";
import { type Port, portOf } from "../core/port.ts";
import type { DeskFigures } from "../ingress/desk.ts";
import type { MoveReason } from "../ingress/moved.ts";
import {
  createMovedRequests,
  type MovedRequests,
  type MovedTaker,
  newMoves,
} from "../ingress/moved-requests.ts";
import type { PassNews } from "../ingress/pass.ts";
import type { Passes, PassHolder } from "../ingress/passes.ts";
import { frontFigures, frontFiguresMemory } from "./figures.ts";
import type { PassOwner } from "./ledger.ts";
import type { FromThread, FrontTask, ToThread } from "./messages.ts";
import { RecordReader, recordsMemory } from "./records.ts";
import type { FrontThread, StartFrontThread } from "./threads.ts";

/** The HTTP server of the main thread, which listens for the fronts. */
export interface FrontHttp extends MovedTaker {
  addFront(descriptor: number): void;
  removeFront(descriptor: number): void;
}

export interface HandleDeps {
  readonly log: Log;
  readonly http: FrontHttp;
  readonly passes: Pick<Passes, "join" | "stop" | "counters">;
  readonly startThread: StartFrontThread;
  /** A front is dead. */
  readonly onDeath: (cause: unknown) => void;
}

export type HandleOptions = Omit<FrontTask, "records" | "figures" | "moved">;

export class FrontHandle {
  readonly records: RecordReader;
  readonly figures: DeskFigures;
  /** Requests that it moved here, by why. */
  readonly moves: Record<MoveReason, number> = newMoves();
  readonly #deps: HandleDeps;
  readonly #owners: PassOwner[];
  readonly #adopt: () => void;
  readonly #memory = { records: recordsMemory(), figures: frontFiguresMemory() };
  #thread: FrontThread | null = null;
  #holder: PassHolder | null = null;
  #moved: MovedRequests | null = null;
  #closeLine = (): void => {};
  /** What takes its connections; null while it takes none. */
  #descriptor: number | null = null;
  #onUp: ((cause: unknown) => void) | null = null;
  #isStopping = false;
  #isDead = false;
  /** That it died while it stopped. */
  #failure: Error | null = null;

  /** `owners` are by the place of their pass; `adopt` takes in what all fronts did so far. */
  constructor(deps: HandleDeps, owners: PassOwner[], adopt: () => void) {
    this.#deps = deps;
    this.#owners = owners;
    this.#adopt = adopt;
    this.records = new RecordReader(this.#memory.records);
    this.figures = frontFigures(this.#memory.figures);
  }

  /** Requests that it moved here, and that have no answer yet. */
  get moved(): number {
    return this.#moved?.open ?? 0;
  }

  /** Resolves when it takes connections: with null, else with why it does not. */
  start(options: HandleOptions): Promise<unknown> {
    const { http, passes, startThread } = this.#deps;
    const { port1, port2 } = new MessageChannel();
    this.#closeLine = () => port2.close();
    const thread = startThread({ ...options, ...this.#memory, moved: port1 });
    this.#thread = thread;
    const holder = passes.join({ post: (news) => this.#tellPass(thread, news) });
    this.#holder = holder;
    this.#moved = createMovedRequests({
      port: this.#lineOf(portOf(port2)),
      http: {
        takeMoved: (request, wire, known) => {
          this.moves[request.why] += 1;
          http.takeMoved(request, wire, known);
        },
      },
      known: (token, owner) => holder.grant(token, owner),
    });
    const isUp = new Promise<unknown>((resolve) => {
      this.#onUp = resolve;
    });
    thread.port.onMessage((message) => this.#heed(message));
    void thread.ended.then((cause) => this.#ended(cause));
    return isUp;
  }

  tell(message: ToThread): void {
    this.#thread?.port.post(message);
  }

  /** Resolves when its thread has ended. @throws what it died of meanwhile */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.tell({ kind: "stop" });
    await this.#thread?.ended;
    if (this.#failure !== null) throw this.#failure;
  }

  kill(): void {
    this.#isStopping = true;
    this.#thread?.kill();
  }

  /** A record names its owner by the place, so whose it is has to be known first. */
  #tellPass(thread: FrontThread, news: PassNews): void {
    if (news.kind === "pass") {
      const { place, keyId, account } = news.pass;
      this.#owners[place] = { keyId, account };
    }
    thread.port.post(news);
  }

  /** Who asks what became of a transaction was answered before, so its record is there. */
  #lineOf<Out, In>(line: Port<Out, In>): Port<Out, In> {
    return {
      post: line.post,
      onMessage: (handler) => {
        line.onMessage((message) => {
          this.#adopt();
          handler(message);
        });
      },
    };
  }

  #heed(message: FromThread): void {
    const { http, log } = this.#deps;
    if (message.kind === "up") {
      this.#descriptor = message.descriptor;
      http.addFront(message.descriptor);
      this.#tellUp(null);
    } else if (message.kind === "passReturned") {
      // Its place may be another's from now on, and what it let in is in the ring.
      this.#adopt();
      this.#holder?.take(message);
    } else if (message.kind === "fault") {
      log.error({ err: message.error }, message.message);
    } else {
      this.#leave();
      if (message.kind === "died") this.#died(message.error);
    }
  }

  /** It takes no connection any more. */
  #leave(): void {
    if (this.#descriptor !== null) this.#deps.http.removeFront(this.#descriptor);
    this.#descriptor = null;
  }

  #ended(cause: unknown): void {
    this.#leave();
    this.#moved?.abandon();
    this.#holder?.leave();
    this.#closeLine();
    if (!this.#isStopping) this.#died(cause);
  }

  /** Once: while it starts that is why it is not up. */
  #died(cause: unknown): void {
    if (this.#isDead) return;
    this.#isDead = true;
    const { log, onDeath } = this.#deps;
    if (this.#tellUp(cause ?? new Error("it ended before it was up"))) return;
    if (!this.#isStopping) onDeath(cause);
    else {
      log.error({ err: cause }, "a front died while it stopped, and its clients with it");
      this.#failure = new Error("a front died while it stopped", { cause });
      this.kill();
    }
  }

  /** Whether that was waited for. */
  #tellUp(cause: unknown): boolean {
    const tell = this.#onUp;
    this.#onUp = null;
    tell?.(cause);
    return tell !== null;
  }
}
