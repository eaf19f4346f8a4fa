/**
 * Every command and snippet of the documents. A command is checked here, against the scripts, the
 * command table, the manifests and the files that it names, or it is covered by the test that this
 * file names for it; a command that is neither is a failure. Whole snippets of TOML go through the
 * loaders of the configuration and of keys files, JSON through a parser.
 */

import { accessSync, constants, existsSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { describe, expect, it } from "vitest";
import { parseKeysFile } from "../src/accounts/keys/keys-file.ts";
import { COMMANDS } from "../src/cli/commands.ts";
import { configFromValues, controlFromValues } from "../src/config/load.ts";
import { environmentName, KEY_PATHS } from "../src/config/table.ts";
import { parseToml } from "../src/runtime/toml.ts";
import { documents, linesOf, snippets, wordsOf } from "./support/snippets.ts";
import { listFiles, ROOT, readSource } from "./support/source-tree.ts";

const { scripts }: { readonly scripts: Readonly<Record<string, string>> } = JSON.parse(
  readSource("package.json").text,
);

/** Commands that are not checked here, each with the test that covers what it relies on. */
const COVERED: readonly (readonly [RegExp, string])[] = [
  [/^npm ci( --dry-run)?$/, "test/packages.test.ts"],
  [/^npm install$/, "test/packages.test.ts"],
  [/^npm install --no-save --omit=dev \S+\/uWebSockets\.js\/\S+$/, "test/http/uws.test.ts"],
  [/^sha256sum --check --ignore-missing docs\/uwebsockets\.sha256$/, "test/http/uws.test.ts"],
  [/^grep -o '\/\.\*uws\.\*\\\.node\$' \/proc\/PID\/maps$/, "test/http/uws.test.ts"],
  [/^sort -u$/, "test/http/uws.test.ts"],
  [/^curl -sSN? "\$URL\/(api\/|fast")/, "test/flow/documents.test.ts"],
  [/^useradd --system --home-dir \S+ touchdown$/, "test/ops/systemd.test.ts"],
  [/^cp ops\/systemd\/\S+ \/etc\/systemd\/system\/$/, "test/ops/systemd.test.ts"],
  [/^systemctl (enable --now|reload) touchdown-edge$/, "test/ops/systemd.test.ts"],
  [/^apt-get install --no-install-recommends nodejs /, "test/ops/deploy.test.ts"],
  [/^(install -d|printf|tar -xzf|ln -sfn|cp -r|cat|sed|chown|chmod) \S/, "test/ops/deploy.test.ts"],
  [/^cp ops\/(compose|prometheus)\/\S+ \/etc\/\S+$/, "test/ops/deploy.test.ts"],
  [/^cp( ops\/systemd\/\S+\.service){2} \/etc\/systemd\/system\/$/, "test/ops/deploy.test.ts"],
  [/^env OWNER_PASSWORD=\S+ .* sh ops\/compose\/roles\.sh$/, "test/ops/deploy.test.ts"],
  [/^systemctl enable --now touchdown-(control|edge touchdown-edge-2)$/, "test/ops/deploy.test.ts"],
  [/^systemctl restart (haproxy|prometheus|grafana-server)$/, "test/ops/deploy.test.ts"],
  [/^install -(o 1000 -m 0400|m 0600) \S+ \S+$/, "test/ops/compose.test.ts"],
  [/^(for name in POSTGRES |echo OIDC_CLIENT_SECRET=)/, "test/ops/compose.test.ts"],
  [/^sysctl --system$/, "test/ops/deploy.test.ts"],
  [
    /^npm install \.\/touchdown-\S+ \.\/touchdown-native-linux-arm64-gnu-\S+ \S+\.tar\.gz$/,
    "test/scripts/release-files.test.ts",
  ],
  [/^sha256sum --check --ignore-missing SHA256SUMS$/, "test/ops/deploy.test.ts"],
  [/^promtool check config \S+$/, "test/ops/prometheus.test.ts"],
  [/^curl -sS https:\/\/fra\.example\.com\/readyz$/, "test/ops/proxies.test.ts"],
  [/^systemctl kill -s HUP touchdown-edge$/, "test/cli/signals.test.ts"],
  [/^pg_dump(all)? --host=\S+ --user/, "test/accounts/database/restored-database.test.ts"],
  [/^(psql|createdb|pg_restore) --host=/, "test/accounts/database/restored-database.test.ts"],
  [/^cargo fmt$/, "native/rustfmt.toml"],
  [/^cargo (clippy|test) --release( --all-targets)?$/, "native/Cargo.toml"],
  [/^cargo test$/, "clients/rust/Cargo.toml"],
  [/^RUSTFLAGS=\S.* cargo build --release --locked --target \S+$/, "native/fuzz/Cargo.toml"],
  [/^mkdir -p target\/found$/, "test/native/fuzz-targets.test.ts"],
  [/^target\/\S+\/release\/json_rpc .*corpus\/json_rpc$/, "test/native/fuzz-targets.test.ts"],
];

const of = (language: string) => snippets.filter((snippet) => snippet.language === language);

/** What is wrong with a command; null where nothing is. */
function complaint(command: string): string | null {
  const [program = "", ...words] = wordsOf(command.replace(/ > \S+$/, ""));
  // As another user.
  if (program === "runuser" && words[2] === "--") return complaint(words.slice(3).join(" "));
  if (/^npm (start|test|run \S+)/.test(command)) return scriptComplaint(words);
  if (program === "node") return nodeComplaint(words);
  if (program === "docker" && words[0] === "compose") return composeComplaint(words.slice(1));
  if (program === "docker") return isInDockerfile(command);
  if (program === "export") return variableComplaint(words[0] ?? "");
  if (program === "cd") return missing([words[0] ?? ""]);
  if (/^npx vitest run /.test(command)) return missing(words.slice(2));
  if (/^\.ci\/\w+$/.test(command)) return programComplaint(command);
  const covered = COVERED.find(([form]) => form.test(command));
  return covered === undefined
    ? "is not checked here, and COVERED names no test for it"
    : missing([covered[1]]);
}

function missing(paths: readonly string[]): string | null {
  const lost = paths.filter((path) => !existsSync(join(ROOT, path)));
  return lost.length === 0 ? null : `names ${lost.join(", ")}, which is not there`;
}

function scriptComplaint([first = "", second = ""]: readonly string[]): string | null {
  const name = first === "run" ? second : first;
  return Object.hasOwn(scripts, name) ? null : `package.json has no script ${name}`;
}

/** `node [OPTIONS] dist/main.js COMMAND …`, held against the table of commands. */
function nodeComplaint(words: readonly string[]): string | null {
  const at = words.indexOf("dist/main.js");
  if (at < 0) return "does not run dist/main.js";
  const flags = words.slice(0, at).map((flag) => flag.replace(/=.*/, ""));
  const unknown = flags.filter((flag) => !process.allowedNodeEnvironmentFlags.has(flag));
  if (unknown.length > 0) return `Node has no option ${unknown.join(", ")}`;
  const [name = "", ...args] = words.slice(at + 1);
  const command = COMMANDS.find((candidate) => candidate.name === name);
  if (command === undefined) return `there is no command ${name}`;
  try {
    const { options } = command;
    const { positionals } = parseArgs({ args, options, allowPositionals: true });
    const forms = command.usage.map((form) => form.split(" ").slice(1));
    return forms.some((form) => fits(form, positionals)) ? null : `is no form of ${name}`;
  } catch (error) {
    return String(error);
  }
}

/** Whether positionals are those of a form such as `revoke KEY|SHA256 --file FILE`. */
function fits(form: readonly string[], positionals: readonly string[]): boolean {
  const end = form.findIndex((word) => /^\[?-./.test(word));
  const places = end < 0 ? form : form.slice(0, end);
  return (
    places.length === positionals.length &&
    places.every((place, at) => /^[A-Z]/.test(place) || place === positionals[at])
  );
}

function isInDockerfile(command: string): string | null {
  const text = readSource("Dockerfile").text.replace(/\\\n# */g, "");
  return text.includes(`#   ${command}\n`) ? null : "is not what the head of the Dockerfile says";
}

/** `docker compose VERB [OPTIONS] [SERVICE] …`, held against `compose.yaml`. */
function composeComplaint([verb = "", ...words]: readonly string[]): string | null {
  const services = readSource("compose.yaml").text.replace(/^volumes:[\s\S]*/m, "");
  const at = words.findIndex((word) => services.includes(`\n  ${word}:\n`));
  const rest = words.slice(at + 1);
  if (verb === "exec" && at >= 0) return complaint(rest.join(" "));
  if (verb === "run" && at >= 0) return nodeComplaint(["dist/main.js", ...rest]);
  return ["build", "logs", "ps", "up"].includes(verb) ? null : `is no command for ${words}`;
}

function variableComplaint(assignment: string): string | null {
  const [name = ""] = assignment.split("=");
  if (KEY_PATHS.some((path) => environmentName(path) === name)) return null;
  const inDockerfile = readSource("Dockerfile").text.includes(assignment);
  return inDockerfile ? null : `neither an option nor the Dockerfile has the variable ${name}`;
}

function programComplaint(path: string): string | null {
  try {
    accessSync(join(ROOT, path), constants.X_OK);
    return null;
  } catch (error) {
    return String(error);
  }
}

describe("commands in documents", () => {
  const commands = of("sh").flatMap((snippet) =>
    linesOf(snippet)
      .flatMap((line) => line.split(/\s+(?:&&|\|)\s+/))
      .map((command) => [snippet.place, command] as const),
  );

  it("are found", () => {
    expect(commands.length).toBeGreaterThan(40);
  });

  it.each(commands)("%s: %s", (_, command) => {
    expect(complaint(command)).toBeNull();
  });

  it("within a line name scripts and benches that exist", () => {
    const wrong = documents.flatMap(({ path, text }) =>
      [...text.matchAll(/`([^`\n]+)`/g)].flatMap(([, code = ""]) => {
        const script = /\bnpm run ([\w:]+)/.exec(code)?.[1];
        const bench = /\bcargo bench --bench (\w+)/.exec(code)?.[1];
        return [
          script === undefined ? null : scriptComplaint(["run", script]),
          bench === undefined ? null : missing([`native/benches/${bench}.rs`]),
        ].flatMap((fault) => (fault === null ? [] : [`${path}: ${code}: ${fault}`]));
      }),
    );
    expect(wrong).toEqual([]);
  });

  it("and text name files of the project that exist", () => {
    // Built by a command; and PATH and NNNN stand for any.
    const made = ["native/touchdown.node"];
    const wrong = documents.flatMap(({ path, text }) =>
      [...text.matchAll(/`((?:src|test|native|bench|docs|scripts)\/[\w./-]+\w)`/g)]
        .map(([, file = ""]) => file)
        .filter((file) => !made.includes(file) && !/\b(?:PATH|NNNN)\b/.test(file))
        .filter((file) => missing([file]) !== null)
        .map((file) => `${path} names ${file}`),
    );
    expect(wrong).toEqual([]);
  });
});

describe("alerts in documents", () => {
  it("are those of the rules for Prometheus", () => {
    const rules = readSource("ops/prometheus/rules.yaml").text;
    const named = documents.flatMap(({ path, text }) =>
      [...text.matchAll(/\bTouchdown[A-Z]\w+/g)].map(([name]) => ({ path, name })),
    );
    expect(named.filter(({ name }) => !rules.includes(`- alert: ${name}\n`))).toEqual([]);
    expect(named.filter(({ path }) => path === "docs/deploy.md").length).toBeGreaterThan(10);
  });
});

describe("snippets in documents", () => {
  const TIP = "96gYZGLnJYVFmbjzopPSU6QiEV5fGqZNyN9nmNhvrZU5";

  it("are of a known kind", () => {
    // `cargo test` compiles that of clients/rust; the other one is the start of examples/submit.ts.
    const isCompiled = ({ place }: { readonly place: string }) =>
      /^clients\/(rust|typescript)\/README\.md:/.test(place);
    const known = ["sh", "toml", "json", "sql", ""];
    const others = snippets.filter(({ language }) => !known.includes(language));
    expect(others.filter((snippet) => !isCompiled(snippet))).toEqual([]);
  });

  it.each(of("toml").map(({ place, text }) => [place, text]))("%s is accepted", (place, text) => {
    const filled = text
      .replaceAll("<base58>", TIP)
      .replaceAll("<hex>", "5a".repeat(32))
      .replaceAll("…", "secret");
    const parsed = parseToml(filled);
    if (parsed.kind !== "ok") throw new Error(parsed.message);
    const { value } = parsed;
    if ("keys" in value) expect(parseKeysFile(filled, place).keys).not.toHaveLength(0);
    else if ("control" in value) expect(controlFromValues(value, ROOT, {})).toBeTruthy();
    else expect(configFromValues(value, ROOT, {})).toBeTruthy();
  });

  it.each(of("json").map(({ place, text }) => [place, text]))("%s is JSON", (_, text) => {
    expect(JSON.parse(text)).toBeTypeOf("object");
  });

  it("of SQL name the roles that the migrations make", () => {
    const migrations = listFiles("src/control/migrations", ".ts").map(readSource);
    for (const { text } of of("sql")) {
      const roles = [...text.matchAll(/\bin role (\w+)/g)].map(([, role = ""]) => role);
      expect(roles).not.toHaveLength(0);
      for (const role of roles) {
        expect(
          migrations.some((each) => each.text.includes(role)),
          role,
        ).toBe(true);
      }
    }
  });
});

describe("the check of commands bites", () => {
  it.each([
    "npm run nothing",
    "node dist/main.js fly",
    "node dist/main.js edge --configuration x.toml",
    "node dist/main.js keys forget --file keys.toml",
    "node --no-such-option dist/main.js edge --config x.toml",
    "curl https://example.org",
    "export TOUCHDOWN_NOTHING=1",
    "npx vitest run test/nothing.test.ts",
    "cd nowhere",
    "rm -rf dist",
  ])("on %s", (command) => {
    expect(complaint(command)).not.toBeNull();
  });
});
