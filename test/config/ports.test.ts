import { expect, it } from "vitest";
import { controlPortsOf, portsOf } from "../../src/config/ports.ts";

const at = (host: string, port: number) => ({ host, port });

it("names the ports of each key, and none for any free port", () => {
  const others = { http: { listen: at("::1", 0) }, admin: { listen: at("127.0.0.1", 9090) } };
  const udp = { quic: { listen: null }, send: { bind: [at("0.0.0.0", 0), at("::", 4000)] } };
  expect(portsOf({ ...others, ...udp })).toEqual({
    "http.listen": [],
    "admin.listen": ["tcp 9090"],
    "quic.listen": [],
    "send.bind": ["udp 4000"],
  });
});

it("names those of the control process", () => {
  const listeners = { listen: at("127.0.0.1", 8088), admin: { listen: at("127.0.0.1", 9090) } };
  expect(controlPortsOf(listeners)).toEqual({
    "control.listen": ["tcp 8088"],
    "admin.listen": ["tcp 9090"],
  });
});
