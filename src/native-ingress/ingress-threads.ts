/**
 * The main thread's handle of all ingress threads: starts and ends them. They belong to the native
 * engine (`native/src/submit`), run no JavaScript, and leave records in the engine's ring.
 *
 * An ingress thread that dies ends the process: its clients' connections are lost, and a restarted
 * edge accepts new ones.
 *
 * Decision: docs/decisions/0002-ingress-threads-send-first.md
 */

import { closeSync } from "node:fs";
import { NS_PER_MS } from "../core/clock.ts";
import { cannotListen, SetupError } from "../core/errors.ts";
import type { HttpStats } from "../http/request-tracker.ts";
import {
  type NativeIngressThreadOptions,
  type NativeQuicListenOptions,
  OK,
} from "../native/contract.ts";
import { sumOf } from "../runtime/shared-counters.ts";
import type { EngineKeys } from "./engine-keys.ts";
import { IngressThread, type IngressThreadDeps } from "./ingress-thread.ts";
import { INGRESS_THREADS_STOP_MS_MAX, QUIC_PREDECESSOR_MS_MAX } from "./limits.ts";
import {
  HANDSHAKE_RESULTS,
  type HandshakeCounts,
  QUIC_COUNTERS,
  type QuicCounts,
  REQUEST_COUNTERS,
  type RequestCounts,
} from "./thread-counters.ts";

export interface IngressThreadsDeps extends IngressThreadDeps {
  /** The keys in the engine; closed with the last ingress thread. */
  readonly keys: Pick<EngineKeys, "handle" | "close">;
}

export interface IngressThreadsOptions
  extends Omit<NativeIngressThreadOptions, "engine" | "path" | "keys" | "upstreamPort"> {
  readonly count: number;
  /** Returns the native engine's handle, once it runs. */
  readonly engine: () => number;
  /** Returns its handle of the path, which is open then. */
  readonly path: () => number;
  /** The public address. */
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
  /** The file descriptor of a socket that listens there already; null: there is none. */
  readonly socket: number | null;
  /** Connections that one address may hold, over all ingress threads. */
  readonly connectionsPerAddress: number;
  /** Where QUIC clients are served, by every ingress thread; null: nowhere. */
  readonly quic: NativeQuicListenOptions | null;
  /** What clients are presented over TLS at the start. */
  readonly certificates: readonly CertificateSource[];
}

/** A certificate that is read again when its files change. */
export interface CertificateSource {
  readonly current: PresentedCertificate;
  readonly protocols: readonly TlsProtocol[];
}

/** Over what a certificate is presented: HTTP, or QUIC with `touchdown/1`. */
export type TlsProtocol = "http" | "quic";

/** A certificate chain and its private key, both in PEM. */
export interface PresentedCertificate {
  readonly certificate: Uint8Array;
  readonly key: Uint8Array;
}

/** The UDP sockets of a process that serves QUIC clients: one for each of its threads. */
export interface QuicSockets {
  readonly host: string;
  /** The bound port. */
  readonly port: number;
  /**
   * The thread of each, in the order in which the kernel has them once no other process has sockets
   * on the port.
   */
  readonly places: readonly number[];
}

export interface IngressThreads {
  /** Counters of each thread. */
  readonly stats: readonly HttpStats[];
  /** What they proxied, and could not record. */
  readonly requests: RequestCounts;
  /** TLS handshakes of clients. */
  readonly handshakes: HandshakeCounts;
  /** Presents its certificate to connections from now on. @throws SetupError if it cannot */
  present(source: CertificateSource): void;
  /** What they counted of QUIC clients. */
  readonly quic: QuicCounts;
  /**
   * Passes receipts on to QUIC clients, in the form of the contract; false if a thread does not
   * keep up, and none got them.
   */
  sendReceipts(batch: Uint8Array): boolean;
  /**
   * Listens. Proxied requests go to `upstreamPort` of loopback.
   *
   * @throws SetupError when a thread does not start, or the port is in use
   */
  start(upstreamPort: number): { readonly port: number; readonly quicPort: number | null };
  /** `getHealth` is answered as of an edge that is unhealthy from now on. */
  announceDrain(): void;
  /** Each connection is closed with its next response from now on. */
  disableKeepAlive(): void;
  /** New work is rejected from now on. */
  rejectNewWork(): void;
  /** Accepts no more connections, and closes each with its next response. */
  retire(): void;
  /** A process that was to replace this one has ended: undoes what its sockets have changed. */
  takeBack(): void;
  /** The file descriptor of the listening socket; null before the start and after the stop. */
  readonly socket: number | null;
  /** null before the start, and where no QUIC clients are served. */
  readonly quicSockets: QuicSockets | null;
  /** Milliseconds until no replaced process can have sockets on the QUIC port; 0: none has. */
  readonly quicAloneInMs: number;
  /** Resolves when pending requests are answered and accounted. @throws a thread's error */
  stop(): Promise<void>;
}

export function createIngressThreads(
  deps: IngressThreadsDeps,
  options: IngressThreadsOptions,
): IngressThreads {
  const { clock, native, keys, flushEvents } = deps;
  const threads = Array.from({ length: options.count }, () => new IngressThread(deps));

  let socket: number | null = null;
  let quicSockets: QuicSockets | null = null;
  let quicAloneAtNs = 0;

  /** The state of an ingress thread has changed. */
  function onWake(): void {
    for (const thread of threads) thread.onWake();
    flushEvents();
  }

  function commandAll(name: Parameters<IngressThread["command"]>[0]): void {
    for (const thread of threads) thread.command(name);
  }

  function handlesOfThreads(): Uint32Array {
    return Uint32Array.from(threads, ({ handle }) => handle);
  }

  function present({ current: { certificate, key }, protocols }: CertificateSource): void {
    for (const protocol of protocols) {
      const isQuic = protocol === "quic";
      const code = native.ingressThreadsTls(handlesOfThreads(), certificate, key, isQuic);
      if (code !== OK) throw new SetupError(`${protocol}.tls: the native engine returned ${code}`);
    }
  }

  function listen(): number {
    const handles = handlesOfThreads();
    const { host, port, connectionsPerAddress } = options;
    const opened = options.socket ?? native.socketListen(host, port);
    if (opened > 0) {
      socket = opened;
      const code = native.ingressThreadsListen(handles, opened, connectionsPerAddress);
      if (code > 0) return code;
    }
    throw cannotListen("http.listen", options);
  }

  /** The port; null where no QUIC clients are served. */
  function listenQuic(): number | null {
    const { quic } = options;
    if (quic === null) return null;
    const port = native.ingressThreadsListenQuic(handlesOfThreads(), quic);
    if (port > 0) {
      const { host, predecessorPlaces: before } = quic;
      const places = threads.map((_, place) =>
        native.quicThreadAt(Uint32Array.from(before), threads.length, place),
      );
      quicSockets = { host, port, places };
      if (before.length > 0) {
        quicAloneAtNs = clock.nowNs() + QUIC_PREDECESSOR_MS_MAX * NS_PER_MS;
      }
      return port;
    }
    throw cannotListen("quic.listen", quic);
  }

  function closeSocket(): void {
    if (socket !== null) closeSync(socket);
    socket = null;
  }

  return {
    stats: threads.map(({ stats }) => stats),
    requests: sumOf(
      REQUEST_COUNTERS,
      threads.map(({ stats }) => stats.requests),
    ),
    handshakes: sumOf(
      HANDSHAKE_RESULTS,
      threads.map(({ stats }) => stats.handshakes),
    ),
    present,
    quic: sumOf(
      QUIC_COUNTERS,
      threads.map(({ stats }) => stats.quic),
    ),
    sendReceipts: (batch) => native.ingressThreadsReceipts(handlesOfThreads(), batch) === 1,
    start(upstreamPort) {
      try {
        const handles = { engine: options.engine(), path: options.path(), keys: keys.handle };
        for (const thread of threads) {
          thread.start({ ...options, ...handles, upstreamPort }, onWake);
        }
        // Before the first connection, which would be served without TLS.
        for (const source of options.certificates) present(source);
        return { port: listen(), quicPort: listenQuic() };
      } catch (error) {
        for (const thread of threads) thread.kill();
        closeSocket();
        throw error;
      }
    },
    announceDrain: () => commandAll("announceDrain"),
    disableKeepAlive: () => commandAll("disableKeepAlive"),
    rejectNewWork: () => commandAll("drain"),
    retire: () => commandAll("retire"),
    takeBack: () => commandAll("takeBack"),
    get socket() {
      return socket;
    },
    get quicSockets() {
      return quicSockets;
    },
    get quicAloneInMs() {
      return Math.max(0, quicAloneAtNs - clock.nowNs()) / NS_PER_MS;
    },
    async stop() {
      closeSocket();
      const kill = clock.after(INGRESS_THREADS_STOP_MS_MAX, () => {
        for (const thread of threads) thread.kill();
      });
      // All of them, so that a client gets a response, if only a rejection, while any is pending.
      await Promise.all(threads.map((thread) => thread.stop()));
      const ends = await Promise.allSettled(threads.map((thread) => thread.end()));
      kill.cancel();
      keys.close();
      flushEvents();
      const failed = ends.find((end) => end.status === "rejected");
      if (failed !== undefined) throw failed.reason;
    },
  };
}
