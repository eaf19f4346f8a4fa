/** The ports of a service, by the keys that name them, each as `tcp 8080`; 0 is none. */

import type { Config, ControlConfig } from "./config.ts";
import type { ListenAddress } from "./value-types.ts";

interface Listeners {
  readonly http: Pick<Config["http"], "listen">;
  readonly admin: Config["admin"];
  readonly quic: Pick<Config["quic"], "listen">;
  readonly send: Pick<Config["send"], "bind">;
}

export function portsOf({ http, admin, quic, send }: Listeners) {
  return {
    "http.listen": named("tcp", [http.listen]),
    "admin.listen": named("tcp", [admin.listen]),
    "quic.listen": named("udp", quic.listen === null ? [] : [quic.listen]),
    "send.bind": named("udp", send.bind),
  };
}

export function controlPortsOf({ listen, admin }: Pick<ControlConfig, "listen" | "admin">) {
  return { "control.listen": named("tcp", [listen]), "admin.listen": named("tcp", [admin.listen]) };
}

function named(protocol: "tcp" | "udp", addresses: readonly ListenAddress[]): readonly string[] {
  return addresses.flatMap(({ port }) => (port === 0 ? [] : [`${protocol} ${port}`]));
}
