/**
 * A separate process that posts the time to a port of loopback, a hundred times a second, so that a
 * listening thread has time to fall asleep in between.
 */

import { connect } from "node:net";
import { systemClock } from "../../../src/core/clock.ts";

const PAUSE_MS = 10;

const socket = connect(Number(process.argv[2]), "127.0.0.1");
socket.setNoDelay(true);
socket.resume();
socket.on("close", () => process.exit());
setInterval(() => {
  const stamp = String(systemClock.nowNs());
  socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${stamp.length}\r\n\r\n${stamp}`);
}, PAUSE_MS);
