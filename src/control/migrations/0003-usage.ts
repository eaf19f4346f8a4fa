/**
 * Usage by minute and by hour, and the only function through which edges write it.
 *
 * The run of the edge and a number identify a batch. A batch is counted once, minutes and hours in
 * one transaction: a batch that is repeated because its response was lost changes nothing. Counts
 * are added to the existing minute, so a landing that becomes known later arrives with a later
 * batch.
 *
 * The lengths of the two histograms are those of `USAGE_WIRE_BOUNDS_NS` and `USAGE_SLOT_BOUNDS`.
 *
 * Decision: docs/decisions/0044-usage-is-summed-on-write.md
 */

const COUNTERS = ["requests", "accepted", "refused", "bytes", "landed", "expired", "dropped"];
const WIRE_BUCKETS = 32;
const SLOT_BUCKETS = 20;

const columns = COUNTERS.map((name) => `  ${name} bigint not null default 0,`).join("\n");
const names = COUNTERS.join(", ");
const sums = COUNTERS.map((name) => `coalesce(sum(r.${name}), 0)`).join(", ");
const added = COUNTERS.map((name) => `${name} = u.${name} + excluded.${name}`).join(", ");
const given = COUNTERS.map((name) => `${name} bigint`).join(", ");
const negative = COUNTERS.map((name) => `coalesce(r.${name}, 0) < 0`).join(" or ");

function usageTable(name: string): string {
  return `
create table touchdown.${name} (
  account_id uuid not null,
  at timestamptz not null,
  key_id uuid not null,
  edge text not null,
  region text not null,
${columns}
  wire bigint[] not null check (cardinality(wire) = ${WIRE_BUCKETS}),
  slots bigint[] not null check (cardinality(slots) = ${SLOT_BUCKETS}),
  primary key (account_id, at, key_id, edge, region)
);
create index ${name}_at on touchdown.${name} using brin (at);`;
}

function reasonTable(name: string): string {
  return `
create table touchdown.${name} (
  account_id uuid not null,
  at timestamptz not null,
  key_id uuid not null,
  edge text not null,
  region text not null,
  kind text not null check (kind in ('refused', 'expired', 'dropped')),
  reason text not null check (char_length(reason) between 1 and 64),
  count bigint not null,
  primary key (account_id, at, key_id, edge, region, kind, reason)
);
create index ${name}_at on touchdown.${name} using brin (at);`;
}

/** Adds the counts of a batch to one of the two tables, by the start of its minutes or hours. */
function addCounts(table: string, at: string): string {
  return `
  insert into touchdown.${table} as u (account_id, at, key_id, edge, region, ${names}, wire, slots)
  select k.account_id, ${at}, k.id, edge_write_usage.edge, edge_write_usage.region, ${sums},
    touchdown.sum_arrays(r.wire), touchdown.sum_arrays(r.slots)
  from jsonb_to_recordset(edge_write_usage.rows)
    as r (key uuid, minute double precision, ${given}, wire bigint[], slots bigint[])
  join touchdown.keys k on k.id = r.key
  group by 1, 2, 3
  order by 1, 2, 3
  on conflict (account_id, at, key_id, edge, region) do update set ${added},
    wire = touchdown.add_arrays(u.wire, excluded.wire),
    slots = touchdown.add_arrays(u.slots, excluded.slots);`;
}

function addReasons(table: string, at: string): string {
  return `
  insert into touchdown.${table} as u
    (account_id, at, key_id, edge, region, kind, reason, count)
  select k.account_id, ${at}, k.id, edge_write_usage.edge, edge_write_usage.region,
    reason ->> 0, reason ->> 1, sum((reason ->> 2)::bigint)
  from jsonb_to_recordset(edge_write_usage.rows)
    as r (key uuid, minute double precision, reasons jsonb)
  join touchdown.keys k on k.id = r.key
  cross join lateral jsonb_array_elements(r.reasons) as reason
  group by 1, 2, 3, 6, 7
  order by 1, 2, 3, 6, 7
  on conflict (account_id, at, key_id, edge, region, kind, reason)
    do update set count = u.count + excluded.count;`;
}

const MINUTE = "date_trunc('minute', to_timestamp(r.minute / 1000), 'UTC')";
const HOUR = "date_trunc('hour', to_timestamp(r.minute / 1000), 'UTC')";

export const USAGE_SQL = `
create function touchdown.add_arrays(a bigint[], b bigint[]) returns bigint[]
language sql immutable as $$
  select array(select coalesce(x, 0) + coalesce(y, 0) from unnest(a, b) as t (x, y))
$$;
create aggregate touchdown.sum_arrays(bigint[]) (
  sfunc = touchdown.add_arrays, stype = bigint[], initcond = '{}'
);
${usageTable("usage_minutes")}
${usageTable("usage_hours")}
${reasonTable("usage_reason_minutes")}
${reasonTable("usage_reason_hours")}

create table touchdown.usage_batches (
  run uuid not null,
  sequence bigint not null,
  written_at timestamptz not null default now(),
  primary key (run, sequence)
);
create index usage_batches_written on touchdown.usage_batches using brin (written_at);

create function touchdown.edge_write_usage(
  run uuid, sequence bigint, edge text, region text, rows jsonb
) returns boolean language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
  if jsonb_typeof(rows) is distinct from 'array' or jsonb_array_length(rows) > 20000 then
    raise exception 'rows must be an array of at most 20000' using errcode = '22023';
  end if;
  if char_length(edge) not between 1 and 64 or char_length(region) not between 1 and 64 then
    raise exception 'edge and region must have 1 to 64 characters' using errcode = '22023';
  end if;
  if exists (
    select from jsonb_to_recordset(rows) as r (key uuid, minute double precision, ${given})
    where ${negative} or r.key is null or r.minute is null
      or to_timestamp(r.minute / 1000) > now() + interval '1 hour'
  ) then
    raise exception 'a row has no key, a negative count or a minute to come'
      using errcode = '22023';
  end if;
  insert into touchdown.usage_batches (run, sequence)
    values (edge_write_usage.run, edge_write_usage.sequence) on conflict do nothing;
  if not found then
    return false;
  end if;
${addCounts("usage_minutes", MINUTE)}
${addCounts("usage_hours", HOUR)}
${addReasons("usage_reason_minutes", MINUTE)}
${addReasons("usage_reason_hours", HOUR)}
  insert into touchdown.key_uses as u (key_id, edge, used_at)
  select k.id, edge_write_usage.edge, max(${MINUTE})
  from jsonb_to_recordset(rows) as r (key uuid, minute double precision, requests bigint)
  join touchdown.keys k on k.id = r.key
  where r.requests > 0
  group by k.id
  order by k.id
  on conflict (key_id, edge) do update set used_at = greatest(u.used_at, excluded.used_at);
  return true;
end $$;
`;
