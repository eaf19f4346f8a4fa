/**
 * The certificate authorities that an operator trusts beside those of browsers. Node reads the file
 * that `NODE_EXTRA_CA_CERTS` names by itself; the native engine has a TLS of its own and is given
 * what the file holds.
 *
 * A file that is of no use ends nothing here, as in Node: it is told, because what is seen of it
 * later is a node that cannot be asked.
 */

import { readFileSync, statSync } from "node:fs";
import { codeOf } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import type { NativeRpc } from "../native/contract.ts";
import { AUTHORITIES_BYTES_MAX } from "./limits.ts";

/** Reads the file once; null: there is none. Nothing is thrown. */
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
    // Of a pipe, say, Node has taken what there was, and a second reader would wait for ever.
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
  else log.info(fields, `${NAME}: trusted beside Mozilla's authorities`);
}

const NAME = "NODE_EXTRA_CA_CERTS";
/** Where one begins in a PEM file, also in a form that is not read. */
const CERTIFICATE = /^-----BEGIN (?:\w+ )?CERTIFICATE-----/gm;
