//! Touchdown's sender against Anza's `tpu-client-next`: the same payloads at the same rates to the
//! same Agave TPU server, interleaved in one run.
//!
//! `touchdown-compare [ROUNDS] [SECONDS] [RATE…]` starts a leader and both senders as separate
//! processes, alternates between the senders at each rate, and prints one line per round and the
//! medians. A payload carries the time at which the sender received it; the leader subtracts it
//! from the time at which the transaction left its streamer. CPU is that of the sender's complete
//! process, including the generator's sleeping and stamping, which is the same code for both.
//!
//! `touchdown-compare path`, `touchdown-compare incumbent` and `touchdown-compare native-ingress`
//! are the parts of the comparison of complete paths, which `main.ts` drives.

mod http_clients;
mod incumbent;
mod layers;
mod leader;
mod library_clients;
mod load;
mod native_ingress;
mod path;
mod quic_clients;
mod round;
mod sender;
mod simulated_leader;
mod stolen;
mod transactions;

use std::error::Error;
use std::net::SocketAddr;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["leader", public_keys @ ..] => leader::run(public_keys),
        ["layers", count] => layers::run(count.parse()?),
        ["path", public_keys @ ..] => path::run(|take| leader::serve(public_keys, take)),
        ["incumbent", address] => incumbent::run(address.parse::<SocketAddr>()?, INCUMBENT),
        ["native-ingress", address, identity, tip] => {
            native_ingress::run(address.parse::<SocketAddr>()?, identity, tip)
        }
        ["incumbent-key"] => {
            println!("{}", solana_signer::Signer::pubkey(&sender::identity(INCUMBENT)?));
            Ok(())
        }
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

/// The incumbent's number among the identities.
const INCUMBENT: usize = 2;
