/**
 * Reads a client's first message: the ClientHello in its first Initial packet, whose keys follow
 * from the connection id that it chose (RFC 9001 section 5.2). Throws where the first datagram does
 * not hold all of it.
 */

import { createCipheriv, createDecipheriv, createHmac } from "node:crypto";

export interface ClientHello {
  readonly datagramBytes: number;
  /** In the client's order. */
  readonly cipherSuites: readonly number[];
  /** The groups of its key shares. */
  readonly keyShares: readonly number[];
  readonly protocols: readonly string[];
}

const INITIAL_SALT = Buffer.from("38762cf7f55934b34d179ae6a4c80cadccbb7f0a", "hex");
const TAG_BYTES = 16;
const [PADDING, PING, CRYPTO] = [0x00, 0x01, 0x06];
/** RFC 8446 section 4.2, RFC 7301. */
const [ALPN, KEY_SHARE] = [16, 51];

export function readClientHello(datagram: Buffer): ClientHello {
  return { datagramBytes: datagram.length, ...parse(cryptoOf(open(datagram))) };
}

class Reader {
  at = 0;
  readonly bytes: Buffer;
  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }
  get left(): number {
    return this.bytes.length - this.at;
  }
  take(size: number): Buffer {
    if (size > this.left) throw new RangeError(`${size} bytes wanted, ${this.left} are left`);
    this.at += size;
    return this.bytes.subarray(this.at - size, this.at);
  }
  number(size: number): number {
    return this.take(size).readUIntBE(0, size);
  }
  /** RFC 9000 section 16. */
  varint(): number {
    const first = this.number(1);
    let value = first & 0x3f;
    for (let left = (1 << (first >> 6)) - 1; left > 0; left -= 1) {
      value = value * 256 + this.number(1);
    }
    return value;
  }
  /** The bytes that a length of that size prefixes. */
  part(lengthBytes: number): Reader {
    return new Reader(this.take(this.number(lengthBytes)));
  }
}

/** The decrypted payload of the Initial packet. */
function open(datagram: Buffer): Buffer {
  const packet = Buffer.from(datagram);
  const header = new Reader(packet);
  header.take(5);
  const dcid = header.part(1).bytes;
  header.part(1);
  header.take(header.varint());
  const size = header.varint();
  const numberAt = header.at;
  const initial = createHmac("sha256", INITIAL_SALT).update(dcid).digest();
  const secret = expand(initial, "client in", 32);
  const hide = createCipheriv("aes-128-ecb", expand(secret, "quic hp", 16), null);
  const mask = hide.update(packet.subarray(numberAt + 4, numberAt + 20));
  packet[0] = (packet[0] ?? 0) ^ ((mask[0] ?? 0) & 0x0f);
  const numberBytes = ((packet[0] ?? 0) & 3) + 1;
  const nonce = Buffer.from(expand(secret, "quic iv", 12));
  for (let index = 0; index < numberBytes; index += 1) {
    const at = numberAt + index;
    packet[at] = (packet[at] ?? 0) ^ (mask[1 + index] ?? 0);
    const place = nonce.length - numberBytes + index;
    nonce[place] = (nonce[place] ?? 0) ^ (packet[at] ?? 0);
  }
  const sealed = packet.subarray(numberAt + numberBytes, numberAt + size);
  const unseal = createDecipheriv("aes-128-gcm", expand(secret, "quic key", 16), nonce);
  unseal.setAAD(packet.subarray(0, numberAt + numberBytes));
  unseal.setAuthTag(sealed.subarray(-TAG_BYTES));
  return Buffer.concat([unseal.update(sealed.subarray(0, -TAG_BYTES)), unseal.final()]);
}

/** The contents of its CRYPTO frames, in order. */
function cryptoOf(payload: Buffer): Buffer {
  const frames = new Reader(payload);
  const pieces: { readonly offset: number; readonly bytes: Buffer }[] = [];
  while (frames.left > 0) {
    const kind = frames.number(1);
    if (kind === PADDING || kind === PING) continue;
    if (kind !== CRYPTO) throw new RangeError(`a frame of kind ${kind}`);
    const offset = frames.varint();
    pieces.push({ offset, bytes: frames.take(frames.varint()) });
  }
  pieces.sort((a, b) => a.offset - b.offset);
  return Buffer.concat(pieces.map(({ bytes }) => bytes));
}

/** RFC 8446 section 4.1.2. */
function parse(message: Buffer): Omit<ClientHello, "datagramBytes"> {
  const outer = new Reader(message);
  if (outer.number(1) !== 1) throw new RangeError("no ClientHello");
  const hello = outer.part(3);
  hello.take(2 + 32);
  hello.part(1);
  const suites = hello.part(2);
  const cipherSuites: number[] = [];
  while (suites.left > 0) cipherSuites.push(suites.number(2));
  hello.part(1);
  const extensions = hello.part(2);
  const keyShares: number[] = [];
  const protocols: string[] = [];
  while (extensions.left > 0) {
    const kind = extensions.number(2);
    const body = extensions.part(2);
    const list = kind === KEY_SHARE || kind === ALPN ? body.part(2) : body;
    while (kind === KEY_SHARE && list.left > 0) {
      keyShares.push(list.number(2));
      list.part(2);
    }
    while (kind === ALPN && list.left > 0) protocols.push(list.part(1).bytes.toString());
  }
  return { cipherSuites, keyShares, protocols };
}

/** HKDF-Expand-Label for outputs of one block. RFC 8446 section 7.1. */
function expand(secret: Buffer, label: string, size: number): Buffer {
  const name = Buffer.from(`tls13 ${label}`);
  const info = Buffer.concat([Buffer.from([0, size, name.length]), name, Buffer.from([0, 1])]);
  return createHmac("sha256", secret).update(info).digest().subarray(0, size);
}
