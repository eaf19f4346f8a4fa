//! Submits files with one signed transaction each, and prints the verdict of each.
//!
//! `EDGE=host:port KEY=… cargo run --example submit -- transaction.bin …`. Instead of `KEY`:
//! `DERIVE_FROM` takes a certificate that is derived from an API key, `KEYPAIR` a file of
//! `solana-keygen`. `ALPN=solana-tpu` sends without verdicts. `AUTHORITY` names a file with the
//! authority of the edge's certificate, in PEM or DER; empty: any certificate, which only a keypair
//! allows.

use std::error::Error;
use std::process::ExitCode;
use std::{env, fs};

use touchdown_client::{
    Client, Config, Credential, Event, Outcome, Protocol, SubmitOptions, Trust, Verdict,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let config = config()?;
    let has_verdicts = config.protocol == Protocol::Touchdown1;
    let client = Client::start(config)?;
    let mut events = client.events();
    client.ready().await?;
    while let Ok(event) = events.try_recv() {
        if let Event::Limits { rate_per_second, burst, credit } = event {
            eprintln!("{rate_per_second} a second, {burst} at once, {credit} now");
        }
    }
    for file in env::args().skip(1) {
        let transaction = fs::read(&file)?;
        if has_verdicts {
            let verdict = until_decided(&client, &transaction).await?;
            println!("{file}: {:?} after {} us", verdict.outcome, verdict.microseconds);
        } else {
            client.send(&transaction).await?;
            println!("{file}: sent");
        }
    }
    Ok(())
}

/// Submits again what the edge refuses for now, five times at most.
async fn until_decided(client: &Client, transaction: &[u8]) -> Result<Verdict, Box<dyn Error>> {
    let mut pause = std::time::Duration::from_millis(100);
    for _ in 0..5 {
        let verdict = client.submit(transaction, SubmitOptions::default()).await?;
        match verdict.outcome {
            Outcome::Refused(reason) if reason.is_retryable() => tokio::time::sleep(pause).await,
            _ => return Ok(verdict),
        }
        pause *= 2;
    }
    Ok(client.submit(transaction, SubmitOptions::default()).await?)
}

fn config() -> Result<Config, Box<dyn Error>> {
    let credential = if let Ok(key) = env::var("KEY") {
        Credential::api_key(key)
    } else if let Ok(key) = env::var("DERIVE_FROM") {
        Credential::derived(&key)
    } else {
        Credential::seed(read_seed(&env::var("KEYPAIR")?)?)
    };
    let mut config = Config::new(env::var("EDGE")?, credential);
    if env::var("ALPN").is_ok_and(|alpn| alpn == "solana-tpu") {
        config.protocol = Protocol::SolanaTpu;
    }
    match env::var("AUTHORITY") {
        Ok(file) if file.is_empty() => config.trust = Trust::Any,
        Ok(file) => config.trust = Trust::Authorities(vec![fs::read(file)?]),
        Err(_) => {}
    }
    Ok(config)
}

/// The seed in a file of `solana-keygen`: a JSON array of 64 numbers, of which it is the first 32.
fn read_seed(file: &str) -> Result<[u8; 32], Box<dyn Error>> {
    let text = fs::read_to_string(file)?;
    let numbers = text.trim().trim_matches(['[', ']']).split(',').map(|part| part.trim().parse());
    let bytes: Vec<u8> = numbers.collect::<Result<_, _>>()?;
    Ok(*bytes.first_chunk().ok_or("a keypair file has 64 numbers")?)
}
