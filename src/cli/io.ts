/**
 * A command's real environment: this process's streams, signals and clock, and the small files that
 * commands read.
 */

import { readFile, stat } from "node:fs/promises";
import { createInterface } from "node:readline";

import { systemClock } from "../core/clock.ts";
import { codeOf, SetupError } from "../core/errors.ts";
import type { Io } from "./command.ts";
import { COMMAND_INPUT_BYTES_MAX } from "./limits.ts";

export const processIo: Io = {
  out: linesTo(process.stdout),
  err: linesTo(process.stderr),
  async readStdin() {
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of process.stdin) {
      const bytes = Buffer.from(chunk);
      size += bytes.length;
      if (size > COMMAND_INPUT_BYTES_MAX) {
        throw new SetupError(`standard input holds more than ${COMMAND_INPUT_BYTES_MAX} bytes`);
      }
      chunks.push(bytes);
    }
    return Buffer.concat(chunks);
  },
  async readLine() {
    const lines = createInterface({ input: process.stdin });
    try {
      for await (const line of lines) return line;
      return null;
    } finally {
      lines.close();
    }
  },
  isTerminal: process.stderr.isTTY === true,
  clock: systemClock,
  signals: process,
};

function linesTo(stream: NodeJS.WritableStream): (line: string) => void {
  // A closed reader (`touchdown edge 2>&1 | head`) must not end the service.
  stream.on("error", () => undefined);
  return (line) => void stream.write(`${line}\n`);
}

/**
 * The bytes of a file or of standard input; throws a SetupError if reading fails or the input is
 * too large.
 */
export async function readInput(file: string, io: Pick<Io, "readStdin">): Promise<Uint8Array> {
  if (file === "-") return await io.readStdin();
  try {
    const { size } = await stat(file);
    if (size > COMMAND_INPUT_BYTES_MAX) {
      throw new SetupError(`${file} is ${size} bytes, at most ${COMMAND_INPUT_BYTES_MAX} are read`);
    }
    return await readFile(file);
  } catch (error) {
    if (error instanceof SetupError) throw error;
    const code = codeOf(error) ?? String(error);
    throw new SetupError(`${file} cannot be read (${code})`, { cause: error });
  }
}
