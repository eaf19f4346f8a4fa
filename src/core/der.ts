/** Writes DER (ITU-T X.690) and PEM (RFC 7468). */

/** One DER element; contents are shorter than 65536 bytes. */
export function der(
  tag: number,
  ...parts: readonly (Uint8Array | readonly number[])[]
): Uint8Array<ArrayBuffer> {
  const content = Buffer.concat(parts.map((part) => Uint8Array.from(part)));
  const size = content.length;
  if (size < 0x80) return Buffer.concat([Uint8Array.of(tag, size), content]);
  if (size < 0x100) return Buffer.concat([Uint8Array.of(tag, 0x81, size), content]);
  return Buffer.concat([Uint8Array.of(tag, 0x82, size >> 8, size & 0xff), content]);
}

/** These bytes as PEM under a label, such as `CERTIFICATE`. */
export function pem(label: string, bytes: Uint8Array): string {
  const lines = Buffer.from(bytes)
    .toString("base64")
    .replaceAll(/.{1,64}/g, "$&\n");
  return `-----BEGIN ${label}-----\n${lines}-----END ${label}-----\n`;
}
