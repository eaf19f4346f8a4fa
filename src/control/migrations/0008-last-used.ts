/**
 * Makes the last use of a key exact to one period of the edges' batches. It was the start of the
 * minute that counted the use, up to a minute early. An edge sends a batch within one period of
 * what it counts, so the last use is the time of the batch, or the end of the minute if that is
 * earlier (a batch may have waited for the database).
 */

import { USAGE_SQL } from "./0003-usage.ts";

const START = "create function touchdown.edge_write_usage(";
const MINUTE = "max(date_trunc('minute', to_timestamp(r.minute / 1000), 'UTC'))";

export const LAST_USED_SQL = USAGE_SQL.slice(USAGE_SQL.indexOf(START))
  .replace("create function", "create or replace function")
  .replace(MINUTE, `least(now(), ${MINUTE} + interval '1 minute')`);
