/**
 * nginx and HAProxy with the configurations of `ops`, as processes before two edges, with TLS on
 * loopback.
 */

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createAuthority } from "./authority.ts";
import { freePort } from "./ports.ts";
import { ROOT } from "./source-tree.ts";

export interface RunningProxy {
  readonly port: number;
  /** PEM: what a client must trust. */
  readonly certificate: string;
  readonly isRunning: boolean;
  output(): string;
  /** Its output and all that its log files hold. */
  logs(): string;
  /** Ends it and removes its files. */
  stop(): Promise<void>;
}

interface Places {
  readonly folder: string;
  readonly port: number;
  readonly edges: readonly [number, number];
  readonly certificateFile: string;
  readonly keyFile: string;
  /** The dashboard behind it, as port of HAProxy and of `control`; absent: none. */
  readonly dashboard?: readonly [number, number];
}

/** A file of ops with each placeholder replaced; a placeholder that is not there is an error. */
function filled(path: string, values: Readonly<Record<string, string>>): string {
  let text = readFileSync(join(ROOT, path), "utf8");
  for (const [name, value] of Object.entries(values)) {
    if (!text.includes(name)) throw new Error(`${path} does not contain ${name}`);
    text = text.replaceAll(name, value);
  }
  return text;
}

function nginxConfiguration({ folder, port, edges, certificateFile, keyFile }: Places): string {
  const site = filled("ops/nginx/touchdown.conf", {
    EDGE_A: `127.0.0.1:${edges[0]}`,
    EDGE_B: `127.0.0.1:${edges[1]}`,
    SERVER_NAME: "localhost",
    CERTIFICATE_FILE: certificateFile,
    PRIVATE_KEY_FILE: keyFile,
    ACCESS_LOG: join(folder, "access.log"),
    ERROR_LOG: join(folder, "error.log"),
    "listen 443": `listen 127.0.0.1:${port}`,
    "    listen [::]:443 ssl http2;\n": "",
  });
  const file = join(folder, "nginx.conf");
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((name) => `${name}_temp_path ${folder}/${name};`)
    .join("\n");
  writeFileSync(
    file,
    `daemon off;\npid ${folder}/pid;\nerror_log stderr warn;\nworker_processes 1;
events { worker_connections 1024; }\nhttp {\n${temporary}\n${site}\n}\n`,
  );
  return file;
}

export const PROXIES = {
  nginx: (places: Places) => ({
    command: "nginx",
    words: ["-p", places.folder, "-c", nginxConfiguration(places)],
    environment: {},
  }),
  haproxy: ({ port, edges, certificateFile, dashboard }: Places) => ({
    command: "haproxy",
    words: [
      ...["-db", "-f", join(ROOT, "ops/haproxy/haproxy.cfg")],
      ...(dashboard === undefined ? [] : ["-f", join(ROOT, "ops/haproxy/dashboard.cfg")]),
    ],
    environment: {
      ...(dashboard === undefined
        ? {}
        : {
            DASHBOARD_LISTEN: `127.0.0.1:${dashboard[0]}`,
            DASHBOARD_CERTIFICATE_FILE: certificateFile,
            CONTROL: `127.0.0.1:${dashboard[1]}`,
          }),
      LISTEN: `127.0.0.1:${port}`,
      CERTIFICATE_FILE: certificateFile,
      EDGE_A: `127.0.0.1:${edges[0]}`,
      EDGE_B: `127.0.0.1:${edges[1]}`,
    },
  }),
} as const;

export type ProxyName = keyof typeof PROXIES;

export function hasProxy(name: ProxyName): boolean {
  return spawnSync(name, ["-v"]).status === 0;
}

/** `edges` are ports on loopback; `control` is the dashboard's, for which HAProxy gets a port. */
export async function startProxy(
  name: ProxyName,
  edges: readonly [number, number],
  control?: number,
): Promise<RunningProxy & { readonly dashboardPort: number }> {
  const folder = mkdtempSync(join(tmpdir(), `touchdown-${name}-`));
  const authority = createAuthority();
  const certificateFile = join(folder, "server.pem");
  const keyFile = join(folder, "key.pem");
  writeFileSync(keyFile, authority.server.key);
  // HAProxy reads both from one file.
  writeFileSync(certificateFile, `${authority.server.certificate}${authority.server.key}`);
  const port = await freePort();
  const dashboardPort = await freePort();
  const places = {
    ...{ folder, port, edges, certificateFile, keyFile },
    ...(control === undefined ? {} : { dashboard: [dashboardPort, control] as const }),
  };
  const { command, words, environment } = PROXIES[name](places);
  const child: ChildProcess = spawn(command, words, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...environment },
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on("data", (data: Buffer) => {
      output += data.toString();
    });
  }
  const exited = new Promise<void>((resolve) => child.once("close", () => resolve()));
  return {
    port,
    dashboardPort,
    certificate: authority.certificate,
    get isRunning() {
      return child.exitCode === null;
    },
    output: () => output,
    logs() {
      const files = readdirSync(folder).filter((file) => file.endsWith(".log"));
      return output + files.map((file) => readFileSync(join(folder, file), "utf8")).join("");
    },
    async stop() {
      child.kill("SIGTERM");
      await exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
