/**
 * One Yellowstone gRPC stream through @grpc/grpc-js; the only file that uses that library.
 *
 * A stream reports what it receives and ends once; to reconnect, the caller opens another with a
 * channel of its own, so that the library's back-off never adds to ours. The library reads proxies
 * from the environment; this is disabled, because connections are determined by the configuration
 * alone. The token is sent as `x-token` and appears in no message.
 */

import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { GEYSER_MESSAGE_BYTES_MAX } from "../limits.ts";
import { decodeUpdate, encodePing, encodeSubscribe, type GeyserUpdate } from "./codec.ts";

export interface GeyserOptions {
  /** http: or https:, with the port unless it is the scheme's default. */
  readonly url: string;
  /** null: no token is sent. */
  readonly token: string | null;
  /** Base58; transactions that name one of them are reported. */
  readonly accounts: readonly string[];
}

export interface GeyserEvents {
  update(update: GeyserUpdate): void;
  /** A message could not be decoded; the stream continues. */
  garbage(): void;
  /** Called once, with the library's reason; not after `end`. */
  closed(reason: string): void;
}

export interface GeyserStream {
  end(): void;
}

const SUBSCRIBE = "/geyser.Geyser/Subscribe";

/** Opens a stream. Does not throw; failures are reported through `closed`. */
export function openGeyser(options: GeyserOptions, events: GeyserEvents): GeyserStream {
  const url = new URL(options.url);
  const secure = url.protocol === "https:";
  const port = url.port === "" ? (secure ? "443" : "80") : url.port;
  const client = new Client(
    `${url.hostname}:${port}`,
    secure ? credentials.createSsl() : credentials.createInsecure(),
    {
      "grpc.enable_http_proxy": 0,
      "grpc.use_local_subchannel_pool": 1,
      "grpc.max_receive_message_length": GEYSER_MESSAGE_BYTES_MAX,
    },
  );
  const metadata = new Metadata();
  if (options.token !== null) metadata.set("x-token", options.token);
  const call = client.makeBidiStreamRequest(
    SUBSCRIBE,
    (message: Uint8Array) => Buffer.from(message),
    // A deserializer that throws would end the stream for one bad message.
    (message: Buffer) => ({ update: decodeUpdate(message) }),
    metadata,
  );
  let ended = false;

  function end(): void {
    if (ended) return;
    ended = true;
    call.cancel();
    client.close();
  }
  function close(reason: string): void {
    if (ended) return;
    end();
    events.closed(reason);
  }

  call.on("data", ({ update }: { readonly update: GeyserUpdate | null }) => {
    if (ended) return;
    if (update === null) events.garbage();
    else {
      if (update.kind === "ping") call.write(encodePing(1));
      events.update(update);
    }
  });
  // Stays attached for the life of the call, because cancelling it also emits an error.
  call.on("error", (error) => close(error.message));
  call.on("end", () => close("the server ended the stream"));
  call.write(encodeSubscribe(options.accounts));
  return { end };
}
