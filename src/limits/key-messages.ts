/**
 * The messages of a request without a valid key. Each takes texts, which it only inserts: the
 * native engine has the same messages as templates, made from this table.
 */

export const KEY_MESSAGES = {
  keyMissing: () => "the header api-x-token is missing, the key of an account is needed",
  keyMistyped: () => "the key in api-x-token has a typing error: its checksum does not match",
  /** The edge cannot distinguish these cases: it holds valid keys only. */
  keyUnknown: () =>
    "the key in api-x-token is unknown or revoked, or its account is disabled; " +
    "its issuer can see which",
  keysUnread: () =>
    "this edge has not read the keys yet; try again a little later, or at another edge",
  keyExpired: (at: string) => `the key in api-x-token expired at ${at}`,
  keyNetwork: () => "the key in api-x-token may not be used from this address",
  keyNetworkAccount: (ranges: string, from: string) =>
    `the key may be used from ${ranges} only, a request with it came from ${from}`,
} as const satisfies Readonly<Record<string, (...values: string[]) => string>>;
