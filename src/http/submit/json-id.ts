/**
 * The id of a JSON-RPC call as the text that the caller wrote.
 *
 * `id` is echoed with its value and type. A number beyond 2^53 loses its last digits as a double,
 * and clients such as `@solana/kit` do send big integers. Where a double may not hold the number,
 * its text is located in the request, which is known to be valid JSON by then.
 */
/**
 * The id as JSON text; null when it is missing or neither string, number nor null. `text` is the
 * complete request, `index` the call's index in the batch, -1 for a single call.
 */
export function idText(call: object, text: string, index: number): string | null {
  if (!Object.hasOwn(call, "id")) return null;
  const id: unknown = "id" in call ? call.id : undefined;
  if (id === null) return "null";
  if (typeof id === "string") return JSON.stringify(id);
  if (typeof id !== "number") return null;
  if (Number.isSafeInteger(id)) return String(id);
  return numberText(text, index) ?? (Number.isFinite(id) ? String(id) : null);
}

/** The text of the number under the key "id" in the call at `index`; the last one counts. */
function numberText(text: string, index: number): string | null {
  const callDepth = index < 0 ? 1 : 2;
  let depth = 0;
  let element = 0;
  let found: string | null = null;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      const end = stringEnd(text, at);
      const isKey = depth === callDepth && (index < 0 || element === index);
      if (isKey && isIdKey(text.slice(at, end))) found = numberAfterColon(text, end) ?? found;
      at = end - 1;
    } else if (code === BRACE_OPEN || code === BRACKET_OPEN) depth += 1;
    else if (code === BRACE_CLOSE || code === BRACKET_CLOSE) depth -= 1;
    else if (code === COMMA && depth === 1 && index >= 0) element += 1;
  }
  return found;
}

/** The index after the closing quote of the string that starts at `start`. */
function stringEnd(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text.charCodeAt(at) !== QUOTE) {
    at += text.charCodeAt(at) === BACKSLASH ? 2 : 1;
  }
  return at + 1;
}

function isIdKey(quoted: string): boolean {
  return quoted === '"id"' || (quoted.includes("\\") && JSON.parse(quoted) === "id");
}

/** The number after `: `; null when no colon or no number follows. */
function numberAfterColon(text: string, from: number): string | null {
  NUMBER_AFTER_COLON.lastIndex = from;
  return NUMBER_AFTER_COLON.exec(text)?.[1] ?? null;
}

const NUMBER_AFTER_COLON = /[ \t\r\n]*:[ \t\r\n]*(-?[0-9][0-9.eE+-]*)/y;
const QUOTE = 0x22;
const COMMA = 0x2c;
const BRACKET_OPEN = 0x5b;
const BACKSLASH = 0x5c;
const BRACKET_CLOSE = 0x5d;
const BRACE_OPEN = 0x7b;
const BRACE_CLOSE = 0x7d;
