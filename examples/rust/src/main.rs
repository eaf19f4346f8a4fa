//! Sends transactions over one kept connection, with `ureq`, whose agent pools connections.

use std::{env, fs, process::exit, thread::sleep, time::Duration};

const RETRYABLE: [&str; 4] = ["rate_limited", "no_leader", "overloaded", "internal"];
const ATTEMPTS_MAX: u32 = 5;

/// The value of a text field of a flat JSON object; none of these contains an escaped quote.
fn field<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = json.split_once(&format!("\"{name}\":\""))?;
    rest.split_once('"').map(|(value, _)| value)
}

/// Returns the signature, or the reason if no repetition changes it.
fn send(agent: &ureq::Agent, url: &str, key: &str, bytes: &[u8]) -> Result<String, String> {
    let mut attempt = 1;
    loop {
        let request = agent
            .post(&format!("{url}/api/v1/sendRawTransaction"))
            .set("api-x-token", key)
            .set("content-type", "application/octet-stream");
        let response = match request.send_bytes(bytes) {
            Ok(response) | Err(ureq::Error::Status(_, response)) => response,
            Err(error) => return Err(error.to_string()),
        };
        let seconds = response
            .header("retry-after")
            .and_then(|text| text.parse().ok());
        let text = response.into_string().map_err(|error| error.to_string())?;
        if let Some(signature) = field(&text, "signature") {
            return Ok(signature.to_string());
        }
        let reason = field(&text, "reason").unwrap_or("unknown").to_string();
        eprintln!("{reason}: {text}");
        if !RETRYABLE.contains(&reason.as_str()) || attempt == ATTEMPTS_MAX {
            return Err(reason);
        }
        attempt += 1;
        sleep(Duration::from_secs(seconds.unwrap_or(1)));
    }
}

fn main() {
    let url = env::var("URL").unwrap_or_else(|_| "http://127.0.0.1:8080".to_string());
    let key = env::var("KEY").unwrap_or_default();
    let agent = ureq::builder()
        .timeout_connect(Duration::from_secs(10))
        .timeout(Duration::from_secs(10))
        .build();
    // Warm-up: the connection is open before the first transaction is there.
    if let Ok(response) = agent.get(&format!("{url}/ping")).call() {
        let _ = response.into_string();
    }
    for path in env::args().skip(1) {
        let bytes = fs::read(&path).expect("a file with a transaction");
        match send(&agent, &url, &key, &bytes) {
            Ok(signature) => println!("{signature}"),
            Err(error) => {
                eprintln!("{error}");
                exit(1);
            }
        }
    }
}
