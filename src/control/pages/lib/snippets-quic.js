/**
 * What the tab QUIC of the Connect page shows: where and how to connect, and a program for each
 * client. All of them read the transaction from a file.
 */

/** @typedef {import("./snippets.js").Filling} Filling */

/** The file from which a program reads the user's transaction. */
export const FILE = "transaction.bin";

/** @param {Filling} filling */
export function quicIntro({ quic: address }) {
  if (address === null) {
    return "This region does not take transactions over QUIC. Use one of the others.";
  }
  return (
    `This region takes transactions over QUIC at ${address} (UDP). With ALPN touchdown/1 each gets a ` +
    "verdict, and the API key is sent only after the region's certificate was verified. With ALPN " +
    "solana-tpu any program that sends to a validator sends here unchanged, with a keypair whose " +
    "public key is registered: Keys, Add a public key."
  );
}

/** @param {Filling} filling */
export function quicRust({ quic: address, key }) {
  return [
    "use touchdown_client::{Client, Config, Credential, SubmitOptions};",
    "",
    "#[tokio::main]",
    "async fn main() -> Result<(), Box<dyn std::error::Error>> {",
    `    let transaction = std::fs::read("${FILE}")?;`,
    `    let credential = Credential::api_key("${key}");`,
    `    let client = Client::start(Config::new("${address}", credential))?;`,
    "    // The warm-up: connected and authenticated, before there is a transaction.",
    "    client.ready().await?;",
    "    let verdict = client.submit(&transaction, SubmitOptions::default()).await?;",
    '    println!("{:?} after {} us", verdict.outcome, verdict.microseconds);',
    "    Ok(())",
    "}",
  ].join("\n");
}

/** @param {Filling} filling */
export function quicTypescript({ quic: address, key }) {
  return [
    'import { readFileSync } from "node:fs";',
    'import { connect } from "touchdown-client";',
    "",
    `const client = connect({ address: "${address}", credential: { apiKey: "${key}" } });`,
    "// The warm-up: connected and authenticated, before there is a transaction.",
    "await client.ready();",
    `const verdict = await client.submit(readFileSync("${FILE}"));`,
    'console.log(verdict.outcome === "refused" ? verdict.reason : verdict.signature);',
    "client.close();",
  ].join("\n");
}

/** @param {Filling} filling */
export function quicTpu({ quic: address }) {
  return [
    "use std::net::{SocketAddr, UdpSocket};",
    "",
    "use solana_keypair::read_keypair_file;",
    "use solana_tpu_client_next::{ClientBuilder, leader_updater::LeaderUpdater};",
    "",
    "/// The region, in place of the leaders.",
    "struct Region(SocketAddr);",
    "",
    "#[async_trait::async_trait]",
    "impl LeaderUpdater for Region {",
    "    fn next_leaders(&mut self, _: usize) -> Vec<SocketAddr> {",
    "        vec![self.0]",
    "    }",
    "",
    "    async fn stop(&mut self) {}",
    "}",
    "",
    "#[tokio::main]",
    "async fn main() -> Result<(), Box<dyn std::error::Error>> {",
    `    let region = tokio::net::lookup_host("${address}").await?.next().ok_or("no address")?;`,
    '    let keypair = read_keypair_file("id.json")?;',
    "    let (sender, _client) = ClientBuilder::new(Box::new(Region(region)))",
    '        .bind_socket(UdpSocket::bind("0.0.0.0:0")?)',
    "        .leader_send_fanout(1)",
    "        .identity(&keypair)",
    "        .build()?;",
    `    sender.send_transactions_in_batch(vec![std::fs::read("${FILE}")?]).await?;`,
    "    // The client sends in the background.",
    "    tokio::time::sleep(std::time::Duration::from_secs(2)).await;",
    "    Ok(())",
    "}",
  ].join("\n");
}
