/**
 * What `doctor` checks about `[http.tls]` and `[quic.tls]`: the pair of certificate and key, how
 * long it is valid, the chain up to an authority that clients know, the names, who can read the
 * key, and whether the running edge presents that of `[http.tls]`.
 */

import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { isIP } from "node:net";
import { connect, rootCertificates } from "node:tls";
import type { Config } from "../../config/config.ts";
import { formatListen } from "../../config/value-types.ts";
import type { Clock } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import {
  type CertificateFiles,
  certificateFilesOf,
  expiryWarning,
  readCertificate,
  validityOf,
} from "../../edge/certificate.ts";
import { DOCTOR_RESPONSE_MS_MAX } from "../limits.ts";
import { localAddress } from "../ready.ts";
import { type Finding, findingsOf } from "./finding.ts";

const { ok, warning, error } = findingsOf("tls");

/** Nothing of a section that is not given. `authorities`: PEM, those that clients know. */
export async function tlsFindings(
  clock: Clock,
  http: Pick<Config["http"], "listen" | "tls">,
  quic: Pick<Config["quic"], "listen" | "tls">,
  authorities: readonly string[] = rootCertificates,
): Promise<readonly Finding[]> {
  const unixMs = clock.unixMs();
  const files = certificateFilesOf({ http, quic });
  const ofHttp = files.http === null ? [] : fileFindings(files.http, authorities, unixMs);
  const ofQuic = files.quic === null ? [] : fileFindings(files.quic, authorities, unixMs);
  const isUsed = files.http !== null && ofHttp[0]?.level !== "error";
  return [
    ...ofHttp,
    ...(isUsed ? await presented(clock, http.listen, leafOf(files.http)) : []),
    ...ofQuic,
    ...(quic.listen === null || (files.http ?? files.quic) !== null ? [] : [unverifiable()]),
  ];
}

function fileFindings(
  tls: CertificateFiles,
  authorities: readonly string[],
  unixMs: number,
): readonly Finding[] {
  const pair = pairOf(tls, unixMs);
  if (pair.level === "error") return named(tls, [pair]);
  const leaf = leafOf(tls);
  const chain = blocksOf(readFileSync(tls.certificate, "utf8"));
  return named(tls, [
    pair,
    keyKind(tls.key),
    keyFile(tls.key),
    expiry(tls, leaf, unixMs),
    chainOf(tls.certificate, chain, authorities, unixMs),
    names(tls.certificate, leaf),
  ]);
}

/** Those of the certificate for QUIC clients have names of their own. */
function named({ section }: CertificateFiles, findings: readonly Finding[]): readonly Finding[] {
  if (section === "http.tls") return findings;
  return findings.map((finding) => ({ ...finding, check: `quic_${finding.check}` }));
}

/** The server's own certificate, which is the first one. */
function leafOf({ certificate }: CertificateFiles): X509Certificate {
  return new X509Certificate(readFileSync(certificate));
}

function unverifiable(): Finding {
  return warning(
    "quic_pair",
    "quic.listen is given, and neither quic.tls nor http.tls",
    "touchdown/1 clients cannot verify this edge, and then send no API key",
    "quic.tls.certificate and quic.tls.key, with a name that clients use",
  );
}

/** As the start reads them; the engine's own judgement of the key is in the area `start`. */
function pairOf(tls: CertificateFiles, unixMs: number): Finding {
  try {
    readCertificate(tls, null, unixMs);
    return ok("pair", `${tls.key} is the key of the first certificate in ${tls.certificate}`);
  } catch (cause) {
    return error(
      "pair",
      messageOf(cause),
      "the edge does not start; one that runs keeps the certificate that it has",
      `openssl x509 -in ${tls.certificate} -noout -subject -dates -ext subjectAltName`,
    );
  }
}

function keyKind(path: string): Finding {
  const kind = createPrivateKey(readFileSync(path)).asymmetricKeyType ?? "unknown";
  if (kind !== "rsa") return ok("key_kind", kind);
  return warning(
    "key_kind",
    "the key is RSA",
    "a full handshake takes nearly four times the processor time of one with ECDSA P-256",
    "a certificate with an ECDSA key, such as `certbot renew --key-type ecdsa --force-renewal`",
  );
}

function keyFile(path: string): Finding {
  if ((statSync(path).mode & OTHERS_READ) === 0) return ok("key_file", "others cannot read it");
  return warning(
    "key_file",
    `each user of this host can read ${path}`,
    "who has the key can pose as this edge",
    `chmod o-r ${path}`,
  );
}

const OTHERS_READ = 0o004;

function expiry(tls: CertificateFiles, leaf: X509Certificate, unixMs: number): Finding {
  const validity = validityOf(leaf);
  const soon = expiryWarning(tls, validity, unixMs);
  const end = new Date(validity.expiresUnixMs).toISOString();
  if (soon === null) return ok("expiry", `valid until ${end}`);
  return warning(
    "expiry",
    soon,
    "from then on each client that verifies it fails, and the edge does not start",
    `renew ${tls.certificate}; the edge reads it within 20 s. With certbot: \`certbot renew\``,
  );
}

/** The certificates of a PEM file. */
function blocksOf(pem: string): readonly string[] {
  return pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
}

function chainOf(
  path: string,
  chain: readonly string[],
  authorities: readonly string[],
  unixMs: number,
): Finding {
  const costs = "clients without the missing certificates, which are most programs, do not connect";
  const fix = `put the server's own certificate into ${path}, then its issuer's, then that one's`;
  let last: X509Certificate | null = null;
  for (const [index, block] of chain.entries()) {
    const place = `certificate ${index + 1} of ${chain.length} in ${path}`;
    const next = parsedOrNull(block);
    if (next === null) return warning("chain", `${place} cannot be read`, costs, fix);
    if (last !== null && !isIssuedBy(last, next)) {
      return warning("chain", `${place} is not the issuer of the one before`, costs, fix);
    }
    if (Date.parse(next.validTo) <= unixMs) {
      return warning("chain", `${place} expired on ${next.validTo}`, costs, "renew it");
    }
    last = next;
  }
  return last === null
    ? warning("chain", `${path} is empty`, costs, fix)
    : topOf(last, authorities);
}

/** Whether clients know an authority at the end of the chain. */
function topOf(last: X509Certificate, authorities: readonly string[]): Finding {
  const known = authorities.some((pem) => {
    const authority = parsedOrNull(pem);
    return authority !== null && (isIssuedBy(last, authority) || authority.raw.equals(last.raw));
  });
  if (known) return ok("chain", "leads to an authority of Mozilla's list");
  const isOwn = last.issuer === last.subject;
  return warning(
    "chain",
    isOwn
      ? `it ends with ${nameOf(last.subject)}, which is its own issuer and not in Mozilla's list`
      : `the issuer of its last certificate, ${nameOf(last.issuer)}, is neither in it nor in ` +
          "Mozilla's list",
    "only clients that were given this authority connect",
    isOwn
      ? "a certificate of a public authority, or have clients trust this one"
      : "the chain with all intermediate certificates: `fullchain.pem` of certbot, not `cert.pem`",
  );
}

function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}

function parsedOrNull(pem: string): X509Certificate | null {
  try {
    return new X509Certificate(pem);
  } catch {
    // The caller says which one it is.
    return null;
  }
}

/** The lines of a name in one. */
function nameOf(name: string): string {
  return name.split("\n").join(", ");
}

function names(path: string, leaf: X509Certificate): Finding {
  if (leaf.subjectAltName !== undefined) return ok("names", leaf.subjectAltName);
  return error(
    "names",
    `the certificate in ${path} has no subjectAltName, only ${nameOf(leaf.subject)}`,
    "clients compare the names there with the one that they connect to, and refuse it",
    "a certificate with the name that clients use as DNS name in subjectAltName",
  );
}

/** What the edge at `http.listen` presents; nothing if none listens there. */
async function presented(
  clock: Clock,
  listen: Config["http"]["listen"],
  leaf: X509Certificate,
): Promise<readonly Finding[]> {
  const { host, port } = localAddress(listen);
  if (port === 0) return [];
  const served = await certificateAt(clock, host, port);
  const at = formatListen(listen);
  if (served === null) return [];
  if (served.equals(leaf.raw)) return [ok("presented", `the edge at ${at} presents it`)];
  return [
    warning(
      "presented",
      `${at} presents another certificate than the file has`,
      "clients are presented the older one, until it expires",
      "systemctl kill -s HUP touchdown-edge; its log says why, if it refuses the files",
    ),
  ];
}

/** The certificate that a server presents, in DER; null if none does in time. */
function certificateAt(clock: Clock, host: string, port: number): Promise<Buffer | null> {
  const servername = isIP(host) === 0 ? host : "";
  return new Promise((resolve) => {
    // Whatever it presents is compared, not trusted.
    const socket = connect({ host, port, servername, rejectUnauthorized: false });
    const done = (raw: Buffer | null): void => {
      timer.cancel();
      resolve(raw);
      socket.destroy();
    };
    const timer = clock.after(DOCTOR_RESPONSE_MS_MAX, () => done(null));
    socket.once("error", () => done(null));
    socket.once("secureConnect", () => done(socket.getPeerX509Certificate()?.raw ?? null));
  });
}
