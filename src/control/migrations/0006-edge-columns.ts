/**
 * Limits the edges' views to the columns that an edge validates requests with. The names of
 * accounts and keys and the rights of plans were included too, but only the dashboard needs them. A
 * renamed account or key is therefore no longer a change for edges.
 */

const keyColumns = "id, account_id, sha256, expires_at, revoked_at, cidrs, rate_per_second, burst";
const accountColumns = "id, plan, disabled_at is null";

export const EDGE_COLUMNS_SQL = `
drop view touchdown.edge_keys;
create view touchdown.edge_keys as
  select k.id as key_id, k.sha256, k.account_id, a.plan, k.expires_at, k.cidrs::text[] as cidrs,
    k.rate_per_second, k.burst
  from touchdown.keys k join touchdown.accounts a on a.id = k.account_id
  where k.revoked_at is null and a.disabled_at is null
    and (k.expires_at is null or k.expires_at > now());

drop view touchdown.edge_plans;
create view touchdown.edge_plans as
  select name, rate_per_second, burst, shared from touchdown.plans;

grant select on touchdown.edge_keys, touchdown.edge_plans to touchdown_edge, touchdown_control;

create or replace function touchdown.keys_changed() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform touchdown.note_change('key', (
    select array_agg(id::text) from (
      select ${keyColumns} from added except select ${keyColumns} from removed
    ) as changed
  ));
  return null;
end $$;

create or replace function touchdown.accounts_changed() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform touchdown.note_change('account', (
    select array_agg(id::text) from (
      select ${accountColumns} from added except select ${accountColumns} from removed
    ) as changed
  ));
  return null;
end $$;
`;
