/**
 * The machine-readable documents of an edge's API, made from the code's own tables: OpenAPI 3.1 for
 * its HTTP paths, and OpenRPC for JSON-RPC, which the edge serves itself (openrpc.ts). `npm run
 * docs` writes them to docs/api; a test compares them with these, and another one holds a running
 * edge against them. A new path is a row of `paths`.
 */

import { REJECTIONS, type RejectionReason } from "../../src/core/errors.ts";
import { RECEIPT_STATES } from "../../src/core/receipt-state.ts";
import {
  KEYLESS_BODY_BYTES_MAX,
  RAW_BODY_BYTES_MAX,
  RECEIPT_LIST_DEFAULT,
  RPC_BATCH_CALLS_MAX,
  RPC_BODY_BYTES_MAX,
} from "../../src/http/limits.ts";
import { FAST_PATH, RAW_PATH, ROOT_PATH, RPC_PATH } from "../../src/http/routes.ts";
import { openRpc } from "../../src/http/submit/openrpc.ts";
import { VERSION } from "../../src/runtime/version.ts";

/** Where the documents are, below the root. */
export const OPENAPI_FILE = "docs/api/openapi.json";
export const OPENRPC_FILE = "docs/api/openrpc.json";

type Json = Readonly<Record<string, unknown>>;

const REASONS = Object.keys(REJECTIONS) as RejectionReason[];
const ref = (name: string): Json => ({ $ref: `#/components/schemas/${name}` });
const json = (schema: Json): Json => ({ "application/json": { schema } });

/** The header of each response to a request whose key is in the query. */
const WARNING: Json = { Warning: { $ref: "#/components/headers/Warning" } };

/** The responses of refusals by status, with the reasons that each may have. */
function refusals(statusOf: (reason: RejectionReason) => number, schema: Json): Json {
  const statuses = [...new Set(REASONS.map(statusOf))].filter((status) => status !== 200).sort();
  const responses = statuses.map((status) => {
    const reasons = REASONS.filter((reason) => statusOf(reason) === status);
    const needsRetryAfter = status === 429 || status === 503;
    const retryAfter = { "Retry-After": { required: true, schema: { type: "string" } } };
    const headers = { ...WARNING, ...(needsRetryAfter && retryAfter) };
    const description = reasons.map((name) => `${name}: ${REJECTIONS[name].meaning}`).join("; ");
    return [String(status), { description, headers, content: json(schema) }];
  });
  return Object.fromEntries(responses);
}

const plainRefusals = refusals((reason) => REJECTIONS[reason].status, ref("Refusal"));
const rpcRefusals = refusals((reason) => REJECTIONS[reason].rpcStatus, ref("RpcResponse"));

/** Where a key may be, by the name of its security scheme, in the order in which the edge looks. */
const KEY_PLACES: Readonly<Record<string, Json>> = {
  key: {
    type: "apiKey",
    in: "header",
    name: "api-x-token",
    description: "The preferred place. Of several places the first in this order decides",
  },
  xApiKey: { type: "apiKey", in: "header", name: "x-api-key" },
  bearer: { type: "http", scheme: "bearer" },
  keyInQuery: {
    type: "apiKey",
    in: "query",
    name: "api-key",
    description: "The worst place: proxies and servers log it; the response has a `warning`",
  },
};
const KEY: readonly Json[] = Object.keys(KEY_PLACES).map((place) => ({ [place]: [] }));
/** The empty one is for calls of the methods that need no key. */
const KEY_OR_NONE: readonly Json[] = [...KEY, {}];

const signatureParameter: Json = {
  name: "signature",
  in: "path",
  required: true,
  description: "The transaction's first signature, base58",
  schema: { type: "string", minLength: 1, maxLength: 88 },
};

const query = (name: string, description: string, schema: Json): Json => ({
  ...{ name, in: "query", required: false, description, schema },
});

const STATES = RECEIPT_STATES;
const statesParameter = query("state", "States, separated by commas", {
  type: "string",
  pattern: `^(${STATES.join("|")})(,(${STATES.join("|")}))*$`,
});

function get(summary: string, content: Json, more: Json = {}, responses: Json = {}): Json {
  return {
    summary,
    responses: { "200": { description: summary, headers: WARNING, content }, ...responses },
    ...more,
  };
}

const rpcBody: Json = {
  required: true,
  description: `At most ${RPC_BODY_BYTES_MAX} bytes; a batch has 1 to ${RPC_BATCH_CALLS_MAX} calls`,
  content: json({
    oneOf: [
      ref("RpcCall"),
      { type: "array", minItems: 1, maxItems: RPC_BATCH_CALLS_MAX, items: ref("RpcCall") },
    ],
  }),
};

const rpcAnswer: Json = {
  description: "The result, or an error in the request's content; an array for a batch",
  headers: WARNING,
  content: json({
    oneOf: [ref("RpcResponse"), { type: "array", items: ref("RpcResponse") }],
  }),
};

/** JSON-RPC at one of its paths, which are alike. */
function rpcPost(more: string): Json {
  return {
    summary: `JSON-RPC${more}; docs/api/openrpc.json and rpc.discover have the methods`,
    description: `A call without a key has at most ${KEYLESS_BODY_BYTES_MAX} bytes`,
    security: KEY_OR_NONE,
    requestBody: rpcBody,
    responses: { "200": rpcAnswer, ...rpcRefusals },
  };
}

const paths: Json = {
  [ROOT_PATH]: {
    get: get("What this service is", json({ type: "object", required: ["service", "version"] })),
    post: rpcPost(`, as at ${RPC_PATH}`),
  },
  [FAST_PATH]: { post: rpcPost(`, as at ${RPC_PATH}`) },
  "/ping": {
    get: get("`ok`, while the process runs", { "text/plain": { schema: { const: "ok" } } }),
  },
  "/readyz": {
    get: get(
      "Whether this edge can accept transactions",
      json({ type: "object", required: ["status"], properties: { status: { const: "ready" } } }),
      {},
      {
        "503": {
          description: "It cannot, or it drains",
          content: json({
            type: "object",
            required: ["status", "failing"],
            properties: {
              status: { const: "not ready" },
              failing: { type: "array", minItems: 1, items: { type: "string" } },
            },
          }),
        },
      },
    ),
  },
  "/api/v1/tip": {
    get: get(
      "The tip accounts and the minimum",
      json({
        type: "object",
        required: ["accounts", "lamportsMin"],
        properties: {
          accounts: { type: "array", minItems: 1, items: { type: "string" } },
          lamportsMin: { type: "integer", minimum: 1 },
        },
      }),
    ),
  },
  [RAW_PATH]: {
    post: {
      summary: "Sends one serialized transaction",
      security: KEY,
      requestBody: {
        required: true,
        description: `At most ${RAW_BODY_BYTES_MAX} bytes`,
        content: {
          "application/octet-stream": { schema: { type: "string", format: "binary" } },
          "text/plain": {
            schema: {
              type: "string",
              contentEncoding: "base64",
              description: "Padded base64, which line breaks may follow",
            },
          },
        },
      },
      responses: {
        "200": {
          description: "Handed to a live leader",
          headers: WARNING,
          content: json(ref("Accepted")),
        },
        ...plainRefusals,
      },
    },
  },
  [RPC_PATH]: { post: rpcPost("") },
  "/api/v1/transactions/{signature}": {
    get: get(
      "The receipt of a transaction that this key's account sent",
      json(ref("Receipt")),
      {
        security: KEY,
        parameters: [
          signatureParameter,
          query("wait", "Holds the response until then", { enum: ["processed", "landed"] }),
          query("timeout", "10ms to 60s, 10s by default", { type: "string" }),
        ],
      },
      plainRefusals,
    ),
  },
  "/api/v1/transactions": {
    get: get(
      "The account's transactions, newest first",
      json({
        type: "object",
        required: ["transactions", "next"],
        properties: {
          transactions: { type: "array", items: ref("Receipt") },
          next: { type: ["string", "null"] },
        },
      }),
      {
        security: KEY,
        parameters: [
          statesParameter,
          query("limit", "How many", {
            ...{ type: "integer", minimum: 1, maximum: 200, default: RECEIPT_LIST_DEFAULT },
          }),
          query("before", "Those older than this signature", { type: "string" }),
        ],
      },
      plainRefusals,
    ),
  },
  "/api/v1/receipts": {
    get: get(
      "Each change of the account's receipts, as server-sent events",
      { "text/event-stream": { schema: { type: "string" } } },
      { security: KEY, parameters: [statesParameter] },
      plainRefusals,
    ),
  },
};

const receipt: Json = {
  type: "object",
  required: ["signature", "state", "received_at", "submissions", "tip_lamports", "landing"],
  properties: {
    signature: { type: "string" },
    state: { enum: STATES },
    received_at: { type: "string", format: "date-time" },
    received_slot: { type: ["integer", "null"] },
    submissions: { type: "integer", minimum: 1 },
    tip_lamports: { type: "integer" },
    landing: { type: ["object", "null"] },
    leaders: { type: "array", items: { type: "object" } },
  },
};

const rpcCall: Json = {
  type: "object",
  required: ["jsonrpc", "id", "method"],
  properties: {
    jsonrpc: { const: "2.0" },
    id: { type: ["string", "integer", "null"] },
    method: { type: "string" },
    params: { type: "array" },
  },
};

const rpcError: Json = {
  type: "object",
  required: ["code", "message"],
  properties: {
    code: { enum: [...new Set(REASONS.map((reason) => REJECTIONS[reason].rpcCode))] },
    message: { type: "string" },
    data: {
      type: "object",
      properties: { reason: { enum: REASONS }, retryable: { type: "boolean" } },
    },
  },
};

const rpcResponse: Json = {
  type: "object",
  required: ["jsonrpc", "id"],
  properties: {
    jsonrpc: { const: "2.0" },
    id: { type: ["string", "number", "null"] },
    result: {},
    error: rpcError,
  },
  oneOf: [{ required: ["result"] }, { required: ["error"] }],
};

export function openApi(): Json {
  return {
    openapi: "3.1.0",
    info: {
      title: "Touchdown edge",
      version: VERSION,
      description: "Lands Solana transactions. docs/api.md describes it in words.",
      license: { name: "Apache 2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "http://127.0.0.1:8080" }],
    paths,
    components: {
      securitySchemes: KEY_PLACES,
      headers: {
        Warning: {
          description: "Where the key came from the query: 299, and that a header is its place",
          schema: { type: "string", pattern: "^299 touchdown " },
        },
      },
      schemas: {
        Accepted: {
          type: "object",
          required: ["success", "signature"],
          properties: { success: { const: true }, signature: { type: "string" } },
        },
        Refusal: {
          type: "object",
          required: ["success", "error", "reason"],
          properties: {
            success: { const: false },
            error: { type: "string" },
            reason: { enum: REASONS },
          },
        },
        Receipt: receipt,
        RpcCall: rpcCall,
        RpcResponse: rpcResponse,
      },
    },
  };
}

/** The documents by file, as they are committed. */
export function apiDocuments(): Readonly<Record<string, string>> {
  const textOf = (document: Json): string => `${JSON.stringify(document, null, 2)}\n`;
  return { [OPENAPI_FILE]: textOf(openApi()), [OPENRPC_FILE]: textOf(openRpc(VERSION)) };
}
