/** Measures the wall-clock time in which the store reads the dashboard's Overview over a month. */

import { createDatabase } from "../../src/accounts/database/database.ts";
import { USAGE_SLOT_BOUNDS, USAGE_WIRE_BOUNDS_NS } from "../../src/accounts/usage/usage-shape.ts";
import { createUsage } from "../../src/control/store/usage.ts";
import { systemClock } from "../../src/core/clock.ts";
import { vaultOf } from "../../test/support/vault.ts";
import { type BenchDatabase, silent } from "./database.ts";

const READINGS = 30;
const REGIONS = 2;

export interface MonthStats {
  readonly minutes: number;
  readonly keys: number;
  readonly regions: number;
  readonly p50_ms: number;
  readonly max_ms: number;
}

/** Fills a month of minutes for one account's keys in two regions, and reads it repeatedly. */
export async function overviewOfMonth(bench: BenchDatabase): Promise<MonthStats> {
  const { accountId, keys, minutes } = await bench.fillMonth(FILL);
  const database = createDatabase(
    { clock: systemClock, log: silent },
    { url: bench.controlUrl, connections: 2 },
  );
  const vault = vaultOf(`unused:${Buffer.alloc(32).toString("base64")}`);
  const usage = createUsage({ database, clock: systemClock, vault });
  const tookMs: number[] = [];
  for (let reading = 0; reading < READINGS; reading += 1) {
    const startNs = systemClock.nowNs();
    const seen = await usage.overview(accountId, { span: "month", region: null, keyId: null });
    tookMs.push((systemClock.nowNs() - startNs) / 1e6);
    if (seen.byKey.length !== keys || seen.byRegion.length !== REGIONS) {
      throw new Error(`${seen.byKey.length} keys in ${seen.byRegion.length} regions were read`);
    }
  }
  await database.stop();
  tookMs.sort((a, b) => a - b);
  const at = (share: number) => Math.round((tookMs[Math.floor((READINGS - 1) * share)] ?? 0) * 10);
  return { minutes, keys, regions: REGIONS, p50_ms: at(0.5) / 10, max_ms: at(1) / 10 };
}

const buckets = (count: number): string => `array_fill(7::bigint, array[${count}])`;

/** Runs once per table: the table name replaces `usage`, the table's step is the second value. */
const FILL = `insert into usage
  select k.account_id, at, k.id, region, region, 60, 50, 10, 9000, 40, 8, 2,
    ${buckets(USAGE_WIRE_BOUNDS_NS.length + 1)}, ${buckets(USAGE_SLOT_BOUNDS.length + 1)}
  from generate_series(date_trunc('hour', now()) - interval '719 hours',
      date_trunc('hour', now()) + interval '59 minutes', $2::interval) at,
    (select id, account_id from touchdown.keys where account_id = $1 order by id limit 3) k,
    unnest(array['fra', 'nyc']) region`;
