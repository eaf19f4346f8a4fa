//! Connections that are open and silent, as of clients that wait for their moment.

use std::error::Error;
use std::io::stdin;
use std::net::SocketAddr;

use crate::quic_clients::AccountPeers;

/// Opens `count` connections with the seed in hexadecimal; prints how many, then for each line of
/// its input how many are still open.
pub fn run(address: SocketAddr, count: usize, seed: &str) -> Result<(), Box<dyn Error>> {
    let seed = (0..seed.len()).step_by(2).map(|at| u8::from_str_radix(&seed[at..at + 2], 16));
    let seed: Vec<u8> = seed.collect::<Result<_, _>>()?;
    let account = AccountPeers::open(address, &seed, count)?;
    println!("{}", account.open_count());
    for line in stdin().lines() {
        line?;
        println!("{}", account.open_count());
    }
    Ok(())
}
