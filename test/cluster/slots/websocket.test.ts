import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { WebSocketServer } from "ws";
import { WEBSOCKET_MESSAGE_BYTES_MAX } from "../../../src/cluster/limits.ts";
import { openWebSocket } from "../../../src/cluster/slots/websocket.ts";

const WAIT = { timeout: 30_000, interval: 10 };
const cleanups: (() => unknown)[] = [];
afterEach(() => {
  for (const end of cleanups.splice(0).reverse()) end();
});

async function connect(fragment = "") {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  await once(server, "listening");
  cleanups.push(() => server.close());
  // A TCP server's address is always an AddressInfo.
  const { port } = server.address() as AddressInfo;
  const events: string[] = [];
  const socket = openWebSocket(`ws://127.0.0.1:${port}/${fragment}`, 30_000, {
    opened: () => events.push("opened"),
    message: (text) => events.push(`${text.slice(0, 10)} ${text.length}`),
    closed: () => events.push("closed"),
  });
  cleanups.push(() => socket.end());
  // Messages sent before it is open are discarded without an error.
  socket.send("early");
  const [peer, request] = await once(server, "connection");
  await vi.waitFor(() => expect(events).toEqual(["opened"]), WAIT);
  return { events, socket, peer, headers: request.headers };
}

describe("cluster WebSocket", () => {
  it("sends and receives text, and reports its end once", async () => {
    const { events, socket, peer } = await connect();
    const received = once(peer, "message");
    socket.send("request");
    expect(String((await received)[0])).toBe("request");
    peer.send("response");
    await vi.waitFor(() => expect(events.at(-1)).toBe("response 8"), WAIT);
    peer.terminate();
    await vi.waitFor(() => expect(events.at(-1)).toBe("closed"), WAIT);
    expect(events.filter((each) => each === "closed")).toHaveLength(1);
  });

  it("removes the fragment from the URL", async () => {
    const { headers } = await connect("#here");
    expect(headers["user-agent"]).toBe("touchdown");
  });

  it("sends a user agent, because some gateways reject requests without one", async () => {
    const { headers } = await connect();
    expect(headers["user-agent"]).toBe("touchdown");
  });

  it("closes on a message above the size limit", async () => {
    const { events, peer } = await connect();
    peer.send("x".repeat(WEBSOCKET_MESSAGE_BYTES_MAX));
    peer.send("x".repeat(WEBSOCKET_MESSAGE_BYTES_MAX + 1));
    await vi.waitFor(() => expect(events.at(-1)).toBe("closed"), WAIT);
    expect(events).toEqual(["opened", `xxxxxxxxxx ${WEBSOCKET_MESSAGE_BYTES_MAX}`, "closed"]);
  });
});
