/**
 * Certificate authorities that an operator trusts besides those of browsers. Node reads the file
 * named by `NODE_EXTRA_CA_CERTS` itself; the native engine has its own TLS and receives the file's
 * content.
 *
 * As in Node, an unusable file is not fatal: it is logged, because its only later symptom is a node
 * that cannot be reached.
 */

import { readFileSync, statSync } from "node:fs";
import { codeOf } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import type { NativeRpc } from "../native/contract.ts";
import { AUTHORITIES_BYTES_MAX } from "./limits.ts";

/** Reads the file once; null: there is none. Never throws. */
export function trustAuthorities(
  native: Pick<NativeRpc, "rootCertificatesSet">,
  file: string | null,
  log: Log,
): void {
  if (file === null) return;
  let pem: Buffer;
  try {
    const stat = statSync(file);
    const { size } = stat;
    // Node has consumed the content of, say, a pipe, and a second reader would block forever.
    if (!stat.isFile()) {
      log.warn({ file }, `${NAME}: is no file and is not read`);
      return;
    }
    if (size > AUTHORITIES_BYTES_MAX) {
      log.warn({ file, size }, `${NAME}: is above ${AUTHORITIES_BYTES_MAX} B and is not read`);
      return;
    }
    pem = readFileSync(file);
  } catch (error) {
    log.warn({ file, cause: codeOf(error) ?? String(error) }, `${NAME}: cannot be read`);
    return;
  }
  const trusted = native.rootCertificatesSet(pem);
  const found = pem.toString("latin1").match(CERTIFICATE)?.length ?? 0;
  const fields = { file, trusted };
  if (trusted <= 0) log.warn(fields, `${NAME}: holds no certificate that can be read`);
  else if (trusted < found) log.warn({ ...fields, found }, `${NAME}: not all can be read`);
  else log.info(fields, `${NAME}: trusted in addition to Mozilla's authorities`);
}

const NAME = "NODE_EXTRA_CA_CERTS";
/** The start of a certificate in a PEM file, also of one that cannot be parsed. */
const CERTIFICATE = /^-----BEGIN (?:\w+ )?CERTIFICATE-----/gm;
