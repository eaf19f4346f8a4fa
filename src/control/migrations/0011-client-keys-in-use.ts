/**
 * The index by which the public key that follows from an API key is found, so that no account can
 * register it: a public key has one owner.
 */

export const CLIENT_KEYS_IN_USE_SQL = `
create unique index keys_client_key on touchdown.keys (client_sha256)
  where client_sha256 is not null;
`;
