import { afterEach, expect, it, vi } from "vitest";
import { dashboardEnvironment, sandboxEnvironment } from "../../src/sandbox/environment.ts";

afterEach(() => void vi.unstubAllEnvs());

it.each([
  "TOUCHDOWN_ACCOUNTS_DATABASE_URL",
  "TOUCHDOWN_CLUSTER_RPC_URL",
  "TOUCHDOWN_CONTROL_OIDC_CLIENT_SECRET",
  "TOUCHDOWN_CONTROL_OWNER_URL",
  "TOUCHDOWN_IDENTITY_KEYPAIR",
  "TOUCHDOWN_LIMITS_REDIS_URL",
])("%s, of which the sandbox has its own, is left out", (variable) => {
  vi.stubEnv(variable, "production's");
  expect(sandboxEnvironment()).not.toHaveProperty(variable);
});

it.each(["TOUCHDOWN_ADMIN_LISTEN", "TOUCHDOWN_CONTROL_LISTEN", "TOUCHDOWN_CLUSTER_RPC_URL"])(
  "%s is left out for the dashboard",
  (variable) => {
    vi.stubEnv(variable, "the edge's");
    expect(dashboardEnvironment()).not.toHaveProperty(variable);
  },
);

it.each(["TOUCHDOWN_HTTP_LISTEN", "TOUCHDOWN_LIMITS_EDGES", "TOUCHDOWN_ADMIN_LISTEN", "PATH"])(
  "%s is left as it is",
  (variable) => {
    vi.stubEnv(variable, "mine");
    expect(sandboxEnvironment()).toHaveProperty(variable, "mine");
  },
);
