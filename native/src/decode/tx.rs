//! The transaction decoder: whether leaders would accept these bytes, and whether they pay a tip.
//!
//! One pass, no allocation; returns offsets. It accepts what Agave's ingress parser and sanitize
//! rules accept (`agave-transaction-view` 4.2.2, checked 2026-11), as far as bytes alone determine
//! it. The portable decoder gives the same result for every input, with one exception: it also
//! guesses, off the hot path, what a rejected text or bare message was meant to be.

use crate::decode::compute_budget::compute_budget_fee;
use crate::decode::errors::{DecodeError, Rejected, reject};
use crate::decode::legacy::parse_legacy_or_v0;
use crate::decode::message::SIGNATURES_MAX;
use crate::decode::parse_state::ParseState;
use crate::decode::tip::{TipRule, validate_tip};
use crate::decode::v1::{self, V1_FIRST_BYTE, parse_v1};

/// A transaction that leaders would accept, with the offsets that later stages need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// -1 legacy, 0 or 1 for the versioned forms.
    pub version: i8,
    /// Where the first signature starts.
    pub signature_offset: usize,
    /// The number of signatures.
    pub signature_count: usize,
    /// Where the signed bytes start.
    pub message_offset: usize,
    /// The number of signed bytes.
    pub message_size: usize,
    /// Where the static account keys start; key i is the signer of signature i.
    pub keys_offset: usize,
    /// Where the recent blockhash or durable nonce starts.
    pub blockhash_offset: usize,
    /// Whether the blockhash is a durable nonce, which does not age.
    pub durable_nonce: bool,
    /// The largest single tip found, in lamports.
    pub tip_lamports: i64,
    /// The sender's fee above the base fee, in lamports.
    pub priority_fee_lamports: u64,
}

/// The validation result for everything except the signatures.
pub fn parse(bytes: &[u8], rule: &TipRule) -> Result<Accepted, Rejected> {
    let mut state = ParseState::new(bytes);
    match state.bytes.first().copied().map(usize::from) {
        None => return reject(DecodeError::empty, 0, 1),
        Some(first) if first < 0x80 => parse_legacy_or_v0(&mut state, rule)?,
        Some(V1_FIRST_BYTE) => parse_v1(&mut state, rule)?,
        Some(first) => return reject(DecodeError::version_unknown, first - 0x80, 0),
    }
    let tip_lamports = validate_tip(&state, rule)?;
    Ok(Accepted {
        version: state.version,
        signature_offset: state.signature_offset,
        signature_count: state.signature_count,
        message_offset: state.message_offset,
        message_size: state.message_end - state.message_offset,
        keys_offset: state.keys_offset,
        blockhash_offset: state.blockhash_offset,
        durable_nonce: state.durable_nonce,
        tip_lamports,
        priority_fee_lamports: match state.version {
            1 => state.fee_lamports,
            _ => compute_budget_fee(&state),
        },
    })
}

/// Where the first signature of a transaction would be, from its first two bytes; None if there can
/// be none. Nothing else is checked. As `peekSignatureOffset` in TypeScript.
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

/// Whether the signature counts at the start are those of a transaction. As `startsWell` in
/// TypeScript.
#[must_use]
pub fn starts_well(bytes: &[u8]) -> bool {
    let byte = |at: usize| usize::from(bytes.get(at).copied().unwrap_or(0));
    let first = byte(0);
    let count = if first == V1_FIRST_BYTE { byte(1) } else { first };
    let is_possible = (1..=SIGNATURES_MAX).contains(&count);
    if !is_possible || first == V1_FIRST_BYTE {
        return is_possible;
    }
    // The message behind the signatures starts with its version, unless legacy, and the same count.
    let message = 1 + SIGNATURE_BYTES * count;
    let at = if byte(message) < 0x80 { message } else { message + 1 };
    byte(at) == count
}

const SIGNATURE_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signature_counts_at_the_start_decide_whether_it_may_be_a_transaction() {
        let with = |first: u8, second: u8, at: usize, byte: u8| {
            let mut bytes = vec![0; 200];
            (bytes[0], bytes[1], bytes[at]) = (first, second, byte);
            starts_well(&bytes)
        };
        assert!(with(1, 0, 65, 1) && with(2, 0, 129, 2) && with(0x81, 12, 9, 0));
        assert!(!with(1, 0, 65, 2) && !with(0, 0, 1, 0) && !with(13, 0, 9, 0));
        assert!(!with(0x81, 13, 9, 0) && !with(0x80, 1, 9, 0) && !with(1, 0, 66, 1));
        let mut versioned = vec![0; 200];
        (versioned[0], versioned[65], versioned[66]) = (1, 0x80, 1);
        assert!(starts_well(&versioned) && !starts_well(&versioned[..66]) && !starts_well(&[]));
    }

    #[test]
    fn the_first_signature_offset_is_peeked() {
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
