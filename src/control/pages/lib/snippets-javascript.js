/**
 * The programs for the two JavaScript libraries. Both sign a transfer that is its own tip, because
 * that is the smallest transaction that the service accepts, and send it with the key in a header.
 *
 * In the sandbox the payer is created and funded on the spot; elsewhere it is the key pair of
 * Solana's own tools.
 */

/** @typedef {import("./snippets.js").Filling} Filling */

const MAINNET = "https://api.mainnet-beta.solana.com";

const READ_PAYER = [
  'const file = process.env.KEYPAIR ?? homedir() + "/.config/solana/id.json";',
  'const secret = Uint8Array.from(JSON.parse(readFileSync(file, "utf8")));',
];
const READ_IMPORTS = [
  'import { readFileSync } from "node:fs";',
  'import { homedir } from "node:os";',
];

/** @param {Filling} filling */
export function web3({ url, key, tipAccount, tipLamports, rpcUrl, exampleUrl }) {
  const sandbox = exampleUrl !== null;
  const payer = sandbox
    ? [
        "const payer = Keypair.generate();",
        "await rpc.requestAirdrop(payer.publicKey, 1_000_000_000);",
      ]
    : [...READ_PAYER, "const payer = Keypair.fromSecretKey(secret);"];
  return [
    ...(sandbox ? [] : READ_IMPORTS),
    'import { Connection, Keypair, PublicKey, SystemProgram, Transaction } from "@solana/web3.js";',
    "",
    `const rpc = new Connection("${rpcUrl ?? MAINNET}", "confirmed");`,
    `const touchdown = new Connection("${url}/api/v1/sendTransaction", {`,
    `  httpHeaders: { "api-x-token": "${key}" },`,
    "});",
    "",
    ...payer,
    "const transaction = new Transaction().add(",
    "  SystemProgram.transfer({",
    "    fromPubkey: payer.publicKey,",
    `    toPubkey: new PublicKey("${tipAccount}"), // a tip account`,
    `    lamports: ${tipLamports}, // the minimum tip`,
    "  }),",
    ");",
    "transaction.recentBlockhash = (await rpc.getLatestBlockhash()).blockhash;",
    "transaction.feePayer = payer.publicKey;",
    "transaction.sign(payer);",
    "",
    "console.log(",
    "  await touchdown.sendRawTransaction(transaction.serialize(), { skipPreflight: true }),",
    ");",
  ].join("\n");
}

/** @param {Filling} filling */
export function kit({ url, key, tipAccount, tipLamports, rpcUrl, exampleUrl }) {
  const sandbox = exampleUrl !== null;
  const payer = sandbox
    ? [
        "const payer = await generateKeyPairSigner();",
        "await rpc.requestAirdrop(payer.address, lamports(1_000_000_000n)).send();",
      ]
    : [...READ_PAYER, "const payer = await createKeyPairSignerFromBytes(secret);"];
  return [
    ...(sandbox ? [] : READ_IMPORTS),
    "import {",
    ...kitNames(sandbox).map((name) => `  ${name},`),
    '} from "@solana/kit";',
    "",
    `const rpc = createSolanaRpc("${rpcUrl ?? MAINNET}");`,
    "const touchdown = createSolanaRpcFromTransport(",
    "  createDefaultRpcTransport({",
    `    url: "${url}/api/v1/sendTransaction",`,
    `    headers: { "api-x-token": "${key}" },`,
    "  }),",
    ");",
    "",
    ...payer,
    "const data = new DataView(new ArrayBuffer(12));",
    "data.setUint32(0, 2, true); // the system program's Transfer",
    `data.setBigUint64(4, ${tipLamports}n, true); // the minimum tip, in lamports`,
    "const tip = {",
    '  programAddress: address("11111111111111111111111111111111"),',
    "  accounts: [",
    "    { address: payer.address, role: AccountRole.WRITABLE_SIGNER },",
    `    { address: address("${tipAccount}"), role: AccountRole.WRITABLE },`,
    "  ],",
    "  data: new Uint8Array(data.buffer),",
    "};",
    "const { value: blockhash } = await rpc.getLatestBlockhash().send();",
    "const message = pipe(",
    "  createTransactionMessage({ version: 0 }),",
    "  (m) => setTransactionMessageFeePayerSigner(payer, m),",
    "  (m) => setTransactionMessageLifetimeUsingBlockhash(blockhash, m),",
    "  (m) => appendTransactionMessageInstruction(tip, m),",
    ");",
    "const signed = await signTransactionMessageWithSigners(message);",
    "const bytes = getBase64EncodedWireTransaction(signed);",
    "",
    'console.log(await touchdown.sendTransaction(bytes, { encoding: "base64" }).send());',
  ].join("\n");
}

/** @param {boolean} sandbox */
function kitNames(sandbox) {
  const payer = sandbox ? ["generateKeyPairSigner", "lamports"] : ["createKeyPairSignerFromBytes"];
  return [
    "AccountRole",
    "address",
    "appendTransactionMessageInstruction",
    "createDefaultRpcTransport",
    "createSolanaRpc",
    "createSolanaRpcFromTransport",
    "createTransactionMessage",
    "getBase64EncodedWireTransaction",
    "pipe",
    "setTransactionMessageFeePayerSigner",
    "setTransactionMessageLifetimeUsingBlockhash",
    "signTransactionMessageWithSigners",
    ...payer,
  ].toSorted((a, b) => (a < b ? -1 : 1));
}
