import { X509Certificate } from "node:crypto";
import { describe, expect, it } from "vitest";
import { createAuthority } from "../../src/sandbox/authority.ts";

const FROM_MS = Date.UTC(2026, 10, 28);
const TO_MS = Date.UTC(2027, 10, 28);

describe("an authority", () => {
  it("issues certificates for loopback that it alone has signed", () => {
    const authority = createAuthority();
    const own = new X509Certificate(authority.certificate);
    const issued = authority.issue(FROM_MS, TO_MS);
    const certificate = new X509Certificate(issued.certificate);
    expect([own.ca, certificate.ca]).toEqual([true, false]);
    expect(certificate.checkIssued(own)).toBe(true);
    expect(certificate.verify(own.publicKey)).toBe(true);
    const other = new X509Certificate(createAuthority().certificate);
    expect(certificate.verify(other.publicKey)).toBe(false);
    expect(certificate.subjectAltName).toBe("IP Address:127.0.0.1");
  });

  it("issues each with a key of its own, for the time that is asked for", () => {
    const authority = createAuthority();
    const [first, second] = [authority.issue(FROM_MS, TO_MS), authority.issue(FROM_MS, TO_MS)];
    expect(first.key).not.toBe(second.key);
    const { validFrom, validTo } = new X509Certificate(first.certificate);
    expect([Date.parse(validFrom), Date.parse(validTo)]).toEqual([FROM_MS, TO_MS]);
  });
});
