//! The Rust side of `npm run load -- --quic`, which `bench/quic/main.ts` drives: generator and
//! leader, clients that never finish their handshake, and clients that are silent.

mod handshakes;
mod hold;
mod http_clients;
mod library_clients;
mod load;
mod path;
mod quic_clients;
mod simulated_leader;
mod stolen;
mod transactions;

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["path"] => path::run(simulated_leader::serve),
        ["handshakes", "unread", rate, seconds] => {
            handshakes::run_unread(rate.parse()?, seconds.parse()?)
        }
        ["handshakes", address, rate, seconds] => {
            handshakes::run(address.parse()?, rate.parse()?, seconds.parse()?)
        }
        ["hold", address, count, seed] => hold::run(address.parse()?, count.parse()?, seed),
        _ => Err("touchdown-load path | handshakes ADDRESS|unread RATE SECONDS \
            | hold ADDRESS COUNT SEED"
            .into()),
    }
}
