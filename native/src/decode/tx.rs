//! The transaction decoder: whether leaders would take these bytes on, and whether they tip.
//!
//! One pass, no allocation, offsets out. What it accepts, Agave's ingress parser and sanitize
//! rules accept (`agave-transaction-view` 4.2.2, checked 2026-11), as far as bytes alone can tell.
//! The portable decoder says the same of every input, but for one thing: what a refused text or
//! bare message might have been meant as is guessed there, off the hot path.

use crate::decode::compute_budget::compute_budget_fee;
use crate::decode::faults::{Fault, Refused, refuse};
use crate::decode::legacy::scan_legacy_or_v0;
use crate::decode::message::SIGNATURES_MAX;
use crate::decode::scan::Scan;
use crate::decode::tip::{TipRule, judge_tip};
use crate::decode::v1::{self, V1_FIRST_BYTE, scan_v1};

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

/// Where the first signature of a transaction would be, read from its first two bytes; None where
/// there can be none. Nothing else is checked. `peekSignatureOffset` of `decode/transaction.ts`.
#[must_use]
pub fn peek_signature_offset(bytes: &[u8]) -> Option<usize> {
    let (first, second) = (usize::from(*bytes.first()?), usize::from(*bytes.get(1)?));
    let is_v1 = first == V1_FIRST_BYTE;
    let count = if is_v1 { second } else { first };
    let rest = bytes.len().checked_sub(SIGNATURE_BYTES * count)?;
    let fits =
        (1..=SIGNATURES_MAX).contains(&count) && rest >= if is_v1 { v1::KEYS_OFFSET } else { 1 };
    fits.then_some(if is_v1 { rest } else { 1 })
}

const SIGNATURE_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_signature_is_looked_for_where_it_would_be() {
        let with = |first: u8, second: u8, size: usize| {
            let mut bytes = vec![0; size];
            (bytes[0], bytes[1]) = (first, second);
            peek_signature_offset(&bytes)
        };
        assert_eq!((with(1, 0, 65), with(1, 0, 64)), (Some(1), None));
        assert_eq!((with(12, 0, 769), with(13, 0, 4096), with(0, 0, 99)), (Some(1), None, None));
        assert_eq!((with(0x81, 2, 170), with(0x81, 2, 169)), (Some(42), None));
        assert_eq!((with(0x81, 1, 300), with(0x81, 0, 300)), (Some(236), None));
        assert_eq!((with(0x81, 13, 4096), with(0x80, 1, 4096)), (None, None));
        assert_eq!((peek_signature_offset(&[1]), peek_signature_offset(&[])), (None, None));
    }
}
