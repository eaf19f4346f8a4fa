import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "../../../src/control/web/schema.ts";
import { CONTROL_REJECTIONS } from "../../../src/core/errors.ts";
import { Browser, fieldOf, startTestControl, type TestControl } from "../../support/control.ts";

let site: TestControl;
let document: unknown;
beforeAll(async () => {
  site = await startTestControl();
  document = (await new Browser(site.url).call("GET", "/api/openapi.json")).json;
});
afterAll(() => site?.stop());

// The parts of the OpenAPI 3.1.1 schema (spec.openapis.org, 2026-11) that this document uses.
const content = z.strictObject({ schema: z.record(z.string(), z.unknown()) });
const media = z.union([
  z.strictObject({ "application/json": content }),
  z.strictObject({ "text/event-stream": content }),
]);
const operation = z.strictObject({
  operationId: z.string().regex(/^[a-z_]+$/),
  summary: z.string().min(1),
  "x-access": z.enum(["open", "account", "session", "admin"]),
  "x-recent-login": z.boolean(),
  security: z.array(z.record(z.string().regex(/^(?:session|token)$/), z.tuple([]))),
  parameters: z.array(
    z.strictObject({
      name: z.string(),
      in: z.enum(["path", "query"]),
      required: z.boolean(),
      schema: z.record(z.string(), z.unknown()),
    }),
  ),
  requestBody: z.strictObject({ required: z.boolean(), content: media }).optional(),
  responses: z.record(
    z.string().regex(/^(?:[1-5]\d\d|default)$/),
    z.strictObject({ description: z.string().min(1), content: media }),
  ),
});
const methods = ["get", "post", "patch", "delete"] as const;

function operations() {
  return Object.entries(Object(fieldOf(document, "paths"))).flatMap(([path, item]) =>
    Object.entries(Object(item)).map(([method, one]) => ({ path, method, one })),
  );
}

describe("the OpenAPI document", () => {
  it("is one: its version, its paths, and each operation of the form", () => {
    expect(fieldOf(document, "openapi")).toBe("3.1.0");
    expect(fieldOf(document, "info")).toMatchObject({ title: expect.any(String), version: "test" });
    expect(operations().length).toBeGreaterThan(25);
    for (const { path, method, one } of operations()) {
      expect(methods).toContain(method);
      const parseRequest = operation.safeParse(one);
      expect([path, method, parseRequest.error?.issues ?? []]).toEqual([path, method, []]);
    }
  });

  it("names each operation once, and declares the parts of each path", () => {
    const names = operations().map(({ one }) => fieldOf(one, "operationId"));
    expect(new Set(names).size).toBe(names.length);
    for (const { path, one } of operations()) {
      const declared = Object.values(Object(fieldOf(one, "parameters")))
        .filter((parameter) => fieldOf(parameter, "in") === "path")
        .map((parameter) => fieldOf(parameter, "name"));
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      expect([path, declared]).toEqual([path, inPath]);
    }
  });

  it("states for every change whether a session needs a recent login", () => {
    const decided = operations()
      .filter(({ method }) => method !== "get")
      .map(({ path, method, one }) => [
        `${method.toUpperCase()} ${path}`,
        fieldOf(one, "x-recent-login"),
      ]);
    // A new operation that changes something must be added here, too.
    expect(Object.fromEntries(decided)).toEqual({
      "PATCH /api/v1/me": false,
      "POST /api/v1/login": false,
      "POST /api/v1/logout": false,
      "POST /api/v1/logout-everywhere": false,
      "DELETE /api/v1/sessions/{session_id}": false,
      "POST /api/v1/keys": true,
      "PATCH /api/v1/keys/{key_id}": true,
      "POST /api/v1/keys/{key_id}/rotate": true,
      "POST /api/v1/keys/{key_id}/revoke": true,
      "POST /api/v1/keys/{key_id}/reveal": true,
      "POST /api/v1/keys/link": false,
      "POST /api/v1/public-keys/challenges": true,
      "POST /api/v1/public-keys": true,
      "POST /api/v1/tokens": true,
      "DELETE /api/v1/tokens/{token_id}": true,
      "PATCH /api/v1/admin/accounts/{account_id}": true,
    });
    for (const { path, method, one } of operations()) {
      const told = JSON.stringify(fieldOf(one, "responses.401")) ?? "";
      const recent = fieldOf(one, "x-recent-login");
      expect([path, method, told.includes("login_again")]).toEqual([path, method, recent]);
    }
  });

  it("has the live stream, and what its events hold", () => {
    const live = operations().find(({ path }) => path === "/api/v1/live")?.one;
    expect(live).toMatchObject({ operationId: "get_live", "x-access": "account" });
    const stream = fieldOf(live, "responses.200.content");
    expect(Object.keys(Object(stream))).toEqual(["text/event-stream"]);
    const text = JSON.stringify(live);
    for (const event of ["usage", "stale", "ended", "stopping"]) expect(text).toContain(event);
    expect(Object.keys(Object(fieldOf(live, "responses")))).toContain("429");
  });

  it("refers to nothing that is not there, and lists every reason of an error", () => {
    const text = JSON.stringify(document);
    for (const [, path = ""] of text.matchAll(/"\$ref":"#\/([^"]+)"/g)) {
      expect(fieldOf(document, path.replaceAll("/", "."))).toBeDefined();
    }
    const reasons = "components.schemas.Error.properties.error.properties.reason.enum";
    expect(fieldOf(document, reasons)).toEqual(Object.keys(CONTROL_REJECTIONS));
    for (const { path, one } of operations()) {
      const codes = Object.keys(Object(fieldOf(one, "responses")));
      const access = fieldOf(one, "x-access");
      if (access !== "open") expect([path, codes]).toEqual([path, expect.arrayContaining(["401"])]);
      const takes = fieldOf(one, "requestBody") !== undefined;
      if (takes)
        expect([path, codes]).toEqual([path, expect.arrayContaining(["400", "413", "415"])]);
      expect(codes).toContain("default");
    }
  });
});
