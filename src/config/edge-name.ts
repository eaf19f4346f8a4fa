/** How an edge is called within its region: `name` of its configuration, or the host's name. */

import { hostname } from "node:os";
import type { Config } from "./config.ts";

export function edgeName({ name }: Pick<Config, "name">): string {
  return name ?? hostname();
}
