/**
 * Builds the packet with which a server rejects a client before any handshake: an Initial that
 * closes with a transport code, as Agave sends when it is full. The quiche binding cannot build
 * one; it would close with keys that the client does not have yet. Initial keys are not secret:
 * they derive from the connection id that the client chose (RFC 9001 section 5.2, checked 2026-11).
 */

import { createCipheriv, createHmac } from "node:crypto";

const VERSION_1 = 1;
const INITIAL_SALT = Buffer.from("38762cf7f55934b34d179ae6a4c80cadccbb7f0a", "hex");
/** A long header, Initial, with a packet number of four bytes. RFC 9000 section 17.2.2. */
const FIRST_BYTE = 0xc3;
const PACKET_NUMBER_BYTES = 4;
const TAG_BYTES = 16;
const CONNECTION_CLOSE = 0x1c;
/** Marks a length in two bytes. RFC 9000 section 16. */
const TWO_BYTES = 0x4000;

export interface InitialIds {
  /** Chosen by the client for the server. */
  readonly dcid: Uint8Array;
  /** The client's own. */
  readonly scid: Uint8Array;
}

/** The complete datagram; `code` is below 64. */
export function initialClose({ dcid, scid }: InitialIds, code: number): Buffer {
  const frame = Buffer.from([CONNECTION_CLOSE, code, 0, 0]);
  const length = Buffer.alloc(2);
  length.writeUInt16BE(TWO_BYTES | (PACKET_NUMBER_BYTES + frame.length + TAG_BYTES));
  const version = Buffer.alloc(4);
  version.writeUInt32BE(VERSION_1);
  const number = Buffer.alloc(PACKET_NUMBER_BYTES);
  const ids = [Buffer.from([scid.length]), scid, Buffer.from([dcid.length]), dcid];
  const noToken = Buffer.from([0]);
  const header = Buffer.concat([
    Buffer.from([FIRST_BYTE]),
    version,
    ...ids,
    noToken,
    length,
    number,
  ]);

  const initial = createHmac("sha256", INITIAL_SALT).update(dcid).digest();
  const secret = expand(initial, "server in", 32);
  // Packet number 0 leaves the nonce unchanged.
  const seal = createCipheriv("aes-128-gcm", expand(secret, "quic key", 16), expandIv(secret));
  seal.setAAD(header);
  const sealed = Buffer.concat([seal.update(frame), seal.final(), seal.getAuthTag()]);

  const hide = createCipheriv("aes-128-ecb", expand(secret, "quic hp", 16), null);
  // The sample starts where the frame would with the longest packet number, which this one has.
  const mask = hide.update(sealed.subarray(0, 16));
  header[0] = (header[0] ?? 0) ^ ((mask[0] ?? 0) & 0x0f);
  const at = header.length - PACKET_NUMBER_BYTES;
  for (let index = 0; index < PACKET_NUMBER_BYTES; index += 1) {
    header[at + index] = (header[at + index] ?? 0) ^ (mask[1 + index] ?? 0);
  }
  return Buffer.concat([header, sealed]);
}

function expandIv(secret: Buffer): Buffer {
  return expand(secret, "quic iv", 12);
}

/** HKDF-Expand-Label for outputs of one block. RFC 8446 section 7.1. */
function expand(secret: Buffer, label: string, size: number): Buffer {
  const name = Buffer.from(`tls13 ${label}`);
  const info = Buffer.concat([Buffer.from([0, size, name.length]), name, Buffer.from([0, 1])]);
  return createHmac("sha256", secret).update(info).digest().subarray(0, size);
}
