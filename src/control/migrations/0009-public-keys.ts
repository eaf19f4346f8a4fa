/**
 * Ed25519 public keys as keys of an account, and the challenges that their holders sign.
 *
 * A public key is one row of `keys`: its digest is that of `publicKeySha256`, and it has no sealed
 * text. Unlike an API key it may come back after it ended, under the same or another account, so
 * its digest is unique only among those that are not revoked. That of an API key is random.
 */

export const PUBLIC_KEYS_SQL = `
alter table touchdown.keys
  add column public_key bytea check (octet_length(public_key) = 32),
  add constraint keys_public_key_has_no_text
    check (public_key is null or (ciphertext is null and rotated_from is null)),
  drop constraint keys_sha256;
create index keys_sha256 on touchdown.keys (sha256);
create unique index keys_public_key_in_use on touchdown.keys (sha256)
  where public_key is not null and revoked_at is null;

create table touchdown.key_challenges (
  id uuid primary key,
  account_id uuid not null references touchdown.accounts (id),
  public_key bytea not null check (octet_length(public_key) = 32),
  expires_at timestamptz not null
);
create index key_challenges_account on touchdown.key_challenges (account_id, expires_at);
create index key_challenges_expiry on touchdown.key_challenges (expires_at);
grant select, insert, delete on touchdown.key_challenges to touchdown_control;
`;
