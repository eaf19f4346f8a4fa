/**
 * A control process on loopback with the sandbox's real identity provider and a real database, and
 * clients that behave like browsers: they keep and send cookies, and do nothing that a browser
 * would not allow a page.
 */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { controlFromValues } from "../../src/config/load.ts";
import { type Control, startControl } from "../../src/control/control.ts";
import type { Log } from "../../src/core/log.ts";
import { type SandboxProvider, startProvider } from "../../src/sandbox/provider.ts";
import { createFakeClock, type FakeClock } from "./fake-clock.ts";
import { freePort } from "./ports.ts";
import { createTestStore, type TestStore } from "./store-on-postgres.ts";

export interface TestControl {
  readonly url: string;
  readonly control: Control;
  readonly provider: SandboxProvider;
  readonly store: TestStore;
  readonly clock: FakeClock;
  /** Every log line, as JSON. */
  readonly logged: string[];
  stop(): Promise<void>;
}

export interface TestControlOptions {
  /** A provider other than the sandbox's. */
  readonly issuer?: { readonly issuer: string; readonly clientSecret: string };
  /** The store of another control process. */
  readonly store?: TestStore;
  /** Keys of [control] that override the test's own. */
  readonly control?: Readonly<Record<string, unknown>>;
}

export async function startTestControl(options: TestControlOptions = {}): Promise<TestControl> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const logged: string[] = [];
  const note = (fields: object, message: string): void =>
    void logged.push(`${message} ${JSON.stringify(fields, plainly)}`);
  const log: Log = { info: note, warn: note, error: note };
  const redirectUri = `${url}/login/callback`;
  const provider = await startProvider({ log }, { port: 0, redirectUri });
  const { issuer, clientSecret } = options.issuer ?? provider;
  // The wall clock starts at the real time, because the provider uses the real clock.
  const clock = createFakeClock(1_000_000_000, Date.now());
  const store = options.store ?? (await createTestStore(clock));
  const folder = mkdtempSync(join(tmpdir(), "touchdown-control-"));
  mkdirSync(join(folder, "pages"));
  writeFileSync(join(folder, "pages", "index.html"), "<!doctype html><title>pages</title>");
  writeFileSync(join(folder, "pages", "app.js"), "export {};");
  writeFileSync(join(folder, "pages", "app.js.gz"), gzipSync("export {};"));
  writeFileSync(join(folder, "secret.txt"), "not for anybody");
  const config = controlFromValues(
    {
      control: {
        listen: `127.0.0.1:${port}`,
        public_url: url,
        oidc_issuer: issuer,
        oidc_client_id: provider.clientId,
        oidc_client_secret: clientSecret,
        vault_file: "vault.json",
        admins: [`${issuer} ada`],
        ...options.control,
      },
      admin: { listen: "127.0.0.1:0" },
      accounts: { database_url: "postgres://nobody@127.0.0.1/none" },
    },
    folder,
    {},
  );
  const pagesFolder = join(folder, "pages");
  const control = await startControl(config, { store, clock, log, version: "test", pagesFolder });
  return {
    ...{ url, control, provider, store, clock, logged },
    async stop() {
      await control.stop();
      await provider.stop();
      await store.stop();
      rmSync(folder, { recursive: true });
    },
  };
}

function plainly(_: string, value: unknown): unknown {
  return value instanceof Error ? `${value.name}: ${value.message} ${value.stack}` : value;
}

export interface ControlResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body as JSON; undefined if it is not JSON. */
  readonly json: unknown;
}

/** One browser: a cookie jar, and requests as its pages of one origin would send them. */
export class Browser {
  readonly cookies = new Map<string, string>();
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  /** A fetch by a page of the dashboard; headers given replace those of the browser. */
  async call(
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<ControlResponse> {
    const json = body === undefined ? {} : { "content-type": "application/json" };
    const own = { ...json, "sec-fetch-site": "same-origin", origin: this.#url, ...headers };
    return await this.send(`${this.#url}${path}`, method, own, body);
  }

  /** A request with the headers given and this browser's cookies. */
  async send(
    url: string,
    method: string,
    headers: Readonly<Record<string, string>>,
    body?: unknown,
  ): Promise<ControlResponse> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(url, {
      method,
      headers: { ...(cookie === "" ? {} : { cookie }), ...headers },
      redirect: "manual",
      ...(body === undefined
        ? {}
        : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    for (const line of response.headers.getSetCookie()) this.#keep(line);
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, json: parsed(text) };
  }

  /** Starts a login and returns the provider's URL. */
  async startLogin(options: { return_to?: string; fresh?: boolean } = {}): Promise<string> {
    const { status, json, text } = await this.call("POST", "/api/v1/login", options);
    const url = fieldOf(json, "url");
    if (status !== 200 || typeof url !== "string") throw new Error(`login: ${status} ${text}`);
    return url;
  }

  /**
   * Logs in at the provider as this test user; returns the URL that leads back to the dashboard.
   */
  async throughProvider(url: string, user: string): Promise<string> {
    let at = url;
    for (let hop = 0; hop < 10; hop += 1) {
      if (at.startsWith(`${this.#url}/`)) return at;
      const chooses = new URL(at).pathname.startsWith("/login/");
      const answer = chooses
        ? await this.send(`${at}/as/${user}`, "POST", {})
        : await this.send(at, "GET", {});
      const location = answer.headers.get("location");
      if (location === null) throw new Error(`the provider stops: ${answer.status} ${answer.text}`);
      at = new URL(location, at).href;
    }
    throw new Error("the provider goes round in circles");
  }

  /** The redirect from the provider, as a navigation from another site. */
  async comeBack(url: string): Promise<string> {
    const answer = await this.send(url, "GET", {
      "sec-fetch-site": "cross-site",
      "sec-fetch-mode": "navigate",
    });
    if (answer.status !== 303) throw new Error(`callback: ${answer.status} ${answer.text}`);
    return answer.headers.get("location") ?? "";
  }

  /** The complete login; returns the final path. */
  async login(user: string, options: { return_to?: string; fresh?: boolean } = {}) {
    const url = await this.startLogin(options);
    return await this.comeBack(await this.throughProvider(url, user));
  }

  #keep(line: string): void {
    const [pair = "", ...attributes] = line.split("; ");
    const name = pair.slice(0, pair.indexOf("="));
    const gone = attributes.some((attribute) => /^max-age=0$/i.test(attribute));
    if (gone) this.cookies.delete(name);
    else this.cookies.set(name, pair.slice(name.length + 1));
  }
}

export const SESSION_COOKIE = "__Host-td-session";

/** A field of a parsed value at any depth; undefined if missing. */
export function fieldOf(json: unknown, path: string): unknown {
  let value = json;
  for (const part of path.split(".")) {
    if (typeof value !== "object" || value === null) return undefined;
    value = new Map<string, unknown>(Object.entries(value)).get(part);
  }
  return value;
}

export function reasonOf({ json }: ControlResponse): unknown {
  return fieldOf(json, "error.reason");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // A page, not an API response.
    return undefined;
  }
}
