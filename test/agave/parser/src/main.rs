//! Reads transactions in hex, one a line, and writes what Agave's ingress says of each:
//! `accepted FEE`, the fee being the priority fee in lamports, or `refused WHY`.
//!
//! That is the parser and its sanitize rules, the rule that no account stands twice, the number of
//! accounts to lock, and the compute budget. Signatures, balances and blockhashes are not looked at.

use std::io::{BufRead, BufWriter, Result, Write, stdin, stdout};

use agave_feature_set::FeatureSet;
use agave_transaction_view::sanitize::SanitizeConfig;
use agave_transaction_view::transaction_version::TransactionVersion;
use agave_transaction_view::transaction_view::SanitizedTransactionView;
use solana_compute_budget_instruction::instructions_processor::process_compute_budget_instructions;

/// What a validator runs with today. Agave 4.2.2, 2026-11.
const CONFIG: SanitizeConfig = SanitizeConfig {
    min_requested_heap_size: 32 * 1024,
    max_requested_heap_size: 256 * 1024,
    max_instructions: 64,
    max_accounts_per_instruction: Some(255),
};

/// `Bank::get_transaction_account_lock_limit` of `solana-runtime` 4.2.2, 2026-11, while
/// `increase_tx_account_lock_limit` is inactive, as on mainnet.
const ACCOUNT_LOCKS_MAX: usize = 64;

fn main() -> Result<()> {
    let features = FeatureSet::default();
    let mut out = BufWriter::new(stdout().lock());
    for line in stdin().lock().lines() {
        match fee(&bytes(&line?), &features) {
            Ok(fee) => writeln!(out, "accepted {fee}")?,
            Err(why) => writeln!(out, "refused {why}")?,
        }
    }
    out.flush()
}

fn fee(bytes: &[u8], features: &FeatureSet) -> std::result::Result<u64, String> {
    let view = SanitizedTransactionView::try_new_sanitized(bytes, &CONFIG)
        .map_err(|error| format!("{error:?}"))?;
    let keys = view.static_account_keys();
    if keys.iter().enumerate().any(|(i, key)| keys.iter().take(i).any(|other| other == key)) {
        return Err("AccountLoadedTwice".into());
    }
    for lookup in view.address_table_lookup_iter() {
        let mut indexes = [lookup.writable_indexes, lookup.readonly_indexes].concat();
        indexes.sort_unstable();
        if indexes.windows(2).any(|pair| pair.first() == pair.last()) {
            return Err("AccountLoadedTwice".into());
        }
    }
    if usize::from(view.total_num_accounts()) > ACCOUNT_LOCKS_MAX {
        return Err("TooManyAccountLocks".into());
    }
    if matches!(view.version(), TransactionVersion::V1) {
        let config = view.transaction_config();
        return Ok(config.and_then(|config| config.priority_fee_lamports()).unwrap_or(0));
    }
    process_compute_budget_instructions(view.program_instructions_iter(), features)
        .map(|limits| limits.get_prioritization_fee())
        .map_err(|error| format!("{error:?}"))
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks_exact(2);
    digits
        .filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}
