/**
 * Creates the client certificate that leaders require, and reads one. Pure.
 *
 * A leader takes the Ed25519 key of the only certificate in the chain as the sender's identity and
 * checks nothing else: no issuer, no dates, no purpose. So the certificate is minimal: self-signed
 * X.509 v3 with the same fields as Agave's own clients (`tls-utils/src/tls_certificates.rs`, 4.3,
 * 2026-11), except that its signature is valid.
 */

import { sign, X509Certificate } from "node:crypto";
import { der, pem } from "../../core/der.ts";
import { type Identity, pkcs8Of, privateKeyOf } from "../identity.ts";
import type { TlsIdentity } from "./quiche.ts";

/** Object identifiers as DER content bytes. */
const OID_ED25519 = [0x2b, 0x65, 0x70];
const OID_COMMON_NAME = [0x55, 0x04, 0x03];
const OID_SUBJECT_ALT_NAME = [0x55, 0x1d, 0x11];
const OID_BASIC_CONSTRAINTS = [0x55, 0x1d, 0x13];

/** DER tags of ITU-T X.690. */
const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  oid: 0x06,
  utf8: 0x0c,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
  explicitVersion: 0xa0,
  explicitExtensions: 0xa3,
  dnsName: 0x82,
};

const text = (tag: number, value: string): Uint8Array => der(tag, Buffer.from(value, "latin1"));

function extension(oid: readonly number[], value: Uint8Array): Uint8Array {
  const critical = der(TAG.boolean, [0xff]);
  return der(TAG.sequence, der(TAG.oid, oid), critical, der(TAG.octetString, value));
}

/** The certificate of an identity, as DER. */
export function certificateOf(identity: Identity): Uint8Array {
  const ed25519 = der(TAG.sequence, der(TAG.oid, OID_ED25519));
  const commonName = der(
    TAG.sequence,
    der(TAG.oid, OID_COMMON_NAME),
    text(TAG.utf8, "Solana node"),
  );
  const tbs = der(
    TAG.sequence,
    der(TAG.explicitVersion, der(TAG.integer, [2])),
    der(TAG.integer, [1, 1, 1, 1, 1, 1, 1, 1]),
    ed25519,
    der(TAG.sequence, der(TAG.set, commonName)),
    der(
      TAG.sequence,
      text(TAG.utcTime, "700101000000Z"),
      text(TAG.generalizedTime, "40960101000000Z"),
    ),
    der(TAG.sequence),
    der(TAG.sequence, ed25519, der(TAG.bitString, [0], identity.publicKey)),
    der(
      TAG.explicitExtensions,
      der(
        TAG.sequence,
        extension(OID_SUBJECT_ALT_NAME, der(TAG.sequence, text(TAG.dnsName, "localhost"))),
        extension(OID_BASIC_CONSTRAINTS, der(TAG.sequence)),
      ),
    ),
  );
  const signature = sign(null, tbs, privateKeyOf(identity.seed));
  return der(TAG.sequence, tbs, ed25519, der(TAG.bitString, [0], signature));
}

/** Certificate and key of an identity, as PEM for the TLS library. */
export function tlsIdentityOf(identity: Identity): TlsIdentity {
  return {
    certificate: pem("CERTIFICATE", certificateOf(identity)),
    key: pem("PRIVATE KEY", pkcs8Of(identity.seed)),
  };
}

/**
 * The identity in a certificate chain: its 32-byte Ed25519 key, or null when the chain is not
 * exactly one certificate with such a key, which leaders treat as unstaked.
 */
export function peerKeyOf(chain: readonly Uint8Array[] | null): Uint8Array | null {
  const [leaf] = chain ?? [];
  if (leaf === undefined || chain?.length !== 1) return null;
  try {
    const key = new X509Certificate(leaf).publicKey;
    if (key.asymmetricKeyType !== "ed25519") return null;
    return Uint8Array.from(key.export({ format: "der", type: "spki" }).subarray(-32));
  } catch {
    // The bytes come from the other side: an unreadable certificate has no key.
    return null;
  }
}
