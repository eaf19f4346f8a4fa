/**
 * What edges read: the live keys, and a revision number that rises with every change to them.
 *
 * The number is one row that a change locks until it commits. Numbers therefore become visible in
 * order, and a reader that has seen n has seen every lower number. A statement that changes very
 * many keys is recorded as one change of all keys.
 *
 * Decision: docs/decisions/0043-the-database-protects-itself.md
 */

export const EDGES_SQL = `
create table touchdown.key_revision (
  one boolean primary key default true check (one),
  revision bigint not null
);
insert into touchdown.key_revision (revision) values (1);

create table touchdown.key_changes (
  revision bigint not null,
  kind text not null check (kind in ('key', 'account', 'plan', 'all')),
  id text not null,
  at timestamptz not null default now(),
  primary key (revision, kind, id)
);
create index key_changes_at on touchdown.key_changes using brin (at);

create function touchdown.note_change(kind text, ids text[]) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare next_revision bigint;
begin
  if ids is null or cardinality(ids) = 0 then
    return;
  end if;
  update touchdown.key_revision set revision = revision + 1 returning revision into next_revision;
  if cardinality(ids) > 10000 then
    insert into touchdown.key_changes (revision, kind, id) values (next_revision, 'all', '');
  else
    insert into touchdown.key_changes (revision, kind, id)
      select distinct next_revision, note_change.kind, unnest(ids);
  end if;
  perform pg_notify('touchdown_keys', next_revision::text);
end $$;

create function touchdown.keys_added() returns trigger language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
begin
  perform touchdown.note_change('key', (select array_agg(id::text) from added));
  return null;
end $$;
create function touchdown.keys_removed() returns trigger language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
begin
  perform touchdown.note_change('key', (select array_agg(id::text) from removed));
  return null;
end $$;
-- A new wrapping of the ciphertext is no change to an edge.
create function touchdown.keys_changed() returns trigger language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
begin
  perform touchdown.note_change('key', (
    select array_agg(id::text) from (
      select id, account_id, sha256, label, expires_at, revoked_at, cidrs, rate_per_second, burst
      from added
      except
      select id, account_id, sha256, label, expires_at, revoked_at, cidrs, rate_per_second, burst
      from removed
    ) as changed
  ));
  return null;
end $$;
create trigger keys_added after insert on touchdown.keys
  referencing new table as added for each statement execute function touchdown.keys_added();
create trigger keys_removed after delete on touchdown.keys
  referencing old table as removed for each statement execute function touchdown.keys_removed();
create trigger keys_changed after update on touchdown.keys
  referencing new table as added old table as removed
  for each statement execute function touchdown.keys_changed();

create function touchdown.accounts_changed() returns trigger language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
begin
  perform touchdown.note_change('account', (
    select array_agg(id::text) from (
      select id, name, plan, disabled_at is null from added
      except
      select id, name, plan, disabled_at is null from removed
    ) as changed
  ));
  return null;
end $$;
create trigger accounts_changed after update on touchdown.accounts
  referencing new table as added old table as removed
  for each statement execute function touchdown.accounts_changed();

create function touchdown.plan_changed() returns trigger language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
begin
  perform touchdown.note_change('plan', array_remove(array[new.name, old.name], null));
  return null;
end $$;
create trigger plan_changed after insert or update or delete on touchdown.plans
  for each row execute function touchdown.plan_changed();

create view touchdown.edge_plans as
  select name, rate_per_second, burst, shared, rights from touchdown.plans;

create view touchdown.edge_keys as
  select k.id as key_id, k.sha256, k.account_id, a.name as account_name, a.plan, k.label,
    k.expires_at, k.cidrs::text[] as cidrs, k.rate_per_second, k.burst
  from touchdown.keys k join touchdown.accounts a on a.id = k.account_id
  where k.revoked_at is null and a.disabled_at is null
    and (k.expires_at is null or k.expires_at > now());

-- With the digest of a changed key, because a revoked one is in no other view.
create view touchdown.edge_changes as
  select c.revision, c.kind, c.id, k.sha256 from touchdown.key_changes c
  left join touchdown.keys k on k.id = case when c.kind = 'key' then c.id::uuid end;

create view touchdown.edge_revision as
  select r.revision, coalesce((select min(revision) from touchdown.key_changes), r.revision + 1)
    as oldest
  from touchdown.key_revision r;

revoke all on all tables in schema touchdown from public;
revoke all on all functions in schema touchdown from public;

grant usage on schema touchdown to touchdown_edge, touchdown_control;
grant select on touchdown.edge_plans, touchdown.edge_keys, touchdown.edge_changes,
  touchdown.edge_revision to touchdown_edge, touchdown_control;
grant execute on function touchdown.edge_write_usage(uuid, bigint, text, text, jsonb)
  to touchdown_edge;

grant select on touchdown.migrations to touchdown_control;
grant select, insert, update, delete on touchdown.plans, touchdown.accounts, touchdown.identities,
  touchdown.keys, touchdown.key_uses, touchdown.login_attempts, touchdown.sessions,
  touchdown.api_tokens to touchdown_control;
grant select, insert, delete on touchdown.audit to touchdown_control;
grant select, delete on touchdown.usage_minutes, touchdown.usage_hours,
  touchdown.usage_reason_minutes, touchdown.usage_reason_hours, touchdown.usage_batches,
  touchdown.key_changes to touchdown_control;
`;
