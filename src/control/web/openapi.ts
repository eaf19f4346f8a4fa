/**
 * The OpenAPI document, built from the route records that the server runs on.
 */

import { CONTROL_REJECTIONS, type ControlReason } from "../../core/errors.ts";
import type { Access, RouteHead } from "./route.ts";
import { z } from "./schema.ts";

const SECURITY: Readonly<Record<Access, readonly object[]>> = {
  open: [],
  account: [{ session: [] }, { token: [] }],
  session: [{ session: [] }],
  admin: [{ session: [] }],
};

/**
 * `x-access` states who may call, and `x-recent-login` whether a session needs a recent login; for
 * tests and readers.
 */
export function openApi(routes: readonly RouteHead[], about: { readonly version: string }): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const operations = paths[route.path] ?? {};
    operations[route.method.toLowerCase()] = operationOf(route);
    paths[route.path] = operations;
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Touchdown: accounts and keys",
      version: about.version,
      description:
        "What the dashboard's own pages use. A change needs a page of the dashboard, or a token.",
    },
    paths,
    components: {
      securitySchemes: {
        session: { type: "apiKey", in: "cookie", name: "__Host-td-session" },
        token: { type: "http", scheme: "bearer", description: "a management token, tdm_…" },
      },
      schemas: { Error: ERROR },
    },
  };
}

function operationOf(route: RouteHead): object {
  const { access, summary, params, query, body, status, recentLogin } = route;
  const response = { [route.responseType]: { schema: schemaOf(route.response, "output") } };
  const error = { "application/json": { schema: { $ref: "#/components/schemas/Error" } } };
  return {
    operationId: operationId(route),
    summary,
    "x-access": access,
    "x-recent-login": recentLogin,
    security: SECURITY[access],
    parameters: [...parametersOf("path", params), ...parametersOf("query", query)],
    ...(body === null
      ? {}
      : { requestBody: { required: true, content: json(schemaOf(body, "input")) } }),
    responses: {
      [status]: { description: "done", content: response },
      ...Object.fromEntries(
        refusalsOf(route).map(([code, description]) => [code, { description, content: error }]),
      ),
      default: { description: "not done", content: error },
    },
  };
}

/** The errors that this route can return, by status, each with its reasons. */
function refusalsOf(route: RouteHead): readonly [string, string][] {
  const { method, path, access, body, limit, recentLogin } = route;
  const reasons: ControlReason[] = ["invalid_request", "cross_site", "rate_limited", "internal"];
  if (access !== "open") reasons.push("unauthorized", "forbidden", "disabled", "unavailable");
  if (recentLogin) reasons.push("login_again");
  if (body !== null) reasons.push("too_large", "unsupported_media_type");
  if (path.includes("{")) reasons.push("not_found");
  if (method !== "GET" && limit !== null) reasons.push("conflict");
  if (limit === "link") reasons.push("key_refused");
  if (limit === "login") reasons.push("login_unavailable", "unavailable");
  const byStatus = new Map<string, ControlReason[]>();
  for (const reason of reasons) {
    const status = String(CONTROL_REJECTIONS[reason].status);
    byStatus.set(status, [...(byStatus.get(status) ?? []), reason]);
  }
  return [...byStatus].map(([status, named]) => [status, named.join(", ")]);
}

/** `POST /api/v1/keys/{key_id}/reveal` is `post_keys_key_id_reveal`. */
function operationId({ method, path }: RouteHead): string {
  const words = path.replace("/api/v1/", "").replaceAll(/[^A-Za-z0-9]+/g, "_");
  return `${method.toLowerCase()}_${words.replace(/_$/, "")}`;
}

function json(schema: object): object {
  return { "application/json": { schema } };
}

function schemaOf(schema: z.ZodType, io: "input" | "output"): JsonSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: "any" });
  return rest;
}

interface JsonSchema {
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly required?: readonly string[];
}

function parametersOf(place: "path" | "query", schema: z.ZodType): readonly object[] {
  const { properties = {}, required = [] } = schemaOf(schema, "input");
  return Object.entries(properties).map(([name, property]) => ({
    name,
    in: place,
    required: place === "path" || required.includes(name),
    schema: property,
  }));
}

const ERROR = {
  type: "object",
  properties: {
    error: {
      type: "object",
      properties: {
        reason: { type: "string", enum: Object.keys(CONTROL_REJECTIONS) },
        message: { type: "string" },
      },
      required: ["reason", "message"],
    },
  },
  required: ["error"],
};
