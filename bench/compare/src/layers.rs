//! The innermost layer for `bench/layers`: the decoder as a Rust function. Prints the transactions
//! that it used, for the layers around it.

use std::error::Error;
use std::time::Duration;

use base64::prelude::{Engine, BASE64_STANDARD};
use serde_json::json;
use touchdown_native::decode::decoder::Decoder;
use touchdown_native::sync::clock::monotonic_ns;

use crate::path::quantiles;
use crate::transactions::{Signing, PAYERS, TIP_ACCOUNT};

const KEYS_MAX: usize = 512;
const LAMPORTS_MIN: f64 = 1_000_000.0;

/// Prints the measurements, then `count` transactions in base64, one per line.
pub fn run(count: usize) -> Result<(), Box<dyn Error>> {
    let mut signing = Signing::new(u64::MAX);
    let transactions: Vec<_> = (0..count).map(|index| signing.sign(index as u64)).collect();
    let verified = measure(&transactions, true)?;
    let parsed = measure(&transactions, false)?;
    let tip_account = bs58::encode(TIP_ACCOUNT).into_string();
    println!("{}", json!({ "tip_account": tip_account, "verified": verified, "parsed": parsed }));
    for transaction in transactions {
        println!("{}", BASE64_STANDARD.encode(transaction));
    }
    Ok(())
}

fn measure(transactions: &[Vec<u8>], verify: bool) -> Result<serde_json::Value, Box<dyn Error>> {
    let decoder = Decoder::new(&TIP_ACCOUNT, LAMPORTS_MIN, verify, KEYS_MAX);
    let decoder = decoder.ok_or("the decoder refuses its options")?;
    let decode = |transaction: &Vec<u8>| match decoder.decode(transaction) {
        Ok(_) => Ok(()),
        Err(refused) => Err(format!("{refused:?}")),
    };
    // Another thread builds the table of a key when the key occurs for the second time.
    for transaction in transactions.iter().take(PAYERS * 3) {
        decode(transaction)?;
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut took_ns = Vec::with_capacity(transactions.len());
    for transaction in transactions {
        let started_ns = monotonic_ns();
        decode(transaction)?;
        took_ns.push(monotonic_ns() - started_ns);
    }
    Ok(quantiles(&mut took_ns))
}
