/**
 * Makes native/src/http/rejection_table.rs: the reasons, headers and messages of rejections, as the
 * native engine writes them, from the tables of `src/core`, `src/http` and `src/limits`. `npm run
 * docs` writes the file, a test compares it.
 */

import {
  DECODE_ERROR,
  DECODE_ERROR_COUNT,
  reasonOf,
  rejectionOf,
} from "../../src/core/decode-errors.ts";
import {
  BUSY_REJECTION,
  bodyTooLargeMessage,
  DRAINING_REJECTION,
  INTERNAL_REJECTION,
  LEADERS_FULL_REJECTION,
  NO_LEADER_REJECTION,
  REJECTIONS,
  type Rejection,
  type RejectionReason,
  RING_FULL_REJECTION,
  rateLimitMessage,
} from "../../src/core/errors.ts";
import { RPC_BATCH_CALLS_MAX, STATUS_MESSAGE_CHARS_MAX } from "../../src/http/limits.ts";
import { NO_EXTRAS, rejectionHeaders, rejectionStatus } from "../../src/http/response.ts";
import { FOREIGN_METHODS, RPC_MESSAGES } from "../../src/http/submit/json-rpc-messages.ts";
import { KEY_MESSAGES } from "../../src/limits/key-messages.ts";

export const RUST_TABLE = "native/src/http/rejection_table.rs";

/** A text, and at odd places the number of the value that is inserted there. */
export type Template = readonly (string | number)[];

// The keys of REJECTIONS, which `Object.keys` types as plain strings.
const REASONS = Object.keys(REJECTIONS) as readonly RejectionReason[];

/** Numbers that occur in no message by themselves. */
const FOUND = 0x123457;
const NEEDED = 0x765431;

/** The values of a decode error's message, in the order of `MessageValue` in Rust. */
export function decodeValues(found: number, needed: number): readonly string[] {
  const hex = (value: number) => `0x${value.toString(16).padStart(2, "0")}`;
  return [`${found}`, `${needed}`, `${found + 1}`, hex(found), hex(needed)];
}

/** Cuts `text` where one of the values stands. */
export function templateOf(text: string, values: readonly string[]): Template {
  const parts: (string | number)[] = [];
  let rest = text;
  while (rest !== "") {
    const places = values.map((value) => rest.indexOf(value));
    const found = places.filter((place) => place >= 0);
    if (found.length === 0) break;
    const first = Math.min(...found);
    const index = places.indexOf(first);
    if (first > 0) parts.push(rest.slice(0, first));
    parts.push(index);
    rest = rest.slice(first + (values[index] ?? "").length);
  }
  return rest === "" ? parts : [...parts, rest];
}

/** What Rust makes of a template. */
export const rendered = (template: Template, values: readonly string[]): string =>
  template.map((part) => (typeof part === "number" ? (values[part] ?? "") : part)).join("");

/** The template of each decode error, and that for `found` = 0. */
export function decodeTemplates(errorCode: number): readonly [Template, Template] {
  const messageOf = (found: number) =>
    rejectionOf({ kind: "rejected", errorCode, found, needed: NEEDED }).message;
  const usual = templateOf(messageOf(FOUND), decodeValues(FOUND, NEEDED));
  const isSame = rendered(usual, decodeValues(0, NEEDED)) === messageOf(0);
  // A text without values: a found 0 cannot be told from another digit.
  return [usual, isSame ? usual : [messageOf(0)]];
}

const VALUES = ["<0>", "<1>", "<2>", "<3>"];

/** The template of a function that only inserts its arguments. */
export function templateOfCall(message: (...values: never[]) => string): Template {
  // Every function here takes texts.
  return templateOf((message as (...values: string[]) => string)(...VALUES), VALUES);
}

const rustName = (name: string): string =>
  name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
const variantOf = (reason: string): string =>
  reason.replace(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase());

const literal = (text: string): string =>
  `"${text
    .replaceAll("\\", "\\\\")
    .replaceAll('"', '\\"')
    .replaceAll("\r", "\\r")
    .replaceAll("\n", "\\n")}"`;

/** The form of `message_template.rs`: `{0}` for the value 0. */
export function templateText(template: Template): string {
  for (const part of template) {
    if (typeof part === "string" && /\{\d\}/.test(part)) {
      throw new RangeError(`the text ${JSON.stringify(part)} looks as if it had a value`);
    }
  }
  return template.map((part) => (typeof part === "number" ? `{${part}}` : part)).join("");
}

const NOTHING = { message: "", data: {} };

/** `HTTP/1.1 400 Bad Request`, for the status of the endpoint. */
function statusOf(status: number, reason: RejectionReason): string {
  const text = rejectionStatus(status, { reason, ...NOTHING });
  return status === 200 ? "200 OK" : text;
}

const headersOf = (reason: RejectionReason): string =>
  rejectionHeaders({ reason, ...NOTHING }, NO_EXTRAS);
/** Of a reason without headers of its own, with which those of every other reason start. */
const COMMON_HEADERS = headersOf("internal");

function reasonRow(reason: RejectionReason): string {
  const { status, rpcStatus, rpcCode, quicCode, retryable } = REJECTIONS[reason];
  const more = headersOf(reason).slice(COMMON_HEADERS.length);
  const fields = [
    `name: "${reason}"`,
    `status: "${statusOf(status, reason)}"`,
    `rpc_status: "${statusOf(rpcStatus, reason)}"`,
    `rpc_code: ${rpcCode}`,
    `quic_code: 0x${quicCode.toString(16)}`,
    ...(retryable ? ["retryable: true"] : []),
    ...(more === "" ? [] : [`headers: concat!(headers!(), ${literal(more)})`]),
    ...(retryable && more !== "" ? [] : ["..ROW"]),
  ];
  return `    ReasonRow { ${fields.join(", ")} },`;
}

function decodeRow(name: string, errorCode: number): string {
  const [usual, zero] = decodeTemplates(errorCode);
  const reason = variantOf(reasonOf(errorCode));
  const fields = [
    `name: "${name}"`,
    ...(reason === "Undecodable" ? [] : [`reason: Reason::${reason}`]),
    `message: ${literal(templateText(usual))}`,
    ...(zero === usual ? [] : [`message_of_zero: Some(${literal(templateText(zero))})`]),
    "..UNDECODABLE",
  ];
  return `    DecodeRow { ${fields.join(", ")} },`;
}

const foreignRow = ([method, instead]: readonly [string, string]): string =>
  `    ("${method}", ${literal(instead)}),`;

const constant = (name: string, type: string, value: string): string =>
  `pub const ${name}: ${type} = ${value};`;
const message = (name: string, template: Template): string =>
  constant(name, "Template", literal(templateText(template)));
const text = (name: string, value: string): string => constant(name, "&str", literal(value));
const fixed = (name: string, { message }: Rejection): string => text(name, message);

/** The whole file. */
export function rustRejections(): string {
  const limited = templateOfCall(rateLimitMessage);
  return [
    "//! Generated by `npm run docs` from src/core/errors.ts, src/core/decode-errors.ts and",
    "//! src/http and src/limits: the reasons, status lines, headers and messages of rejections.",
    "#![allow(missing_docs)]",
    "",
    "use crate::http::message_template::Template;",
    "",
    "/// Headers of every rejection, from the value of `content-type` on.",
    "macro_rules! headers {",
    `    () => { ${literal(COMMON_HEADERS)} };`,
    "}",
    "",
    "/// How a reason is answered.",
    "pub struct ReasonRow {",
    "    pub name: &'static str,",
    "    /// The status line from the code on, before the message, on each endpoint.",
    "    pub status: &'static str,",
    "    pub rpc_status: &'static str,",
    "    pub rpc_code: i32,",
    "    /// Code of a QUIC stream or connection that is refused.",
    "    pub quic_code: u32,",
    "    pub retryable: bool,",
    "    /// From the value of `content-type` on, without `Date` and `Content-Length`.",
    "    pub headers: &'static str,",
    "}",
    "",
    "/// An error of the decoder.",
    "pub struct DecodeRow {",
    "    pub name: &'static str,",
    "    pub reason: Reason,",
    "    pub message: Template,",
    "    /// The message where the number found is 0, if it has another form.",
    "    pub message_of_zero: Option<Template>,",
    "}",
    "",
    "/// Why a request is rejected: the index of its row in `REASONS`.",
    "#[derive(Clone, Copy, Debug, Eq, PartialEq)]",
    "#[repr(usize)]",
    "pub enum Reason {",
    ...REASONS.map((reason) => `    ${variantOf(reason)},`),
    "}",
    "",
    "/// What a row has that does not say otherwise.",
    "const ROW: ReasonRow = ReasonRow {",
    `    name: "", status: "", rpc_status: "", rpc_code: 0, quic_code: 0, retryable: false,`,
    "    headers: headers!(),",
    "};",
    "",
    constant(
      `REASONS`,
      `[ReasonRow; ${REASONS.length}]`,
      `[\n${REASONS.map(reasonRow).join("\n")}\n]`,
    ),
    "",
    "/// As `ROW`.",
    "const UNDECODABLE: DecodeRow =",
    '    DecodeRow { name: "", reason: Reason::Undecodable, message: "", message_of_zero: None };',
    "",
    "/// By the number of a `DecodeError`.",
    constant(
      "DECODE_ROWS",
      `[DecodeRow; ${DECODE_ERROR_COUNT}]`,
      `[\n${Object.entries(DECODE_ERROR)
        .map(([name, code]) => decodeRow(name, code))
        .join("\n")}\n]`,
    ),
    "",
    "/// Characters of a message that the status line repeats.",
    constant("STATUS_MESSAGE_CHARS_MAX", "usize", String(STATUS_MESSAGE_CHARS_MAX)),
    "/// Most calls of a batch.",
    constant("RPC_BATCH_CALLS_MAX", "usize", String(RPC_BATCH_CALLS_MAX)),
    "",
    fixed("NO_LEADER", NO_LEADER_REJECTION),
    fixed("LEADERS_FULL", LEADERS_FULL_REJECTION),
    fixed("BUSY", BUSY_REJECTION),
    fixed("RING_FULL", RING_FULL_REJECTION),
    fixed("INTERNAL", INTERNAL_REJECTION),
    fixed("DRAINING", DRAINING_REJECTION),
    message("BODY_TOO_LARGE", templateOfCall(bodyTooLargeMessage)),
    message("RATE_LIMITED", limited),
    "",
    "/// Methods of other senders, and what to use instead.",
    constant(
      "FOREIGN_METHODS",
      `[(&str, &str); ${FOREIGN_METHODS.size}]`,
      `[\n${[...FOREIGN_METHODS].map(foreignRow).join("\n")}\n]`,
    ),
    "",
    ...Object.entries({ ...KEY_MESSAGES, ...RPC_MESSAGES }).map(([name, make]) =>
      make.length === 0
        ? text(rustName(name), templateOfCall(make).join(""))
        : message(rustName(name), templateOfCall(make)),
    ),
    "",
  ].join("\n");
}
