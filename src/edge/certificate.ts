/**
 * A certificate that clients are presented over TLS: read when an edge starts, when its files
 * change, and on demand. A wrong file changes nothing then. No byte of the key appears in any
 * message or log line.
 *
 * Note: files are compared by what `stat` says of them, every few seconds, because certbot and
 * Kubernetes replace symbolic links, which the notifications of a file system do not follow. A
 * change is read once it is unchanged for one period, because two files cannot be replaced at once.
 * Files that cannot be used are tried again each minute, because a corrected file mode or the time
 * changes nothing of what is compared.
 *
 * Decision: docs/decisions/0054-tls-in-the-edge.md
 */

import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import type { Config } from "../config/config.ts";
import { type Clock, NS_PER_MS, type Timer } from "../core/clock.ts";
import { codeOf, messageOf, SetupError } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import { INGRESS_THREAD_TLS, type NativeIngress, OK } from "../native/contract.ts";
import type {
  CertificateSource,
  PresentedCertificate,
  TlsProtocol,
} from "../native-ingress/ingress-threads.ts";
import {
  CERTIFICATE_EXPIRY_WARNING_MS,
  CERTIFICATE_EXPIRY_WARNING_PART,
  CERTIFICATE_LOOK_MS,
  CERTIFICATE_RETRY_MS,
} from "./limits.ts";

/** Where the certificate chain and its private key are, both in PEM. */
export interface CertificateFiles {
  /** The section of the configuration that names them. */
  readonly section: "http.tls" | "quic.tls";
  readonly certificate: string;
  readonly key: string;
}

/** The files of each certificate that a configuration names. */
export function certificateFilesOf({ http, quic }: CertificateConfig): {
  readonly http: CertificateFiles | null;
  readonly quic: CertificateFiles | null;
} {
  return {
    http: http.tls && { section: "http.tls", ...http.tls },
    quic: quic.tls && { section: "quic.tls", ...quic.tls },
  };
}

type CertificateConfig = {
  readonly http: Pick<Config["http"], "tls">;
  readonly quic: Pick<Config["quic"], "tls">;
};

export interface Certificate extends PresentedCertificate {
  /** What it is valid for, as `DNS:edge.example.com`. */
  readonly names: string;
  readonly validFromUnixMs: number;
  readonly expiresUnixMs: number;
}

type Tls = Pick<NativeIngress, "ingressThreadsTls">;

/**
 * Reads both files and checks that an edge can use them now; `native` null leaves out whether the
 * engine signs with a key of that kind. @throws SetupError
 */
export function readCertificate(
  files: CertificateFiles,
  native: Tls | null,
  unixMs: number,
): Certificate {
  const [certificateName, keyName] = namesOf(files);
  const certificate = readPem(certificateName, files.certificate);
  const key = readPem(keyName, files.key);
  const parsed = parseCertificate(certificateName, certificate);
  const privateKey = parseKey(keyName, key);
  if (!parsed.checkPrivateKey(privateKey)) {
    throw new SetupError(
      `${keyName}: it is not the key of the first certificate in ` +
        `${files.certificate}; that must be the server's own, which those of its issuers follow`,
    );
  }
  const validity = validityOf(parsed);
  requireValid(certificateName, validity, unixMs);
  const code = native?.ingressThreadsTls(new Uint32Array(0), certificate, key, false) ?? OK;
  if (code !== OK) throw new SetupError(refusedText(files, privateKey, code));
  return { certificate, key, ...validity, names: parsed.subjectAltName ?? parsed.subject };
}

type Validity = Pick<Certificate, "validFromUnixMs" | "expiresUnixMs">;

export function validityOf({ validFrom, validTo }: X509Certificate): Validity {
  return { validFromUnixMs: Date.parse(validFrom), expiresUnixMs: Date.parse(validTo) };
}

/** The names of both files in messages: the key of the configuration, and the path. */
function namesOf({ section, certificate, key }: CertificateFiles): readonly [string, string] {
  return [`${section}.certificate: ${certificate}`, `${section}.key: ${key}`];
}

function readPem(name: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    const code = codeOf(cause) ?? "unknown";
    throw new SetupError(`${name}: it cannot be read (${code})`, { cause });
  }
}

function parseCertificate(name: string, pem: Buffer): X509Certificate {
  try {
    if (pem.includes(CERTIFICATE_START)) return new X509Certificate(pem);
  } catch {
    // The message below says all that the parser's does.
  }
  throw new SetupError(`${name}: it holds no certificate in PEM form (${CERTIFICATE_START})`);
}

const CERTIFICATE_START = "-----BEGIN CERTIFICATE-----";

function parseKey(name: string, pem: Buffer): KeyObject {
  const isEncrypted = pem.includes("ENCRYPTED");
  try {
    if (!isEncrypted) return createPrivateKey(pem);
  } catch {
    // Not passed on as a cause: whatever the parser says, it read a secret.
  }
  const why = isEncrypted
    ? "the key is encrypted, and an edge asks for no passphrase: `openssl pkey` decrypts it"
    : "it holds no private key in PEM form";
  throw new SetupError(`${name}: ${why}`);
}

function requireValid(name: string, validity: Validity, unixMs: number): void {
  const { validFromUnixMs, expiresUnixMs } = validity;
  const date = (ms: number): string => new Date(ms).toISOString();
  if (expiresUnixMs <= unixMs) {
    throw new SetupError(`${name}: the certificate expired on ${date(expiresUnixMs)}: renew it`);
  }
  if (validFromUnixMs > unixMs) {
    throw new SetupError(
      `${name}: the certificate is valid from ${date(validFromUnixMs)} on, which this machine's ` +
        "clock has not reached: check the clock",
    );
  }
}

function refusedText(files: CertificateFiles, key: KeyObject, code: number): string {
  if (code !== INGRESS_THREAD_TLS) return `${files.section}: the native engine returned ${code}`;
  const kind = [key.asymmetricKeyType, key.asymmetricKeyDetails?.namedCurve].join(" ").trim();
  return (
    `${namesOf(files)[1]}: the native engine cannot use this pair, whose key is ${kind}; ` +
    "it signs with ECDSA keys of P-256 and P-384, with Ed25519, and with RSA from 2048 bits on"
  );
}

export interface CertificateHolder extends CertificateSource {
  readonly current: Certificate;
  /** Reads of the files. */
  readonly loads: { ok: number; failed: number };
  /** Reads the files again. @throws SetupError when they are wrong; the old certificate stays */
  reload(): void;
  /** Starts to watch the files. */
  start(): void;
  stop(): void;
}

export interface CertificateDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly native: Tls;
  /** Presents it to connections from now on. */
  readonly present: (source: CertificateSource) => void;
}

/** @throws SetupError when the files are wrong */
export function createCertificateHolder(
  { clock, log, native, present }: CertificateDeps,
  files: CertificateFiles,
  protocols: readonly TlsProtocol[],
): CertificateHolder {
  let seen = stampOf(files);
  let current = readCertificate(files, native, clock.unixMs());
  const loads = { ok: 1, failed: 0 };
  let timer: Timer | null = null;
  /** Why the files could not be used when they were last read; null: they could. */
  let fault: string | null = null;
  let readNs = 0;
  warnOfExpiry(log, files, current, clock.unixMs());

  function read(): void {
    seen = stampOf(files);
    readNs = clock.nowNs();
    try {
      const next = readCertificate(files, native, clock.unixMs());
      present({ current: next, protocols });
      current = next;
    } catch (error) {
      fault = messageOf(error);
      throw error;
    }
    fault = null;
    loads.ok += 1;
    log.info(describe(files, current), "certificate read again, new connections are presented it");
    warnOfExpiry(log, files, current, clock.unixMs());
  }

  function reload(): void {
    try {
      read();
    } catch (error) {
      loads.failed += 1;
      throw error;
    }
  }

  /** What the files were when they last differed from those that were read. */
  let changed: string | null = null;
  function look(): void {
    const stamp = stampOf(files);
    const isSettled = stamp === changed;
    changed = stamp === seen ? null : stamp;
    const isNew = isSettled && changed !== null;
    const reported = stamp === seen ? fault : null;
    const isRetryDue = clock.nowNs() - readNs >= CERTIFICATE_RETRY_MS * NS_PER_MS;
    if (!isNew && (reported === null || !isRetryDue)) return;
    changed = null;
    try {
      read();
    } catch (error) {
      if (messageOf(error) === reported) return;
      loads.failed += 1;
      log.error(
        { err: error, section: files.section },
        "the new certificate is not used, the one before stays",
      );
    }
  }

  return {
    get current() {
      return current;
    },
    protocols,
    loads,
    reload,
    start() {
      timer ??= clock.every(CERTIFICATE_LOOK_MS, look);
    },
    stop() {
      timer?.cancel();
      timer = null;
    },
  };
}

function describe({ section }: CertificateFiles, { names, expiresUnixMs }: Certificate) {
  return { section, names, expires: new Date(expiresUnixMs).toISOString() };
}

function warnOfExpiry(
  log: Log,
  files: CertificateFiles,
  certificate: Certificate,
  unixMs: number,
): void {
  const message = expiryWarning(files, certificate, unixMs);
  if (message !== null) log.warn(describe(files, certificate), message);
}

/** The warning of a certificate that expires soon; null for any other. */
export function expiryWarning(
  { section }: Pick<CertificateFiles, "section">,
  { validFromUnixMs, expiresUnixMs }: Validity,
  unixMs: number,
): string | null {
  const leftMs = expiresUnixMs - unixMs;
  const partMs = (expiresUnixMs - validFromUnixMs) * CERTIFICATE_EXPIRY_WARNING_PART;
  if (leftMs > Math.min(CERTIFICATE_EXPIRY_WARNING_MS, partMs)) return null;
  const days = Math.floor(leftMs / 86_400_000);
  const date = new Date(expiresUnixMs).toISOString();
  return `${section}.certificate: the certificate expires on ${date}, in ${days} days: renew it`;
}

/**
 * Changes with the files, also where a symbolic link is replaced. A file that cannot be looked at
 * has one too: reading it then says why.
 */
function stampOf({ certificate, key }: CertificateFiles): string {
  return [certificate, key].map(stampOfFile).join();
}

function stampOfFile(path: string): string {
  try {
    const { dev, ino, size, mtimeNs } = statSync(path, { bigint: true });
    return `${dev}:${ino}:${size}:${mtimeNs}`;
  } catch (error) {
    return codeOf(error) ?? "unknown";
  }
}
