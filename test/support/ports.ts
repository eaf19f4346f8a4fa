/**
 * Ports for servers that must know their port before they listen, or must restart on the same one.
 * Any other listener uses port 0.
 *
 * A port chosen by the kernel is free again as soon as it is closed, and another test file may get
 * it. These lie below the kernel's ephemeral range, and each worker of the test runner has its own
 * range.
 */

import { createSocket } from "node:dgram";
import { createServer } from "node:net";

/** Linux allocates from 32768 (`ip_local_port_range`); 2026-11. */
const FIRST = 20_000;
const RANGES = 12;
const RANGE = 1_000;

const worker = Number(process.env["VITEST_POOL_ID"] ?? 0);
const first = FIRST + (worker % RANGES) * RANGE;
/** Another run on the same machine, or the previous file, most likely started elsewhere. */
let next = process.pid;

/** A port of 127.0.0.1 that is free for TCP and UDP and returned only once. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < RANGE; tries += 1) {
    next += 1;
    const port = first + (next % RANGE);
    if ((await takesTcp(port)) && (await takesUdp(port))) return port;
  }
  throw new Error(`no port from ${first} on is free`);
}

function takesTcp(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer().once("error", () => resolve(false));
    server.listen({ host: "127.0.0.1", port, exclusive: true }, () => {
      server.close(() => resolve(true));
    });
  });
}

function takesUdp(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createSocket("udp4").once("error", () => resolve(false));
    socket.bind({ port, address: "127.0.0.1", exclusive: true }, () => {
      socket.close(() => resolve(true));
    });
  });
}
