/** Where the sandbox's edge takes QUIC clients, and the certificate that it presents them. */

import { writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import type { Config } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import { ingressThreadsOf } from "../edge/native-ingress.ts";
import { chooseEngine } from "../native/choose.ts";
import { createLog } from "../telemetry/log.ts";
import { createAuthority } from "./authority.ts";

/** Where clients over QUIC connect. */
export interface QuicPlace {
  /** "host:port". */
  readonly address: string;
  /** The file with the authority of the edge's certificate, as PEM; null: it has none. */
  readonly authorityFile: string | null;
}

/** Whether an edge with this configuration can serve QUIC clients on this machine. */
export function isQuicPossible(config: Config): boolean {
  // The edge itself warns of the portable engine.
  const engine = chooseEngine(config.send.engine, createLog({ level: "silent", destination: 2 }));
  return ingressThreadsOf(config, engine, availableParallelism()) > 0;
}

/**
 * The section `quic` of an edge on any free port of loopback, with a certificate that clients
 * verify by the authority's file. All files are in `folder`.
 */
export function issueQuicSection(folder: string, { unixMs }: Pick<Clock, "unixMs">) {
  const authority = createAuthority();
  const { certificate, key } = authority.issue(unixMs() - DAY_MS, unixMs() + VALID_MS);
  const fileOf = (name: string, text: string): string => {
    const path = join(folder, name);
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  };
  const tls = { certificate: fileOf("quic.pem", certificate), key: fileOf("quic.key", key) };
  return {
    section: { listen: "127.0.0.1:0", tls },
    authorityFile: fileOf("authority.pem", authority.certificate),
  };
}

const DAY_MS = 86_400_000;
const VALID_MS = 365 * DAY_MS;
