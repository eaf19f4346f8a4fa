/**
 * The constants that TypeScript and Rust both define. Reads both sources, so that a change of one
 * side alone fails here; a Rust comment that names a constant of TypeScript needs a row.
 */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  HEADERS_JSON,
  HEADERS_TEXT,
  KEY_IN_QUERY_LINE,
  PREFLIGHT_HEADERS,
  rawAccepted,
  rpcResult,
} from "../../src/http/response.ts";
import { keylessResults } from "../../src/http/submit/json-rpc.ts";
import { KEYLESS_METHODS } from "../../src/http/submit/json-rpc-parse.ts";
import { listFiles, ROOT } from "../support/source-tree.ts";

const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");

/** A constant's defining text, by the formatter on one line or indented. */
function definition(path: string, name: string): string | null {
  const form = new RegExp(`\\bconst ${name}(?:: [^=]+)? =\\s+([^;]+);`);
  return form.exec(read(path))?.[1]?.trim() ?? null;
}

const folderOf = (path: string): string => (path.startsWith("native/") ? "native/src" : "src");
const extensionOf = (path: string): string => (path.startsWith("native/") ? ".rs" : ".ts");

/** A string, or a number computed from literals and constants of the same language. */
function constantOf(path: string, name: string): string | number {
  const text = definition(path, name);
  if (text === null) {
    // Imported from another file, which alone defines it.
    const paths = listFiles(folderOf(path), extensionOf(path));
    const places = paths.filter((each) => each !== path && definition(each, name) !== null);
    if (places.length !== 1) throw new Error(`${path}: ${name} is defined ${places.length} times`);
    return constantOf(places[0] ?? "", name);
  }
  if (text.startsWith('"')) return JSON.parse(text) as string;
  const tokens = text.match(/[A-Z][A-Z_0-9]*|\d[\d_.]*|\*\*|<<|[-+*/()]/g) ?? [];
  if (tokens.join("") !== text.replace(/\s/g, "")) throw new Error(`${path}: ${name} = ${text}`);
  return sumOf(tokens, (token) =>
    /^\d/.test(token) ? Number(token.replaceAll("_", "")) : Number(constantOf(path, token)),
  );
}

type Operand = (token: string) => number;

/** Takes a sum off the tokens. */
function sumOf(tokens: string[], operand: Operand): number {
  let sum = productOf(tokens, operand);
  while (tokens[0] === "+" || tokens[0] === "-") {
    const sign = tokens.shift() === "+" ? 1 : -1;
    sum += sign * productOf(tokens, operand);
  }
  return sum;
}

/** Takes a product off the tokens; powers and shifts occur only alone. */
function productOf(tokens: string[], operand: Operand): number {
  let product = factorOf(tokens, operand);
  for (;;) {
    const compute = OPERATORS[tokens[0] ?? ""];
    if (compute === undefined) return product;
    tokens.shift();
    product = compute(product, factorOf(tokens, operand));
  }
}

function factorOf(tokens: string[], operand: Operand): number {
  const token = tokens.shift() ?? "";
  if (token !== "(") return operand(token);
  const value = sumOf(tokens, operand);
  tokens.shift();
  return value;
}

const OPERATORS: Readonly<Record<string, (left: number, right: number) => number>> = {
  "*": (left, right) => left * right,
  "/": (left, right) => left / right,
  "**": (left, right) => left ** right,
  "<<": (left, right) => left * 2 ** right,
};

/** Rust's file and name, then those of TypeScript. */
type Pair = readonly [string, string, string, string];

/** Constants with the same name on both sides. */
const alike = (rust: string, typescript: string, names: string): Pair[] =>
  names.split(" ").map((name) => [rust, name, typescript, name]);

const EQUAL: readonly Pair[] = [
  ["decode/limits.rs", "TRANSACTION_BYTES_MAX", "src/core/limits.ts", "V1_TRANSACTION_BYTES_MAX"],
  ...alike("http/handler.rs", "src/http/limits.ts", "KEYLESS_BODY_BYTES_MAX"),
  ...alike(
    "http/dispatch.rs",
    "src/http/limits.ts",
    "RAW_BODY_BYTES_MAX RPC_BODY_BYTES_MAX UNREAD_BODY_BYTES_MAX",
  ),
  ...alike("http/request_head.rs", "src/http/framing.ts", "LENGTH_DIGITS_MAX"),
  ...alike(
    "http/request_head.rs",
    "src/http/routes.ts",
    "RAW_PATH RPC_PATH PING_PATH ROOT_PATH FAST_PATH",
  ),
  ...alike("decode/diagnosis.rs", "src/decode/limits.ts", "DIAGNOSIS_SAMPLE_BYTES_MAX"),
  ...alike("decode/diagnosis.rs", "src/decode/diagnosis.ts", "ENCODED_LENGTH_MIN"),
  ["decode/base58.rs", "LEGACY_BYTES_MAX", "src/core/limits.ts", "LEGACY_TRANSACTION_BYTES_MAX"],
  ...alike("http/rpc_body.rs", "src/http/submit/json-rpc-parse.ts", "QUOTE_CHARS_MAX"),
  ["quic/limits.rs", "SOCKET_BUFFER_BYTES", "src/cli/doctor/host.ts", "ENGINE_SOCKET_BYTES"],
  ...alike(
    "quic/landed_shares.rs",
    "src/landing/landing-shares.ts",
    "SHARE_START SHARE_ACCOUNTS_MAX",
  ),
  ...alike(
    "quic/stream_window.rs",
    "src/send/stream-window.ts",
    "STREAMS_PER_INTERVAL_MIN INTERVAL_MS SLOW_MS STUCK_MS ROOM ANNOUNCED_SHARE FORGET_MS",
  ),
  ...alike("quic/limits.rs", "src/engine/limits.ts", "SUBMISSION_UNITS_MAX"),
  ...alike("submit/rate_limit.rs", "src/limits/gcra.ts", "THREADS_APART_NS"),
  ...alike(
    "submit/records.rs",
    "src/engine/submission-record.ts",
    "SENT DUPLICATE REJECTED VIOLATED OFFSET NUMBER TARGETS STATUS REASON CORKED VALIDATION " +
      "PLAN UNITS PEERS SENT_NS",
  ),
  ["submit/fan_out.rs", "NUMBERS", "src/send/limits.ts", "DELIVERY_NUMBERS"],
  ...alike("quic/targets.rs", "src/core/limits.ts", "TARGETS_MAX"),
  ...alike("submit/key_table.rs", "src/accounts/limits.ts", "KEYS_MAX"),
  ["submit/key_table.rs", "TOKEN_BYTES_MIN", "src/core/limits.ts", "TOKEN_CHARS_MIN"],
  ["submit/key_table.rs", "TOKEN_BYTES_MAX", "src/core/limits.ts", "TOKEN_CHARS_MAX"],
  ...alike("submit/key_table.rs", "src/engine/submission-record.ts", "ACCOUNT_BYTES_MAX"),
];

/** Related in another way: Rust's number must be what the function returns for TypeScript's. */
const RELATED: readonly (readonly [...Pair, (value: number) => unknown])[] = [
  [
    "submit/records.rs",
    "BYTES_AT",
    "src/engine/submission-record.ts",
    "BYTES_AT",
    (bytes) => bytes / 8,
  ],
];

/** Rust's limit is at least TypeScript's, in the unit that the factor gives. */
const AT_LEAST: readonly (readonly [...Pair, number])[] = [
  ["node/limits.rs", "INGRESS_THREADS_MAX", "src/config/limits.ts", "INGRESS_THREADS_MAX", 1],
  ["quic/limits.rs", "SOCKETS_MAX", "src/config/limits.ts", "SEND_ADDRESSES_MAX", 1],
  ["quic/limits.rs", "QUEUE_MAX", "src/send/limits.ts", "NATIVE_DELIVERIES_IN_FLIGHT_MAX", 1],
  // The coalesced timers come first.
  [
    "quic/limits.rs",
    "OUTCOMES_DELAY_NS_MAX",
    "src/runtime/coalesced-timers.ts",
    "COALESCE_MS",
    1e6,
  ],
];

const rustValue = (file: string, name: string) => constantOf(`native/src/${file}`, name);

describe("a constant of both languages", () => {
  it.each(EQUAL)("is equal: %s %s", (file, name, path, counterpart) => {
    expect(rustValue(file, name)).toBe(constantOf(path, counterpart));
  });

  it.each(RELATED)("is related: %s %s", (file, name, path, counterpart, relation) => {
    expect(rustValue(file, name)).toBe(relation(Number(constantOf(path, counterpart))));
  });

  it.each(AT_LEAST)("is at least as large: %s %s", (file, name, path, counterpart, factor) => {
    const value = Number(constantOf(path, counterpart)) * factor;
    expect(value).toBeGreaterThan(0);
    expect(rustValue(file, name)).toBeGreaterThanOrEqual(value);
  });

  it("is equal where Rust has it inside: dedup.rs", () => {
    const text = read("native/src/submit/dedup.rs");
    const limits = (name: string) => constantOf("src/dedup/limits.ts", name);
    const sizes = /Self \{ entries_max: (.*), bytes_max: (.*), keep_ms: (.*), lock_ms: .* \}/;
    const product = (expression: string) =>
      expression.split("*").reduce((left, right) => left * Number(right.replaceAll("_", "")), 1);
    expect(sizes.exec(text)?.slice(1).map(product)).toEqual([
      limits("DEDUP_TRANSACTIONS_MAX"),
      limits("DEDUP_BYTES_MAX"),
      limits("DEDUP_KEEP_MS"),
    ]);
  });

  it("has a row here if a Rust comment names it", () => {
    const rows = new Set([
      ...EQUAL.map(([, , path, name]) => `${name} of ${path}`),
      ...RELATED.map(([, , path, name]) => `${name} of ${path}`),
      ...AT_LEAST.map(([, , path, name]) => `${name} of ${path}`),
    ]);
    const named = listFiles("native/src", ".rs").flatMap((path) => {
      const comments = read(path).replace(/\n *\/\/[/!]?/g, " ");
      const phrases = comments.matchAll(
        /((?:`[A-Z][A-Z_0-9]+`(?:, | and |, and )?)+) of `(src\/[^`]+)`/g,
      );
      return [...phrases].flatMap(([, names = "", file]) =>
        [...names.matchAll(/`(\w+)`/g)].map(([, name]) => `${name} of ${file}`),
      );
    });
    expect(named.length).toBeGreaterThan(15);
    expect(named.filter((each) => !rows.has(each) && !COMPARED_ELSEWHERE.has(each))).toEqual([]);
  });
});

/** Not single numbers, or compared by a test of this file or of the module. */
const COMPARED_ELSEWHERE: ReadonlySet<string> = new Set([
  "DEDUP_TRANSACTIONS_MAX of src/dedup/limits.ts",
  "DEDUP_BYTES_MAX of src/dedup/limits.ts",
  "DEDUP_KEEP_MS of src/dedup/limits.ts",
  "BEARER of src/http/framing.ts",
  "TEXT of src/http/framing.ts",
  "KEYLESS_METHODS of src/http/submit/json-rpc-parse.ts",
  "KEY_IN_QUERY_LINE of src/http/response.ts",
  "HEADERS_JSON of src/http/response.ts",
  "HEADERS_REJECTION of src/http/response.ts",
  "PREFLIGHT_HEADERS of src/http/response.ts",
  "PUBLIC_KEY_PREFIX of src/accounts/keys/public-key.ts",
  "QUIC_COUNTERS of src/native-ingress/thread-counters.ts",
  "HTTP_COUNTER_NAMES of src/native-ingress/thread-counters.ts",
  "REQUEST_COUNTERS of src/native-ingress/thread-counters.ts",
  "HANDSHAKE_RESULTS of src/native-ingress/thread-counters.ts",
]);

describe("an ingress thread that makes room in a head", () => {
  it("keeps every header that the HTTP server reads", () => {
    const list = /READ_HEADERS: [^=]*= \[([^\]]*)\]/.exec(read("native/src/http/header_room.rs"));
    const kept = [...(list?.[1] ?? "").matchAll(/b"([\w-]+)"/g)].map(([, name]) => name);
    const framing = read("src/http/framing.ts");
    const visited = [...framing.matchAll(/case "([\w-]+)"/g)].map(([, name]) => name);
    const server = read("src/http/server.ts");
    const asked = [...server.matchAll(/getHeader\("([\w-]+)"\)/g)].map(([, name]) => name);
    expect(visited.length + asked.length).toBeGreaterThanOrEqual(5);
    expect(kept).toEqual(expect.arrayContaining([...visited, ...asked]));
  });
});

describe("a method that needs no key", () => {
  it("is getHealth, which the engine knows, or has a result that the engine gets", () => {
    const results = keylessResults({ tipAccounts: [], version: "" });
    expect(["getHealth", ...results.map(({ method }) => method)]).toEqual(KEYLESS_METHODS);
    expect(read("native/src/http/rpc_body.rs")).toContain('name.is_text("getHealth")');
  });
});

describe("the responses of an ingress thread", () => {
  const text = read("native/src/http/response.rs");
  /** A byte string, which continues after a backslash at the end of a line. */
  const bytes = (name: string): string => {
    const literal = new RegExp(`const ${name}: &\\[u8\\] = b"([\\s\\S]*?)";`).exec(text)?.[1] ?? "";
    return JSON.parse(`"${literal.replace(/\\\n\s*/g, "")}"`) as string;
  };
  const parts = (name: string): string[] => {
    const list =
      new RegExp(`const ${name}: \\[&\\[u8\\]; \\d\\] = \\[(.*)\\];`).exec(text)?.[1] ?? "";
    return [...list.matchAll(/br#"(.*?)"#/g)].map(([, part = ""]) => part);
  };

  it("have the headers of the main thread's", () => {
    const json = `HTTP/1.1 200 OK\r\ncontent-type: ${HEADERS_JSON}\r\n`;
    expect(`${bytes("HEAD")}\r\n`).toBe(json);
    expect(bytes("HEAD_TEXT")).toBe(`HTTP/1.1 200 OK\r\ncontent-type: ${HEADERS_TEXT}`);
  });

  it("have the warning of the main thread's", () => {
    expect(bytes("KEY_IN_QUERY_LINE")).toBe(KEY_IN_QUERY_LINE);
  });

  it("have the bodies of the main thread's", () => {
    expect(parts("RAW").join("SIGNATURE")).toBe(rawAccepted("SIGNATURE"));
    const [start = "", middle = "", end = ""] = parts("RPC");
    expect(`${start}RESULT${middle}7${end}`).toBe(rpcResult("7", "RESULT"));
  });

  /** A string, which continues after a backslash at the end of a line. */
  const string = (name: string): string => {
    const literal = new RegExp(`const ${name}: &str =\\s+"([\\s\\S]*?)";`).exec(text)?.[1] ?? "";
    return JSON.parse(`"${literal.replace(/\\\n\s*/g, "")}"`) as string;
  };

  it("have the preflight of the main thread's, as the connection's last response", () => {
    const lines = PREFLIGHT_HEADERS.map(([name, value]) => `${name}: ${value}\r\n`).join("");
    expect(string("PREFLIGHT")).toBe(
      `HTTP/1.1 204 No Content\r\n${lines}Connection: close\r\n\r\n`,
    );
  });
});
