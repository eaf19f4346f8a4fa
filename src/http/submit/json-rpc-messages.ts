/**
 * The messages of a JSON-RPC body or call with an error of form. Each takes texts or numbers, which
 * it only inserts: the native engine has the same messages as templates, made from this table.
 */

type Value = string | number;

export const RPC_MESSAGES = {
  emptyBody: () => "the body is empty, JSON is needed",
  notUtf8: (bytes: Value) => `the body of ${bytes} bytes is not JSON in UTF-8`,
  notJson: (bytes: Value) => `the body of ${bytes} bytes is not JSON`,
  batchSize: (found: Value, needed: Value) =>
    `the batch has ${found} calls, 1 to ${needed} are needed`,
  notObject: (found: Value) => `the request is ${found}, a JSON-RPC object is needed`,
  badId: (found: Value) => `id is ${found}, a string, a number or null is needed`,
  badVersion: (found: Value) => `jsonrpc is ${found}, the string "2.0" is needed`,
  badMethod: (found: Value) => `method is ${found}, a string is needed`,
  noMethod: (method: Value) =>
    `there is no method ${method} on this path: ` +
    "sendTransaction, getHealth, getTipAccounts, getVersion and rpc.discover are served here, " +
    "anything else by a node of the network",
  foreignMethod: (method: Value, instead: Value) => `there is no method ${method} here: ${instead}`,
  badParams: (place: Value, found: Value, needed: Value) =>
    `${place} is ${found}, needed is ${needed}`,
  base58TooLong: (found: Value, needed: Value) =>
    `transaction could not be decoded: its base58 text has ${found} characters, ` +
    `a transaction of the most bytes has ${needed}`,
  // What `badParams` names as found and as needed.
  paramsNeeded: () => "[transaction] or [transaction, config]",
  textNeeded: () => "the transaction as a string",
  objectNeeded: () => "an object",
  encodingNeeded: () => 'one of "base64" and "base58"',
  retriesNeeded: () => "a whole number from 0 on, or null",
  notBase64: () => "a text that is not base64",
  inBase58: () => "a text in base58",
  base64Needed: () => 'the transaction in padded base64, or {"encoding":"base58"} for base58',
  notBase58: () => "a text that is not base58",
  base58Needed: () => "the transaction in base58",
} as const satisfies Readonly<Record<string, (...values: Value[]) => string>>;

const BUNDLES =
  "bundles are not served; put what belongs together into one transaction, which is atomic, or " +
  "send each with sendTransaction";
const STATUSES =
  "bundles are not served; what became of a transaction is at " +
  "GET /api/v1/transactions/{signature}";
const SEND = "send the transaction with sendTransaction";

/**
 * Methods that other senders have, and what to use here instead. Jito's JSON-RPC and Jito-Solana's
 * (jito-labs/jito-docs, 2026-02), Astralane's (Astralane/iris-rs and its documentation, 2026-05).
 */
export const FOREIGN_METHODS: ReadonlyMap<string, string> = new Map([
  ["sendBundle", BUNDLES],
  ["simulateBundle", "a node of the network simulates transactions (simulateTransaction)"],
  ["getBundleStatuses", STATUSES],
  ["getInflightBundleStatuses", STATUSES],
  ["sendIdeal", SEND],
  ["sendPaladin", SEND],
  ["sendGhostTransaction", SEND],
]);
