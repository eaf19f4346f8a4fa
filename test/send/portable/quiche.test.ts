import { describe, expect, it } from "vitest";
import { freshIdentity } from "../../../src/send/identity.ts";
import { peerKeyOf, tlsIdentityOf } from "../../../src/send/portable/certificate.ts";
import { quiche, quicheConfig } from "../../../src/send/portable/quiche.ts";
import {
  anonymousConfig,
  CLIENT,
  clientConfig,
  endOf,
  exchange,
  LEADER,
  newClient,
  newServer,
} from "../../support/quic-memory.ts";

/** RFC 9001 section 4.8: 0x100 and the TLS alert. */
const NO_APPLICATION_PROTOCOL = 0x100 + 120;
const CERTIFICATE_REQUIRED = 0x100 + 116;

/** A client and a server that have exchanged all their packets. */
function meet(client = newClient(), server = newServer()) {
  exchange(endOf(client, CLIENT), endOf(server, LEADER));
  return { client, server };
}

describe("two sides with this configuration", () => {
  it("complete a handshake with Ed25519 certificates and see each other's key", () => {
    const identity = freshIdentity();
    const { client, server } = meet(newClient(clientConfig(identity)));
    expect([client.isEstablished(), server.isEstablished()]).toEqual([true, true]);
    expect(peerKeyOf(server.peerCertChain())).toEqual(identity.publicKey);
    expect(peerKeyOf(client.peerCertChain())).toHaveLength(32);
  });

  it("accept a leader's protocol and no other", () => {
    const { client, server } = meet();
    for (const side of [client, server]) {
      expect(Buffer.from(side.applicationProto()).toString()).toBe("solana-tpu");
    }
    const stranger = meet(newClient(anonymousConfig("h3")));
    expect(stranger.client.peerError()).toMatchObject({ errorCode: NO_APPLICATION_PROTOCOL });
  });

  it("require a certificate only where configured", () => {
    const { client } = meet(newClient(anonymousConfig()));
    expect(client.peerError()).toMatchObject({ isApp: false, errorCode: CERTIFICATE_REQUIRED });
    const lenient = quicheConfig(tlsIdentityOf(freshIdentity()), false);
    const id = new Uint8Array(16).fill(1);
    const server = quiche.Connection.accept(id, null, LEADER, CLIENT, lenient);
    meet(newClient(anonymousConfig()), server);
    expect(server.isEstablished()).toBe(true);
    expect(server.peerCertChain()).toBeNull();
  });
});

it("rejects unreadable PEM texts", () => {
  const good = tlsIdentityOf(freshIdentity());
  const certificate = good.certificate.replace(/^[A-Za-z0-9+/]{4}/m, "!!!!");
  expect(() => quicheConfig(good, true)).not.toThrow();
  expect(() => quicheConfig({ ...good, certificate }, true)).toThrow();
  expect(() => quicheConfig({ ...good, key: "none" }, true)).toThrow();
});
