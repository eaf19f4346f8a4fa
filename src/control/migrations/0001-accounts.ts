/**
 * Plans, accounts, their logins and keys, and the audit log.
 *
 * The audit log is append-only: a trigger rejects changes from every role. Roles protect the
 * database itself: an edge and the dashboard each log in as a member of one role.
 */

export const ACCOUNTS_SQL = `
do $$
declare wanted text;
begin
  foreach wanted in array array['touchdown_edge', 'touchdown_control'] loop
    if not exists (select from pg_roles where rolname = wanted) then
      begin
        execute format('create role %I nologin', wanted);
      exception
        when duplicate_object or unique_violation then null;
      end;
    end if;
  end loop;
end $$;

create table touchdown.plans (
  name text primary key check (char_length(name) between 1 and 64),
  rate_per_second double precision not null
    check (rate_per_second > 0 and rate_per_second <= 1000000),
  burst integer not null check (burst between 1 and 1000000),
  shared boolean not null default false,
  rights jsonb not null default '{}' check (jsonb_typeof(rights) = 'object')
);

insert into touchdown.plans (name, rate_per_second, burst) values ('Beta', 50, 100);

create table touchdown.accounts (
  id uuid primary key default gen_random_uuid(),
  name text not null check (char_length(name) between 1 and 64),
  plan text not null constraint accounts_plan references touchdown.plans (name),
  admin boolean not null default false,
  created_at timestamptz not null,
  disabled_at timestamptz
);
create index accounts_newest on touchdown.accounts (created_at desc, id desc);
create index accounts_plan_used on touchdown.accounts (plan);
create index accounts_name on touchdown.accounts (name);

create table touchdown.identities (
  issuer text not null check (char_length(issuer) between 1 and 512),
  subject text not null check (char_length(subject) between 1 and 512),
  account_id uuid not null references touchdown.accounts (id),
  email text check (char_length(email) <= 320),
  name text check (char_length(name) <= 256),
  created_at timestamptz not null,
  last_login_at timestamptz not null,
  primary key (issuer, subject)
);
create index identities_account on touchdown.identities (account_id);

create table touchdown.keys (
  id uuid primary key,
  account_id uuid not null references touchdown.accounts (id),
  sha256 bytea not null constraint keys_sha256 unique check (octet_length(sha256) = 32),
  hint text not null check (char_length(hint) <= 32),
  label text not null check (char_length(label) <= 64),
  ciphertext bytea,
  nonce bytea check (octet_length(nonce) = 12),
  kek_id text,
  created_at timestamptz not null,
  expires_at timestamptz,
  revoked_at timestamptz,
  cidrs cidr[] not null default '{}' check (cardinality(cidrs) <= 32),
  rate_per_second double precision check (rate_per_second > 0 and rate_per_second <= 1000000),
  burst integer check (burst between 1 and 1000000),
  rotated_from uuid references touchdown.keys (id),
  check ((rate_per_second is null) = (burst is null)),
  check ((ciphertext is null) = (nonce is null) and (ciphertext is null) = (kek_id is null))
);
create index keys_account on touchdown.keys (account_id, created_at);
create index keys_kek on touchdown.keys (kek_id) where kek_id is not null;

-- Apart from the keys, because edges write it by the minute and it changes nobody's rights.
create table touchdown.key_uses (
  key_id uuid not null references touchdown.keys (id) on delete cascade,
  edge text not null,
  used_at timestamptz not null,
  primary key (key_id, edge)
);

create table touchdown.audit (
  id bigint generated always as identity primary key,
  at timestamptz not null,
  account_id uuid,
  actor_kind text not null check (actor_kind in ('account', 'token', 'operator', 'system')),
  actor_id uuid,
  address text check (char_length(address) <= 64),
  user_agent text check (char_length(user_agent) <= 256),
  action text not null check (char_length(action) between 1 and 64),
  detail jsonb not null check (jsonb_typeof(detail) = 'object')
);
create index audit_account on touchdown.audit (account_id, id desc);

create function touchdown.keep_audit() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' and old.at < now() - interval '90 days' then
    return old;
  end if;
  raise exception 'the audit is never changed' using errcode = 'insufficient_privilege';
end $$;
create trigger audit_kept before update or delete on touchdown.audit
  for each row execute function touchdown.keep_audit();
create trigger audit_not_emptied before truncate on touchdown.audit
  for each statement execute function touchdown.keep_audit();
`;
