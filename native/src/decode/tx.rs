//! The transaction decoder: whether leaders would take these bytes on, and whether they tip.
//!
//! One pass, no allocation, offsets out. What it accepts, Agave's ingress parser and sanitize
//! rules accept (`agave-transaction-view` 4.2.2, checked 2026-11), as far as bytes alone can tell.
//! The portable decoder says the same of every input, but for one thing: what a refused text or
//! bare message might have been meant as is guessed there, off the hot path.

use crate::decode::compute_budget::compute_budget_fee;
use crate::decode::faults::{Fault, Refused, refuse};
use crate::decode::legacy::scan_legacy_or_v0;
use crate::decode::scan::Scan;
use crate::decode::tip::{TipRule, judge_tip};
use crate::decode::v1::{V1_FIRST_BYTE, scan_v1};

/// A transaction that leaders would take on, with the offsets that later stages need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// -1 legacy, 0 or 1 for the versioned forms.
    pub version: i8,
    /// Where the first signature starts.
    pub signature_offset: usize,
    /// How many signatures there are.
    pub signature_count: usize,
    /// Where the signed bytes start.
    pub message_offset: usize,
    /// How many bytes are signed.
    pub message_size: usize,
    /// Where the static account keys start; key i is the signer of signature i.
    pub keys_offset: usize,
    /// Where the recent blockhash or durable nonce starts.
    pub blockhash_offset: usize,
    /// Whether the blockhash is a durable nonce, which does not age.
    pub durable_nonce: bool,
    /// The largest single tip found, in lamports.
    pub tip_lamports: i64,
    /// What the sender offers above the base fee, in lamports.
    pub priority_fee_lamports: u64,
}

/// The verdict on everything but the signatures.
pub fn parse(bytes: &[u8], rule: &TipRule) -> Result<Accepted, Refused> {
    let mut scan = Scan::new(bytes);
    match scan.bytes.first().copied().map(usize::from) {
        None => return refuse(Fault::empty, 0, 1),
        Some(first) if first < 0x80 => scan_legacy_or_v0(&mut scan, rule)?,
        Some(V1_FIRST_BYTE) => scan_v1(&mut scan, rule)?,
        Some(first) => return refuse(Fault::version_unknown, first - 0x80, 0),
    }
    let tip_lamports = judge_tip(&scan, rule)?;
    Ok(Accepted {
        version: scan.version,
        signature_offset: scan.signature_offset,
        signature_count: scan.signature_count,
        message_offset: scan.message_offset,
        message_size: scan.message_end - scan.message_offset,
        keys_offset: scan.keys_offset,
        blockhash_offset: scan.blockhash_offset,
        durable_nonce: scan.durable_nonce,
        tip_lamports,
        priority_fee_lamports: match scan.version {
            1 => scan.fee_lamports,
            _ => compute_budget_fee(&scan),
        },
    })
}
