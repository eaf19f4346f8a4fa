/**
 * One Yellowstone gRPC stream, through @grpc/grpc-js; the only file that knows that library.
 *
 * A stream is opened, says what it hears, and ends once; whoever wants it back opens another, with
 * a channel of its own, so that the library's own waits never add to ours. The library reads
 * proxies from the environment, which is switched off: what an edge connects to stands in its
 * configuration. The token goes out as `x-token` and is in no message.
 */

import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { GEYSER_MESSAGE_BYTES_MAX } from "../limits.ts";
import { decodeUpdate, encodePing, encodeSubscribe, type GeyserUpdate } from "./codec.ts";

export interface GeyserOptions {
  /** http: or https:, with the port where it is not the scheme's own. */
  readonly url: string;
  /** null: none is sent. */
  readonly token: string | null;
  /** Base58; transactions that name one of them are told of. */
  readonly accounts: readonly string[];
}

export interface GeyserEvents {
  update(update: GeyserUpdate): void;
  /** A message that is no update; the stream goes on. */
  garbage(): void;
  /** Once, with the reason in the library's words; not after `end`. */
  closed(reason: string): void;
}

export interface GeyserStream {
  end(): void;
}

const SUBSCRIBE = "/geyser.Geyser/Subscribe";

/** Opens a stream; nothing is thrown, what fails is told by `closed`. */
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
    // A reader that throws would end the stream for one bad message.
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
  // Stays for the whole life of the call: cancelling it is an error as well.
  call.on("error", (error) => close(error.message));
  call.on("end", () => close("the server ended the stream"));
  call.write(encodeSubscribe(options.accounts));
  return { end };
}
