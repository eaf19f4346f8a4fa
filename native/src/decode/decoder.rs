//! From bytes to a validation result: the parser, the tip rule and the signatures, in this order,
//! because the first error found is the one reported, and because the signatures cost most.
//!
//! A decoder serves any number of threads concurrently. It panics on no input and always gives the
//! same result for the same bytes.

use crate::decode::errors::Rejected;
use crate::decode::signatures::verify_signatures;
use crate::decode::tip::TipRule;
use crate::decode::tx::{Accepted, parse};
use crate::ed25519::multi_add::Backend;
use crate::ed25519::verify::Verifier;
use crate::sync::thread_priority::lower_priority;

/// Numbers of a serialized validation result: see `numbers`.
pub const VALIDATION_NUMBERS: usize = 11;
/// A decoder's counters: verified, invalid, keys found, made, evicted, declined.
pub const COUNTERS: usize = 6;

/// Maximum number of tip accounts.
const TIP_ACCOUNTS_MAX: usize = 1024;
/// Largest integer that a double represents exactly.
const EXACT_MAX: f64 = 9_007_199_254_740_991.0;

/// A parser, a tip rule and a verifier.
pub struct Decoder {
    rule: TipRule,
    verifier: Option<Verifier>,
}

impl Decoder {
    /// None when the accounts are not 32 bytes each and at most 1024, or when the lamports are not
    /// an integer between 0 and 2^53 - 1. Without `verify` no signature is checked.
    #[must_use]
    pub fn new(accounts: &[u8], lamports_min: f64, verify: bool, keys: usize) -> Option<Self> {
        let (accounts, rest) = accounts.as_chunks::<32>();
        let is_amount = (0.0..=EXACT_MAX).contains(&lamports_min) && lamports_min.fract() == 0.0;
        if !rest.is_empty() || accounts.len() > TIP_ACCOUNTS_MAX || !is_amount {
            return None;
        }
        let rule = TipRule { accounts: accounts.into(), lamports_min: lamports_min as i64 };
        let verifier =
            verify.then(|| Verifier::with_builder(keys, Backend::best(), lower_priority));
        Some(Self { rule, verifier })
    }

    /// Validates a transaction.
    pub fn decode(&self, bytes: &[u8]) -> Result<Accepted, Rejected> {
        let accepted = parse(bytes, &self.rule)?;
        if let Some(verifier) = &self.verifier {
            verify_signatures(verifier, bytes, &accepted)?;
        }
        Ok(accepted)
    }

    /// The tip that it requires.
    #[must_use]
    pub fn tip_rule(&self) -> &TipRule {
        &self.rule
    }

    /// The verifier, if signatures are verified.
    #[must_use]
    pub fn verifier(&self) -> Option<&Verifier> {
        self.verifier.as_ref()
    }

    /// The counters in order.
    #[must_use]
    pub fn counters(&self) -> [u64; COUNTERS] {
        let Some(verifier) = &self.verifier else {
            return [0; COUNTERS];
        };
        let [verified, invalid] = verifier.counters();
        let keys = verifier.key_counters();
        [verified, invalid, keys.found, keys.made, keys.evicted, keys.declined]
    }
}

/// The validation result as numbers. Rejected: 0, error, found, needed. Accepted: 1, version,
/// signature offset and count, message offset and size, keys offset, blockhash offset, durable
/// nonce, tip and priority fee. The rest is 0.
#[must_use]
pub fn numbers(validation: &Result<Accepted, Rejected>) -> [f64; VALIDATION_NUMBERS] {
    let mut out = [0.0; VALIDATION_NUMBERS];
    match validation {
        Ok(accepted) => {
            out = [
                1.0,
                f64::from(accepted.version),
                accepted.signature_offset as f64,
                accepted.signature_count as f64,
                accepted.message_offset as f64,
                accepted.message_size as f64,
                accepted.keys_offset as f64,
                accepted.blockhash_offset as f64,
                f64::from(u8::from(accepted.durable_nonce)),
                accepted.tip_lamports as f64,
                accepted.priority_fee_lamports as f64,
            ];
        }
        Err(rejected) => {
            let numbers =
                [f64::from(rejected.error as u8), rejected.found as f64, rejected.needed as f64];
            for (slot, number) in out.iter_mut().skip(1).zip(numbers) {
                *slot = number;
            }
        }
    }
    out
}

/// Maximum number of decoders.
pub const DECODERS_MAX: usize = 64;
