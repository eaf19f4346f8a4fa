/**
 * A client of `touchdown/1` on quiche, another QUIC stack than the edge's: it writes and reads the
 * bytes that docs/quic.md describes.
 */

import { randomBytes } from "node:crypto";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { freshIdentity, type Identity } from "../../src/send/identity.ts";
import { tlsIdentityOf } from "../../src/send/portable/certificate.ts";
import { quiche, quicheConfig } from "../../src/send/portable/quiche.ts";
import { until } from "./wait.ts";

const VERDICT_BYTES = 88;
const WINDOW_BYTES = 1_000_000;
/** So often the client's timers are looked at. */
const TICK_MS = 5;
const DATAGRAM_BYTES = 1350;

export interface Verdict {
  readonly state: number;
  readonly code: number;
  readonly microseconds: number;
  readonly credit: number;
  readonly bits: number;
  readonly slot: number;
  readonly signature: Buffer;
}

export interface Frame {
  readonly type: number;
  readonly content: Buffer;
}

export interface TouchdownClient {
  /** Sends on a unidirectional stream; rejects once the edge has closed the connection. */
  send(bytes: Uint8Array): Promise<void>;
  /** Opens a bidirectional stream, and writes; returns its number. */
  open(bytes: Uint8Array, isEnd: boolean): number;
  /** The verdict on the transaction of that stream. */
  verdict(stream: number): Promise<Verdict>;
  /** Submits on a bidirectional stream. */
  submit(bytes: Uint8Array): Promise<Verdict>;
  /** Says HELLO with this API key; what it returns returns the edge's frames so far. */
  hello(token: string, wants?: number): () => readonly Frame[];
  /** The code that the edge closed the connection with; null: it is open. */
  closeCode(): number | null;
  /** The certificates of the edge, its own first. */
  readonly certificates: readonly Uint8Array[];
  close(): void;
}

export function readVerdict(bytes: Buffer): Verdict {
  return {
    state: bytes.readUInt8(1),
    code: bytes.readUInt16LE(2),
    microseconds: bytes.readUInt32LE(4),
    credit: bytes.readUInt32LE(8),
    bits: bytes.readUInt32LE(12),
    slot: Number(bytes.readBigUInt64LE(16)),
    signature: bytes.subarray(24, VERDICT_BYTES),
  };
}

function framesOf(bytes: Buffer): Frame[] {
  const frames: Frame[] = [];
  for (let at = 0; at + 4 <= bytes.length; ) {
    const end = at + 4 + bytes.readUInt16LE(at + 2);
    if (end > bytes.length) break;
    frames.push({ type: bytes.readUInt8(at), content: bytes.subarray(at + 4, end) });
    at = end;
  }
  return frames;
}

/** Connects; without an identity it presents an unregistered certificate. */
export async function connectTouchdown(
  address: string,
  identity: Identity = freshIdentity(),
): Promise<TouchdownClient> {
  const config = quicheConfig(tlsIdentityOf(identity), false);
  config.setApplicationProtos(["touchdown/1"]);
  config.setMaxIdleTimeout(30_000);
  config.setInitialMaxData(WINDOW_BYTES);
  config.setInitialMaxStreamDataBidiLocal(WINDOW_BYTES);
  const socket = createSocket("udp4");
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  const [host = "", port = ""] = address.split(":");
  const remote = { host, port: Number(port) };
  const local = { host: "127.0.0.1", port: socket.address().port };
  const quic = quiche.Connection.connect("localhost", randomBytes(16), local, remote, config);
  const received = new Map<number, { bytes: Buffer; hasEnded: boolean }>();
  const scratch = Buffer.alloc(DATAGRAM_BYTES);
  const chunk = Buffer.alloc(65_536);
  let [nextUni, nextBidi] = [2, 0];
  let isOver = false;

  function flush(): void {
    for (;;) {
      const written = quic.send(scratch);
      if (written === null) return;
      socket.send(Buffer.from(scratch.subarray(0, written[0])), remote.port, remote.host);
    }
  }

  function read(stream: number): void {
    for (;;) {
      const part = quic.streamRecv(stream, chunk);
      if (part === null) return;
      const [size, hasEnded] = part;
      const before = received.get(stream)?.bytes ?? Buffer.alloc(0);
      const bytes = Buffer.concat([before, chunk.subarray(0, size)]);
      received.set(stream, { bytes, hasEnded });
      if (hasEnded) return;
    }
  }

  socket.on("message", (datagram) => {
    if (isOver) return;
    try {
      quic.recv(datagram, { from: remote, to: local });
      for (const stream of quic.readable()) read(stream);
    } catch {
      // A stream was reset, or the connection is closing, which `closeCode` tells.
    }
    flush();
  });
  const timer = setInterval(() => {
    if (quic.timeout() === 0) quic.onTimeout();
    flush();
  }, TICK_MS);

  function write(stream: number, bytes: Uint8Array, isEnd: boolean): number {
    const written = quic.streamSend(stream, bytes, isEnd);
    if (written !== bytes.length) throw new Error(`stream ${stream}: ${written} were written`);
    flush();
    return stream;
  }

  function open(bytes: Uint8Array, isEnd: boolean): number {
    nextBidi += 4;
    return write(nextBidi - 4, bytes, isEnd);
  }

  async function verdict(stream: number): Promise<Verdict> {
    await until("a verdict", () => received.get(stream)?.hasEnded === true);
    const bytes = received.get(stream)?.bytes ?? Buffer.alloc(0);
    if (bytes.length !== VERDICT_BYTES) throw new Error(`a verdict of ${bytes.length} bytes`);
    return readVerdict(bytes);
  }

  flush();
  await until("a stream", () => quic.peerStreamsLeftBidi() > 0 || quic.peerError() !== null);
  return {
    async send(bytes) {
      await until("credit", () => quic.peerStreamsLeftUni() > 0 || quic.peerError() !== null);
      const stream = nextUni;
      nextUni += 4;
      let written = 0;
      await until("room", () => {
        if (quic.peerError() !== null) throw new Error("the edge has closed the connection");
        written += quic.streamSend(stream, bytes.subarray(written), true) ?? 0;
        flush();
        return written === bytes.length;
      });
    },
    open,
    verdict,
    async submit(bytes) {
      await until("credit", () => quic.peerStreamsLeftBidi() > 0);
      return await verdict(open(bytes, true));
    },
    hello(token, wants = 0) {
      const head = Buffer.of(0, 1, 0, 2 + token.length, 0, 1, wants);
      const stream = open(Buffer.concat([head, Buffer.from(token)]), false);
      return () => framesOf(received.get(stream)?.bytes ?? Buffer.alloc(0));
    },
    closeCode() {
      const error = quic.peerError();
      return error?.isApp === true ? error.errorCode : null;
    },
    get certificates() {
      return quic.peerCertChain() ?? [];
    },
    close() {
      isOver = true;
      clearInterval(timer);
      try {
        quic.close(true, 0, Buffer.alloc(0));
        flush();
      } catch {
        // It is closed already.
      }
      // The last datagram leaves in this turn of the event loop.
      setImmediate(() => socket.close());
    },
  };
}
