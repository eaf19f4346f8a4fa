import { describe, expect, it } from "vitest";
import { initialClose } from "../../src/sandbox/initial-close.ts";
import { quiche } from "../../src/send/portable/quiche.ts";
import { CLIENT, clientConfig, LEADER, newClient } from "../support/quic-memory.ts";

describe("a close before any handshake", () => {
  it("is accepted by a client from its first packet on", () => {
    const client = newClient(clientConfig());
    const first = Buffer.alloc(1500);
    const size = client.send(first)?.[0] ?? 0;
    const header = quiche.Header.fromSlice(first.subarray(0, size), 16);
    client.recv(initialClose(header, 2), { from: LEADER, to: CLIENT });
    expect(client.isDraining()).toBe(true);
    expect(client.peerError()).toMatchObject({ isApp: false, errorCode: 2 });
  });
});
