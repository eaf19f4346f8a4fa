//! The transactions of a run: a transfer with a tip and some bytes for a program, 330 to 1,180
//! bytes long, signed before the clock starts. Those of a run have one blockhash, as a client's have
//! that fetches one each few seconds; the last bytes hold the index in the run, so that a receiver
//! can identify the transaction.

use solana_keypair::{keypair_from_seed, Keypair};
use solana_signer::Signer;

/// Senders sign with few keys.
pub const PAYERS: usize = 4;
/// The account that receives the tip, as in an edge's configuration.
pub const TIP_ACCOUNT: [u8; 32] = [7; 32];
/// The same in base58.
pub const TIP_ACCOUNT_TEXT: &str = "US517G5965aydkZ46HS38QLi7UQiSojurfbQfKCELFx";

const TIP_LAMPORTS: u64 = 1_000_000;
const MESSAGE_AT: usize = 65;
const KEYS_AT: usize = MESSAGE_AT + 4;
const BLOCKHASH_AT: usize = KEYS_AT + 4 * 32;
/// The data for the program.
const DATA_BYTES_MIN: u64 = 80;
const DATA_BYTES_SPREAD: u64 = 850;
const INDEX_BYTES: usize = size_of::<u64>();

/// Signs the transactions of one run.
pub struct Signing {
    payers: Vec<Keypair>,
    run: u64,
    random: Random,
}

impl Signing {
    /// `run` distinguishes this run from others, so that transactions are unique.
    pub fn new(run: u64) -> Self {
        let payers = (0..PAYERS).map(|payer| {
            // A seed of 32 bytes always makes a key.
            keypair_from_seed(&[100 + payer as u8; 32]).unwrap_or_else(|_| Keypair::new())
        });
        Self { payers: payers.collect(), run, random: Random(0x9e37_79b9_7f4a_7c15 ^ run) }
    }

    pub fn sign(&mut self, index: u64) -> Vec<u8> {
        let payer = &self.payers[index as usize % self.payers.len()];
        let data = DATA_BYTES_MIN + self.random.next() % DATA_BYTES_SPREAD;
        let mut bytes = vec![0; BLOCKHASH_AT + 32];
        bytes[0] = 1;
        // One signature; the system program and the other program are read-only.
        bytes[MESSAGE_AT..KEYS_AT].copy_from_slice(&[1, 0, 2, 4]);
        bytes[KEYS_AT..KEYS_AT + 32].copy_from_slice(payer.pubkey().as_array());
        bytes[KEYS_AT + 32..KEYS_AT + 64].copy_from_slice(&TIP_ACCOUNT);
        bytes[KEYS_AT + 96..KEYS_AT + 128].copy_from_slice(&[9; 32]);
        bytes[BLOCKHASH_AT..BLOCKHASH_AT + 8].copy_from_slice(&self.run.to_le_bytes());
        // Two instructions: System Transfer from account 0 to account 1, and bytes for account 3.
        bytes.extend_from_slice(&[2, 2, 2, 0, 1, 12, 2, 0, 0, 0]);
        bytes.extend_from_slice(&TIP_LAMPORTS.to_le_bytes());
        bytes.extend_from_slice(&[3, 0]);
        push_short(&mut bytes, data as usize);
        let end = bytes.len() + data as usize;
        bytes.resize(end - INDEX_BYTES, 0x5a);
        bytes.extend_from_slice(&index.to_le_bytes());
        let signature = payer.sign_message(&bytes[MESSAGE_AT..]);
        bytes[1..MESSAGE_AT].copy_from_slice(signature.as_ref());
        bytes
    }
}

/// The run and the index of a transaction made here.
pub fn place_of(bytes: &[u8]) -> Option<(u64, u64)> {
    let run = u64::from_le_bytes(*bytes.get(BLOCKHASH_AT..)?.first_chunk()?);
    Some((run, u64::from_le_bytes(*bytes.last_chunk()?)))
}

/// A length in the network's encoding: seven bits per byte.
fn push_short(bytes: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// xorshift64: the same run is the same on every machine.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A gap of a Poisson process with this mean.
    pub fn gap(&mut self, mean_ns: f64) -> u64 {
        let uniform = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        (-(1.0 - uniform).ln() * mean_ns) as u64
    }
}
