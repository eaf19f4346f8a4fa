/** The OpenRPC document: complete, valid in its references, and small enough to be served. */

import { describe, expect, it } from "vitest";
import { REJECTIONS } from "../../../src/core/errors.ts";
import { KEYLESS_METHODS } from "../../../src/http/submit/json-rpc-parse.ts";
import { openRpc } from "../../../src/http/submit/openrpc.ts";

interface Method {
  readonly name: string;
  readonly params: readonly unknown[];
  readonly errors?: readonly { readonly data?: readonly { readonly reason: string }[] }[];
}

describe("the OpenRPC document", () => {
  const { methods, info, servers } = openRpc("9.8.7") as unknown as {
    readonly info: unknown;
    readonly methods: readonly Method[];
    readonly servers: readonly { readonly url: string }[];
  };

  it("has every method that an edge serves, its own included", () => {
    expect(methods.map(({ name }) => name)).toEqual(["sendTransaction", ...KEYLESS_METHODS]);
  });

  it("has each reason for which a submission may be refused", () => {
    const reasons = methods[0]?.errors?.flatMap(({ data }) => data?.map(({ reason }) => reason));
    expect(reasons?.sort()).toEqual(Object.keys(REJECTIONS).sort());
  });

  it("names the version that it was made for, and paths of the edge that serves it", () => {
    expect(info).toMatchObject({ version: "9.8.7" });
    expect(JSON.stringify(methods)).toContain('"touchdown":{"const":"9.8.7"}');
    expect(servers.map(({ url }) => url)).toEqual(["/api/v1/sendTransaction", "/", "/fast"]);
  });
});
