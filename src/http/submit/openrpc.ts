/**
 * The OpenRPC document of an edge, made from the code's own tables: what `rpc.discover` returns,
 * and `npm run docs` writes to docs/api/openrpc.json. A new method is a row of `methodsOf`.
 */

import { REJECTION_NAMES, REJECTIONS } from "../../core/errors.ts";
import { FAST_PATH, ROOT_PATH, RPC_PATH } from "../routes.ts";
import { FOREIGN_METHODS } from "./json-rpc-messages.ts";

type Json = Readonly<Record<string, unknown>>;

/** The document of an edge of that version. */
export function openRpc(version: string): Json {
  return {
    openrpc: "1.3.2",
    info: { title: "Touchdown edge", version, license: { name: "Apache-2.0" } },
    // Relative to where the edge serves this document.
    servers: [RPC_PATH, ROOT_PATH, FAST_PATH].map((url) => ({ name: `edge, ${url}`, url })),
    methods: methodsOf(version),
    // Methods of other senders, which are refused by name.
    "x-refused-methods": [...FOREIGN_METHODS].map(([name, instead]) => ({ name, instead })),
  };
}

/** The methods of an edge of that version. */
function methodsOf(version: string): readonly Json[] {
  return [
    SEND_TRANSACTION,
    {
      name: "getHealth",
      summary: "`ok`; an error while the edge drains; needs no key",
      params: [],
      result: { name: "health", schema: { const: "ok" } },
      errors: [{ code: -32005, message: "Node is unhealthy" }],
    },
    {
      name: "getTipAccounts",
      summary: "The accounts of which a transaction must pay one; needs no key",
      params: [],
      result: {
        name: "accounts",
        schema: { type: "array", minItems: 1, items: { type: "string" } },
      },
    },
    {
      name: "getVersion",
      summary: "The release of Agave whose rules the edge applies, and its own; needs no key",
      params: [],
      result: {
        name: "version",
        schema: {
          type: "object",
          required: ["solana-core", "feature-set", "touchdown"],
          properties: {
            "solana-core": { type: "string" },
            "feature-set": { const: 0 },
            touchdown: { const: version },
          },
        },
      },
    },
    {
      name: "rpc.discover",
      summary: "This document; needs no key",
      params: [],
      result: {
        name: "document",
        schema: { type: "object", required: ["openrpc", "info", "methods"] },
      },
    },
  ];
}

const rpcCodes = new Set(REJECTION_NAMES.map((reason) => REJECTIONS[reason].rpcCode));

/** The errors of a submission: one for each code, because OpenRPC allows no second one. */
const rpcErrors = [...rpcCodes].map((code) => {
  const reasons = REJECTION_NAMES.filter((reason) => REJECTIONS[reason].rpcCode === code);
  const message = reasons.map((reason) => `${reason}: ${REJECTIONS[reason].meaning}`).join("; ");
  const data = reasons.map((reason) => ({ reason, retryable: REJECTIONS[reason].retryable }));
  return { code, message, data };
});

const sendConfig: Json = {
  type: "object",
  description: "Any other property is accepted, and ignored",
  properties: {
    encoding: { enum: ["base64", "base58"], default: "base64" },
    maxRetries: {
      type: ["integer", "null"],
      minimum: 0,
      description: "How often the edge resends it at most; without it until its end is known",
    },
    skipPreflight: { description: "Ignored: the edge simulates nothing" },
    preflightCommitment: { description: "Ignored: the edge simulates nothing" },
    minContextSlot: { description: "Ignored: the edge simulates nothing" },
  },
};

const SEND_TRANSACTION: Json = {
  name: "sendTransaction",
  summary: "Sends one signed transaction that contains a tip",
  paramStructure: "by-position",
  params: [
    { name: "transaction", required: true, schema: { type: "string" } },
    { name: "config", required: false, schema: sendConfig },
  ],
  result: { name: "signature", schema: { type: "string" } },
  errors: rpcErrors,
};
