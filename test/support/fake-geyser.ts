/**
 * A real gRPC server on loopback that implements the Geyser protocol from its own description
 * (`geyser.proto`): it records requests, and sends what a test configures, including garbage.
 */

import { fileURLToPath } from "node:url";
import { Server, ServerCredentials, type ServerDuplexStream, status } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

type Update = Readonly<Record<string, unknown>>;
type Stream = ServerDuplexStream<unknown, Buffer>;

export interface FakeGeyser {
  readonly url: string;
  /** Requests in arrival order, decoded by the description. */
  readonly requests: readonly unknown[];
  /** The `x-token` of each stream; null for none. */
  readonly tokens: readonly (string | null)[];
  readonly streams: number;
  say(update: Update): void;
  /** Raw bytes, instead of an update. */
  sayBytes(bytes: Uint8Array): void;
  /** Ends every open stream abruptly. */
  cut(): void;
  stop(): void;
}

export async function startFakeGeyser(): Promise<FakeGeyser> {
  const path = fileURLToPath(new URL("./geyser.proto", import.meta.url));
  const loaded = loadSync(path, { keepCase: true, longs: Number, defaults: true, oneofs: true });
  const service = loaded["geyser.Geyser"];
  const subscribe = service !== undefined && "Subscribe" in service ? service["Subscribe"] : null;
  if (typeof subscribe !== "object" || subscribe === null) throw new Error("no such service");
  const requests: unknown[] = [];
  const tokens: (string | null)[] = [];
  const open = new Set<Stream>();
  const server = new Server();
  // Responses are passed as bytes, so that a test can send what no description allows.
  const method = { ...subscribe, responseSerialize: (bytes: Buffer) => bytes };
  server.addService(
    { Subscribe: method },
    {
      Subscribe(stream: Stream) {
        const [token] = stream.metadata.get("x-token");
        tokens.push(token === undefined ? null : String(token));
        open.add(stream);
        stream.on("data", (request: unknown) => requests.push(request));
        stream.on("error", () => open.delete(stream));
        stream.on("end", () => open.delete(stream));
        stream.on("close", () => open.delete(stream));
        stream.on("cancelled", () => open.delete(stream));
      },
    },
  );
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  const sayBytes = (bytes: Uint8Array): void => {
    for (const stream of open) stream.write(Buffer.from(bytes));
  };
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    tokens,
    get streams() {
      return open.size;
    },
    say: (update) => sayBytes(subscribe.responseSerialize(update)),
    sayBytes,
    cut() {
      const error = { code: status.UNAVAILABLE, details: "cut" };
      for (const stream of open) stream.emit("error", error);
      open.clear();
    },
    stop: () => server.forceShutdown(),
  };
}
