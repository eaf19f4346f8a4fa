/**
 * The variables that override the configuration of the sandbox's edge and control process: not
 * those of what the sandbox has of its own. The shell of an operator may name production's
 * database, whose keys the edge would then read, and into which it would write usage.
 */

import { environmentWithout } from "../config/load.ts";

export const sandboxEnvironment = (): ReturnType<typeof environmentWithout> =>
  environmentWithout(OWN_KEYS);

/**
 * Those of its dashboard, which listens where its printed address says; its admin listener cannot
 * have the address of the edge's.
 */
export const dashboardEnvironment = (): ReturnType<typeof environmentWithout> =>
  environmentWithout([...OWN_KEYS, "admin.listen", "control.listen"]);

/** What keys of the cluster, the database, the store of limits and the provider begin with. */
const OWN_KEYS: readonly string[] = [
  "accounts.",
  "cluster.",
  "identity.",
  "limits.redis_url",
  "tip.accounts",
  "control.admins",
  "control.edges",
  "control.oidc_",
  "control.owner_url",
  "control.public_url",
  "control.quic_regions",
  "control.regions",
  "control.vault_file",
];
