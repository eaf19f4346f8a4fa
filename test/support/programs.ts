/**
 * Runs a program as a user who pasted it would: in a shell, or saved to a file.
 */

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./source-tree.ts";

const RUNNERS = {
  curl: ["bash", "program.sh"],
  "web3.js": [process.execPath, "send.mjs"],
  kit: [process.execPath, "send.mjs"],
  Python: ["python3", "send.py"],
} as const;

export type Program = keyof typeof RUNNERS;
export const PROGRAMS = Object.keys(RUNNERS).filter(isProgram);

function isProgram(name: string): name is Program {
  return Object.hasOwn(RUNNERS, name);
}

/** Files next to the program, and its environment. */
export interface Around {
  readonly files?: Readonly<Record<string, Uint8Array>>;
  readonly env?: Readonly<Record<string, string>>;
}

/** The program's output. @throws with its errors when it fails */
export async function run(name: Program, text: string, around: Around = {}): Promise<string> {
  const [command, file] = RUNNERS[name];
  // Within the tree, so that Node finds the packages that the program imports.
  const folder = mkdtempSync(join(ROOT, "node_modules", ".program-"));
  try {
    writeFileSync(join(folder, file), text);
    for (const [fileName, bytes] of Object.entries(around.files ?? {})) {
      writeFileSync(join(folder, fileName), bytes);
    }
    // Proxies cannot reach loopback.
    const env = { ...process.env, no_proxy: "127.0.0.1", ...around.env };
    return await outputOf(command, file, folder, env);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function outputOf(
  command: string,
  file: string,
  cwd: string,
  env: NodeJS.ProcessEnv,
): Promise<string> {
  const child = spawn(command, [file], { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  let complaints = "";
  child.stdout.on("data", (piece: Buffer) => {
    output += piece.toString();
  });
  child.stderr.on("data", (piece: Buffer) => {
    complaints += piece.toString();
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      if (code === 0) resolve(output.trim());
      else reject(new Error(`${command} ${file} ended with ${code}: ${output}${complaints}`));
    });
  });
}
