/**
 * Pending logins, browser sessions, and tokens for programs. Credentials are stored only as a
 * SHA-256, so that reading the database grants no access.
 */

export const LOGINS_SQL = `
create table touchdown.login_attempts (
  state_sha256 bytea primary key check (octet_length(state_sha256) = 32),
  binding_sha256 bytea not null check (octet_length(binding_sha256) = 32),
  verifier text not null check (char_length(verifier) <= 128),
  nonce text not null check (char_length(nonce) <= 128),
  return_to text not null check (char_length(return_to) <= 2048),
  reauthenticate boolean not null,
  expires_at timestamptz not null
);
create index login_attempts_expiry on touchdown.login_attempts (expires_at);

create table touchdown.sessions (
  id uuid primary key,
  secret_sha256 bytea not null unique check (octet_length(secret_sha256) = 32),
  account_id uuid not null references touchdown.accounts (id),
  issuer text not null,
  subject text not null,
  created_at timestamptz not null,
  seen_at timestamptz not null,
  authenticated_at timestamptz not null,
  idle_ends_at timestamptz not null,
  ends_at timestamptz not null,
  address text check (char_length(address) <= 64),
  user_agent text check (char_length(user_agent) <= 256),
  foreign key (issuer, subject) references touchdown.identities (issuer, subject)
);
create index sessions_account on touchdown.sessions (account_id, created_at);
create index sessions_end on touchdown.sessions (ends_at);

create table touchdown.api_tokens (
  id uuid primary key,
  account_id uuid not null references touchdown.accounts (id),
  sha256 bytea not null unique check (octet_length(sha256) = 32),
  hint text not null check (char_length(hint) <= 32),
  label text not null check (char_length(label) <= 64),
  scope text not null check (scope in ('read', 'write')),
  created_at timestamptz not null,
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz
);
create index api_tokens_account on touchdown.api_tokens (account_id, created_at);
`;
