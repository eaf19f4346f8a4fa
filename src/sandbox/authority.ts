/**
 * A certificate authority that no client trusts by default, with a new key, and certificates that
 * it signs for servers on 127.0.0.1. Keys are Ed25519, so that the DER is short.
 */

import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { der, pem } from "../core/der.ts";

export interface Authority {
  /** PEM. */
  readonly certificate: string;
  /** A certificate for 127.0.0.1 with a key of its own, valid during that time. */
  issue(fromMs: number, toMs: number): Issued;
}

/** What a server presents, and its private key; both PEM. */
export interface Issued {
  readonly certificate: string;
  readonly key: string;
}

export function createAuthority(): Authority {
  const own = generateKeyPairSync("ed25519");
  return {
    certificate: certificate(NAME, own.publicKey, own.privateKey, AUTHORITY_ITSELF, ALWAYS),
    issue(fromMs, toMs) {
      const { publicKey, privateKey } = generateKeyPairSync("ed25519");
      const period = [fromMs, toMs] as const;
      return {
        certificate: certificate(SERVER_NAME, publicKey, own.privateKey, FOR_LOOPBACK, period),
        key: privateKey.export({ format: "pem", type: "pkcs8" }).toString(),
      };
    },
  };
}

const SEQUENCE = 0x30;
const ED25519 = der(SEQUENCE, der(0x06, [0x2b, 0x65, 0x70]));
const COMMON_NAME = der(0x06, [0x55, 0x04, 0x03]);
/** The authority's is critical and marks it as one. */
const AUTHORITY_ITSELF = der(
  SEQUENCE,
  der(0x06, [0x55, 0x1d, 0x13]),
  der(0x01, [0xff]),
  der(0x04, der(SEQUENCE, der(0x01, [0xff]))),
);
const FOR_LOOPBACK = der(
  SEQUENCE,
  der(0x06, [0x55, 0x1d, 0x11]),
  der(0x04, der(SEQUENCE, der(0x87, [127, 0, 0, 1]))),
);

function name(text: string): Uint8Array {
  const attribute = der(SEQUENCE, COMMON_NAME, der(0x0c, Buffer.from(text)));
  return der(SEQUENCE, der(0x31, attribute));
}

/** PEM of a certificate for `subject` that the authority's key signs. */
function certificate(
  subject: string,
  of: KeyObject,
  by: KeyObject,
  extension: Uint8Array,
  [from, to]: readonly [number, number],
): string {
  /** As YYMMDDHHMMSSZ. */
  const date = (ms: number): Uint8Array =>
    der(0x17, Buffer.from(`${new Date(ms).toISOString().slice(2, 19).replaceAll(/[-:T]/g, "")}Z`));
  const body = der(
    SEQUENCE,
    der(0xa0, der(0x02, [2])),
    der(0x02, [1]),
    ED25519,
    name(NAME),
    der(SEQUENCE, date(from), date(to)),
    name(subject),
    of.export({ format: "der", type: "spki" }),
    der(0xa3, der(SEQUENCE, extension)),
  );
  return pem("CERTIFICATE", der(SEQUENCE, body, ED25519, der(0x03, [0], sign(null, body, by))));
}

/** UTCTime has two digits of the year, those of 1950 to 2049 (RFC 5280, section 4.1.2.5.1). */
const ALWAYS = [Date.UTC(2020, 0), Date.UTC(2049, 11, 31, 23, 59, 59)] as const;
const NAME = "an authority of one's own";
const SERVER_NAME = "a server of one's own";
