/**
 * Ports for what must know its port before it listens, or must come back on the same one. Any other
 * listener takes port 0.
 *
 * A port of the kernel's choice is nobody's as soon as it is closed, and the next listener of
 * another test file may get it. These lie below what the kernel gives out by itself, and each
 * worker of the runner has a range of its own.
 */

import { createSocket } from "node:dgram";
import { createServer } from "node:net";

/** Linux gives out 32768 and above (`ip_local_port_range`); 2026-11. */
const FIRST = 20_000;
const RANGES = 12;
const RANGE = 1_000;

const worker = Number(process.env["VITEST_POOL_ID"] ?? 0);
const first = FIRST + (worker % RANGES) * RANGE;
/** Another run on the same machine, or the file before this one, most likely began elsewhere. */
let next = process.pid;

/** A port of 127.0.0.1 that is free for TCP and UDP and is given to nobody else. */
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
