/**
 * A random id for every revision of the keys; each change also stores the id of the revision
 * before.
 *
 * A database restored from a backup continues counting from the backup, so numbers that edges have
 * seen are assigned again to other changes. From the ids an edge detects that its state is not the
 * base of these changes, and reads the full table.
 */

export const MARKS_SQL = `
alter table touchdown.key_revision add column mark uuid not null default gen_random_uuid();
alter table touchdown.key_changes add column mark_before uuid;

create or replace function touchdown.note_change(kind text, ids text[]) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  next_revision bigint;
  last_mark uuid;
begin
  if ids is null or cardinality(ids) = 0 then
    return;
  end if;
  select mark into strict last_mark from touchdown.key_revision for update;
  update touchdown.key_revision set revision = revision + 1, mark = gen_random_uuid()
    returning revision into next_revision;
  if cardinality(ids) > 10000 then
    insert into touchdown.key_changes (revision, kind, id, mark_before)
      values (next_revision, 'all', '', last_mark);
  else
    insert into touchdown.key_changes (revision, kind, id, mark_before)
      select distinct next_revision, note_change.kind, unnest(ids), last_mark;
  end if;
  perform pg_notify('touchdown_keys', next_revision::text);
end $$;

create or replace view touchdown.edge_changes as
  select c.revision, c.kind, c.id, k.sha256, c.mark_before from touchdown.key_changes c
  left join touchdown.keys k on k.id = case when c.kind = 'key' then c.id::uuid end;

create or replace view touchdown.edge_revision as
  select r.revision, coalesce((select min(revision) from touchdown.key_changes), r.revision + 1)
    as oldest, r.mark
  from touchdown.key_revision r;
`;
