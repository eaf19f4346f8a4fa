/**
 * The programs of the Connect page, with the user's address and key filled in. Each runs as pasted:
 * where the service has an example transaction (the sandbox), it is fetched; otherwise the user's
 * own is read from a file, or signed with the key pair of Solana's own tools.
 */

import { kit, web3 } from "./snippets-javascript.js";
import { FILE, quicIntro, quicRust, quicTpu, quicTypescript } from "./snippets-quic.js";

/**
 * @typedef {{url: string, key: string, tipAccount: string, tipLamports: number,
 *   rpcUrl: string | null, exampleUrl: string | null, authorityFile: string | null,
 *   quic: string | null}} Filling
 * @typedef {{name: string, title: string, before: string,
 *   code: ((filling: Filling) => string) | null, tab?: string}} Snippet `tab`: the name of the one
 *   under whose tab it stands; absent: it has its own
 */

const FILE_NEEDED = `${FILE} holds your signed transaction, with its tip, as bytes.`;

/**
 * The programs for this service.
 * @param {Filling} filling
 * @returns {Snippet[]}
 */
export function snippets(filling) {
  const file = filling.exampleUrl === null ? FILE_NEEDED : "Sends a fresh example each time.";
  const node = "Save as send.mjs, run with node.";
  return [
    { name: "curl", title: "curl", before: `In a shell. ${file}`, code: curl },
    {
      name: "web3js",
      title: "web3.js",
      before: `npm install @solana/web3.js@1. ${node}`,
      code: web3,
    },
    { name: "kit", title: "kit", before: `npm install @solana/kit. ${node}`, code: kit },
    {
      name: "rust",
      title: "Rust",
      before: `cargo add ureq@2, then src/main.rs. ${file}`,
      code: rust,
    },
    {
      name: "python",
      title: "Python",
      before: `Python 3 alone, no packages. ${file}`,
      code: python,
    },
    { name: "quic", title: "QUIC", before: quicIntro(filling), code: null },
    ...quicPrograms(filling),
  ];
}

/**
 * Those under the tab QUIC; without text where the region has no QUIC.
 * @param {Filling} filling
 * @returns {Snippet[]}
 */
function quicPrograms({ exampleUrl, authorityFile, quic }) {
  const file = exampleUrl === null ? FILE_NEEDED : `First: curl -sS ${exampleUrl} -o ${FILE}`;
  const trust =
    authorityFile === null
      ? ""
      : `. Run it with SSL_CERT_FILE=${authorityFile}, because your system does not know who ` +
        "issued this region's certificate.";
  /** @type {Snippet[]} */
  const programs = [
    {
      name: "quic-rust",
      title: "QUIC with Rust",
      before: `Rust: cargo add tokio -F full, and touchdown-client from clients/rust. ${file}${trust}`,
      code: quicRust,
    },
    {
      name: "quic-typescript",
      title: "QUIC with TypeScript",
      before: `TypeScript: touchdown-client from clients/typescript. ${file}${trust}`,
      code: quicTypescript,
    },
    {
      name: "quic-tpu",
      title: "solana-tpu",
      before:
        "solana-tpu with Agave's own client: cargo add async-trait solana-keypair@3 and " +
        "tokio -F full, solana-tpu-client-next@4.2 -F agave-unstable-api. id.json holds the " +
        "registered keypair.",
      code: quicTpu,
    },
  ];
  const tab = "quic";
  if (quic !== null) return programs.map((program) => ({ ...program, tab }));
  return programs.map(({ name, title }) => ({ name, title, before: "", code: null, tab }));
}

/** @param {Filling} filling */
function curl({ url, key, exampleUrl }) {
  const call = [
    `curl -sS ${url}/api/v1/sendRawTransaction \\`,
    `  -H 'api-x-token: ${key}' \\`,
    "  -H 'content-type: application/octet-stream' \\",
  ];
  if (exampleUrl === null) return [...call, `  --data-binary @${FILE}`].join("\n");
  return [`curl -sS ${exampleUrl} |`, ...call, "  --data-binary @-"].join("\n");
}

/** @param {Filling} filling */
function rust({ url, key, exampleUrl }) {
  const source =
    exampleUrl === null
      ? [`    let transaction = std::fs::read("${FILE}")?;`]
      : [
          "    let mut transaction = Vec::new();",
          `    let example = ureq::get("${exampleUrl}").call()?;`,
          "    std::io::Read::read_to_end(&mut example.into_reader(), &mut transaction)?;",
        ];
  return [
    "fn main() -> Result<(), Box<dyn std::error::Error>> {",
    ...source,
    `    let answer = ureq::post("${url}/api/v1/sendRawTransaction")`,
    `        .set("api-x-token", "${key}")`,
    '        .set("content-type", "application/octet-stream")',
    "        .send_bytes(&transaction);",
    "    // A refusal has a body too: what was found and what was needed.",
    "    let answer = match answer {",
    "        Ok(answer) | Err(ureq::Error::Status(_, answer)) => answer,",
    "        Err(error) => return Err(error.into()),",
    "    };",
    '    println!("{}", answer.into_string()?);',
    "    Ok(())",
    "}",
  ].join("\n");
}

/** @param {Filling} filling */
function python({ url, key, exampleUrl }) {
  const source =
    exampleUrl === null
      ? `open("${FILE}", "rb").read()`
      : `urllib.request.urlopen("${exampleUrl}").read()`;
  return [
    "import urllib.error",
    "import urllib.request",
    "",
    `transaction = ${source}`,
    "request = urllib.request.Request(",
    `    "${url}/api/v1/sendRawTransaction",`,
    "    data=transaction,",
    "    headers={",
    `        "api-x-token": "${key}",`,
    '        "content-type": "application/octet-stream",',
    "    },",
    ")",
    "try:",
    "    print(urllib.request.urlopen(request).read().decode())",
    "except urllib.error.HTTPError as refusal:",
    "    # A refusal has a body too: what was found and what was needed.",
    "    print(refusal.read().decode())",
  ].join("\n");
}
