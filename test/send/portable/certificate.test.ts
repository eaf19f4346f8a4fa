import { X509Certificate } from "node:crypto";
import { describe, expect, it } from "vitest";
import { freshIdentity } from "../../../src/send/identity.ts";
import { certificateOf, peerKeyOf, tlsIdentityOf } from "../../../src/send/portable/certificate.ts";

describe("the client certificate", () => {
  const identity = freshIdentity();
  const der = certificateOf(identity);

  it("has the layout of Agave's: 249 bytes with the key at 100", () => {
    expect(der.length).toBe(249);
    expect(Uint8Array.from(der.subarray(100, 132))).toEqual(identity.publicKey);
  });

  it("is read by OpenSSL with the fields that leaders' own clients show", () => {
    const certificate = new X509Certificate(der);
    expect(certificate.issuer).toBe("CN=Solana node");
    expect(certificate.subject ?? "").toBe("");
    expect(certificate.subjectAltName).toContain("DNS:localhost");
    expect(certificate.validTo).toContain("4096");
    expect(certificate.ca).toBe(false);
    expect(certificate.verify(certificate.publicKey)).toBe(true);
  });

  it("comes as PEM together with its key", () => {
    const tls = tlsIdentityOf(identity);
    const certificate = new X509Certificate(tls.certificate);
    expect(Buffer.from(certificate.raw)).toEqual(Buffer.from(der));
    expect(tls.key).toMatch(/^-----BEGIN PRIVATE KEY-----\n/);
  });
});

describe("the key in a certificate chain", () => {
  const identity = freshIdentity();
  const der = certificateOf(identity);

  it("is that of the one certificate", () => {
    expect(peerKeyOf([der])).toEqual(identity.publicKey);
  });

  it("is null when there is no certificate, or two, or an unreadable one", () => {
    expect(peerKeyOf(null)).toBeNull();
    expect(peerKeyOf([])).toBeNull();
    expect(peerKeyOf([der, der])).toBeNull();
    expect(peerKeyOf([der.subarray(0, 200)])).toBeNull();
  });
});
