import { generateKeyPairSync } from "node:crypto";
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { SetupError } from "../../src/core/errors.ts";
import {
  createCertificateHolder,
  expiryWarning,
  readCertificate,
} from "../../src/edge/certificate.ts";
import { CERTIFICATE_LOOK_MS, CERTIFICATE_RETRY_MS } from "../../src/edge/limits.ts";
import { INGRESS_THREAD_TLS, OK } from "../../src/native/contract.ts";
import type { CertificateSource } from "../../src/native-ingress/ingress-threads.ts";
import { native } from "../native/addon.ts";
import { createAuthority, type Issued } from "../support/authority.ts";
import { createFakeClock } from "../support/fake-clock.ts";

const folder = mkdtempSync(join(tmpdir(), "touchdown-certificate-"));
afterAll(() => rmSync(folder, { recursive: true }));
const files = {
  section: "http.tls",
  certificate: join(folder, "fullchain.pem"),
  key: join(folder, "privkey.pem"),
} as const;
const authority = createAuthority();
const DAY = 86_400_000;
const NOW = Date.UTC(2026, 10, 26);

function write({ certificate, key }: Issued): Issued {
  writeFileSync(files.certificate, certificate + authority.certificate);
  writeFileSync(files.key, key);
  return { certificate: certificate + authority.certificate, key };
}
const fresh = () => authority.issue(NOW - DAY, NOW + 90 * DAY);

/** What reading the files reports, without its cause. */
function faultOf(unixMs = NOW, answer = OK): string {
  try {
    readCertificate(files, { ingressThreadsTls: () => answer }, unixMs);
  } catch (error) {
    if (error instanceof SetupError) return error.message;
    throw error;
  }
  return "";
}

describe("a certificate", () => {
  it("is read with its chain, its names and its end", () => {
    const { certificate, key } = write(fresh());
    const read = readCertificate(files, native, NOW);
    expect([String(read.certificate), String(read.key)]).toEqual([certificate, key]);
    expect(read).toMatchObject({ names: "IP Address:127.0.0.1", expiresUnixMs: NOW + 90 * DAY });
  });

  it("is refused with the file and the reason", () => {
    const own = write(fresh());
    const other = fresh();
    const place = { key: files.key, certificate: files.certificate };
    for (const [name, text, message] of [
      ["certificate", "", /fullchain\.pem: it holds no certificate in PEM form/],
      ["certificate", own.key, /fullchain\.pem: it holds no certificate in PEM form/],
      ["certificate", own.certificate.slice(0, 100), /it holds no certificate in PEM form/],
      ["certificate", other.certificate, /^http\.tls\.key: .*not the key of the first certificate/],
      // The chain in the wrong order.
      ["certificate", authority.certificate + own.certificate, /must be the server's own/],
      ["key", "", /^http\.tls\.key: .*privkey\.pem: it holds no private key in PEM form/],
      ["key", own.certificate, /it holds no private key in PEM form/],
      ["key", other.key, /not the key of the first certificate/],
    ] as const) {
      write(own);
      writeFileSync(place[name], text);
      expect(faultOf()).toMatch(message);
      expect(faultOf()).not.toContain(own.key.split("\n")[1]);
    }
    write(own);
    rmSync(files.key);
    expect(faultOf()).toBe(`http.tls.key: ${files.key}: it cannot be read (ENOENT)`);
  });

  it("is refused with the section that names it", () => {
    write(fresh());
    writeFileSync(files.key, "");
    const ofQuic = { ...files, section: "quic.tls" } as const;
    const message = `quic.tls.key: ${files.key}: it holds no private key in PEM form`;
    expect(() => readCertificate(ofQuic, native, NOW)).toThrow(message);
    const ended = { validFromUnixMs: NOW - DAY, expiresUnixMs: NOW };
    expect(expiryWarning(ofQuic, ended, NOW)).toMatch(/^quic\.tls\.certificate: /);
  });

  it("is refused with an encrypted key", () => {
    write(fresh());
    const { privateKey } = generateKeyPairSync("ed25519");
    const format = { format: "pem", type: "pkcs8", cipher: "aes-256-cbc" } as const;
    writeFileSync(files.key, privateKey.export({ ...format, passphrase: "secret" }));
    expect(faultOf()).toMatch(/the key is encrypted, and an edge asks for no passphrase/);
  });

  it("is refused before and after its time, to the millisecond", () => {
    write(authority.issue(NOW, NOW + DAY));
    expect(faultOf(NOW - 1)).toMatch(/is valid from 2026-11-26T00:00:00.000Z on, .*clock/);
    expect([faultOf(NOW), faultOf(NOW + DAY - 1)]).toEqual(["", ""]);
    expect(faultOf(NOW + DAY)).toMatch(/expired on 2026-11-27T00:00:00.000Z: renew it/);
  });

  it("is refused if the engine does not sign with such a key", () => {
    write(fresh());
    expect(faultOf(NOW, INGRESS_THREAD_TLS)).toMatch(/whose key is ed25519; it signs with ECDSA/);
    expect(faultOf(NOW, -2)).toBe("http.tls: the native engine returned -2");
  });

  it("is warned of in its last 14 days", () => {
    write(fresh());
    const certificate = readCertificate(files, null, NOW);
    expect(expiryWarning(files, certificate, NOW + 76 * DAY - 1)).toBeNull();
    expect(expiryWarning(files, certificate, NOW + 76 * DAY)).toMatch(/in 14 days: renew it/);
    expect(expiryWarning(files, certificate, NOW + 89.5 * DAY)).toMatch(/in 0 days/);
  });

  it("of a short lifetime is warned of in its last quarter", () => {
    write(authority.issue(NOW, NOW + 8 * DAY));
    const certificate = readCertificate(files, null, NOW);
    expect(expiryWarning(files, certificate, NOW + 6 * DAY - 1)).toBeNull();
    expect(expiryWarning(files, certificate, NOW + 6 * DAY)).toMatch(/in 2 days: renew it/);
  });
});

function holderOf() {
  const clock = createFakeClock();
  const lines: string[] = [];
  const note = (_: object, message: string) => void lines.push(message);
  const presented: string[] = [];
  const now = { unixMs: NOW, answer: OK as number, reads: 0 };
  const holder = createCertificateHolder(
    {
      clock: { ...clock, unixMs: () => now.unixMs },
      log: { info: note, warn: note, error: note },
      native: {
        ingressThreadsTls() {
          now.reads += 1;
          return now.answer;
        },
      },
      present: ({ current }: CertificateSource) => void presented.push(String(current.certificate)),
    },
    files,
    ["http"],
  );
  holder.start();
  return { clock, now, holder, lines, presented };
}

describe("the certificate of an edge", () => {
  it("changes when its files changed and then stayed the same for a while", () => {
    write(fresh());
    const { clock, holder, presented } = holderOf();
    clock.advance(10 * CERTIFICATE_LOOK_MS);
    expect(presented).toEqual([]);
    const half = fresh();
    writeFileSync(files.certificate, half.certificate);
    clock.advance(CERTIFICATE_LOOK_MS);
    const { certificate } = write(half);
    clock.advance(CERTIFICATE_LOOK_MS);
    expect(presented).toEqual([]);
    clock.advance(CERTIFICATE_LOOK_MS);
    expect(presented).toEqual([certificate]);
    expect([holder.loads, String(holder.current.certificate)]).toEqual([
      { ok: 2, failed: 0 },
      certificate,
    ]);
    clock.advance(10 * CERTIFICATE_LOOK_MS);
    expect(presented).toHaveLength(1);
    holder.stop();
  });

  it("changes when a link leads elsewhere, as certbot's and those of Kubernetes do", () => {
    const versions = [fresh(), fresh()].map((issued, index) => {
      const path = join(folder, `archive${index}`);
      mkdirSync(path);
      writeFileSync(join(path, "fullchain.pem"), issued.certificate);
      writeFileSync(join(path, "privkey.pem"), issued.key);
      return { path, certificate: issued.certificate };
    });
    const link = (to: string) => {
      const made = join(folder, "next");
      symlinkSync(to, made);
      renameSync(made, join(folder, "live"));
    };
    link(versions[0]?.path ?? "");
    for (const name of ["fullchain.pem", "privkey.pem"]) {
      rmSync(join(folder, name), { force: true });
      symlinkSync(join(folder, "live", name), join(folder, name));
    }
    const { clock, holder, presented } = holderOf();
    link(versions[1]?.path ?? "");
    clock.advance(2 * CERTIFICATE_LOOK_MS);
    expect(presented).toEqual([versions[1]?.certificate]);
    holder.stop();
    for (const name of ["fullchain.pem", "privkey.pem"]) rmSync(join(folder, name));
  });

  it("stays when the new one is wrong, which is logged and counted once", () => {
    const before = write(fresh());
    const { clock, holder, lines, presented } = holderOf();
    writeFileSync(files.key, fresh().key);
    clock.advance(10 * CERTIFICATE_LOOK_MS);
    expect([presented, holder.loads]).toEqual([[], { ok: 1, failed: 1 }]);
    expect(lines).toEqual(["the new certificate is not used, the one before stays"]);
    expect(String(holder.current.certificate)).toBe(before.certificate);
    rmSync(files.key);
    clock.advance(10 * CERTIFICATE_LOOK_MS);
    expect(holder.loads).toEqual({ ok: 1, failed: 2 });
    const { certificate } = write(fresh());
    clock.advance(2 * CERTIFICATE_LOOK_MS);
    expect([presented, holder.loads]).toEqual([[certificate], { ok: 2, failed: 2 }]);
    holder.stop();
  });

  it("changes to one that became valid, or usable, after its files were first read", () => {
    const { certificate: before } = write(fresh());
    const { clock, now, holder, lines, presented } = holderOf();
    const { certificate } = write(authority.issue(NOW + 60_000, NOW + 90 * DAY));
    clock.advance(2 * CERTIFICATE_LOOK_MS);
    for (let tries = 0; tries < 10; tries += 1) {
      now.unixMs += 5_000;
      clock.advance(CERTIFICATE_RETRY_MS);
    }
    expect([presented, holder.loads, lines.length]).toEqual([[], { ok: 1, failed: 1 }, 1]);
    expect(String(holder.current.certificate)).toBe(before);
    now.unixMs += 10_000;
    now.answer = INGRESS_THREAD_TLS;
    now.reads = 0;
    clock.advance(10 * CERTIFICATE_RETRY_MS);
    expect(now.reads).toBe(10);
    // Another reason is reported.
    expect([presented, holder.loads, lines.length]).toEqual([[], { ok: 1, failed: 2 }, 2]);
    now.answer = OK;
    clock.advance(CERTIFICATE_RETRY_MS);
    expect([presented, holder.loads]).toEqual([[certificate], { ok: 2, failed: 2 }]);
    clock.advance(10 * CERTIFICATE_RETRY_MS);
    expect(presented).toHaveLength(1);
    holder.stop();
  });

  it("is tried again after a failed demand, which reports each failure", () => {
    write(fresh());
    const { clock, now, holder, presented } = holderOf();
    now.answer = INGRESS_THREAD_TLS;
    const { certificate } = write(fresh());
    expect(() => holder.reload()).toThrow(SetupError);
    expect(() => holder.reload()).toThrow(SetupError);
    clock.advance(10 * CERTIFICATE_RETRY_MS);
    expect([presented, holder.loads]).toEqual([[], { ok: 1, failed: 2 }]);
    now.answer = OK;
    clock.advance(CERTIFICATE_RETRY_MS);
    expect(presented).toEqual([certificate]);
    holder.stop();
  });

  it("stays while its files cannot be looked at, and that ends nothing", () => {
    write(fresh());
    const { clock, holder, presented } = holderOf();
    // A link to itself; a folder that may not be entered is the same to the watch.
    rmSync(files.certificate);
    symlinkSync(files.certificate, files.certificate);
    clock.advance(10 * CERTIFICATE_LOOK_MS);
    expect([presented, holder.loads]).toEqual([[], { ok: 1, failed: 1 }]);
    expect(faultOf()).toBe(`http.tls.certificate: ${files.certificate}: it cannot be read (ELOOP)`);
    expect(holderOf).toThrow(SetupError);
    rmSync(files.certificate);
    const { certificate } = write(fresh());
    clock.advance(2 * CERTIFICATE_LOOK_MS);
    expect(presented).toEqual([certificate]);
    holder.stop();
  });

  it("is read again on demand, and its error is thrown", () => {
    write(fresh());
    const { clock, holder, presented } = holderOf();
    const { certificate } = write(fresh());
    holder.reload();
    expect(presented).toEqual([certificate]);
    clock.advance(10 * CERTIFICATE_LOOK_MS);
    expect(presented).toHaveLength(1);
    writeFileSync(files.certificate, "nothing");
    expect(() => holder.reload()).toThrow(SetupError);
    expect([presented.length, holder.loads]).toEqual([1, { ok: 2, failed: 1 }]);
    holder.stop();
  });

  it("is warned of at the start and when it is read, if it expires soon", () => {
    write(authority.issue(NOW - 76.5 * DAY, NOW + 13.5 * DAY));
    const { holder, lines } = holderOf();
    expect(lines).toEqual([expect.stringMatching(/expires on 2026-12-09T12.*in 13 days/)]);
    holder.reload();
    expect(lines).toHaveLength(3);
    holder.stop();
  });
});
