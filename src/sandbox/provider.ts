/**
 * An identity provider for the sandbox: a real one, on loopback, with two test users and a login
 * page without passwords. Discovery, code flow, PKCE and signed tokens are those of any OpenID
 * provider. Nothing is kept: keys and logins are gone when it stops.
 *
 * Note: any client that reaches the page may log in as either user, so it listens only on loopback.
 */

import { generateKeyPair, type JsonWebKey, randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { promisify } from "node:util";
import { Provider } from "oidc-provider";
import type { Log } from "../core/log.ts";
import { listening } from "./ports.ts";
import { createProviderStore } from "./provider-store.ts";

export interface TestUser {
  /** The provider's permanent name of the user. */
  readonly subject: string;
  readonly name: string;
  readonly email: string;
}

/** The two test users; the first is an operator where the sandbox makes them one. */
export const TEST_USERS: readonly TestUser[] = [
  { subject: "ada", name: "Ada Operator", email: "ada@sandbox.example" },
  { subject: "grace", name: "Grace User", email: "grace@sandbox.example" },
];

export interface ProviderOptions {
  /** 0 for any free port. */
  readonly port: number;
  /** The exact return address of logins; set later if not known yet. */
  readonly redirectUri: string;
}

export interface SandboxProvider {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  stop(): Promise<void>;
}

const HOST = "127.0.0.1";
const CLIENT_ID = "touchdown-sandbox";
const HOUR_S = 3600;

export async function startProvider(
  { log }: { readonly log: Log },
  { port, redirectUri }: ProviderOptions,
): Promise<SandboxProvider> {
  const server = createServer();
  const issuer = `http://${HOST}:${await listening(server, HOST, port)}`;
  const clientSecret = randomBytes(32).toString("base64url");
  const provider = new Provider(issuer, await settings(clientSecret, redirectUri));
  provider.on("server_error", (_, error) => log.error({ err: error }, "the provider failed"));
  const answer = provider.callback();
  server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    interact(provider, request, response).then(
      (done) => {
        if (!done) answer(request, response);
      },
      (error: unknown) => {
        log.warn({ err: error }, "a login at the sandbox's provider failed");
        const dashboard = new URL("/", redirectUri).href;
        const way = `<a href="${dashboard}">Begin another one at the dashboard</a>`;
        page(response, 400, `<h1>This login is over</h1><p>It was finished already. ${way}.</p>`);
      },
    );
  });
  return {
    issuer,
    clientId: CLIENT_ID,
    clientSecret,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function settings(clientSecret: string, redirectUri: string) {
  const pair = await promisify(generateKeyPair)("rsa", { modulusLength: 2048 });
  const key: JsonWebKey = pair.privateKey.export({ format: "jwk" });
  return {
    adapter: createProviderStore(),
    clients: [
      {
        client_id: CLIENT_ID,
        client_secret: clientSecret,
        redirect_uris: [redirectUri],
        grant_types: ["authorization_code"],
        response_types: ["code" as const],
        post_logout_redirect_uris: [new URL("/", redirectUri).href],
      },
    ],
    jwks: { keys: [{ ...key, kid: randomBytes(8).toString("hex"), use: "sig", alg: "RS256" }] },
    cookies: { keys: [randomBytes(32).toString("base64url")] },
    claims: { openid: ["sub"], profile: ["name"], email: ["email"] },
    features: {
      devInteractions: { enabled: false },
      rpInitiatedLogout: { enabled: true, logoutSource: askToLogOut },
    },
    pkce: { required: () => true },
    ttl: {
      AccessToken: HOUR_S,
      AuthorizationCode: 60,
      Grant: 24 * HOUR_S,
      IdToken: HOUR_S,
      Interaction: HOUR_S,
      Session: 24 * HOUR_S,
    },
    interactions: { url: (_: unknown, { uid }: { readonly uid: string }) => `/login/${uid}` },
    findAccount: (_: unknown, subject: string) => {
      const user = TEST_USERS.find((one) => one.subject === subject);
      if (user === undefined) return undefined;
      const { name, email } = user;
      return { accountId: subject, claims: async () => ({ sub: subject, name, email }) };
    },
    // Users are not asked for consent.
    loadExistingGrant: grantOf,
  };
}

/** The form is the provider's own, protected against a logout from another site's page. */
function askToLogOut(ctx: { body: unknown }, form: string): void {
  const text = "You are logged out of the dashboard. This test provider still knows who you are.";
  const out = '<button form="op.logoutForm" name="logout" value="yes">Log out here too</button>';
  const stay = '<button form="op.logoutForm">Stay logged in here</button>';
  ctx.body = documentOf(
    `<h1>Log out of the sandbox</h1><p>${text}</p>${form}<p>${out} ${stay}</p>`,
  );
}

type GrantContext = Parameters<
  NonNullable<NonNullable<ConstructorParameters<typeof Provider>[1]>["loadExistingGrant"]>
>[0];

async function grantOf({ oidc }: GrantContext) {
  const clientId = oidc.client?.clientId;
  const accountId = oidc.session?.accountId;
  if (clientId === undefined || accountId === undefined) return undefined;
  const known = oidc.session?.grantIdFor(clientId);
  const kept = known === undefined ? undefined : await oidc.provider.Grant.find(known);
  if (kept !== undefined) return kept;
  const grant = new oidc.provider.Grant({ clientId, accountId });
  grant.addOIDCScope("openid profile email");
  await grant.save();
  return grant;
}

const LOGIN_PATH = /^\/login\/[A-Za-z0-9_-]{1,64}$/;
const CHOICE_PATH = /^\/login\/[A-Za-z0-9_-]{1,64}\/as\/([a-z]{1,32})$/;

/** Serves the login page and handles the choice; false if the provider must handle the request. */
async function interact(
  provider: Provider,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<boolean> {
  const path = (request.url ?? "/").split("?", 1)[0] ?? "/";
  if (request.method === "GET" && LOGIN_PATH.test(path)) {
    await provider.interactionDetails(request, response);
    const question = "<p>A test provider on this machine. Who are you?</p>";
    const buttons = TEST_USERS.map((user) => buttonOf(path, user)).join("\n");
    page(response, 200, `<h1>Log in to the sandbox</h1>${question}${buttons}`);
    return true;
  }
  if (path === "/favicon.ico") {
    // Every browser requests a favicon, and would log an error in its console.
    response.writeHead(204).end();
    return true;
  }
  const subject = request.method === "POST" ? CHOICE_PATH.exec(path)?.[1] : undefined;
  if (subject === undefined) return false;
  request.resume();
  const user = TEST_USERS.find((one) => one.subject === subject);
  const result =
    user === undefined
      ? { error: "access_denied", error_description: "no user has that name" }
      : { login: { accountId: user.subject } };
  await provider.interactionFinished(request, response, result);
  return true;
}

/** The names are constants and need no escaping. */
function buttonOf(path: string, { subject, name, email }: TestUser): string {
  const button = `<button type="submit">Log in as ${name}</button> <small>${email}</small>`;
  return `<form method="post" action="${path}/as/${subject}"><p>${button}</p></form>`;
}

function page(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "X-Content-Type-Options": "nosniff",
  });
  response.end(documentOf(body));
}

function documentOf(body: string): string {
  const title = "Touchdown sandbox";
  return (
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title}</title>` +
    '<meta name="viewport" content="width=device-width"><style>' +
    ":root{color-scheme:light dark}body{font:1rem/1.5 system-ui;max-width:32rem;" +
    "margin:4rem auto;padding:0 1rem}" +
    "button{font:inherit;padding:.5rem 1rem;margin:0 .25rem .5rem 0}" +
    "</style></head><body><main>" +
    `${body}</main></body></html>`
  );
}
