/**
 * The public key that follows from an API key, as the digest by which edges find it, beside the API
 * key's own. Edges read it as a second row, with the same id, account, limits and end, in a view of
 * its own: those of before do not know it. API keys of before have none until their text is shown
 * again or they are rotated.
 */

const keyColumns =
  "id, account_id, sha256, client_sha256, expires_at, revoked_at, cidrs, rate_per_second, burst";

export const CLIENT_KEYS_SQL = `
alter table touchdown.keys
  add column client_sha256 bytea check (octet_length(client_sha256) = 32),
  add constraint keys_public_key_is_no_client_key
    check (public_key is null or client_sha256 is null);

create view touchdown.edge_client_keys as
  select e.key_id, k.client_sha256 as sha256, e.account_id, e.plan, e.expires_at, e.cidrs,
    e.rate_per_second, e.burst
  from touchdown.edge_keys e join touchdown.keys k on k.id = e.key_id
  where k.client_sha256 is not null;
grant select on touchdown.edge_client_keys to touchdown_edge, touchdown_control;

-- A row for each digest of a changed key.
create or replace view touchdown.edge_changes as
  select c.revision, c.kind, c.id, d.sha256, c.mark_before from touchdown.key_changes c
  left join touchdown.keys k on k.id = case when c.kind = 'key' then c.id::uuid end
  left join lateral (values (k.sha256), (k.client_sha256)) as d (sha256) on d.sha256 is not null;

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
`;
