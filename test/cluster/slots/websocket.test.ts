import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { WebSocketServer } from "ws";
import { WEBSOCKET_MESSAGE_BYTES_MAX } from "../../../src/cluster/limits.ts";
import { openWebSocket } from "../../../src/cluster/slots/websocket.ts";

const WAIT = { timeout: 30_000, interval: 10 };
const endings: (() => unknown)[] = [];
afterEach(() => {
  for (const end of endings.splice(0).reverse()) end();
});

async function connect(fragment = "") {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  await once(server, "listening");
  endings.push(() => server.close());
  // A TCP server's address is never a path.
  const { port } = server.address() as AddressInfo;
  const seen: string[] = [];
  const socket = openWebSocket(`ws://127.0.0.1:${port}/${fragment}`, 30_000, {
    opened: () => seen.push("opened"),
    message: (text) => seen.push(`${text.slice(0, 10)} ${text.length}`),
    closed: () => seen.push("closed"),
  });
  endings.push(() => socket.end());
  // Messages sent before it is open are discarded without an error.
  socket.send("early");
  const [peer, request] = await once(server, "connection");
  await vi.waitFor(() => expect(seen).toEqual(["opened"]), WAIT);
  return { seen, socket, peer, headers: request.headers };
}

describe("a WebSocket of the chain's", () => {
  it("carries text both ways, and ends once", async () => {
    const { seen, socket, peer } = await connect();
    const heard = once(peer, "message");
    socket.send("question");
    expect(String((await heard)[0])).toBe("question");
    peer.send("answer");
    await vi.waitFor(() => expect(seen.at(-1)).toBe("answer 6"), WAIT);
    peer.terminate();
    await vi.waitFor(() => expect(seen.at(-1)).toBe("closed"), WAIT);
    expect(seen.filter((each) => each === "closed")).toHaveLength(1);
  });

  it("leaves out the fragment of an address, which is for no server", async () => {
    const { headers } = await connect("#here");
    expect(headers["user-agent"]).toBe("touchdown");
  });

  it("says what it is, because some gateways turn those away that do not", async () => {
    const { headers } = await connect();
    expect(headers["user-agent"]).toBe("touchdown");
  });

  it("ends where a message is larger than any that is read", async () => {
    const { seen, peer } = await connect();
    peer.send("x".repeat(WEBSOCKET_MESSAGE_BYTES_MAX));
    peer.send("x".repeat(WEBSOCKET_MESSAGE_BYTES_MAX + 1));
    await vi.waitFor(() => expect(seen.at(-1)).toBe("closed"), WAIT);
    expect(seen).toEqual(["opened", `xxxxxxxxxx ${WEBSOCKET_MESSAGE_BYTES_MAX}`, "closed"]);
  });
});
