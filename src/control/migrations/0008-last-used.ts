/**
 * When a key was last used, to within one period of the edges' batches. It was the start of the
 * minute that counted the use, and so up to a minute early. An edge sends a batch within a period
 * of what it counts: the time of the batch is the time of use, or the end of the minute where that
 * came first, as in a batch that waited for the database.
 */

import { USAGE_SQL } from "./0003-usage.ts";

const START = "create function touchdown.edge_write_usage(";
const MINUTE = "max(date_trunc('minute', to_timestamp(r.minute / 1000), 'UTC'))";

export const LAST_USED_SQL = USAGE_SQL.slice(USAGE_SQL.indexOf(START))
  .replace("create function", "create or replace function")
  .replace(MINUTE, `least(now(), ${MINUTE} + interval '1 minute')`);
