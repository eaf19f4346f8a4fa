/**
 * A value that is one address or several: a string or an array of strings in TOML; a
 * comma-separated list in an environment variable. The order is kept.
 */

import { formatListen, type Kind, type ListenAddress, listen } from "./value-types.ts";

/** Up to `countMax` distinct addresses "ip:port"; port 0 is any free port. */
export function addressList(countMax: number): Kind<readonly ListenAddress[]> {
  const one = listen(true);
  return {
    name: "address or array of addresses",
    bounds: `1 to ${countMax}; ${one.bounds}`,
    read(raw, directory) {
      const items: readonly unknown[] = Array.isArray(raw) ? raw : [raw];
      if (items.length < 1 || items.length > countMax) {
        const message = `must be an address or 1 to ${countMax} of them, has ${items.length}`;
        return { kind: "problem", message };
      }
      const addresses: ListenAddress[] = [];
      for (const item of items) {
        const reading = one.read(item, directory);
        if (reading.kind === "problem") return reading;
        const text = formatListen(reading.value);
        // Port 0 twice means two sockets, a named port only one.
        const isTwice = addresses.some((other) => formatListen(other) === text);
        if (isTwice && reading.value.port !== 0) {
          return { kind: "problem", message: `must not name an address twice: ${text}` };
        }
        addresses.push(reading.value);
      }
      return { kind: "ok", value: Object.freeze(addresses) };
    },
    fromText: (text) =>
      text.includes(",") ? text.split(",").map((item) => item.trim()) : text.trim(),
    show: (value) => {
      const texts = value.map(formatListen);
      return texts.length === 1 ? (texts[0] ?? "") : texts;
    },
  };
}
