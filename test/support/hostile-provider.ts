/**
 * An identity provider whose responses the test controls: the claims of the ID token, the signing
 * key, the published keys, and whether it responds at all. The token endpoint returns one token for
 * any code.
 */

import { createSign, generateKeyPairSync, type KeyObject, randomBytes } from "node:crypto";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface HostileProvider {
  readonly issuer: string;
  /** Claims that override those of a valid response. */
  claims: Readonly<Record<string, unknown>>;
  /** The claims that it says it supports, from the next discovery on. */
  claimsSupported: readonly string[];
  /** Changes the finished token. */
  tamper: (token: string) => string;
  /** Status of the token endpoint; 200 returns a token. */
  status: number;
  /** Creates a new key; the old one is no longer published. */
  rotate(): void;
  /** Signs with an unpublished key. */
  forge(): void;
  /** The redirect to the dashboard for the request `url`, with another state if given. */
  answerTo(url: string, state?: string): string;
  stop(): Promise<void>;
}

interface SigningKey {
  readonly kid: string;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

function newKey(): SigningKey {
  const pair = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return { kid: randomBytes(4).toString("hex"), ...pair };
}

export async function startHostileProvider(nowMs: () => number): Promise<HostileProvider> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  // A listening TCP server has an address of this form.
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  let signs = newKey();
  let published = signs;
  let asked = new URLSearchParams();
  const provider: HostileProvider = {
    issuer,
    claims: {},
    claimsSupported: ["sub", "iss", "auth_time"],
    tamper: (token) => token,
    status: 200,
    rotate() {
      signs = newKey();
      published = signs;
    },
    forge() {
      signs = { ...newKey(), kid: published.kid };
    },
    answerTo(url, state) {
      asked = new URL(url).searchParams;
      const back = new URL(asked.get("redirect_uri") ?? "");
      back.searchParams.set("code", randomBytes(8).toString("hex"));
      back.searchParams.set("state", state ?? asked.get("state") ?? "");
      back.searchParams.set("iss", issuer);
      return back.href;
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  function idToken(): string {
    const now = Math.floor(nowMs() / 1000);
    const honest = {
      ...{ iss: issuer, sub: "mallory", aud: asked.get("client_id"), iat: now, exp: now + 300 },
      ...{ nonce: asked.get("nonce"), auth_time: now, name: "Mallory" },
    };
    const parts = [
      { alg: "RS256", kid: signs.kid },
      { ...honest, ...provider.claims },
    ];
    const text = parts.map((part) => encoded(JSON.stringify(part))).join(".");
    const signature = createSign("sha256").update(text).sign(signs.privateKey);
    return provider.tamper(`${text}.${encoded(signature)}`);
  }
  server.on("request", (request, response) => {
    request.resume();
    const path = (request.url ?? "").split("?", 1)[0];
    if (path === "/token") {
      const token = { access_token: "a", token_type: "Bearer", expires_in: 60 };
      const body = provider.status === 200 ? { ...token, id_token: idToken() } : { error: "x" };
      json(response, body, provider.status);
    } else if (path === "/jwks") {
      const key = published.publicKey.export({ format: "jwk" });
      json(response, { keys: [{ ...key, kid: published.kid, use: "sig", alg: "RS256" }] });
    } else {
      json(response, { ...metadata(issuer), claims_supported: provider.claimsSupported });
    }
  });
  return provider;
}

function metadata(issuer: string): object {
  return {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    jwks_uri: `${issuer}/jwks`,
    response_types_supported: ["code"],
    subject_types_supported: ["public"],
    id_token_signing_alg_values_supported: ["RS256"],
    authorization_response_iss_parameter_supported: true,
    code_challenge_methods_supported: ["S256"],
  };
}

function encoded(bytes: string | Uint8Array): string {
  return Buffer.from(bytes).toString("base64url");
}

function json(response: ServerResponse, body: object, status = 200): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}
