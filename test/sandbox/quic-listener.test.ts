import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { configFromValues } from "../../src/config/load.ts";
import { encodeKey } from "../../src/core/encoding.ts";
import { readCertificate } from "../../src/edge/certificate.ts";
import { isQuicPossible, issueQuicSection } from "../../src/sandbox/quic-listener.ts";
import { freshIdentity } from "../../src/send/identity.ts";
import { native } from "../native/addon.ts";

const folder = mkdtempSync(join(tmpdir(), "touchdown-quic-listener-"));
afterAll(() => rmSync(folder, { recursive: true }));
const TIP_ACCOUNT = encodeKey(freshIdentity().publicKey);
const NOW_MS = Date.UTC(2026, 10, 28);

function configOf(send: object, http: object) {
  const rest = { region: "test", tip: { accounts: [TIP_ACCOUNT] } };
  return configFromValues({ ...rest, accounts: { keys_file: "keys.toml" }, send, http }, folder);
}

describe("the QUIC listener of the sandbox", () => {
  it("is there where the edge has ingress threads", () => {
    expect(isQuicPossible(configOf({ engine: "portable" }, {}))).toBe(false);
    const engine = native === null ? "auto" : "native";
    expect(isQuicPossible(configOf({ engine }, { threads: 0 }))).toBe(false);
    const threads = native === null ? {} : { threads: 1 };
    expect(isQuicPossible(configOf({ engine }, threads))).toBe(native !== null);
  });

  it("has a certificate that an edge takes, and that only its user can read", () => {
    const { section, authorityFile } = issueQuicSection(folder, { unixMs: () => NOW_MS });
    const files = { section: "quic.tls", ...section.tls } as const;
    const { names, expiresUnixMs } = readCertificate(files, native, NOW_MS);
    expect([names, expiresUnixMs]).toEqual(["IP Address:127.0.0.1", NOW_MS + 365 * 86_400_000]);
    for (const file of [authorityFile, section.tls.certificate, section.tls.key]) {
      expect(statSync(file).mode & 0o077).toBe(0);
      expect(readFileSync(file, "utf8")).toContain("-----BEGIN ");
    }
  });
});
