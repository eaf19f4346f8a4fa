/**
 * The messages of a request without a valid key. Each takes texts, which it only inserts: the
 * native engine has the same messages as templates, made from this table.
 */

export const KEY_MESSAGES = {
  keyMissing: () =>
    "no API key was found: it is needed in api-x-token, x-api-key or Authorization: Bearer",
  keyMistyped: () => "the API key has a typing error: its checksum does not match",
  /** The edge cannot distinguish these cases: it holds valid keys only. */
  keyUnknown: () =>
    "the API key is unknown or revoked, or its account is disabled; its issuer can see which",
  keysUnread: () =>
    "this edge has not read the keys yet; try again a little later, or at another edge",
  keyExpired: (at: string) => `the API key expired at ${at}`,
  keyNetwork: () => "the API key may not be used from this address",
  keyNetworkAccount: (ranges: string, from: string) =>
    `the key may be used from ${ranges} only, a request with it came from ${from}`,
} as const satisfies Readonly<Record<string, (...values: string[]) => string>>;
