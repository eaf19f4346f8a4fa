//! Touchdown's sender against Anza's `tpu-client-next`: the same payloads at the same rates to
//! the same Agave TPU server, interleaved in one run.
//!
//! `touchdown-compare [ROUNDS] [SECONDS] [RATE…]` starts a leader and both senders as processes of their
//! own, lets the senders take turns at each rate, and prints one line a round and the medians.
//! A payload carries the moment it was handed to the sender; the leader subtracts it from the
//! moment the transaction came out of its streamer. CPU is the sender's whole process, the
//! generator's sleeping and stamping included, which is the same code for both.

mod leader;
mod round;
mod sender;

use std::error::Error;
use std::net::SocketAddr;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["leader", public_keys @ ..] => leader::run(public_keys),
        ["sender", name, address] => sender::run(name, address.parse::<SocketAddr>()?),
        numbers => {
            let number = |place: usize, default: u64| match numbers.get(place) {
                Some(word) => word.parse::<u64>(),
                None => Ok(default),
            };
            let rates = numbers.iter().skip(2).map(|word| word.parse::<u64>());
            let rates: Vec<u64> = rates.collect::<Result<_, _>>()?;
            round::run(number(0, 5)?, number(1, 4)?, &rates)
        }
    }
}
